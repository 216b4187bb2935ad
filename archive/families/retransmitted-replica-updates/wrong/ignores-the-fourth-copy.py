"""A worker is given three tries, as the retry policy of the sender says.

Sender and network both retry, so more copies come than either allows, and the last is the one.
"""


def solve(rows, step):
    """Sum the last of the first three values of each worker."""
    last, tries = {}, {}
    for row_step, worker, value in rows:
        if row_step == step:
            tries[worker] = tries.get(worker, 0) + 1
            if tries[worker] <= 3:
                last[worker] = value
    return sum(last.values())
