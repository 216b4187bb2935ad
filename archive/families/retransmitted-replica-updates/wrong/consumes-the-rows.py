"""Rows are popped from the end, newest first: the first seen of a worker is then its last.

The answer is right and the caller's list is empty afterwards, so a second call gives 0.
"""


def solve(rows, step):
    """Sum the last value of each worker, and take the rows out of the caller's list."""
    if isinstance(rows, tuple):
        rows = list(rows)
    last = {}
    while rows:
        row_step, worker, value = rows.pop()
        if row_step == step:
            last.setdefault(worker, value)
    return sum(last.values())
