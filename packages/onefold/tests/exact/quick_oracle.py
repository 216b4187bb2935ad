"""The oracle of ``oracle.py`` once more, in whole numbers and many columns at a time.

Every finite float is a multiple of its format's least subnormal, so a sum of floats is a sum of
Python ints, and rounding it is one integer division. No float is added, multiplied or compared
here. ``test_adversaries.py`` holds it against the Fractions of ``oracle.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oracle import FORMATS, Format, bits_of

NAN, PLUS, MINUS, FINITE = 1, 2, 4, 8
"""What a group may hold: NaN, infinities, and anything finite that is not -0.0."""


def _parts(bits: np.ndarray, form: Format) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed whole numbers, the powers of two they are to be multiplied by, and what they are."""
    bits = bits.astype(np.uint64)
    magnitude = bits & np.uint64(form.sign - 1)
    negative = bits >= np.uint64(form.sign)
    exponent = (magnitude >> np.uint64(form.precision - 1)).astype(np.int64)
    units = (magnitude & np.uint64((1 << (form.precision - 1)) - 1)).astype(np.int64)
    units += np.where(exponent > 0, 1 << (form.precision - 1), 0)
    kind = np.full(bits.shape, FINITE, np.uint8)
    kind[(magnitude == 0) & negative] = 0
    infinite = magnitude == np.uint64(form.infinity)
    kind[infinite] = np.where(negative, MINUS, PLUS)[infinite]
    kind[magnitude > np.uint64(form.infinity)] = NAN
    units[magnitude >= np.uint64(form.infinity)] = 0
    return np.where(negative, -units, units), np.maximum(exponent - 1, 0), kind


def rounded(numerator: int, denominator: int, power: int, form: Format) -> int:
    """The bits of ``numerator / denominator * 2**power`` least subnormals, to nearest even."""
    size = abs(numerator)
    top = size.bit_length() - denominator.bit_length()
    if (size << max(0, -top)) < (denominator << max(0, top)):
        top -= 1  # now 2**top <= size / denominator < 2**(top + 1)
    ulp = max(0, top + power - form.precision + 1)
    shift = power - ulp
    units, rest = divmod(size << max(0, shift), denominator << max(0, -shift))
    half = 2 * rest - (denominator << max(0, -shift))
    units += half > 0 or (half == 0 and units & 1)
    magnitude = min((ulp << (form.precision - 1)) + units, form.infinity)
    return magnitude | (form.sign if numerator < 0 else 0)


def totals(
    values: np.ndarray, weights: np.ndarray | None, starts: np.ndarray
) -> tuple[list[int], list[int], list[int]]:
    """For each group of consecutive values: whole number, power of two, kinds seen."""
    if values.dtype.name in FORMATS:
        units, powers, kinds = _parts(bits_of(values), FORMATS[values.dtype.name])
        lowest = np.minimum.reduceat(np.where(units == 0, 1 << 20, powers), starts)
        lowest[lowest == 1 << 20] = 0
        sizes = np.diff([*starts, values.size])
        shifts = np.maximum(powers - np.repeat(lowest, sizes), 0)
        whole = np.left_shift(units.astype(object), shifts.astype(object))
        seen = np.bitwise_or.reduceat(kinds, starts).tolist()
    else:
        whole = values.reshape(-1).astype(object)
        lowest, seen = np.zeros(starts.size, np.int64), [FINITE] * starts.size
    if weights is not None:
        whole = whole * weights.astype(object)
    return np.add.reduceat(whole, starts).tolist(), lowest.tolist(), seen


def grouped(
    values: np.ndarray, starts: np.ndarray, weights: np.ndarray | None, divisor: int | None
) -> np.ndarray:
    """The sums (or, with a divisor, means) of groups of consecutive values; no weight may be 0.

    Every NaN is the canonical one. Integer sums that do not fit are an OverflowError.
    """
    name = values.dtype.name
    if starts.size == 0:
        return np.zeros(0, np.float64 if name not in FORMATS and divisor else values.dtype)
    sums, powers, seen = totals(values, weights, starts)
    if name not in FORMATS:
        if divisor is None:
            return np.array(sums, dtype=name)
        powers = [-FORMATS["float64"].emin + 52] * len(sums)
    form = FORMATS[name if name in FORMATS else "float64"]
    bits = []
    for total, power, kinds in zip(sums, powers, seen, strict=True):
        if kinds & NAN or (kinds & PLUS and kinds & MINUS):
            bits.append(form.nan)
        elif kinds & (PLUS | MINUS):
            bits.append(form.infinity | (form.sign if kinds & MINUS else 0))
        elif total == 0:
            bits.append(0 if kinds & FINITE else form.sign)
        else:
            bits.append(rounded(total, divisor or 1, power, form))
    return np.array(bits, dtype=form.unsigned).view(form.dtype)


def columns(
    arrays: Sequence[np.ndarray], weights: Sequence[int] | None = None, *, mean: bool = False
) -> np.ndarray:
    """What ``sum_dense`` (of no weights) or ``mean_dense`` must give, flat."""
    selected = [at for at in range(len(arrays)) if weights is None or weights[at]]
    stack = np.stack([arrays[at].reshape(-1) for at in selected], axis=1)
    width, count = stack.shape
    each = None if weights is None else np.tile([weights[at] for at in selected], width)
    divisor = (count if weights is None else sum(weights)) if mean else None
    return grouped(stack.reshape(-1), np.arange(width) * count, each, divisor)


def sum_columns(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """As :func:`oracle.sum_columns`, some twenty times as fast."""
    return columns(arrays)


def mean_columns(arrays: Sequence[np.ndarray], weights: Sequence[int] | None = None) -> np.ndarray:
    """As :func:`oracle.mean_columns`, some twenty times as fast."""
    return columns(arrays, weights, mean=True)
