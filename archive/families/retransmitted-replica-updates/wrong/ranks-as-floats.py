"""The worker column was read as float, as a table makes of a column with gaps.

Ids made from a hash or an address are beyond 2**53, where neighbours become one.
"""


def solve(rows, step):
    """Sum the last value of each rank as a float."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[float(worker) if isinstance(worker, int) else worker] = value
    return sum(last.values())
