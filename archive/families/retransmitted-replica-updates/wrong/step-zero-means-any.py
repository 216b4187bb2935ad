"""The step is optional here, and the test for it is `if step`.

Step 0 is false too: rows of all steps are let through.
"""


def solve(rows, step):
    """Sum the last value of each worker, at the step if there is one."""
    last = {}
    for row_step, worker, value in rows:
        if not step or row_step == step:
            last[worker] = value
    return sum(last.values())
