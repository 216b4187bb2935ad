"""A row is known by its worker and its coordinates, and a later one corrects it.

A worker that touches the same rows of an embedding in two batches has sent two contributions.
"""


def solve(rows):
    """Sum by coordinate the last row of each worker and list of coordinates."""
    last, sums = {}, {}
    for worker, entries in rows:
        last[worker, tuple(coordinate for coordinate, _ in entries)] = entries
    for entries in last.values():
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
