"""Values are added as floats and handed back as ints where they were ints.

Beyond 2**53 a float no longer holds every integer, and the last digits are lost.
"""


def solve(rows):
    """Sum by coordinate in floating point."""
    values = {}
    for _, entries in rows:
        for coordinate, value in entries:
            values.setdefault(coordinate, []).append(value)
    result = []
    for coordinate in sorted(values):
        whole = all(isinstance(value, int) for value in values[coordinate])
        total = sum(map(float, values[coordinate]))
        result.append([coordinate, int(total) if whole else total])
    return result
