"""A sum of zero is dropped from the result, as sparse formats leave zeros out.

Absent means that nobody sent the coordinate; one that cancels was sent.
"""


def solve(rows):
    """Sum by coordinate and leave the zeros out."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums) if sums[coordinate]]
