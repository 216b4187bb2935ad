"""A running total is corrected with each new value, and its type is set right at the end.

Where an int and a float meet on the way, the total has been rounded by then.
"""


def solve(rows, step):
    """Keep a running total, and hand it back as the kind of number that the last values are."""
    total, last = 0, {}
    for row_step, worker, value in rows:
        if row_step == step:
            total += value - last.get(worker, 0)
            last[worker] = value
    return total if any(isinstance(value, float) for value in last.values()) else int(total)
