"""Exact sums of integers.

A sum of 64-bit integers needs more than 64 bits, if only on the way: in 2**63 - 1, 1, -1 the whole
sum fits though a part of it does not, and in another order no part would overflow. So sums are
kept in two words, the upper taking what is worth 2**32 and more, and compared with the range of
the type at the very end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefold.errors import SumOverflow
from onefold.exact.pairs import IndexArray
from onefold.exact.stored import IntegerArray, words
from onefold.update import Array

__all__ = ["WideSum", "sum_overflow"]

_LOWER_BITS = 32
_LOWER_MASK = 2**_LOWER_BITS - 1


@dataclass(slots=True)
class WideSum:
    """Running sums ``upper * 2**32 + lower``, exact for up to 2**31 addends between carries."""

    upper: IntegerArray
    lower: IntegerArray

    @classmethod
    def of(cls, values: Array) -> WideSum:
        """``values``, of an integer type, as sums of one addend."""
        if values.dtype.itemsize == 8:
            return cls(*words(values))
        lower = values.astype(np.int64)
        return cls(np.zeros_like(lower), lower)

    def add(self, other: WideSum) -> None:
        """Add the sums of ``other``, of the same shape."""
        self.upper += other.upper
        self.lower += other.lower

    def grouped(self, starts: IndexArray) -> WideSum:
        """The sums of runs of the first axis; each run goes from one start to the next."""
        return WideSum(np.add.reduceat(self.upper, starts), np.add.reduceat(self.lower, starts))

    def carry(self) -> None:
        """Move to ``upper`` what belongs there, so that ``lower`` is in 0..2**32-1."""
        self.upper += self.lower >> _LOWER_BITS
        self.lower &= _LOWER_MASK

    def narrowed(self, dtype: np.dtype[np.generic]) -> tuple[Array, IndexArray]:
        """The sums in ``dtype``, and the flat indices at which they do not fit."""
        self.carry()
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type, by our caller
        word = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
        least = np.iinfo(word).min >> _LOWER_BITS
        most = np.iinfo(word).max >> _LOWER_BITS
        total = (self.upper.astype(word) << _LOWER_BITS) | self.lower.astype(word)
        fits = (self.upper >= least) & (self.upper <= most)
        fits &= (total >= limits.min) & (total <= limits.max)
        return total.astype(dtype), np.flatnonzero(~fits)

    def total(self, index: int) -> int:
        """The sum at a flat index."""
        return (int(self.upper.flat[index]) << _LOWER_BITS) + int(self.lower.flat[index])


def sum_overflow(total: int, coordinate: int, dtype: np.dtype[np.generic]) -> SumOverflow:
    """The error that says that ``total`` does not fit."""
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type, by our caller
    return SumOverflow.at(
        coordinate,
        f"the exact sum is {total}, but {dtype.name} holds {limits.min} to {limits.max}; "
        "contribute a wider type",
    )
