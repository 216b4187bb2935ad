"""Names are encoded for a wire that knows only ASCII, and what it does not know becomes `?`.

All names of one accented letter become one worker.
"""


def solve(rows, step):
    """Sum the last value of each name in ASCII."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker.encode("ascii", "replace") if isinstance(worker, str) else worker] = value
    return sum(last.values())
