"""The sum is kept in single precision, as the buffer of the optimizer is.

Twenty-four bits do not hold an eighth next to a large value.
"""

import struct


def solve(rows, step):
    """Sum the last values, each float sum rounded to 32 bits."""
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    total = 0
    for value in last.values():
        total += value
        if isinstance(total, float):
            (total,) = struct.unpack("f", struct.pack("f", total))
    return total
