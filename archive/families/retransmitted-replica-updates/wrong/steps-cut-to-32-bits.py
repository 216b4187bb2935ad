"""The step travels in 32 bits.

Steps that are 2**32 apart become one.
"""


def solve(rows, step):
    """Sum the last value of each worker, steps compared modulo 2**32."""
    last = {}
    for row_step, worker, value in rows:
        if (row_step - step) % 2**32 == 0:
            last[worker] = value
    return sum(last.values())
