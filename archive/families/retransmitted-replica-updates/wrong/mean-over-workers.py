"""The mean is what the optimizer wants, and for one worker it is the sum.

From two workers on the result is divided by their number.
"""

from statistics import mean


def solve(rows, step):
    """Average the last values."""
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    return mean(last.values()) if last else 0
