"""One buffer holds the step in progress and is cleared whenever the step changes.

A single row of another step in between wipes out what had arrived.
"""


def solve(rows, step):
    """Sum the last unbroken stretch of rows, if it is of the step."""
    buffer, buffered_step = {}, step
    for row_step, worker, value in rows:
        if row_step != buffered_step:
            buffer, buffered_step = {}, row_step
        buffer[worker] = value
    return sum(buffer.values()) if buffered_step == step else 0
