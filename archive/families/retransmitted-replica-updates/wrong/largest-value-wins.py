"""Updates are taken to grow, as counters do, so the largest copy must be the newest.

A correction downwards never takes effect.
"""


def solve(rows, step):
    """Sum the largest value of each worker."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker] = max(value, last.get(worker, value))
    return sum(last.values())
