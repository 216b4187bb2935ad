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
    "mean_of_exact",
    "quotient",
    "round_pair",
    "to_odd",
    "two_sum",
]

_SMALL = 2.0**-960
_LEAST = 2.0**-1074
_TAIL_ERROR = 2.0**-49


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
def quotient(high: float, low: float, divisor: float) -> tuple[float, float, float]:
    """``(high + low) / divisor`` as ``(first, tail, slack)``: the tail is off by at most the slack.

    ``slack`` is NaN where nothing can be said. See :mod:`onefold.exact.finish`.
    """
    first = high / divisor
    rest, lost = two_sum(fma(-first, divisor, high), low)
    second = rest / divisor
    tail = to_odd(second, fma(-second, divisor, rest))
    slack = 0.0
    if lost != 0:
        slack = max(abs(tail) * _TAIL_ERROR + 2 * abs(lost) / divisor, _LEAST)
    if (abs(first) < _SMALL) & (low != 0):
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

    def encode_bfloat16(value: Any, like: Any) -> Any:
        bits = np.int64(np.float32(_single_to_odd(value)).view(np.uint32))
        return np.uint16((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)

    return encode_bfloat16


@inner
def _single_to_odd(value: float) -> Any:
    """``value`` as a float32, rounded to odd; an infinity or NaN as it is."""
    single = np.float32(value)
    residual = value - np.float64(single)
    bits = np.float32(single).view(np.int32)
    toward = np.int32(1) if (residual > 0) == (value > 0) else np.int32(-1)
    odd = np.int32(bits + toward).view(np.float32)
    return odd if ((abs(residual) < np.inf) & (residual != 0) & ((bits & 1) == 0)) else single


@by_type
def round_pair(high: Any, low: Any, like: Any) -> Any:
    """``high + low`` rounded once; where ``low`` is zero the sign of zero is kept."""
    if like.dtype == types.float64:
        return lambda high, low, like: high if low == 0 else high + low

    def through_odd(high: Any, low: Any, like: Any) -> Any:
        total, error = two_sum(high, low)
        return encode(high if low == 0 else to_odd(total, error), like)

    return through_odd
