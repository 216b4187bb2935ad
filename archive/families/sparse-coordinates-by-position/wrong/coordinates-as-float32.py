"""Coordinates share a float32 buffer with the values.

From 2**24 on a float32 no longer holds every integer, and neighbours become one.
"""

from struct import pack, unpack


def solve(rows):
    """Sum by coordinate, each as the nearest float32."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            narrow = int(unpack("<f", pack("<f", coordinate))[0])
            sums[narrow] = sums.get(narrow, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
