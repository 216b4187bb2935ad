"""The slow way that is always right: integers of any size.

A float64 is an integer times a power of two. Over one common power, sums and weighted sums are
sums of Python's integers, and the result is one integer division, rounded once. That costs about
a microsecond per addend, so only those coordinates come here of which the fast way cannot be sure.
Most of them hold a NaN or infinity and need no arithmetic at all.

The caller says how to gather the addends of some coordinates, and is asked for a few at a time,
since the integers are large (some 300 bytes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from onefold.exact.pairs import FloatArray, IndexArray
from onefold.exact.rounding import narrow
from onefold.update import Array

__all__ = ["Addends", "Gather", "exact_quotients", "integers_of", "rounded"]

_BATCH = 2048

_SCALE = 1126
"""Totals are counted in units of 2**-1126: the least exponent of ``frexp``, less 53 bits."""


class Addends(NamedTuple):
    """Some addends: ``weight * value`` belongs to the coordinate at position ``owner``."""

    owner: IndexArray
    values: FloatArray
    weight: int | npt.NDArray[np.object_]


Gather: TypeAlias = Callable[[IndexArray], Iterable[Addends]]


def exact_quotients(
    indices: IndexArray, gather: Gather, divisor: int, dtype: np.dtype[np.generic]
) -> Array:
    """The rounded quotients, by ``divisor``, of the sums of all addends at ``indices``.

    Args:
        indices: Which coordinates, in terms that ``gather`` understands.
        gather: Gives all the addends of an array of indices; owners are positions in that array.
        divisor: A positive integer.
        dtype: The float type of the result.
    """
    results = np.empty(indices.size, dtype)
    for start in range(0, indices.size, _BATCH):
        batch = indices[start : start + _BATCH]
        values = _non_finite(gather(batch), batch.size)
        finite = np.flatnonzero(values == 0)
        if finite.size:
            values[finite] = _finite(gather(batch[finite]), finite.size, divisor, dtype)
        results[start : start + _BATCH] = narrow(values, dtype)
    return results


def _non_finite(addends: Iterable[Addends], count: int) -> FloatArray:
    """NaN, an infinity, or 0 where all addends are finite."""
    has_nan, has_positive, has_negative = np.zeros((3, count), np.bool_)
    for owner, values, _ in addends:
        np.logical_or.at(has_nan, owner, np.isnan(values))
        np.logical_or.at(has_positive, owner, values == np.inf)
        np.logical_or.at(has_negative, owner, values == -np.inf)
    results = np.where(has_positive, np.inf, np.where(has_negative, -np.inf, 0.0))
    results[has_nan | (has_positive & has_negative)] = np.nan
    return results


def _finite(
    addends: Iterable[Addends], count: int, divisor: int, dtype: np.dtype[np.generic]
) -> list[float]:
    """The quotients, rounded to float64, or to odd for a narrower type."""
    totals = np.zeros(count, np.object_)
    negative = np.ones(count, np.bool_)
    for owner, values, weight in addends:
        np.add.at(totals, owner, integers_of(values) * weight)
        np.logical_and.at(negative, owner, np.signbit(values))
    denominator = divisor << _SCALE
    divide = _nearest if dtype == np.float64 else _odd
    # A total of zero with all signs negative: every addend is -0.0.
    return [
        divide(total, denominator) if total else -0.0 if sign else 0.0
        for total, sign in zip(totals.tolist(), negative.tolist(), strict=True)
    ]


def rounded(totals: list[int], divisor: int, dtype: np.dtype[np.generic]) -> Array:
    """``totals * 2**-1126 / divisor``, rounded once to a float type."""
    divide = _nearest if dtype == np.float64 else _odd
    denominator = divisor << _SCALE
    values = [divide(total, denominator) if total else 0.0 for total in totals]
    return narrow(np.array(values, np.float64), dtype)


def integers_of(values: FloatArray) -> npt.NDArray[np.object_]:
    """``values * 2**1126``, of finite values, as Python's integers."""
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, 53).astype(np.int64).astype(np.object_)
    shift = (exponent + (_SCALE - 53)).astype(np.object_)
    return np.asarray(np.left_shift(mantissa, shift), np.object_)


def _nearest(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # Python divides two integers with one rounding
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _odd(numerator: int, denominator: int) -> float:
    """The quotient cut off to 52 or 53 bits, the last of them set if anything was cut."""
    size = abs(numerator)
    shift = 52 - size.bit_length() + denominator.bit_length()
    quotient, rest = divmod(size << max(shift, 0), denominator << max(-shift, 0))
    result = math.ldexp(quotient | (rest != 0), -shift)
    return result if numerator > 0 else -result
