"""One rounding, whatever the type.

Converting an exact value to float64 first and to a narrower type second rounds twice, and that
can differ from rounding once: the first step may land exactly half way between two narrow values
and so hide on which side of the middle the value was. *Round to odd* cures this. It cuts the value
off and sets the last bit if anything was cut; a value that is not a short one then never looks
like a middle, and the second rounding sees the right side. It works where the intermediate type
has at least two more bits than the final one.

The conversion of float64 to bfloat16 in ml_dtypes goes through float32 and rounds twice, so it
gets the same treatment.

Read more: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
using rounding to odd" (2008).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from onefold.exact.pairs import FloatArray, two_sum
from onefold.update import Array

__all__ = ["narrow", "round_pair", "to_odd"]

_Float = TypeVar("_Float", np.float32, np.float64)


def to_odd(values: npt.NDArray[_Float], residual: FloatArray) -> npt.NDArray[_Float]:
    """``values + residual`` rounded to odd.

    Args:
        values: The sums rounded to nearest (float32 or float64).
        residual: What that rounding took, or anything with its sign. A zero of ``values`` must
            have that sign too.
    """
    inexact = np.abs(residual) > 0  # not so for the NaN beside an infinity
    if not inexact.any():
        return values
    bits = values.view(np.int64) if values.dtype == np.float64 else values.view(np.int32)
    away = inexact & (np.signbit(values) != np.signbit(residual))
    odd: npt.NDArray[_Float] = np.bitwise_or(bits - away, inexact).view(values.dtype)
    return odd


def narrow(values: FloatArray, dtype: np.dtype[np.generic]) -> Array:
    """``values``, exact or rounded to odd, in a float type, rounded once."""
    if dtype.name != "bfloat16":
        return values.astype(dtype)
    single = values.astype(np.float32)
    return to_odd(single, values - single).astype(dtype)


def round_pair(high: FloatArray, low: FloatArray | None, dtype: np.dtype[np.generic]) -> Array:
    """``high + low`` in ``dtype``, rounded once; where ``low`` is zero the sign of zero is kept."""
    if dtype == np.float64:
        return high if low is None else np.where(low == 0, high, high + low)
    if low is None:
        return narrow(high, dtype)
    total, error = two_sum(high, low)
    return narrow(to_odd(np.where(low == 0, high, total), error), dtype)
