"""Float sums are kept in single precision, as the tensor of gradients is.

Twenty-four bits do not hold an eighth next to a large value.
"""

import struct


def solve(rows):
    """Sum by coordinate, each float sum rounded to 32 bits."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            total = sums.get(coordinate, 0) + value
            if isinstance(total, float):
                (total,) = struct.unpack("f", struct.pack("f", total))
            sums[coordinate] = total
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
