"""Names that look like ranks are turned into numbers, so that "7" is found again as 7.

7, "7" and "07" are three workers and become one.
"""


def solve(rows, step):
    """Sum the last value of each worker, names of digits read as numbers."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            is_rank = isinstance(worker, str) and worker.isdecimal()
            last[int(worker) if is_rank else worker] = value
    return sum(last.values())
