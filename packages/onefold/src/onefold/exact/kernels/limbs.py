"""The certain tier: a sum as one long integer, whatever its addends.

A float64 is an integer times a power of two, and all of them together span some 2100 bits. So the
sum is kept as an integer of that length in *limbs*, each worth 2**32 times the one before it. A
limb is an int64 that holds 32 bits of the sum and 31 bits in reserve: a value goes into three
neighbouring limbs by three additions, with no carry to anywhere else, 2**31 times over. Only at
the end are the carries moved up. This is the *superaccumulator* of Kulisch.

The quotient is then a long division that stops after 60 bits: that is more than any type holds,
and all that lies beyond can only say that it is not nothing, by setting the last bit (round to
odd). The slow oracle is :mod:`onefold.exact.certain`, the same in Python's integers.

Read more: Kulisch, "Computer Arithmetic and Validity" (2008); Collange, Defour, Graillat and
Iakymchuk, "Numerical reproducibility for the parallel reduction" (2015); Neal, "Fast exact
summation using small and large superaccumulators" (2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.numbers import decode, encode, encode_odd
from onefold.exact.kernels.sizes import LIMBS
from onefold.exact.kernels.unsafe import array_at

__all__ = ["column", "reduce_columns", "run"]

_OFFSET = 1216
"""Bit 0 of limb 0 is worth 2**-1216."""

_MASK = 0xFFFFFFFF
_NEGATIVE_ZERO = -(2**63)
_QUOTIENT_BITS = 60
_NAN, _PLUS, _MINUS, _NOT_NEGATIVE_ZERO = 1, 2, 4, 8


@entry
def reduce_columns(
    addresses: Any,
    weights: Any,
    divisor: int,
    start: int,
    out: Any,
    indices: Any,
    limbs: Any,
    odd: int,
) -> None:
    """Put the quotients of the sums of some elements of some arrays into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        weights: float64, an integer below 2**29 for each array.
        divisor: From 1 to 2**53.
        start: The element that belongs to the first one of ``out``.
        out: float32 or float64.
        indices: int64, which elements of ``out``.
        limbs: int64, :data:`LIMBS` zeros, and zeros again afterwards.
        odd: Whether to round float32 to odd, since they are to be rounded once more.
    """
    moved = start * out.itemsize
    for place in range(indices.shape[0]):
        index = indices[place]
        result = column(limbs, addresses, moved, weights, index, divisor, out)
        out[index] = encode_odd(result, out) if odd else encode(result, out)


@inner
def column(
    limbs: Any, addresses: Any, moved: int, weights: Any, index: int, divisor: int, like: Any
) -> float:
    """The quotient of the sum of one element of each of some arrays; limbs stay zero.

    It is rounded to nearest if ``like`` is float64, else to odd.
    """
    low, high, flags = LIMBS, 0, 0
    for number in range(addresses.shape[0]):
        value = decode(array_at(addresses[number] + moved, index + 1, like)[index])
        low, high, flags = _add(limbs, value, np.int64(weights[number]), low, high, flags)
    return _finish(limbs, low, high, flags, divisor, like.itemsize < 8)


@inner
def run(limbs: Any, values: Any, first: int, last: int, divisor: int, narrow: int) -> float:
    """The quotient of the sum of ``values[first:last]``; to nearest, or to odd if ``narrow``."""
    low, high, flags = LIMBS, 0, 0
    for index in range(first, last):
        value = decode(values[index])
        low, high, flags = _add(limbs, value, np.int64(1), low, high, flags)
    return _finish(limbs, low, high, flags, divisor, narrow)


@inner
def _add(
    limbs: Any, value: float, weight: int, low: int, high: int, flags: int
) -> tuple[int, int, int]:
    """Add ``weight * value``; returns the range of limbs in use and the kinds of addends met."""
    bits = np.float64(value).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & ((1 << 52) - 1)
    if exponent == 0x7FF:
        kind = _NAN if mantissa else _MINUS if bits < 0 else _PLUS
        return low, high, flags | kind
    if bits == _NEGATIVE_ZERO:
        return low, high, flags
    if exponent:
        mantissa |= 1 << 52
    else:
        exponent = 1
    place = exponent - 1075 + _OFFSET
    sign = bits >> 63
    if weight == 1:
        _add_at(limbs, mantissa, place, sign)
    else:  # in two halves, whose products are below 2**63
        _add_at(limbs, (mantissa & ((1 << 27) - 1)) * weight, place, sign)
        _add_at(limbs, (mantissa >> 27) * weight, place + 27, sign)
    return min(low, place >> 5), max(high, (place + 27 >> 5) + 2), flags | _NOT_NEGATIVE_ZERO


@inner
def _add_at(limbs: Any, size: int, place: int, sign: int) -> None:
    """Add ``size * 2**place``, with ``sign`` 0, or subtract it, with ``sign`` -1."""
    limb, shift = place >> 5, place & 31
    limbs[limb] += ((size << shift & _MASK) ^ sign) - sign
    limbs[limb + 1] += (((size >> 1) >> (31 - shift) & _MASK) ^ sign) - sign
    limbs[limb + 2] += (((size >> 1) >> (63 - shift)) ^ sign) - sign


@inner
def _finish(limbs: Any, low: int, high: int, flags: int, divisor: int, narrow: int) -> float:
    """Round the quotient of what was added, and clear the limbs."""
    result = -0.0
    if flags & _NOT_NEGATIVE_ZERO:
        result = _quotient(limbs, low, high + 1, divisor, narrow)
        for limb in range(low, high + 2):
            limbs[limb] = 0
    if flags & _NAN or (flags & _PLUS and flags & _MINUS):
        result = np.nan
    elif flags & _PLUS:
        result = np.inf
    elif flags & _MINUS:
        result = -np.inf
    return result


@inner
def _quotient(limbs: Any, low: int, high: int, divisor: int, narrow: int) -> float:
    negative = _carry(limbs, low, high)
    while high >= low and limbs[high] == 0:
        high -= 1
    if high < low:
        return 0.0
    place = (high << 5) + _bit_length(limbs[high])
    quotient, place = _divide(limbs, low, place, divisor)
    return _rounded(quotient, place - _OFFSET, negative, narrow)


@inner
def _carry(limbs: Any, low: int, high: int) -> bool:
    """Bring all limbs into 0..2**32-1, as the size of the sum; returns whether it is negative."""
    carry = 0
    for limb in range(low, high + 1):
        carry += limbs[limb]
        limbs[limb] = carry & _MASK
        carry >>= 32
    if carry >= 0:
        return False
    carry = 1
    for limb in range(low, high + 1):
        carry += limbs[limb] ^ _MASK
        limbs[limb] = carry & _MASK
        carry >>= 32
    return True


@inner
def _divide(limbs: Any, low: int, place: int, divisor: int) -> tuple[int, int]:
    """``(quotient, place)``: its first 60 bits or so, and what bit 0 of it is worth.

    ``place`` comes in as that of the first bit of the sum, plus one. Any rest sets the last bit.
    """
    bits = _bit_length(divisor) if divisor > 1 else 0
    remaining = _QUOTIENT_BITS + bits
    quotient, rest = 0, 0
    while remaining > 0:
        size = min(63 - bits, remaining, 62)
        place -= size
        remaining -= size
        current = rest << size | _read(limbs, place, size)
        digit = current
        if divisor > 1:
            digit = current // divisor
            rest = current - digit * divisor
        quotient = quotient << size | digit
    if rest or _any_below(limbs, low, place):
        quotient |= 1
    return quotient, place


@inner
def _read(limbs: Any, place: int, size: int) -> int:
    """``size`` bits, at most 62, from ``place`` upwards."""
    limb, shift = place >> 5, place & 31
    value = limbs[limb] >> shift | limbs[limb + 1] << (32 - shift)
    value |= limbs[limb + 2] << (63 - shift) << 1
    return value & ((1 << size) - 1)


@inner
def _any_below(limbs: Any, low: int, place: int) -> bool:
    limb = place >> 5
    if limbs[limb] & ((1 << (place & 31)) - 1):
        return True
    return any_set(limbs, low, limb)


@inner
def any_set(limbs: Any, low: int, high: int) -> bool:
    """Whether any limb from ``low`` to before ``high`` is not zero."""
    for limb in range(low, high):
        if limbs[limb]:
            return True
    return False


@inner
def _bit_length(value: int) -> int:
    """Of a number below 2**62; float64 has the length of one below 2**53 as its exponent."""
    upper = value >> 31
    part = upper or value
    exponent = np.float64(part).view(np.int64) >> 52
    return (exponent - 1022 if part else 0) + (31 if upper else 0)


@inner
def _rounded(size: int, exponent: int, negative: bool, narrow: int) -> float:
    """``size * 2**exponent``, where the last bit of ``size`` is sticky: to nearest, or to odd."""
    shift = _bit_length(size) - 53
    if not narrow:
        shift = max(shift, -1074 - exponent)
    shift = max(shift, 0)
    if shift > 62:
        return -0.0 if negative else 0.0
    kept, rest = size >> shift, size & ((1 << shift) - 1)
    if narrow:
        kept |= rest != 0
    elif shift:
        half = 1 << (shift - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1
    return _scaled(kept, exponent + shift, negative)


@inner
def _scaled(size: int, exponent: int, negative: bool) -> float:
    """``size * 2**exponent``, which is a float64 or too large for one."""
    value = np.float64(size)
    if negative:
        value = -value  # also where it is zero
    while exponent > 1000:
        value, exponent = value * 2.0**1000, exponent - 1000
    while exponent < -1000:
        value, exponent = value * 2.0**-1000, exponent + 1000
    return value * np.int64((exponent + 1023) << 52).view(np.float64)
