"""Columns of addends that break sums which are nearly right, each from a seed.

A column is what the workers send for one element. The kinds are named by what they attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

import numpy as np
from oracle import FORMATS, Format, Number, array_of, decode, encode, two_to

WEIGHTS = (0, 1, 2, 3, 2**29 - 1, 2**53)
COUNTS = (1, 2, 3, 4, 7, 16, 40)

Weights = Sequence[int]


def _gauss(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Like gradients: every sum is inexact in the format, few are in a wider one."""
    return [Fraction(rng.gauss(0, 1)) for _ in weights]


def _bits(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Anything at all, NaNs and infinities included."""
    return [decode(rng.getrandbits(form.bits), form) for _ in weights]


def _exponents(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Finite, over the full range of exponents: no accumulator of fixed width holds the sum."""
    return [_finite(form, rng) for _ in weights]


def _specials(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Finite with few NaNs and infinities, so that each combination of them occurs."""
    special = rng.choice([[np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [np.nan, np.inf]])
    return [
        float(rng.choice(special)) if rng.random() < 2 / len(weights) else _finite(form, rng)
        for _ in weights
    ]


def _cancellation(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Large values that cancel and small ones that must remain."""
    column: list[Number] = [_finite(form, rng) for _ in range(rng.randint(0, 2))]
    while len(column) + 2 <= len(weights):
        value = _finite(form, rng)
        column += [value, -value if value else -0.0]
    return column


def _remainder(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Large values that cancel and leave a few that overlap, just below what they leave exact."""
    width = rng.choice([form.precision, form.precision // 2 + 1])
    exponent = rng.randint(form.emin + min(form.precision, 60), form.emax)
    column: list[Number] = []
    for _ in range(rng.randint(1, min(3, len(weights)))):
        low = rng.choice([0, 0, form.precision, 2 * form.precision]) + rng.randint(0, 9)
        fraction = 1 + Fraction(rng.getrandbits(width), 1 << width)
        column.append(rng.choice([-1, 1]) * two_to(exponent - low) * fraction)
    while len(column) + 2 <= len(weights):
        large = two_to(exponent) * (1 + Fraction(rng.getrandbits(60), 1 << 60))
        large = Fraction(decode(encode(min(large, form.largest), form), form))
        column += [large, -large]
    return column


def _subnormals(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """About the least normal number, where flushing to zero would show."""
    top = 3 << (form.precision - 1)
    return [decode(rng.randrange(top) + _sign(form, rng), form) for _ in weights]


def _zeros(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Zeros of both signs, often all of them negative, seldom a number."""
    choices: list[Number] = [-0.0] * 40 + rng.choice([[], [Fraction(0)], [form.tiny, -form.tiny]])
    return [rng.choice(choices) for _ in weights]


def _ties(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Exactly half a unit in the last place, with or without a third addend that decides."""
    exponent = rng.randint(form.emin + 1, form.emax - 1)
    ulp = two_to(exponent - form.precision + 1)
    value = rng.randrange(1 << (form.precision - 1), 1 << form.precision) * ulp
    small = max(form.tiny, ulp / 2 ** rng.choice([3, form.precision, 50, 2000]))
    column: list[Number] = [value, ulp / 2, rng.choice([-small, Fraction(0), small])]
    while len(column) + 2 <= len(weights):
        other = rng.choice([value, _finite(form, rng)])
        column += [other, -other]
    sign = rng.choice([-1, 1])
    return [sign * number for number in column]


def _edge(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """About the largest number: what rounds to it, what rounds to infinity, what comes back."""
    half = two_to(form.emax - form.precision)
    small = max(form.tiny, half / 2 ** rng.choice([1, form.precision, 50, 2000]))
    column: list[Number] = [form.largest, half, rng.choice([-small, Fraction(0), small])]
    while len(column) + 2 <= len(weights):
        column += [form.largest, -form.largest]
    if rng.random() < 0.2:
        column = [rng.choice([form.largest, -form.largest, half, -half]) for _ in weights]
    sign = rng.choice([-1, 1])
    return [sign * number for number in column]


def near_midpoint(form: Format, weights: Weights, rng: Random) -> list[Number]:
    """Addends whose mean lies at, or a hair beside, the midpoint of two neighbours.

    A quotient that is rounded twice falls on the wrong side, and so does one of a sum that is
    thought more exact than it is.
    """
    total = sum(weights)
    exponent = rng.randint(form.emin + 1, form.emax - min(8, form.emax // 2))
    ulp = two_to(exponent - form.precision + 1)
    middle = (rng.randrange(1 << form.precision) + Fraction(1, 2)) * ulp
    small = max(form.tiny, ulp / 2 ** rng.choice([2, 4, 8, form.precision, 50, 2000]))
    rest = (total * middle + rng.choice([-small, Fraction(0), small])) * rng.choice([-1, 1])
    column: list[Number] = [Fraction(0)] * len(weights)
    order = sorted(range(len(weights)), key=lambda index: -weights[index])
    if len(weights) > 3 and rng.random() < 0.7:  # two large products come first and cancel, nearly
        large = min(abs(rest) * two_to(rng.randint(-3, 9)), form.largest)
        large = Fraction(decode(encode(large * Fraction(rng.random()), form), form))
        column[order[0]], column[order[1]] = large, -large
        rest -= large * (weights[order[0]] - weights[order[1]])
        order = order[2:]
    for index in order:
        if weights[index]:
            wanted = rest / weights[index]
            wanted = max(-form.largest, min(form.largest, wanted))
            value = decode(encode(wanted, form), form)
            column[index] = value
            rest -= 0 if isinstance(value, float) else value * weights[index]
    return column


FLOAT_KINDS: dict[str, Callable[[Format, Weights, Random], list[Number]]] = {
    "gauss": _gauss,
    "bits": _bits,
    "exponents": _exponents,
    "specials": _specials,
    "cancellation": _cancellation,
    "remainder": _remainder,
    "subnormals": _subnormals,
    "zeros": _zeros,
    "ties": _ties,
    "edge": _edge,
    "midpoint": near_midpoint,
}


def _finite(form: Format, rng: Random) -> Fraction:
    return Fraction(decode(rng.randrange(form.infinity), form)) * rng.choice([-1, 1])


def _sign(form: Format, rng: Random) -> int:
    return rng.choice([0, form.sign])


def _column(form: Format, kind: str, weights: Weights, rng: Random) -> list[Number]:
    column = FLOAT_KINDS[kind](form, weights, rng)
    column += [rng.choice([Fraction(0), -0.0]) for _ in range(len(weights) - len(column))]
    if kind != "midpoint":  # there each addend belongs to its weight
        rng.shuffle(column)
    return column[: len(weights)]


def _ints(kind: str, low: int, high: int, count: int, rng: Random) -> list[int]:
    """A column of integers from ``low`` to ``high``."""
    if kind == "small":
        return [rng.randint(max(low, -3), 3) for _ in range(count)]
    if kind == "full":
        return [rng.randint(low, high) for _ in range(count)]
    if kind == "extremes":
        return [rng.choice([low, low + 1, 0, 1, high - 1, high]) for _ in range(count)]
    column = [high] * ((count + 1) // 2) + [max(low, -high)] * (count // 2)
    rng.shuffle(column)
    return column


INTEGER_KINDS = ("small", "full", "extremes", "cancelling")


def hard_arrays(
    name: str, kind: str, weights: Weights | int, width: int, seed: object
) -> list[np.ndarray]:
    """For each weight (or each of so many workers) an array of ``width`` elements."""
    rng = Random(f"{name} {kind} {weights} {seed}")
    weights = [1] * weights if isinstance(weights, int) else weights
    if name in FORMATS:
        columns = [_column(FORMATS[name], kind, weights, rng) for _ in range(width)]
    else:
        info = np.iinfo(name)
        columns = [
            _ints(kind, int(info.min), int(info.max), len(weights), rng) for _ in range(width)
        ]
    return [array_of(row, name) for row in zip(*columns, strict=True)]


def cancelling_weights(count: int, seed: object) -> list[int]:
    """Weights of which most differ little, so that their products with ±x nearly cancel."""
    rng = Random(f"cancelling {count} {seed}")
    large = rng.choice([2**53, 2**53 - 1, 2**29, 2**11])
    return [
        large - rng.choice([0, 0, 1, 5]) if rng.random() < 0.7 else rng.randint(1, 7)
        for _ in range(count)
    ]


def some_weights(count: int, seed: object) -> list[int]:
    """Weights that are awkward, of which one at least is not 0."""
    rng = Random(f"weights {count} {seed}")
    weights = [rng.choice(WEIGHTS) for _ in range(count)]
    weights[rng.randrange(count)] = rng.choice(WEIGHTS[1:])
    return weights
