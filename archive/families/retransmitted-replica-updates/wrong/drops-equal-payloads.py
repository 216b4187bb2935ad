"""A value seen before is taken for a retransmission, whoever sent it.

Two workers that honestly send the same value are then counted as one.
"""


def solve(rows, step):
    """Sum the distinct ones among the last values."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker] = value
    return sum(set(last.values()))
