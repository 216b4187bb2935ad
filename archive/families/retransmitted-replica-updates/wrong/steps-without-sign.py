"""Steps are never negative, so the sign is dropped to be on the safe side.

Where steps count down to a start at zero, step -3 and step 3 become one.
"""


def solve(rows, step):
    """Sum the last value of each worker, steps compared without sign."""
    last = {}
    for row_step, worker, value in rows:
        if abs(row_step) == abs(step):
            last[worker] = value
    return sum(last.values())
