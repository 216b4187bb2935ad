"""Workers are looked up with `is`, which works for names written in the source.

Names that were built, read or received are equal but separate objects: each of their
retransmissions then looks like a new worker.
"""


def solve(rows, step):
    """Sum the last value of each worker object."""
    last = []
    for row_step, worker, value in rows:
        if row_step == step:
            last = [entry for entry in last if entry[0] is not worker]
            last.append((worker, value))
    return sum(value for _, value in last)
