"""Of several copies the one nearest to zero is kept, as the cautious choice.

A correction away from zero never takes effect.
"""


def solve(rows, step):
    """Sum the value nearest to zero of each worker."""
    sent = {}
    for row_step, worker, value in rows:
        if row_step == step:
            sent.setdefault(worker, []).append(value)
    return sum(min(values, key=abs) for values in sent.values())
