"""The rank of the sender is kept in one byte, as a small message header would.

Ranks 1 and 257 become one worker.
"""


def solve(rows, step):
    """Sum the last value of each rank modulo 256."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker & 0xFF if isinstance(worker, int) else worker] = value
    return sum(last.values())
