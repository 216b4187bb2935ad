"""Retransmitted replica updates: which inputs count, how to make hard ones, and the slow answer.

Rows are ``[step, worker, value]`` in the order of arrival. Of the rows at the step asked for, the
last of each worker is its contribution, and the contributions are summed.

**Why eighths below 2**30?** In general a sum of floats depends on the order of its addends. A
multiple of 1/8 below 2**30 has at most 33 significant bits, so that 2**20 of them add without any
rounding: every order gives the same bits, and a plain ``sum`` is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

Worker: TypeAlias = str | int
Number: TypeAlias = int | float
Row: TypeAlias = tuple[int, Worker, Number]
AnyRow: TypeAlias = Row | list[Worker | Number]

MAGNITUDE = 2**30  # exclusive bound of floats, and of ints that share a sum with a float
ADDENDS_MAX = 2**20  # of a sum that has a float in it


def valid(rows: object, step: object) -> bool:
    """Whether the contract says what ``solve(rows, step)`` gives."""
    if type(step) is not int or not isinstance(rows, list | tuple):
        return False
    return all(map(_is_row, rows)) and _adds_exactly(_contributions(rows, step))


def oracle(rows: Sequence[Row], step: int) -> Number:
    """The sum as it is defined: a row counts if no later one has its step and its worker."""
    counted = _contributions(rows, step)
    total = sum((Fraction(value) for value in counted), start=Fraction(0))
    return float(total) if any(type(value) is float for value in counted) else int(total)


def generate(rng: random.Random) -> tuple[list[AnyRow] | tuple[AnyRow, ...], int]:
    """Rows and a step, always valid: few workers, few steps, and much that repeats.

    Rarely there are more workers than a small table holds, and two rows for each.
    """
    steps = rng.choice(_STEPS)(rng)
    workers = rng.choice(_WORKERS)(rng)
    value = rng.choice(_VALUES)
    rows: list[Row] = [
        (rng.choice((steps[0], rng.choice(steps))), rng.choice(workers), value(rng))
        for _ in range(_count(rng, len(workers)))
    ]
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5)) if rows else 0):
        trouble = rng.choice((_resend, _correct, _send_the_same, _cancel, _come_late))
        _insert_after(rng, rows, trouble(rng, rng.choice(rows), (workers, steps)))
    if not valid(rows, steps[0]):  # a float has met a big int
        rows = [(step, worker, _small(number)) for step, worker, number in rows]
    shaped = [list(row) if rng.random() < 0.6 else row for row in rows]
    return (shaped if rng.random() < 0.7 else tuple(shaped)), steps[0]


def _contributions(rows: Sequence[Row], step: int) -> list[Number]:
    return [
        value
        for place, (row_step, worker, value) in enumerate(rows)
        if row_step == step
        and not any(later[0] == step and later[1] == worker for later in rows[place + 1 :])
    ]


def _is_row(row: object) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 3:
        return False
    step, worker, value = row
    return type(step) is int and type(worker) in {str, int} and _is_number(value)


def _is_number(value: object) -> bool:
    if type(value) is float:  # the comparison is false for a NaN
        return abs(value) < MAGNITUDE and (value * 8).is_integer() and str(value) != "-0.0"
    return type(value) is int


def _adds_exactly(values: Sequence[Number]) -> bool:
    if not any(type(value) is float for value in values):
        return True
    return len(values) <= ADDENDS_MAX and all(abs(value) < MAGNITUDE for value in values)


# What generate() draws from. The first of the steps is the one asked for.

_NAMED: tuple[Worker, ...] = (
    *("a", "b", "c", "A", "a ", "", "é", "replica-1", "replica-2"),  # alike once cut or folded
    *(0, "0", 1, "1", "01", 7, 263, -1, -2, 2**61 - 1, 2**64 + 1),  # alike as text, byte or hash
)
_FOREIGN: tuple[Worker, ...] = (
    *("e", " e", "é", "e\u0301", "è", "?", "E", "e\0", "\u2460", "1", "ß", "ss"),  # once converted
    *(f"rank-{'0' * zeros}{last}" for zeros in (12, 40, 300) for last in (1, 2)),  # once cut
    *("plumless", "buckeroo", "Aa", "BB"),  # of one checksum
)
_NUMBERED: tuple[Worker, ...] = (
    *(0, 1, -1, 2, -2, 5, -5, 2**32, 2**32 + 1),
    *(2**53, 2**53 + 1, -(2**53) - 1, 2**64, 2**128, 2**128 + 1, 2**1100),
)
_WORKERS: tuple[Callable[[random.Random], list[Worker]], ...] = (
    *(lambda rng: rng.sample(_NAMED, rng.choice((1, 2, 2, 3, 3, 5, 9))),) * 30,
    *(lambda rng: rng.sample(_FOREIGN, rng.choice((2, 3, 5, 9))),) * 4,
    *(lambda rng: rng.sample(_NUMBERED, rng.choice((2, 3, 5, 9))),) * 4,
    lambda rng: list(range(rng.randint(66, 140))),
)
_STEPS: tuple[Callable[[random.Random], list[int]], ...] = (
    lambda rng: _around(rng.randint(-3, 9)),
    lambda rng: _around(rng.choice((1000, 2**31, -(2**31), 2**53, 2**64, 10**30, 2**128))),
    lambda rng: rng.sample((-2, -1, 0, 1, 2), 3),
    lambda rng: [(step := rng.randint(1, 5)), -step, 0, step + 2**32, step + 2**64],
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


def _count(rng: random.Random, workers: int) -> int:
    return 2 * workers if workers > 60 else rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 40))


def _around(step: int) -> list[int]:
    return [step, step - 1, step + 1]


def _resend(_rng: random.Random, row: Row, _pools: object) -> Row:
    return row


def _correct(rng: random.Random, row: Row, _pools: object) -> Row:
    step, worker, value = row
    other = rng.choice((0, 0.0, 0 - value, value + 1, value - 1, _other_type(value)))
    return step, worker, other


def _send_the_same(rng: random.Random, row: Row, pools: tuple[list[Worker], list[int]]) -> Row:
    return row[0], rng.choice(pools[0]), row[2]


def _cancel(rng: random.Random, row: Row, pools: tuple[list[Worker], list[int]]) -> Row:
    return row[0], rng.choice(pools[0]), 0 - row[2]


def _come_late(rng: random.Random, row: Row, pools: tuple[list[Worker], list[int]]) -> Row:
    return rng.choice(pools[1]), row[1], row[2] + 1


def _insert_after(rng: random.Random, rows: list[Row], row: Row) -> None:
    rows.insert(rng.randint(len(rows) // 2, len(rows)), row)


def _other_type(value: Number) -> Number:
    if abs(value) >= MAGNITUDE or value != int(value):
        return value
    return float(value) if type(value) is int else int(value)


def _small(value: Number) -> Number:
    return value if abs(value) < MAGNITUDE else value % 7
