"""Names are cut to the width of a column of the log.

Workers of one host, which differ only at the end of the name, become one.
"""


def solve(rows, step):
    """Sum the last value of each name's first eight letters."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker[:8] if isinstance(worker, str) else worker] = value
    return sum(last.values())
