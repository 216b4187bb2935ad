"""Sums of integer arrays, with what does not fit their type found.

64-bit integers: next to the sum modulo 2**64 the upper halves are summed by themselves. The first
gives the lower bits of the exact sum, the second all that is above them, so together they tell
whether it fits, whatever happened on the way; no order of the arrays matters. Narrower integers are
summed in 64 bits. The slow oracle is :mod:`onefold.exact.integers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from onefold.exact.kernels.compiled import by_type, entry, inner
from onefold.exact.kernels.unsafe import array_at

__all__ = ["add_integers", "finish_integers", "sum_integers"]

_BLOCK = 1024


@entry
def sum_integers(addresses: Any, start: int, out: Any) -> int:
    """Put the sums of elements from ``start`` on into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        start: The first element.
        out: Contiguous, for as many elements as are wanted.

    Returns:
        The first index of ``out`` at which the sum does not fit, or -1.
    """
    sums, uppers = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    moved = addresses + start * out.itemsize
    overflow = -1
    for first in range(0, out.shape[0], _BLOCK):
        block = out[first : first + _BLOCK]
        found = add_integers(moved, sums, uppers, block)
        if found >= 0 and overflow < 0:
            overflow = first + found
        moved += _BLOCK * out.itemsize
    return overflow


@inner
def add_integers(addresses: Any, sums: Any, uppers: Any, out: Any) -> int:
    """As :func:`sum_integers`, for one block."""
    size = out.shape[0]
    for number in range(addresses.shape[0]):
        _add(array_at(addresses[number], size, out), sums, uppers, number == 0)
    return finish_integers(sums, uppers, out)


@by_type
def _add(values: Any, sums: Any, uppers: Any, is_first: Any) -> Any:
    wide = values.dtype in (types.int64, types.uint64)

    def add(values: Any, sums: Any, uppers: Any, is_first: Any) -> None:
        if is_first:
            for index in range(values.shape[0]):
                sums[index] = np.int64(values[index])
                if wide:
                    uppers[index] = np.int64(values[index] >> 32)
        else:
            for index in range(values.shape[0]):
                sums[index] += np.int64(values[index])
                if wide:
                    uppers[index] += np.int64(values[index] >> 32)

    return add


@by_type
def finish_integers(sums: Any, uppers: Any, out: Any) -> Any:
    """Put sums into ``out``; returns the first index at which one does not fit, or -1."""
    if out.dtype in (types.int64, types.uint64):
        least = np.int64(0 if out.dtype == types.uint64 else -(2**31))
        most = np.int64(2**32 - 1 if out.dtype == types.uint64 else 2**31 - 1)

        def finish_wide(sums: Any, uppers: Any, out: Any) -> int:
            misfits = 0
            for index in range(out.shape[0]):
                lower = sums[index] - (uppers[index] << 32)
                upper = uppers[index] + (lower >> 32)
                misfits += (upper < least) | (upper > most)
                out[index] = sums[index]
            return _first_misfit(sums, uppers, least, most, out.shape[0]) if misfits else -1

        return finish_wide
    limits = np.iinfo(str(out.dtype))
    low, high = np.int64(limits.min), np.int64(limits.max)

    def finish(sums: Any, uppers: Any, out: Any) -> int:
        found = -1
        for index in range(out.shape[0] - 1, -1, -1):
            out[index] = sums[index]
            if sums[index] < low or sums[index] > high:
                found = index
        return found

    return finish


@inner
def _first_misfit(sums: Any, uppers: Any, least: int, most: int, size: int) -> int:
    for index in range(size):
        lower = sums[index] - (uppers[index] << 32)
        upper = uppers[index] + (lower >> 32)
        if upper < least or upper > most:
            return index
    return -1
