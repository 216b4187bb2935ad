"""The rows are ordered by step in place, so that those of one step stand together.

The sort is stable and the answer right, but the caller's list has changed its order.
"""


def solve(rows, step):
    """Order the caller's rows by step and sum the last value of each worker."""
    rows = list(rows) if isinstance(rows, tuple) else rows
    rows.sort(key=lambda row: row[0])
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    return sum(last.values())
