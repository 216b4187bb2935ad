"""The total is rounded to two places to hide the noise of floating point.

These sums have no noise, and an eighth has three places.
"""


def solve(rows, step):
    """Sum the last values and round the total."""
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    return round(sum(last.values()), 2)
