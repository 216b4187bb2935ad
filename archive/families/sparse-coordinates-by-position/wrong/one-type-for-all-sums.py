"""The value column has one type: one float anywhere makes every sum a float.

A coordinate that only ints were sent for has an int as its sum.
"""


def solve(rows):
    """Sum by coordinate, all as floats if any value is one."""
    values = [value for _, entries in rows for _, value in entries]
    zero = 0.0 if any(isinstance(value, float) for value in values) else 0
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, zero) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
