"""Sums of integer arrays, with what does not fit their type found.

64-bit integers: next to the sum modulo 2**64 the upper halves are summed by themselves. The first
gives the lower bits of the exact sum, the second all that is above them, so together they tell
whether it fits, whatever happened on the way; no order of the arrays matters. Narrower integers are
summed in 64 bits. The slow oracle is :mod:`onefold.exact.integers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.unsafe import array_at

__all__ = ["BLOCK", "add_integers", "reduce_integers"]

BLOCK = 1024


@entry
def reduce_integers(
    addresses: Any, start: int, out: Any, scratch: Any, least: int, most: int
) -> int:
    """Put the sums of elements from ``start`` on into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        start: The first element.
        out: For as many elements as are wanted.
        scratch: int64, two rows of at least :data:`BLOCK`.
        least: The least value of the type; of a 64-bit type, its upper half.
        most: The greatest, likewise.

    Returns:
        The first index of ``out`` at which the sum does not fit, or -1.
    """
    moved = start * out.itemsize
    for first in range(0, out.shape[0], BLOCK):
        block = out[first : first + BLOCK]
        found = add_integers(addresses, moved, scratch, block, least, most)
        if found >= 0:
            return first + found
        moved += BLOCK * out.itemsize
    return -1


@inner
def add_integers(addresses: Any, moved: int, scratch: Any, out: Any, least: int, most: int) -> int:
    """As :func:`reduce_integers`, for one block."""
    size = out.shape[0]
    sums, uppers = scratch[0], scratch[1]
    for index in range(size):
        sums[index] = 0
        uppers[index] = 0
    for number in range(addresses.shape[0]):
        values = array_at(addresses[number] + moved, size, out)
        if out.itemsize < 8:
            for index in range(size):
                sums[index] += np.int64(values[index])
        else:
            for index in range(size):
                sums[index] += np.int64(values[index])
                uppers[index] += np.int64(values[index] >> 32)
    misfits = 0
    for index in range(size):
        total = sums[index]
        if out.itemsize == 8:
            total = uppers[index] + ((total - (uppers[index] << 32)) >> 32)
        uppers[index] = total
        misfits += (total < least) | (total > most)
        out[index] = sums[index]
    if misfits:
        for index in range(size):
            if uppers[index] < least or uppers[index] > most:
                return index
    return -1
