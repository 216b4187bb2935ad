"""The rows are believed to be of one step, as the caller promised.

Rows of other steps add and displace.
"""


def solve(rows, step):  # noqa: ARG001
    """Sum the last value of each worker."""
    return sum({worker: value for _, worker, value in rows}.values())
