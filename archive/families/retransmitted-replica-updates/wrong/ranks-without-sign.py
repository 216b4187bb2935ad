"""The sign of a rank marks a resend in the log, so `abs` takes it off.

Here -1 and 1 are two workers, and one of them is lost.
"""


def solve(rows, step):
    """Sum the last value of each rank without its sign."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[abs(worker) if isinstance(worker, int) else worker] = value
    return sum(last.values())
