"""Workers become text so that names and numbers can share one table.

Worker 1 and worker "1" are two workers and become one.
"""


def solve(rows, step):
    """Sum the last value of each worker's text."""
    last = {}
    for row_step, worker, value in rows:
        if row_step == step:
            last[str(worker)] = value
    return sum(last.values())
