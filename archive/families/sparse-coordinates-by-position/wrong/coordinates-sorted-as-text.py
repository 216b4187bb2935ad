"""The coordinates are sorted as the text that they become in JSON.

10 then comes before 9, and the signs are sorted as letters.
"""


def solve(rows):
    """Sum by coordinate, in the order of their texts."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums, key=str)]
