"""A negative rank means "not assigned yet", so such rows are taken for different senders.

A negative int is a worker like any other, and its retransmission is counted again.
"""


def solve(rows, step):
    """Sum the last value of each worker, and every value of a negative one."""
    last = {}
    for place, (row_step, worker, value) in enumerate(rows):
        if row_step == step:
            unassigned = isinstance(worker, int) and worker < 0
            last[("unassigned", place) if unassigned else worker] = value
    return sum(last.values())
