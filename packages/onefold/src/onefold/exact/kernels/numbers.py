"""Numbers, one at a time: exact tests, quotients, one rounding, and in and out of each type.

The names are those of :mod:`onefold.exact.pairs`, :mod:`~onefold.exact.finish` and
:mod:`~onefold.exact.rounding`, which do the same with NumPy and say why it is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from onefold.exact.kernels.compiled import by_type, inner
from onefold.exact.kernels.unsafe import fma, half_to_single, single_to_half

__all__ = [
    "add_exactly",
    "add_to_pair",
    "decode",
    "encode",
    "encode_normal",
    "encode_odd",
    "finish_pair",
    "mean_of_exact",
    "quotient",
    "to_odd",
    "two_sum",
]

_SMALL = 2.0**-960
_LEAST = 2.0**-1074
_TAIL_ERROR = 2.0**-49
_EPSILON = 2.0**-52
_LAST = np.int64(1) << 29
"""Of a float64's bits, the last that a float32 has too."""

_ABOVE_ONE = 1 + 2.0**-20
"""More than rounding can take from a sum of 2**30 errors."""


@inner
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum, and what rounding took from it, exactly."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


@inner
def add_exactly(total: float, value: float) -> float:
    """The sum if a float64 holds it exactly, else NaN; and a NaN stays one."""
    new = total + value
    return new if ((new - total == value) & (new - value == total)) else np.nan


@inner
def add_to_pair(high: float, low: float, value: float) -> tuple[float, float]:
    """``high + low + value`` as a pair; ``low`` is NaN once anything was lost."""
    total, error = two_sum(high, value)
    return total, add_exactly(low, error)


@inner
def to_odd(value: float, residual: float) -> float:
    """``value + residual`` rounded to odd; ``residual`` is anything of its sign."""
    bits = np.float64(value).view(np.int64)
    toward = np.int64(1) if (residual > 0) == (value > 0) else np.int64(-1)
    odd = np.int64(bits + toward).view(np.float64)
    return odd if ((residual != 0) & ((bits & 1) == 0)) else value


@inner
def mean_of_exact(total: float, divisor: float) -> float:
    """``total / divisor`` rounded to odd, for a total far above float64's least."""
    first = total / divisor
    return to_odd(first, fma(-first, divisor, total))


@inner
def finish_pair(
    high: float, low: float, error: float, divisor: float, narrow: int
) -> tuple[float, bool]:
    """``(high + low) / divisor`` rounded once, and whether that is sure.

    ``high + low`` is off by no more than ``error``, or by nothing that is known if that is NaN.
    Rounded to nearest, or to odd if it is to be ``narrow``. What is not exact is rounded at both
    ends of the interval in which it lies; if they agree it is sure.
    """
    total, rest = two_sum(high, low)
    if low == 0:
        total, rest = high, 0.0  # keeps the sign of a zero
    slack = 0.0
    if error != 0:
        slack = error * _ABOVE_ONE + abs(rest) * _EPSILON + _LEAST
    exact = (rest == 0) & (slack == 0)
    if divisor != 1:
        total, rest, slack = quotient(total, rest, slack, divisor)
    least, most = _rounded(total, rest - slack, narrow), _rounded(total, rest + slack, narrow)
    if exact & (narrow == 0):
        return total, abs(total) < np.inf  # the processor rounds a quotient once
    return least, (least == most) & (abs(least) < np.inf)


@inner
def _rounded(high: float, low: float, narrow: int) -> float:
    """``high + low``, rounded to nearest or to odd; where ``low`` is zero it is ``high``."""
    total, residual = two_sum(high, low)
    if narrow:
        total = to_odd(total, residual)
    return high if low == 0 else total


@inner
def quotient(high: float, low: float, slack: float, divisor: float) -> tuple[float, float, float]:
    """``(high + low) / divisor`` as ``(first, tail, slack)``: the tail is off by at most the slack.

    ``slack`` comes in as that of ``low``; it is NaN where nothing can be said. See
    :mod:`onefold.exact.finish`.
    """
    first = high / divisor
    rest, lost = two_sum(fma(-first, divisor, high), low)
    second = rest / divisor
    tail = to_odd(second, fma(-second, divisor, rest))
    if (lost != 0) | (slack != 0):
        lost = abs(lost) + slack
        slack = max(abs(tail) * _TAIL_ERROR + 2 * lost / divisor, _LEAST)
    if (abs(first) < _SMALL) & ((low != 0) | (slack != 0)):
        slack = np.nan
    return first, tail, slack


# -- in and out of the element types -----------------------------------------------------------


@by_type
def decode(stored: Any) -> Any:
    """The float64 that a stored float stands for."""
    if stored == types.int16:
        return lambda stored: np.float64(half_to_single(stored))
    if stored == types.uint16:
        return lambda stored: np.float64(np.uint32(np.uint32(stored) << 16).view(np.float32))
    return lambda stored: np.float64(stored)


@by_type
def encode(value: Any, like: Any) -> Any:
    """A float64, exact or rounded to odd, in the type that ``like`` has, rounded once.

    uint32 stands for a float32 rounded to odd, which can be rounded to 16 bits later.
    """
    if like.dtype == types.float64:
        return lambda value, like: value
    if like.dtype == types.float32:
        return lambda value, like: np.float32(value)
    if like.dtype == types.uint32:
        return lambda value, like: np.float32(_single_to_odd(value)).view(np.uint32)
    if like.dtype == types.int16:
        return lambda value, like: single_to_half(_single_to_odd(value))
    return lambda value, like: _single_to_bfloat16(_single_to_odd(value))


@by_type
def encode_normal(value: Any, like: Any) -> Any:
    """As :func:`encode`, quicker, for nothing but zeros and what is at least 2**-126.

    Cutting off the bits that a float32 has no room for, and making the last one odd if they were
    not all zero, rounds to odd where a float32 has all its bits.
    """
    if like.dtype == types.float64:
        return lambda value, like: value
    if like.dtype == types.float32:
        return lambda value, like: np.float32(value)
    if like.dtype == types.int16:
        return lambda value, like: single_to_half(_cut(value))
    return lambda value, like: _single_to_bfloat16(_cut(value))


@inner
def _cut(value: float) -> Any:
    bits = np.float64(value).view(np.int64)
    odd = np.int64(_LAST if bits & (_LAST - 1) else 0)
    return np.float32(np.int64(bits & -_LAST | odd).view(np.float64))


@inner
def _single_to_bfloat16(single: Any) -> Any:
    bits = np.float32(single).view(np.uint32)
    last = np.uint32(np.uint32(bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + last) >> np.uint32(16))


@by_type
def encode_odd(value: Any, like: Any) -> Any:
    """As :func:`encode`, but float32 rounded to odd, to be rounded once more by somebody else."""
    if like.dtype == types.float64:
        return lambda value, like: value
    return lambda value, like: _single_to_odd(value)


@inner
def _single_to_odd(value: float) -> Any:
    """``value`` as a float32, rounded to odd; an infinity or NaN as it is."""
    single = np.float32(value)
    residual = value - np.float64(single)
    bits = np.float32(single).view(np.int32)
    toward = np.int32(1) if (residual > 0) == (value > 0) else np.int32(-1)
    odd = np.int32(bits + toward).view(np.float32)
    return odd if ((abs(residual) < np.inf) & (residual != 0) & ((bits & 1) == 0)) else single
