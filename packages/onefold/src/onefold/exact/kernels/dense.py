"""Sums and means of float arrays, element by element; the same kernels sum rows of sparse entries.

Work goes block by block, so that all scratch stays in the first level cache. In a block, arrays
are added eight at a time in one fused loop (eight streams keep the memory busy, and the total is
loaded and stored once for eight addends), and what is left over two at a time.

*One float64* (:func:`_add_eight`, :func:`_add_two`). Values of 32 bits or less are added in
float64. Whether eight of them add up exactly is told from their exponents alone: all are multiples
of the last place of the smallest, and the sum is below eight times the largest, so it is exact if
the exponents lie close enough together for 53 bits. That is cheaper than looking at seven error
terms. Adding the eight to the total is then tested by itself. A total that is not exact becomes
NaN and so remains; thus a flag costs nothing, and NaN and infinities take the same exit.

*A pair of float64* (:func:`_add_pair`). All float64 values, all weighted values, and blocks of
which more than one element in 64 came out NaN.

*Limbs* (:func:`onefold.exact.kernels.limbs.columns`). Elements that are in doubt after that; they
are listed for the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from onefold.exact.kernels.compiled import by_type, entry, inner
from onefold.exact.kernels.numbers import (
    add_exactly,
    add_to_pair,
    decode,
    encode,
    mean_of_exact,
    quotient,
    round_pair,
    two_sum,
)
from onefold.exact.kernels.unsafe import array_at, fma

__all__ = ["BLOCK", "add_twos", "begin_scratch", "finish_block", "finish_pair", "reduce_dense"]

BLOCK = 1024
"""Elements in a block: their pairs fill half of the smallest first level cache, 32 KiB."""

_TOLERATED = 64
"""A block is added again in pairs if more than one element in so many was not exact."""


@entry
def reduce_dense(
    addresses: Any,
    weights: Any,
    divisor: int,
    start: int,
    out: Any,
    doubts: Any,
    spread: int,
    products_exact: bool,
) -> int:
    """Put the quotients of the sums of elements from ``start`` on into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        weights: float64, an integer for each array.
        divisor: From 1 to 2**53.
        start: The first element.
        out: Contiguous, for as many elements as are wanted.
        doubts: int64, as long as ``out``: gets the indices of the elements left in doubt.
        spread: Eight values add up exactly if their exponents differ by no more than this;
            if it is negative, everything is added in pairs.
        products_exact: Whether a float64 holds every product of a weight and a value.

    Returns:
        How many elements are in doubt: :func:`~onefold.exact.kernels.limbs.columns` is for them.
    """
    scratch = begin_scratch()
    moved = addresses + start * out.itemsize
    doubtful = 0
    for first in range(0, out.shape[0], BLOCK):
        block = out[first : first + BLOCK]
        found = _reduce_block(
            moved, weights, divisor, block, doubts[doubtful:], spread, products_exact, scratch
        )
        for index in range(doubtful, doubtful + found):
            doubts[index] += first
        doubtful += found
        moved += BLOCK * out.itemsize
    return doubtful


@inner
def begin_scratch() -> Any:
    """What :func:`finish_block` works in: the two halves of the pairs."""
    return np.empty(BLOCK), np.empty(BLOCK)


@inner
def _reduce_block(
    addresses: Any,
    weights: Any,
    divisor: int,
    out: Any,
    doubts: Any,
    spread: int,
    products_exact: bool,
    scratch: Any,
) -> int:
    """As :func:`reduce_dense`, for one block."""
    if spread >= 0:
        _add_eights(addresses, weights, scratch[0], out, np.int32(spread))
    return finish_block(
        addresses, weights, divisor, out, doubts, spread >= 0, products_exact, scratch
    )


@inner
def finish_block(
    addresses: Any,
    weights: Any,
    divisor: int,
    out: Any,
    doubts: Any,
    is_added: bool,
    products_exact: bool,
    scratch: Any,
) -> int:
    """Round a block whose totals have been added in one float64, or else add pairs first."""
    totals, lows = scratch
    if is_added:
        found = _finish_totals(totals, divisor, out)
        if found * _TOLERATED <= out.shape[0]:
            return _list_doubts(totals, out.shape[0], doubts) if found else 0
    _add_pairs(addresses, weights, products_exact, totals, lows, out)
    found = _finish_pairs(totals, lows, divisor, out)
    return _list_doubts(totals, out.shape[0], doubts) if found else 0


@inner
def _list_doubts(totals: Any, size: int, doubts: Any) -> int:
    found = 0
    for index in range(size):
        if not abs(totals[index]) < np.inf:
            doubts[found] = index
            found += 1
    return found


# -- one float64 -------------------------------------------------------------------------------


@inner
def _add_eights(addresses: Any, weights: Any, totals: Any, out: Any, spread: int) -> None:
    number = 0
    while addresses.shape[0] - number >= 8:
        _add_eight(addresses, weights, number, totals, out, spread)
        number += 8
    add_twos(addresses, weights, number, totals, out)


@inner
def add_twos(addresses: Any, weights: Any, number: int, totals: Any, out: Any) -> None:
    """Add the arrays from ``number`` on to the totals, in one float64."""
    count = addresses.shape[0]
    while count - number >= 2:
        _add_two(addresses, weights, number, totals, out)
        number += 2
    if number < count:
        _add_one(addresses, weights, number, totals, out)


@inner
def _add_one(addresses: Any, weights: Any, number: int, totals: Any, out: Any) -> None:
    size = out.shape[0]
    a, weight = array_at(addresses[number], size, out), weights[number]
    if number == 0:
        for index in range(size):
            totals[index] = decode(a[index]) * weight
    else:
        for index in range(size):
            totals[index] = add_exactly(totals[index], decode(a[index]) * weight)


@inner
def _add_two(addresses: Any, weights: Any, number: int, totals: Any, out: Any) -> None:
    size = out.shape[0]
    a, b = array_at(addresses[number], size, out), array_at(addresses[number + 1], size, out)
    weight_a, weight_b = weights[number], weights[number + 1]
    if number == 0:
        for index in range(size):
            product = decode(a[index]) * weight_a
            totals[index] = add_exactly(product, decode(b[index]) * weight_b)
    else:
        for index in range(size):
            total = add_exactly(totals[index], decode(a[index]) * weight_a)
            totals[index] = add_exactly(total, decode(b[index]) * weight_b)


@inner
def _add_eight(
    addresses: Any, weights: Any, number: int, totals: Any, out: Any, spread: int
) -> None:
    size = out.shape[0]
    a, b = array_at(addresses[number], size, out), array_at(addresses[number + 1], size, out)
    c, d = array_at(addresses[number + 2], size, out), array_at(addresses[number + 3], size, out)
    e, f = array_at(addresses[number + 4], size, out), array_at(addresses[number + 5], size, out)
    g, h = array_at(addresses[number + 6], size, out), array_at(addresses[number + 7], size, out)
    wa, wb, wc, wd = weights[number], weights[number + 1], weights[number + 2], weights[number + 3]
    number += 4
    we, wf, wg, wh = weights[number], weights[number + 1], weights[number + 2], weights[number + 3]
    if number == 4:
        for i in range(size):
            near = _are_near(a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i], spread)
            left = _dot(a[i], wa, b[i], wb, c[i], wc, d[i], wd)
            right = _dot(e[i], we, f[i], wf, g[i], wg, h[i], wh)
            totals[i] = left + right if near else np.nan
    else:
        for i in range(size):
            near = _are_near(a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i], spread)
            left = _dot(a[i], wa, b[i], wb, c[i], wc, d[i], wd)
            right = _dot(e[i], we, f[i], wf, g[i], wg, h[i], wh)
            totals[i] = add_exactly(totals[i], left + right if near else np.nan)


@inner
def _dot(
    a: Any, weight_a: Any, b: Any, weight_b: Any, c: Any, weight_c: Any, d: Any, weight_d: Any
) -> Any:
    total = fma(decode(b), weight_b, decode(a) * weight_a)
    return fma(decode(d), weight_d, fma(decode(c), weight_c, total))


@by_type
def _are_near(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, spread: Any) -> Any:
    """Whether the exponents of eight stored values differ by at most ``spread``; zeros have none.

    All float16 do: they span 40 bits.
    """
    if a in (types.int16, types.float64):
        return lambda a, b, c, d, e, f, g, h, spread: True
    shift = np.int32(7 if a == types.uint16 else 23)

    def compare(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, spread: Any) -> Any:
        sa, sb, sc, sd = _size(a), _size(b), _size(c), _size(d)
        se, sf, sg, sh = _size(e), _size(f), _size(g), _size(h)
        least = _least(
            _least(_least(sa, sb), _least(sc, sd)), _least(_least(se, sf), _least(sg, sh))
        )
        most = _most(_most(_most(sa, sb), _most(sc, sd)), _most(_most(se, sf), _most(sg, sh)))
        return np.int32((most >> shift) - np.int32(np.uint32(least) >> np.uint32(shift))) <= spread

    return compare


@inner
def _least(a: Any, b: Any) -> Any:
    """The lesser as unsigned numbers, of which -1, which stands for zero, is the largest."""
    return np.int32(min(np.uint32(a), np.uint32(b)))


@inner
def _most(a: Any, b: Any) -> Any:
    return np.int32(max(np.int32(a), np.int32(b)))


@by_type
def _size(stored: Any) -> Any:
    """The bits of a stored float without its sign, less one: -1 for a zero."""
    if stored == types.uint16:
        return lambda stored: np.int32((np.int32(stored) & np.int32(0x7FFF)) - np.int32(1))
    return lambda stored: np.int32(
        (np.float32(stored).view(np.int32) & np.int32(0x7FFFFFFF)) - np.int32(1)
    )


@inner
def _finish_totals(totals: Any, divisor: int, out: Any) -> int:
    """Round the totals, and count those that are not exact."""
    doubtful = 0
    scale = np.float64(divisor)
    for index in range(out.shape[0]):
        total = totals[index]
        out[index] = encode(total if divisor == 1 else mean_of_exact(total, scale), out)
        doubtful += not abs(total) < np.inf
    return doubtful


# -- a pair of float64 -------------------------------------------------------------------------


@inner
def _add_pairs(
    addresses: Any, weights: Any, products_exact: bool, totals: Any, lows: Any, out: Any
) -> None:
    count = addresses.shape[0]
    for index in range(out.shape[0]):
        totals[index] = -0.0
        lows[index] = 0.0
    number = 0
    if products_exact:
        while count - number >= 2:
            _add_pair_of_two(addresses, weights, number, totals, lows, out)
            number += 2
    while number < count:
        _add_pair(addresses, weights, number, totals, lows, out)
        number += 1


@inner
def _add_pair(addresses: Any, weights: Any, number: int, totals: Any, lows: Any, out: Any) -> None:
    a, weight = array_at(addresses[number], out.shape[0], out), weights[number]
    for index in range(out.shape[0]):
        value = decode(a[index])
        product = value * weight
        high, low = add_to_pair(totals[index], lows[index], product)
        totals[index], lows[index] = high, add_exactly(low, fma(value, weight, -product))


@inner
def _add_pair_of_two(
    addresses: Any, weights: Any, number: int, totals: Any, lows: Any, out: Any
) -> None:
    size = out.shape[0]
    a, b = array_at(addresses[number], size, out), array_at(addresses[number + 1], size, out)
    weight_a, weight_b = weights[number], weights[number + 1]
    for index in range(size):
        high, low = add_to_pair(totals[index], lows[index], decode(a[index]) * weight_a)
        totals[index], lows[index] = add_to_pair(high, low, decode(b[index]) * weight_b)


@inner
def _finish_pairs(totals: Any, lows: Any, divisor: int, out: Any) -> int:
    """Round the pairs; set the totals of those in doubt to NaN, and count them."""
    doubtful = 0
    for index in range(out.shape[0]):
        out[index], sure = finish_pair(totals[index], lows[index], divisor, out)
        totals[index] = totals[index] if sure else np.nan
        doubtful += not sure
    return doubtful


@inner
def finish_pair(high: float, low: float, divisor: int, like: Any) -> Any:
    """The rounded quotient of a pair, and whether it is sure."""
    total, rest = two_sum(high, low)
    total = high if low == 0 else total
    if divisor == 1:
        return round_pair(total, rest, like), abs(total + rest) < np.inf
    first, tail, slack = quotient(total, rest, np.float64(divisor))
    least, sure = _round_quotient(first, tail, slack, rest, like)
    return least, sure & (abs(first + tail) < np.inf)


@by_type
def _round_quotient(first: Any, tail: Any, slack: Any, rest: Any, like: Any) -> Any:
    """The rounded quotient, and whether it is the same at both ends of the slack."""
    whole = like.dtype == types.float64

    def settle(first: Any, tail: Any, slack: Any, rest: Any, like: Any) -> Any:
        if whole and rest == 0:
            return first, True
        least = round_pair(first, tail - slack, like)
        return least, least == round_pair(first, tail + slack, like)

    return settle
