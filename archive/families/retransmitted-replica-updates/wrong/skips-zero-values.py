"""A row without a value is skipped, and the test for it is `if value`.

Zero is false too, so that a correction to zero leaves the old value standing.
"""


def solve(rows, step):
    """Sum the last value of each worker that is not zero."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step and value:
            last[worker] = value
    return sum(last.values())
