"""A value equal to the one that stands is not written again, to save a write.

2 and 2.0 are equal, yet the sum is to be a float only where the newest row holds a float.
"""


def solve(rows, step):
    """Sum the last values, each written only where it differs from the one before."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step and (worker not in last or last[worker] != value):
            last[worker] = value
    return sum(last.values())
