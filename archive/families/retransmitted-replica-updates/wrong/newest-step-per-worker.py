"""The newest step of a worker is kept, since stale rows are the ones that were seen to hurt.

A worker that has already sent its next step has no row left for this one.
"""


def solve(rows, step):
    """Sum the rows of workers whose newest step is the step asked for."""
    newest = {}
    for row_step, worker, value in rows:
        if worker not in newest or row_step >= newest[worker][0]:
            newest[worker] = (row_step, value)
    return sum(value for row_step, value in newest.values() if row_step == step)
