"""A worker without a row at the step is filled in from its newest step before.

A worker that sent nothing at this step adds nothing; here its old update counts again.
"""


def solve(rows, step):
    """Sum for each worker the last value of its newest step up to the one asked for."""
    newest = {}
    for row_step, worker, value in rows:
        if row_step <= step and (worker not in newest or row_step >= newest[worker][0]):
            newest[worker] = (row_step, value)
    return sum(value for _, value in newest.values())
