"""Coordinates travel as signed 16-bit integers beside half-precision values.

From 32768 on they come back negative, and coordinates 65536 apart become one.
"""


def solve(rows):
    """Sum by coordinate modulo 2**16."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            narrow = (coordinate + 2**15) % 2**16 - 2**15
            sums[narrow] = sums.get(narrow, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
