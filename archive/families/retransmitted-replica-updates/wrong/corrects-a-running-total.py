"""The old value is taken off a running total when a new one comes.

For numbers that is the same, for types it is not: a superseded float leaves the total a float.
"""


def solve(rows, step):
    """Keep a running total, less each value that is replaced."""
    total, last = 0, {}
    for row_step, worker, value in rows:
        if row_step == step:
            total += value - last.get(worker, 0)
            last[worker] = value
    return total
