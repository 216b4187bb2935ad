"""The table is a default argument, which is made once and shared by all calls.

What one call has seen still counts in the next.
"""


def solve(rows, step, last={}):  # noqa: B006
    """Sum the last value of each worker, this call's and those of earlier calls."""
    for row_step, worker, value in rows:
        if row_step == step:
            last[step, worker] = value
    return sum(value for (at, _), value in last.items() if at == step)
