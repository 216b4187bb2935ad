"""Hostile addends for exact sums and means, each from a seed, named by what they attack.

An adversary of floats gives one column: for each worker the *bits* of what it sends, which lets
it choose NaN payloads and the last bit of a subnormal. Finite values are reckoned as whole numbers
of the least subnormal ("units"), with no floating-point arithmetic. An adversary of integers gives
the integers. Where a column is meant to have some exact sum and there are too few workers for it,
the column is cut off, which is as good a column as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np
from oracle import FORMATS, Format, dtype_of

Weights = Sequence[int]
Adversary = Callable[[Format, Weights, Random], list[int]]


# -- bits and units -------------------------------------------------------------------------------


def bits_of_units(form: Format, units: int) -> int:
    """The bits of a whole number of least subnormals, cut off where it has too many digits."""
    size = abs(units)
    ulp = max(0, size.bit_length() - form.precision)
    magnitude = min((ulp << (form.precision - 1)) + (size >> ulp), form.infinity - 1)
    return magnitude | (form.sign if units < 0 else 0)


def units_of_bits(form: Format, bits: int) -> int:
    """The whole number of least subnormals that finite bits stand for."""
    exponent, fraction = divmod(bits & (form.sign - 1), 1 << (form.precision - 1))
    size = (fraction + ((1 << (form.precision - 1)) if exponent else 0)) << max(exponent - 1, 0)
    return -size if bits & form.sign else size


def _top(form: Format) -> int:
    """The exponent field of infinity, which finite values are below."""
    return form.infinity >> (form.precision - 1)


def _finite(form: Format, rng: Random) -> int:
    return rng.randrange(form.infinity) | rng.choice([0, form.sign])


def _significand(form: Format, rng: Random) -> int:
    """A whole number of exactly ``precision`` binary digits, now and then a special one."""
    low = 1 << (form.precision - 1)
    return rng.choice([low, low + 1, 2 * low - 1, 2 * low - 2, *[rng.randrange(low, 2 * low)] * 4])


def _padded(form: Format, column: list[int], weights: Weights, rng: Random) -> list[int]:
    """The column with pairs that cancel put in, and a zero, in random order."""
    column = column[: len(weights)]
    while len(column) + 2 <= len(weights):
        other = rng.choice([rng.choice(column or [0]), _finite(form, rng)])
        column += [other, other ^ form.sign]
    column += [rng.choice([0, form.sign])] * (len(weights) - len(column))
    rng.shuffle(column)
    return column


def _signed(form: Format, column: list[int], rng: Random) -> list[int]:
    return [bits ^ form.sign for bits in column] if rng.random() < 0.5 else column


# -- floats ---------------------------------------------------------------------------------------


def gradients(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Like gradients: a few neighbouring exponents, random digits and signs."""
    middle = _top(form) // 2
    return [
        (min(max(1, middle - int(rng.expovariate(0.7))), _top(form) - 1) << (form.precision - 1))
        | rng.getrandbits(form.precision - 1)
        | rng.choice([0, form.sign])
        for _ in weights
    ]


def cancellation(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Large pairs that cancel and one addend, often the least there is, that must remain."""
    return _padded(form, [rng.choice([1, form.sign | 1, _finite(form, rng)])], weights, rng)


def near_cancellation(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Pairs that differ by one unit in the last place: what remains is exact and small."""
    column: list[int] = []
    while len(column) < len(weights):
        value = rng.randrange(1, form.infinity)
        column += [value, (value - rng.choice([0, 1, 1])) | form.sign]
    return _signed(form, column[: len(weights)], rng)


def cancellation_in_tiers(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Pairs that cancel at every magnitude, from the largest down, and a last bit below them."""
    column, exponent = [1 | rng.choice([0, form.sign])], _top(form) - 1
    step = max(1, _top(form) * 2 // max(2, len(weights)))
    while len(column) + 2 <= len(weights):
        value = (max(1, exponent) << (form.precision - 1)) | rng.getrandbits(form.precision - 1)
        column += [value, value ^ form.sign]
        exponent -= step
    return _padded(form, column, weights, rng)


def _half_way(form: Format, rng: Random) -> tuple[int, int]:
    """In units: a value with a digit to spare below it, and half of its unit in the last place."""
    ulp = rng.choice([1, 2, rng.randrange(1, _top(form) - 1)])
    return _significand(form, rng) << ulp, 1 << (ulp - 1)


def ties(form: Format, weights: Weights, rng: Random) -> list[int]:
    """A sum exactly half way between two neighbours."""
    value, half = _half_way(form, rng)
    column = [bits_of_units(form, value), bits_of_units(form, rng.choice([half, -half]))]
    return _signed(form, _padded(form, column, weights, rng), rng)


def ties_off_by_the_last_bit(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Half way but for the least subnormal, up or down, however far below that is."""
    value, half = _half_way(form, rng)
    column = [bits_of_units(form, units) for units in (value, half, rng.choice([1, -1]))]
    return _signed(form, _padded(form, column, weights, rng), rng)


def ties_off_by_little(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Half way but for a bit that lies 1 to 220 places lower, about where a pair of floats ends."""
    value, half = _half_way(form, rng)
    places = rng.choice([1, 2, 23, 24, 29, 30, 52, 53, 54, 105, 106, 107, 108, 159, 160, 220])
    off = max(1, half >> places) * rng.choice([1, -1])
    column = [bits_of_units(form, units) for units in (value, half, off)]
    return _signed(form, _padded(form, column, weights, rng), rng)


def ties_in_crumbs(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Half a unit in the last place made up of many equal parts, perhaps one part short."""
    value, half = _half_way(form, rng)
    parts = 1 << (max(1, len(weights) - 1).bit_length() - 1)
    crumb = max(1, half // parts)
    column = [bits_of_units(form, value)] + [bits_of_units(form, crumb)] * parts
    if rng.random() < 0.3:
        column.pop()
    column += [0] * (len(weights) - len(column))
    return _signed(form, column[: len(weights)], rng)


def ties_and_a_balance_far_below(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Half way, and below it addends that cancel to nothing or to one unit of either sign."""
    value, half = _half_way(form, rng)
    low = max(2, half >> rng.choice([30, 54, 107, 160]))
    odd = rng.choice([0, 0, 1, -1])
    column = [bits_of_units(form, units) for units in (value, half, low, odd - low)]
    return _signed(form, _padded(form, column, weights, rng), rng)


def three_tiers(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Digits at three and more distances, so that no two floats hold the sum."""
    exponent = rng.randrange(1, _top(form))
    column = []
    for _ in weights:
        lower = rng.choice([0, 0, form.precision, 53, 54, 106, 107, 160]) + rng.randrange(3)
        field = max(0, exponent - lower) << (form.precision - 1)
        column.append(field | rng.getrandbits(form.precision - 1) | rng.choice([0, form.sign]))
    return column


def subnormals(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Subnormals and the least normals of both signs."""
    top = 3 << (form.precision - 1)
    return [rng.randrange(top) | rng.choice([0, form.sign]) for _ in weights]


def left_subnormal(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Normal values that leave a subnormal sum, or one at the least normal number."""
    edge = 1 << (form.precision - 1)
    rest = rng.choice([1, 2, edge - 1, edge, edge + 1, rng.randrange(2 * edge)])
    large = rng.randrange(edge, 40 * edge)
    column = [bits_of_units(form, units_of_bits(form, large) + rest), large | form.sign]
    return _signed(form, _padded(form, column, weights, rng), rng)


def halves_of_the_least(form: Format, weights: Weights, rng: Random) -> list[int]:
    """A few least subnormals, whose mean is half of one, a hair beside it, or rounds to a zero."""
    column = [rng.choice([0, 0, form.sign, 1, 1, 2, 3]) for _ in weights]
    return _signed(form, column, rng)


def overflow_in_the_middle(form: Format, weights: Weights, rng: Random) -> list[int]:
    """First far beyond the largest, then back: the sum is finite and only partial sums are not."""
    largest = form.infinity - 1
    pairs = max(0, len(weights) - 1) // 2
    rest = rng.choice([1, largest, _finite(form, rng)])
    column = [largest - rng.choice([0, 0, 1]) for _ in range(pairs)]
    column = column + [rest] * (len(weights) - 2 * pairs) + [each ^ form.sign for each in column]
    if rng.random() < 0.3:
        rng.shuffle(column)
    return _signed(form, column[: len(weights)], rng)


def overflow_at_the_end(form: Format, weights: Weights, rng: Random) -> list[int]:
    """The largest and half a unit more, exactly or but for the last bit: infinity or just not."""
    ulp = _top(form) - 2
    half = 1 << (ulp - 1)
    largest = units_of_bits(form, form.infinity - 1)
    off = rng.choice([0, -1, 1, -(half >> 60 or 1), -half])
    column = [bits_of_units(form, units) for units in (largest, half, off)]
    return _signed(form, _padded(form, column, weights, rng), rng)


def largest_only(form: Format, weights: Weights, rng: Random) -> list[int]:
    """The largest value from everyone, or nearly: sums overflow, means must not."""
    return _signed(form, [form.infinity - 1 - rng.choice([0, 0, 0, 1]) for _ in weights], rng)


def zeros(form: Format, weights: Weights, rng: Random) -> list[int]:
    """-0.0 from all, or from all but one."""
    column = [form.sign] * len(weights)
    column[rng.randrange(len(column))] = rng.choice([form.sign, form.sign, 0, 1, form.sign | 1])
    return column


def cancelled_to_zero(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Pairs that cancel, and zeros of either sign: the sum is +0.0."""
    return _padded(form, [], weights, rng)


def infinities(form: Format, weights: Weights, rng: Random) -> list[int]:
    """One infinity, several of one sign, or of both, among values that overflow the other way."""
    column = [rng.choice([_finite(form, rng), form.infinity - 1]) for _ in weights]
    kinds = rng.choice([[0], [0], [form.sign], [0, 0], [0, form.sign]])
    for sign in kinds:
        column[rng.randrange(len(column))] = form.infinity | sign
    return column


def nan_payloads(form: Format, weights: Weights, rng: Random) -> list[int]:
    """NaNs of any sign and payload, quiet and signalling, beside infinities and numbers."""
    column = [_finite(form, rng) for _ in weights]
    for _ in range(rng.choice([1, 1, 2, len(column)])):
        payload = rng.choice([1, form.nan - form.infinity, rng.randrange(1, form.nan)])
        payload = max(1, payload & (form.sign - 1 - form.infinity))
        column[rng.randrange(len(column))] = form.infinity + payload | rng.choice([0, form.sign])
    if rng.random() < 0.3:
        column[rng.randrange(len(column))] = form.infinity | rng.choice([0, form.sign])
    return column


def full_range(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Finite, of any exponent and sign."""
    return [_finite(form, rng) for _ in weights]


def any_bits(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Any bits at all."""
    return [rng.getrandbits(form.bits) for _ in weights]


def ladder(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Powers of two from the largest down over the whole range, signs alternating or not."""
    top = _top(form) - 2 + form.precision
    powers = [top * (len(weights) - at) // len(weights) for at in range(len(weights))]
    flip = rng.choice([1, -1])
    return [bits_of_units(form, flip**at << power) for at, power in enumerate(powers)]


def same_binade(form: Format, weights: Weights, rng: Random) -> list[int]:
    """All of one exponent, of one sign or both."""
    field = rng.randrange(_top(form)) << (form.precision - 1)
    signs = rng.choice([[0], [form.sign], [0, form.sign]])
    return [field | rng.getrandbits(form.precision - 1) | rng.choice(signs) for _ in weights]


def huge_or_tiny(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Nothing but one huge value, its negative and the least subnormal."""
    huge = rng.choice([form.infinity - 1, rng.randrange(form.infinity)])
    return [rng.choice([huge, huge | form.sign, 1]) for _ in weights]


def absorbed(form: Format, weights: Weights, rng: Random) -> list[int]:
    """One value, and all others too small to change it one by one, though not together."""
    value, half = _half_way(form, rng)
    small = max(1, half - rng.choice([0, 0, half >> (form.precision - 1), half >> 3]))
    return _signed(
        form, [bits_of_units(form, value)] + [bits_of_units(form, small)] * (len(weights) - 1), rng
    )


def long_carries(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Ones in all places of many neighbouring binades and a last one that carries through them."""
    count = len(weights)
    column, shift = [], rng.randrange(max(1, _top(form) - 2 - count * form.precision))
    for at in range(count - 1):
        ones = (1 << form.precision) - 1
        column.append(bits_of_units(form, ones << (shift + at * form.precision)))
    column.append(bits_of_units(form, rng.choice([1, -1, 2]) << shift))
    return _signed(form, column, rng)


def one_of_many(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Zeros from all but one."""
    column = [rng.choice([0, form.sign]) for _ in weights]
    column[rng.randrange(len(column))] = _finite(form, rng)
    return column


def all_equal(form: Format, weights: Weights, rng: Random) -> list[int]:
    """The same from everyone, whose mean it is."""
    return [_finite(form, rng)] * len(weights)


def means_at_a_tie(form: Format, weights: Weights, rng: Random) -> list[int]:
    """A weighted mean half way between neighbours, or off by the least that the addends can be."""
    total, ulp = sum(weights), rng.choice([0, 1, rng.randrange(_top(form) - 1)])
    # Half a least subnormal is no whole number of them, but times an even total it is.
    rest = ((2 * _significand(form, rng) + 1) * total << ulp) >> 1
    rest += rng.choice([0, 0, 1, -1, (1 << ulp) >> 30, -((1 << ulp) >> 54)])
    column = [0] * len(weights)
    for at in sorted(range(len(weights)), key=lambda at: -weights[at]):
        if weights[at]:
            wanted = rest // weights[at] if rest >= 0 else -(-rest // weights[at])
            column[at] = bits_of_units(form, wanted)
            rest -= units_of_bits(form, column[at]) * weights[at]
    return _signed(form, column, rng)


def products_that_cancel(form: Format, weights: Weights, rng: Random) -> list[int]:
    """Values in the ratio of other workers' weights, so that the products cancel or nearly."""
    column = []
    for at, weight in enumerate(weights):
        other = weights[at ^ 1] if at ^ 1 < len(weights) else weight
        units = max(1, other) << rng.choice([0, 0, 1, min(900, _top(form) // 2)])
        column.append(bits_of_units(form, units if at & 1 else -units))
    return column


FLOATS: dict[str, Adversary] = {
    each.__name__: each
    for each in (
        *(gradients, cancellation, near_cancellation, cancellation_in_tiers),
        *(ties, ties_off_by_the_last_bit, ties_off_by_little, ties_in_crumbs),
        *(ties_and_a_balance_far_below, three_tiers),
        *(subnormals, left_subnormal, halves_of_the_least),
        *(overflow_in_the_middle, overflow_at_the_end, largest_only),
        *(zeros, cancelled_to_zero, infinities, nan_payloads),
        *(full_range, any_bits, ladder, same_binade, huge_or_tiny, absorbed, long_carries),
        *(one_of_many, all_equal, means_at_a_tie, products_that_cancel),
    )
}


# -- integers -------------------------------------------------------------------------------------


def _int_small(low: int, high: int, weights: Weights, rng: Random) -> list[int]:
    """Small numbers."""
    return [rng.randint(max(low, -3), 3) for _ in weights]


def _int_any(low: int, high: int, weights: Weights, rng: Random) -> list[int]:
    """Any of the type."""
    return [rng.randint(low, high) for _ in weights]


def _int_limits(low: int, high: int, weights: Weights, rng: Random) -> list[int]:
    """The ends of the type and their neighbours."""
    return [rng.choice([low, low + 1, -1 if low else 1, 0, 1, high - 1, high]) for _ in weights]


def _int_to_the_limit(low: int, high: int, weights: Weights, rng: Random) -> list[int]:
    """A sum that is just the greatest or least value, or one off it, shared out at random."""
    total = rng.choice([low, low + 1, high - 1, high])
    column, rest = [], total
    for left in range(len(weights), 1, -1):
        part = rest // left + rng.randint(-1, 1)
        column.append(min(max(part, low), high))
        rest -= column[-1]
    return [*column, min(max(rest, low), high)]


def _int_in_the_middle(low: int, high: int, weights: Weights, rng: Random) -> list[int]:
    """Far beyond the type in the middle and back within it at the end, where there are signs."""
    half = len(weights) // 2
    column = [high] * half + [rng.randint(0, 3)] * (len(weights) % 2)
    return column + [-high if low else 0] * half


def _int_at_a_tie(low: int, high: int, weights: Weights, rng: Random) -> list[int]:
    """Sums about halves and about 2**53, where their means are ties of float64 or nearly."""
    near = min(high, rng.choice([2**53, 2**54, 2**62]))
    return [rng.choice([near, near - 1, near - 2, min(high, near + 1)]) for _ in weights]


INTEGERS: dict[str, Callable[[int, int, Weights, Random], list[int]]] = {
    "small": _int_small,
    "any": _int_any,
    "limits": _int_limits,
    "to_the_limit": _int_to_the_limit,
    "in_the_middle": _int_in_the_middle,
    "at_a_tie": _int_at_a_tie,
}


# -- arrays ---------------------------------------------------------------------------------------


def kinds_of(name: str) -> list[str]:
    """The names of the adversaries of a dtype."""
    return list(FLOATS if name in FORMATS else INTEGERS)


def column(name: str, kind: str, weights: Weights, rng: Random) -> np.ndarray:
    """One element of each of so many workers."""
    if name in FORMATS:
        form = FORMATS[name]
        bits = FLOATS[kind](form, weights, rng)
        assert len(bits) == len(weights), kind
        return np.array(bits, dtype=form.unsigned).view(form.dtype)
    info = np.iinfo(name)
    return np.array(INTEGERS[kind](int(info.min), int(info.max), weights, rng), dtype=name)


def bank(
    name: str, weights: Weights, rng: Random, each: int = 2, kinds: Sequence[str] = ()
) -> np.ndarray:
    """``each`` columns of every adversary: an array of shape (workers, columns)."""
    chosen = kinds or kinds_of(name)
    return np.stack([column(name, kind, weights, rng) for kind in chosen for _ in range(each)], 1)


def some_weights(count: int, rng: Random) -> list[int]:
    """Weights 0, 1, huge and any between, in pairs now and then; one at least is not 0."""
    kind = rng.randrange(5)
    if kind == 0:
        weights = [rng.choice([0, 1, 2**53]) for _ in range(count)]
    elif kind == 1:
        weights = [2**53 - rng.choice([0, 0, 1, 5]) for _ in range(count)]
    elif kind == 2:
        weights = [1 << rng.randrange(54) for _ in range(count)]
    elif kind == 3:
        weights = [rng.randint(0, 2 ** rng.randint(1, 53)) for _ in range(count)]
    else:
        weights = [rng.randint(1, 1000) for _ in range(count)]
    weights[rng.randrange(count)] = rng.choice([1, 2, 3, 2**29 - 1, 2**29 + 1, 2**53])
    return weights


# -- coordinates ----------------------------------------------------------------------------------

LOW, HIGH = -(2**63), 2**63 - 1

KEYS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "ends": lambda rng, size: rng.choice(np.array([LOW, LOW + 1, HIGH, HIGH - 1, 0, -1]), size),
    "equal": lambda rng, size: np.full(size, rng.choice(np.array([LOW, HIGH, 0]))),
    "few": lambda rng, size: rng.integers(-5, 5, size),
    "unique": lambda rng, size: rng.permutation(size) - size // 2,
    "clusters": lambda rng, size: (
        (rng.integers(-4, 5, size) << 60) + rng.integers(0, max(1, size // 20), size)
    ),
    "outliers": lambda rng, size: np.where(
        rng.random(size) < 0.01, rng.choice(np.array([LOW, HIGH])), rng.integers(0, size, size)
    ),
    "hashed": lambda rng, size: rng.choice(
        rng.integers(LOW, HIGH, size // 3 + 1, endpoint=True), size
    ),
    "zipf": lambda rng, size: np.minimum(rng.zipf(1.3, size), 2**40),
    "strided": lambda rng, size: rng.integers(0, size // 4 + 1, size) << 32,
}
"""Distributions of coordinates, from a generator and a number of entries."""


@cache
def _usual_columns(name: str, size: int) -> np.ndarray:
    """Some columns of a group of so many entries: of every adversary, or of four if it is large."""
    rng, kinds = Random(f"{name} {size}"), kinds_of(name)
    if name not in FORMATS:  # what cannot overflow
        wide = np.iinfo(name).bits > 8
        kinds = ["small"] * (2 if wide or size <= 30 else 0) + ["in_the_middle"]
        kinds = kinds[: len(kinds) - (np.iinfo(name).min == 0)] or ["zero"]
    if "zero" in kinds:
        return np.zeros((size, 1), name)
    if size > 30:
        kinds = rng.sample(kinds, min(4, len(kinds)))
    columns = bank(name, [1] * (min(size, 200) if name in FORMATS else size), rng, 1, kinds)
    return columns[np.resize(np.arange(columns.shape[0]), size)]


def values_for(name: str, groups: np.ndarray, row: int, rng: Random) -> np.ndarray:
    """Adversarial values, shape (entries, row), for entries in consecutive groups of these sizes.

    Columns are made once for each size of group and dealt out. Sums of integers fit their type.
    """
    pieces = [np.zeros((0, row), dtype_of(name))]
    for size in groups.tolist():
        columns = _usual_columns(name, size)
        pieces.append(columns[:, [rng.randrange(columns.shape[1]) for _ in range(row)]])
    return np.concatenate(pieces)
