"""Names are folded to lower case and stripped, as host names may be.

Names are exact: "a", "A" and "a " are three workers.
"""


def solve(rows, step):
    """Sum the last value of each folded name."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[worker.strip().lower() if isinstance(worker, str) else worker] = value
    return sum(last.values())
