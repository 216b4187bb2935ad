"""The step column was read as float, as tables with gaps are.

Steps beyond 2**53 that are next to each other become one.
"""


def solve(rows, step):
    """Sum the last value of each worker, steps compared as floats."""
    last = {}
    for row_step, worker, value in rows:
        if float(row_step) == float(step):
            last[worker] = value
    return sum(last.values())
