"""What arrays hold, as float64 terms that lose nothing.

All the element types but the 64-bit integers fit a float64; those become two terms of 32 bits.
With a weight a term becomes a product, which is exact as it stands while the bits of both
together fit a float64, and a product with its error otherwise.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from onefold.exact.pairs import FloatArray, Pair
from onefold.update import Array

__all__ = ["IntegerArray", "add_stored", "significant_bits", "terms", "words"]

IntegerArray: TypeAlias = npt.NDArray[np.int64]

_SIGNIFICANT_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def terms(values: Array) -> tuple[FloatArray, ...]:
    """Arrays of the same shape that add up to ``values``; not to be written to."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return (np.asarray(values, dtype=np.float64, order="C"),)
    upper, lower = words(values)
    return upper.astype(np.float64) * 2.0**32, lower.astype(np.float64)


def words(values: Array) -> tuple[IntegerArray, IntegerArray]:
    """``(upper, lower)`` of 64-bit integers, which are ``upper * 2**32 + lower``."""
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    integers = cast("npt.NDArray[np.int64 | np.uint64]", native)
    return (integers >> 32).astype(np.int64), (integers & 0xFFFFFFFF).astype(np.int64)


@cache  # the name of a type is slow to find out
def significant_bits(dtype: np.dtype[np.generic]) -> int:
    """The most significant bits that a term of this type has."""
    return _SIGNIFICANT_BITS.get(dtype.name, min(32, 8 * dtype.itemsize))


def add_stored(pair: Pair, values: Array, weight: int | IntegerArray | None) -> None:
    """Add ``weight * values`` to ``pair``, exactly.

    ``weight`` is at most 2**53: a number, an array that broadcasts against ``values``, or None,
    which stands for 1.
    """
    bits = 0 if weight is None else int(np.max(weight)).bit_length()
    is_exact = significant_bits(values.dtype) + bits <= 53
    for term in terms(values):
        if weight is None:
            pair.add(term)
        elif is_exact:
            pair.add(term * np.asarray(weight, np.float64))
        else:
            pair.add_product(term, np.asarray(weight, np.float64))
