"""From a pair to the result: divide exactly, round once, and say where that is in doubt.

A quotient is computed like a division by hand: a first digit (``high / divisor``, one float64), the
exact remainder, and from it the second digit (``tail``). What remains then only matters by its
sign, and goes into the tail by rounding it to odd. So the quotient of an exact pair is known well
enough to be rounded rightly, ties included; they are frequent, as in the mean of two.

Where the pair is not exact, or its remainder needs more than one float64, the result is computed
twice, with the tail at either end of the interval in which it lies (Ziv's test). If both ends give
the same bits, so does everything between them. If they do not, or if something overflowed or is
too small for the remainders to be exact, the coordinate is in doubt and goes to
:mod:`onefold.exact.certain`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact.pairs import FloatArray, IndexArray, Pair, two_product, two_sum
from onefold.exact.rounding import round_pair, to_odd
from onefold.update import Array

__all__ = ["finish"]

_SMALL = 2.0**-960
"""Below this a tail may underflow."""

_LEAST = 2.0**-1074
"""The smallest positive float64."""

_TAIL_ERROR = 2.0**-49
"""A tail from an inexact remainder is off by less than this part of it (two ulps are 2**-51)."""

_EXCESS_ERROR = 2.0**-51
"""A product with what a float64 divisor lacks is off by less than this part of it."""


@dataclass(slots=True)
class _Quotient:
    """``high + tail``, off by at most ``slack``; None stands for zero everywhere."""

    high: FloatArray
    tail: FloatArray | None
    slack: FloatArray | None


def finish(pair: Pair, divisor: int, dtype: np.dtype[np.generic]) -> tuple[Array, IndexArray]:
    """``pair / divisor`` in ``dtype``, and the flat indices at which that is in doubt.

    Args:
        pair: Sums of any shape.
        divisor: A positive integer.
        dtype: A float type.

    Returns:
        Values of the pair's shape; at the indices they mean nothing.
    """
    quotient = _divide(pair, divisor, exact_is_enough=dtype == np.float64)
    values = round_pair(quotient.high, quotient.tail, dtype)
    doubt = ~np.isfinite(quotient.high)
    if quotient.tail is not None:
        doubt |= ~np.isfinite(quotient.tail)
    if divisor != 1:
        doubt |= _too_small(quotient)
    doubt |= _settle(values, quotient, dtype)
    return values, np.flatnonzero(doubt)


def _divide(pair: Pair, divisor: int, *, exact_is_enough: bool) -> _Quotient:
    """The quotient; without a tail where rounding an exact pair's own division is the result."""
    high, low = pair.normalised()
    if low is None and pair.error is not None:
        low = np.zeros_like(high)
    if divisor == 1:
        return _Quotient(high, low, _slack(low, pair.error, 1.0))
    scale = np.asarray(divisor, np.float64)
    excess = float(divisor - int(scale))  # zero, unless the divisor is beyond 2**53
    first = high / scale
    if low is None and exact_is_enough and not excess:
        return _Quotient(first, None, None)
    rest, lost = _rest(_remainder(high, first, scale), low, first * excess)
    second = rest / scale
    tail = to_odd(second, _remainder(rest, second, scale))
    if low is not None and exact_is_enough and not excess:
        whole = low == 0 if pair.error is None else (low == 0) & (pair.error == 0)
        tail = np.where(whole, 0.0, tail)  # valid also where the tail underflows
    lost = lost if pair.error is None else lost + pair.error
    return _Quotient(first, tail, _slack(tail, lost, float(scale)))


def _rest(
    remainder: FloatArray, low: FloatArray | None, excess: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``remainder + low - excess`` in one float64, and a bound on what that lost."""
    lost = np.abs(excess) * _EXCESS_ERROR
    if low is None:
        return remainder - excess, lost
    rest, error = two_sum(remainder, low)
    return rest - excess, lost + np.abs(error)


def _remainder(dividend: FloatArray, quotient: FloatArray, divisor: FloatArray) -> FloatArray:
    """``dividend - quotient * divisor``, exact because the quotient is the rounded one."""
    product, error = two_product(quotient, divisor)
    return (dividend - product) - error


def _slack(tail: FloatArray | None, lost: FloatArray | None, divisor: float) -> FloatArray | None:
    """A bound on what the tail is off by; zero where it is exact or rounded to odd.

    ``lost`` bounds what the dividend is off by.
    """
    if tail is None or lost is None or not lost.any():
        return None
    # Twice, as the bound was itself summed with rounding; and never zero by underflow.
    bound = np.abs(tail) * _TAIL_ERROR + 2 * lost / divisor
    return np.where(lost != 0, np.maximum(bound, _LEAST), 0.0)


def _too_small(quotient: _Quotient) -> npt.NDArray[np.bool_]:
    small = np.abs(quotient.high) < _SMALL
    if quotient.tail is None:
        return np.zeros_like(small)
    inexact = quotient.tail != 0
    if quotient.slack is not None:
        inexact |= quotient.slack != 0
    too_small: npt.NDArray[np.bool_] = small & inexact
    return too_small


def _settle(
    values: Array, quotient: _Quotient, dtype: np.dtype[np.generic]
) -> npt.NDArray[np.bool_]:
    """Put the settled values into ``values`` where there is slack; which are not settled."""
    high, tail, slack = quotient.high, quotient.tail, quotient.slack
    unsettled = np.zeros(high.shape, np.bool_)
    if tail is None or slack is None:
        return unsettled
    at = slack != 0
    least = round_pair(high[at], tail[at] - slack[at], dtype)
    most = round_pair(high[at], tail[at] + slack[at], dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    unsettled[at] = (least.view(bits) != most.view(bits)) | ~np.isfinite(slack[at])
    values[at] = least
    return unsettled
