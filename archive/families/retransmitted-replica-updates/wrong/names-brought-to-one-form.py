"""Names are normalised (NFKC), as identifiers and login names are.

A name counts as it was sent: two that only look or mean the same are two workers.
"""

import unicodedata


def solve(rows, step):
    """Sum the last value of each normalised name."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            is_name = isinstance(worker, str)
            last[unicodedata.normalize("NFKC", worker) if is_name else worker] = value
    return sum(last.values())
