"""A coordinate that is there already is left alone, with `setdefault`.

What later workers send for it is lost.
"""


def solve(rows):
    """Give each coordinate the value that came for it first."""
    values = {}
    for _, entries in rows:
        for coordinate, value in entries:
            values.setdefault(coordinate, value)
    return [[coordinate, values[coordinate]] for coordinate in sorted(values)]
