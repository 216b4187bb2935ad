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

_TAIL_ERROR = 2.0**-49
"""A tail from an inexact remainder is off by less than this part of it (two ulps are 2**-51)."""


@dataclass(slots=True)
class _Quotient:
    """``high + tail``, off by at most ``slack``; None stands for zero everywhere."""

    high: FloatArray
    tail: FloatArray | None
    slack: FloatArray | None


def finish(
    pair: Pair, divisor: int, dtype: np.dtype[np.generic]
) -> tuple[Array, IndexArray]:
    """``pair / divisor`` in ``dtype``, and the flat indices at which that is in doubt.

    Args:
        pair: Sums of any shape.
        divisor: A positive integer. If float64 cannot hold it everything is in doubt.
        dtype: A float type.

    Returns:
        Values of the pair's shape; at the indices they mean nothing.
    """
    if float(divisor) != divisor:
        return np.empty(pair.high.shape, dtype), np.arange(pair.high.size)
    quotient = _divide(pair, divisor, exact_is_enough=dtype == np.float64)
    values = round_pair(quotient.high, quotient.tail, dtype)
    doubt = ~np.isfinite(quotient.high)
    if quotient.tail is not None:
        doubt |= ~np.isfinite(quotient.tail)
    if divisor != 1:
        doubt |= _too_small(quotient)
    if quotient.slack is not None:
        values, unsettled = _settle(quotient, dtype)
        doubt |= unsettled
    return values, np.flatnonzero(doubt)
