"""A row that is ahead is let through: fresher than asked for cannot hurt.

The update of a later step then takes the place of this one's.
"""


def solve(rows, step):
    """Sum the last value of each worker at the step or later."""
    last = {}
    for row_step, worker, value in rows:
        if row_step >= step:
            last[worker] = value
    return sum(last.values())
