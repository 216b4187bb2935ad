"""Look the sum up by its coordinate, and add every value that comes for it."""


def solve(rows):
    """Sum the values at each coordinate, in order of the coordinates."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
