"""The files of one small family, from which tests build their archives."""

from __future__ import annotations

HELD = "ab" * 32
"""A commitment: 64 hexadecimal digits."""

FAMILY = {
    "schema": 1,
    "title": "A sum that is shifted",
    "domain": "arithmetic",
    "evaluation_groups": ["sums"],
    "root_cause": "The shift is written in one place and needed in another.",
    "failure": "Leaves the shift out.",
    "attempt": "Adds the shift, except where there is nothing to add it to.",
    "contract": "The sum of the values plus N; the values are left alone.",
    "why": "Somebody bills by it.",
    "scope": "A model of one mechanism.",
    "compare": "exact",
    "arguments": ["values"],
    "sources": ["https://example.org/thread : shifts are forgotten"],
    "params": {"N": [1, 2, 3]},
}
FILES = {
    "contract.py": '''"""Sums."""


def valid(values):
    return all(type(value) is int for value in values)


def generate(rng):
    return ([rng.randint(-9, 9) for _ in range(rng.randint(0, 5))],)


def oracle(values):
    total = N
    for value in values:
        total += value
    return total
''',
    "fixtures.py": '''"""What a shifted sum must be."""

# The shift is there.
values = [N, 2]
check("values are summed and shifted", [solve(values), values], [2 * N + 2, [N, 2]])
check("no values give the shift", solve([]), N)
check("a negative value counts", solve([-5, N]), 2 * N - 5)
''',
    "impl/failure.py": '"""Forgets the shift."""\n\n\ndef solve(values):\n    return sum(values)\n',
    "impl/attempt-1.py": '''"""Shifts what is there."""


def solve(values):
    return sum(values) + N if values else 0
''',
    "impl/repair.py": '"""Shifts."""\n\n\ndef solve(values):\n    return sum(values) + N\n',
    "wrong/magnitudes.py": '''"""Takes a sign for noise."""


def solve(values):
    return sum(abs(value) for value in values) + N
''',
}
