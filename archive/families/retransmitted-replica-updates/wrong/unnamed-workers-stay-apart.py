"""Rows without a worker are kept apart by their place, and `or` picks the place.

Rank 0 and the empty name are false too, so their retransmissions are counted again.
"""


def solve(rows, step):
    """Sum the last value of each worker that is true, and every value of the others."""
    last = {}
    for place, (row_step, worker, value) in enumerate(rows):
        if row_step == step:
            last[worker or ("unnamed", place)] = value
    return sum(last.values())
