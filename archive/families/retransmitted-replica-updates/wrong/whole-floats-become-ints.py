"""A total without a fraction is handed back as int, because it prints more nicely.

The type of the result then depends on its value, and 2.0 comes back as 2.
"""


def solve(rows, step):
    """Sum the last values, as an int where the total is whole."""
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    total = sum(last.values())
    return int(total) if total == int(total) else total
