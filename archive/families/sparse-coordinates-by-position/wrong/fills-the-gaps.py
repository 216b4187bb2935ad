"""Few coordinates are added in a plain list, which is faster than a table.

A list has an entry for every index, so that coordinates which nobody sent are in the result.
"""


def solve(rows):
    """Sum by coordinate, densely where all coordinates are small."""
    pairs = [pair for _, entries in rows for pair in entries]
    coordinates = sorted({coordinate for coordinate, _ in pairs})
    if coordinates and coordinates[0] >= 0 and coordinates[-1] < 64:
        coordinates = range(coordinates[0], coordinates[-1] + 1)
    sums = dict.fromkeys(coordinates, 0)
    for coordinate, value in pairs:
        sums[coordinate] += value
    return [[coordinate, sums[coordinate]] for coordinate in coordinates]
