"""The first row of a later step is taken to end this one, and reading stops.

A retransmission that arrives after a fast worker has gone ahead is lost.
"""


def solve(rows, step):
    """Sum the last value of each worker before the first row of a later step."""
    last = {}
    for row_step, worker, value in rows:
        if row_step > step:
            break
        if row_step == step:
            last[worker] = value
    return sum(last.values())
