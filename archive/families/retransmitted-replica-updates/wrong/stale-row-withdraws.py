"""A row of another step is read as word that the worker has moved on, and its value is taken out.

Rows of other steps must change nothing.
"""


def solve(rows, step):
    """Sum the last value of each worker, unless a row of another step came after it."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker] = value
        elif row_step < step:
            last.pop(worker, None)
    return sum(last.values())
