"""Sums kept as two float64: error-free transformations on NumPy arrays.

The sum of two floats is a float plus an error, and that error is itself a float that a few more
additions deliver (*TwoSum*); the same holds of products. So nothing is lost as long as the errors
are kept. A :class:`Pair` keeps them added up in ``low``; what the additions in ``low`` drop in
turn is bounded by ``error``. Where ``error`` is zero, ``high + low`` *is* the exact sum.

Gradients of 32 bits or less seldom leave anything in ``low`` at all, hence the parts that are
None while they are zero throughout.

All this needs round-to-nearest and no overflow. Underflow does no harm: sums, and products with
integers, are multiples of the smallest subnormal. Overflow leaves an infinity or NaN in a pair,
which whoever finishes the pair looks for.

Read more: Ogita, Rump and Oishi, "Accurate sum and dot product" (2005); Muller et al., "Handbook
of Floating-Point Arithmetic", chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "IndexArray", "Pair", "merge", "two_product", "two_sum"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IndexArray: TypeAlias = npt.NDArray[np.intp]

_SPLITTER = np.float64(2**27 + 1)


def two_sum(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``(total, error)``: the rounded sum, and what rounding took from it, exactly."""
    total = left + right
    right_part = total - left
    error = total - right_part
    np.subtract(left, error, out=error)
    np.subtract(right, right_part, out=right_part)
    error += right_part
    return total, error


def two_product(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``(product, error)``: the rounded product, and what rounding took from it, exactly.

    One side must be an integer, lest the error underflow.
    """
    product = left * right
    left_high, left_low = _split(left)
    right_high, right_low = _split(right)
    error = left_high * right_high - product
    error += left_high * right_low
    error += left_low * right_high
    error += left_low * right_low
    return product, error


def _split(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two halves of at most 26 bits that add up to ``values`` (Veltkamp)."""
    scaled = values * _SPLITTER
    high = scaled - (scaled - values)
    return high, values - high


@dataclass(slots=True)
class Pair:
    """The running sum ``high + low``, off by at most twice ``error`` (which is itself rounded).

    ``low`` and ``error`` are None while they are zero everywhere. ``high`` starts as -0.0, which
    changes nothing that is added to it, not even another -0.0.
    """

    high: FloatArray
    low: FloatArray | None = None
    error: FloatArray | None = None

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Pair:
        """Sums of nothing."""
        return cls(np.full(shape, -0.0))

    def add(self, values: FloatArray) -> None:
        """Add one value to each sum."""
        self.high, error = two_sum(self.high, values)
        self.add_low(error)

    def add_product(self, values: FloatArray, weights: FloatArray) -> None:
        """Add ``weights * values``; the weights are integers."""
        product, error = two_product(values, weights)
        self.add(product)
        self.add_low(error)

    def add_low(self, values: FloatArray) -> None:
        """Add to ``low``; the sign of a zero is lost, so only errors go here."""
        if not values.any():
            return
        if self.low is None:
            self.low = values
            return
        self.low, dropped = two_sum(self.low, values)
        self.add_error(dropped)

    def add_error(self, dropped: FloatArray) -> None:
        """Take note that values of this size were dropped."""
        if dropped.any():
            size = np.abs(dropped)
            self.error = size if self.error is None else self.error + size

    def take(self, rows: IndexArray) -> Pair:
        """The sums at ``rows`` of the first axis."""
        return Pair(
            self.high[rows],
            None if self.low is None else self.low[rows],
            None if self.error is None else self.error[rows],
        )

    def normalised(self) -> tuple[FloatArray, FloatArray | None]:
        """``high`` as the rounded sum and ``low`` as its error; a sum that is -0.0 stays it."""
        if self.low is None:
            return self.high, None
        high, low = two_sum(self.high, self.low)
        return np.where(self.low == 0, self.high, high), low


def merge(left: Pair, right: Pair) -> Pair:
    """The pair of both sums together."""
    high, error = two_sum(left.high, right.high)
    merged = Pair(high, left.low, left.error)
    if right.error is not None:
        merged.add_error(right.error)
    if right.low is not None:
        merged.add_low(right.low)
    merged.add_low(error)
    return merged
