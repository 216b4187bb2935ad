"""Sparse coordinates by position: which inputs count, how to make hard ones, and the slow answer.

Rows are ``(worker, [(coordinate, value), ...])``. All values of all rows are summed by their
explicit coordinate, and the result is ``[[coordinate, sum], ...]`` in order of the coordinates.

**Why eighths below 2**30?** In general a sum of floats depends on the order of its addends. A
multiple of 1/8 below 2**30 has at most 33 significant bits, so that 2**20 of them add without any
rounding: every order gives the same bits, and a plain ``+`` is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

Worker: TypeAlias = str | int
Number: TypeAlias = int | float
Pair: TypeAlias = tuple[int, Number]
AnyPair: TypeAlias = Pair | list[Number]
Row: TypeAlias = Sequence[object]

MAGNITUDE = 2**30  # exclusive bound of floats, and of ints that share a sum with a float
ADDENDS_MAX = 2**20  # of a sum that has a float in it


def valid(rows: object) -> bool:
    """Whether the contract says what ``solve(rows)`` gives."""
    if not isinstance(rows, list | tuple) or not all(map(_is_row, rows)):
        return False
    pairs = [pair for _, entries in rows for pair in entries]
    return all(_adds_exactly(_at(coordinate, pairs)) for coordinate in {pair[0] for pair in pairs})


def oracle(rows: Sequence[tuple[Worker, Sequence[Pair]]]) -> list[list[Number]]:
    """The sums as they are defined: all pairs are searched anew for every coordinate."""
    pairs = [pair for _, entries in rows for pair in entries]
    result: list[list[Number]] = []
    left = {coordinate for coordinate, _ in pairs}
    while left:
        smallest = min(left)
        left.remove(smallest)
        addends = _at(smallest, pairs)
        total = sum((Fraction(value) for value in addends), start=Fraction(0))
        has_float = any(type(value) is float for value in addends)
        result.append([smallest, float(total) if has_float else int(total)])
    return result


def generate(rng: random.Random) -> tuple[list[Row] | tuple[Row, ...]]:
    """Rows, always valid: few coordinates that many lists share, and much that repeats.

    Rarely there are more lists, and more coordinates, than a small table holds.
    """
    crowded = rng.random() < 1 / 40
    coordinates = list(range(99)) if crowded else rng.choice(_COORDINATES)(rng)
    value = rng.choice(_VALUES)
    lists: list[list[Pair]] = [
        [
            (rng.choice(coordinates), value(rng))
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 6, 20)))
        ]
        for _ in range(rng.choice((66, 90) if crowded else (0, 1, 2, 2, 3, 3, 4, 5, 12)))
    ]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3)) if any(lists) else 0):
        rng.choice((_repeat_pair, _repeat_list, _cancel, _sort_all))(rng, lists)
    if not valid([("a", pairs) for pairs in lists]):  # a float has met a big int
        lists = [[(coordinate, _small(number)) for coordinate, number in each] for each in lists]
    workers = rng.sample(_WORKERS, 4)
    rows = [_shape_row(rng, rng.choice(workers), pairs) for pairs in lists]
    return (rows if rng.random() < 0.7 else tuple(rows),)


def _at(coordinate: int, pairs: Sequence[Pair]) -> list[Number]:
    return [value for other, value in pairs if other == coordinate]


def _is_row(row: object) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 2:
        return False
    worker, entries = row
    is_list = isinstance(entries, list | tuple)
    return type(worker) in {str, int} and is_list and all(map(_is_pair, entries))


def _is_pair(pair: object) -> bool:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    return type(pair[0]) is int and _is_number(pair[1])


def _is_number(value: object) -> bool:
    if type(value) is float:  # the comparison is false for a NaN
        return abs(value) < MAGNITUDE and (value * 8).is_integer() and str(value) != "-0.0"
    return type(value) is int


def _adds_exactly(values: Sequence[Number]) -> bool:
    if not any(type(value) is float for value in values):
        return True
    return len(values) <= ADDENDS_MAX and all(abs(value) < MAGNITUDE for value in values)


# What generate() draws from.

_WORKERS: tuple[Worker, ...] = ("a", "b", "c", "", "é", 0, "0", 1, "1", -1, -2, 2**64)
_COORDINATES: tuple[Callable[[random.Random], list[int]], ...] = (
    lambda rng: rng.sample(range(-3, 12), rng.randint(1, 6)),  # texts sort 10 before 9
    lambda rng: rng.sample((-110, -12, -11, -2, -1, 0, 1, 2, 9, 10, 100), rng.randint(2, 8)),
    lambda _rng: [-1, -2, 0, 2**61 - 1, 2**61 - 2],  # equal hashes
    lambda rng: _around(rng.choice((2**15, 2**16, 2**24, 2**31, 2**32, 2**53, 2**63, 2**64))),
    lambda rng: [(low := rng.randint(0, 3)), low + 2**16, low + 2**32, low + 2**64],
    lambda rng: list(range(rng.choice((5, 60)))),
    lambda rng: [(low := rng.randint(-3, 3)), *_around(2 ** rng.choice((128, 200, 1100)) + low)],
)
_VALUES: tuple[Callable[[random.Random], Number], ...] = (
    lambda rng: rng.randint(-2, 3),
    lambda rng: rng.randint(-1000, 1000),
    lambda rng: rng.randint(-12, 12) / 8,
    lambda rng: rng.choice((-1, 1)) * (MAGNITUDE - rng.randint(1, 16) / 8),
    lambda rng: rng.choice((-2, -1, 0, 1, 2, -2.0, -1.0, 0.0, 1.0, 2.0)),
    lambda rng: rng.choice((-1, 1)) * (2 ** rng.choice((31, 53, 63, 64)) + rng.randint(0, 2)),
    lambda rng: rng.choice((-1, 1)) * (2 ** rng.choice((9, 53, 127, 200)) + rng.randint(0, 2)),
    lambda rng: rng.choice((2**53 + 1, -(10**40), 1, 0, 0.0, 2, 2.0, -0.125, 0.5)),
)


def _around(coordinate: int) -> list[int]:
    return [coordinate - 1, coordinate, coordinate + 1, -coordinate]


def _any_pair(rng: random.Random, lists: list[list[Pair]]) -> Pair:
    return rng.choice([pair for pairs in lists for pair in pairs])


def _put(rng: random.Random, lists: list[list[Pair]], pair: Pair) -> None:
    target = rng.choice(lists)
    target.insert(rng.randint(0, len(target)), pair)


def _repeat_pair(rng: random.Random, lists: list[list[Pair]]) -> None:
    _put(rng, lists, _any_pair(rng, lists))


def _cancel(rng: random.Random, lists: list[list[Pair]]) -> None:
    coordinate, value = _any_pair(rng, lists)
    _put(rng, lists, (coordinate, 0 - value))


def _repeat_list(rng: random.Random, lists: list[list[Pair]]) -> None:
    lists.insert(rng.randint(0, len(lists)), list(rng.choice(lists)))


def _sort_all(_rng: random.Random, lists: list[list[Pair]]) -> None:
    for pairs in lists:
        pairs.sort(key=lambda pair: pair[0])


def _shape_row(rng: random.Random, worker: Worker, pairs: list[Pair]) -> Row:
    shaped: list[AnyPair] = [list(pair) if rng.random() < 0.4 else pair for pair in pairs]
    entries = shaped if rng.random() < 0.6 else tuple(shaped)
    return (worker, entries) if rng.random() < 0.6 else [worker, entries]


def _small(value: Number) -> Number:
    return value if abs(value) < MAGNITUDE else value % 7
