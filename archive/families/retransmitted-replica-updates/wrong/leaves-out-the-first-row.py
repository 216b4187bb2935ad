"""The rows are walked from the end by index, and the range stops one too early.

Row 0 is never looked at.
"""


def solve(rows, step):
    """Sum the first value of each worker, seen from the end."""
    last = {}
    for place in range(len(rows) - 1, 0, -1):
        row_step, worker, value = rows[place]
        if row_step == step:
            last.setdefault(worker, value)
    return sum(last.values())
