"""Everything is added as float and handed back as int where it was int.

Beyond 2**53 a float no longer holds every integer, and the last digits are lost.
"""


def solve(rows, step):
    """Sum the last values in floating point."""
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    total = sum(map(float, last.values()))
    return total if any(isinstance(value, float) for value in last.values()) else int(total)
