"""Sums of integer arrays, with what does not fit their type found.

64-bit integers: next to the sum modulo 2**64 the upper halves are summed by themselves. The first
gives the lower bits of the exact sum, the second all that is above them, so together they tell
whether it fits, whatever happened on the way; no order of the arrays matters. Narrower integers are
summed in 64 bits. The slow oracle is :mod:`onefold.exact.integers`.

Before that, blocks of up to eight arrays whose values leave room for that many are summed as they
are: every value must lie within an eighth of the type's range, which is seen from the bits of all
of them together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import by_type, entry, inner
from onefold.exact.kernels.unsafe import array_at

__all__ = ["BLOCK", "add_integers", "reduce_integers"]

BLOCK = 1024

_UNSIGNED: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}

SMALL_MAX = 8
"""Arrays that are added at once."""


@entry
def reduce_integers(
    addresses: Any, start: int, out: Any, scratch: Any, zeros: int, least: int, most: int
) -> int:
    """Put the sums of elements from ``start`` on into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        start: The first element.
        out: For as many elements as are wanted.
        scratch: int64, two rows of at least :data:`BLOCK`.
        zeros: The address of :data:`BLOCK` zeros of the type of ``out``.
        least: The least value of the type; of a 64-bit type, its upper half.
        most: The greatest, likewise.

    Returns:
        The first index of ``out`` at which the sum does not fit, or -1.
    """
    moved = start * out.itemsize
    for first in range(0, out.shape[0], BLOCK):
        block = out[first : first + BLOCK]
        found = -1
        if not (addresses.shape[0] <= SMALL_MAX and _add_small(addresses, moved, zeros, block)):
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


@inner
def _add_small(addresses: Any, moved: int, zeros: int, out: Any) -> bool:
    """The sums of a block, if its values are small; if not, what ``out`` holds is undefined."""
    size = out.shape[0]
    a = array_at(_place(addresses, 0, moved, zeros), size, out)
    b = array_at(_place(addresses, 1, moved, zeros), size, out)
    c = array_at(_place(addresses, 2, moved, zeros), size, out)
    d = array_at(_place(addresses, 3, moved, zeros), size, out)
    bits = _no_bits(out)
    if addresses.shape[0] <= 4:
        for i in range(size):
            out[i] = (a[i] + b[i]) + (c[i] + d[i])
            bits |= (_bits(a[i]) | _bits(b[i])) | (_bits(c[i]) | _bits(d[i]))
        return _leave_room(bits, out)
    e = array_at(_place(addresses, 4, moved, zeros), size, out)
    f = array_at(_place(addresses, 5, moved, zeros), size, out)
    g = array_at(_place(addresses, 6, moved, zeros), size, out)
    h = array_at(_place(addresses, 7, moved, zeros), size, out)
    for i in range(size):
        out[i] = ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]))
        left = (_bits(a[i]) | _bits(b[i])) | (_bits(c[i]) | _bits(d[i]))
        right = (_bits(e[i]) | _bits(f[i])) | (_bits(g[i]) | _bits(h[i]))
        bits |= left | right
    return _leave_room(bits, out)


@inner
def _place(addresses: Any, number: int, moved: int, zeros: int) -> int:
    """Where an array's part of the block is; beyond the last array, zeros."""
    return addresses[number] + moved if number < addresses.shape[0] else zeros


@by_type
def _no_bits(out: Any) -> Any:
    kind = _UNSIGNED[out.dtype.bitwidth]
    return lambda out: kind(0)


@by_type
def _bits(stored: Any) -> Any:
    """A value moved so that those of an eighth of the range begin with three zeros."""
    kind = _UNSIGNED[stored.bitwidth]
    if not stored.signed:
        return lambda stored: stored
    eighth = kind(1 << (stored.bitwidth - 4))
    return lambda stored: kind(kind(stored) + eighth)


@by_type
def _leave_room(bits: Any, out: Any) -> Any:
    """Whether no value has any of the three (Numba has widened their bits meanwhile)."""
    upper = np.uint64(7 << (out.dtype.bitwidth - 3))
    return lambda bits, out: np.uint64(bits) & upper == 0
