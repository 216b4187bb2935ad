"""The lists of each worker are counted once under the text of its name.

Worker 1 and worker "1" are two workers, and the list of the second is lost.
"""


def solve(rows):
    """Sum by coordinate, skipping a list under a name of another type with the same text."""
    names, sums = {}, {}
    for worker, entries in rows:
        if names.setdefault(str(worker), worker) == worker:
            for coordinate, value in entries:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
