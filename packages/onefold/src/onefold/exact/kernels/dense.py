"""The first tier: sums in one float64, of values of 32 bits or less.

Work goes block by block, so that the totals stay in the first level cache. In a block, arrays are
added eight at a time in one fused loop (eight streams keep the memory busy, and the total is loaded
and stored once for eight addends), and what is left over two at a time.

Whether eight values add up exactly in float64 is told from their exponents alone: all are multiples
of the last place of the smallest, and the sum is below eight times the largest, so it is exact if
the exponents lie close enough together for 53 bits. That is cheaper than looking at seven error
terms. Adding the eight to the total is then tested by itself. A total that is not exact becomes
NaN and so remains; thus a flag costs nothing, and NaN and infinities take the same exit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from onefold.exact.kernels.compiled import by_type, entry, inner
from onefold.exact.kernels.near import FIRST_TOP, NEAR_MAX, fill_near, stored_size
from onefold.exact.kernels.numbers import add_exactly, decode, encode, mean_of_exact
from onefold.exact.kernels.sizes import BLOCK
from onefold.exact.kernels.unsafe import array_at, fma

__all__ = ["add_twos", "finish_totals", "reduce_totals"]


@entry
def reduce_totals(
    addresses: Any,
    weights: Any,
    divisor: float,
    start: int,
    out: Any,
    doubts: Any,
    scratch: Any,
    padding: int,
    spread: int,
) -> int:
    """Put the quotients of the sums of elements from ``start`` on into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        weights: float64, an integer for each array; a float64 holds every product with a value.
        divisor: An integer below 2**53.
        start: The first element.
        out: For as many elements as are wanted.
        doubts: int64, as long as ``out``: gets the indices of the elements that are not exact.
        scratch: float64, at least :data:`BLOCK`.
        padding: The address of :data:`BLOCK` negative zeros of the type of ``out``.
        spread: Eight products add up exactly if their values' exponents differ by no more.

    Returns:
        How many elements are in doubt.
    """
    doubtful = 0
    moved = start * out.itemsize
    for first in range(0, out.shape[0], BLOCK):
        block = out[first : first + BLOCK]
        if addresses.shape[0] <= NEAR_MAX:
            near = fill_near(addresses, moved, weights, divisor, block, padding, spread, FIRST_TOP)
            if near >= 0:
                moved += BLOCK * out.itemsize
                continue
        number = 0
        while addresses.shape[0] - number >= 8:
            _add_eight(addresses, moved, weights, number, scratch, block, np.int32(spread))
            number += 8
        add_twos(addresses, moved, weights, number, scratch, block)
        found = finish_totals(scratch, divisor, block, doubts[doubtful:])
        for index in range(doubtful, doubtful + found):
            doubts[index] += first
        doubtful += found
        moved += BLOCK * out.itemsize
    return doubtful


@inner
def add_twos(addresses: Any, moved: int, weights: Any, number: int, scratch: Any, out: Any) -> None:
    """Add the arrays from ``number`` on to the totals, or begin with them if it is 0."""
    size, count = out.shape[0], addresses.shape[0]
    if number == 0:
        a, weight_a = array_at(addresses[0] + moved, size, out), weights[0]
        for index in range(size):
            scratch[index] = decode(a[index]) * weight_a
        number = 1
    while number < count:
        a, weight_a = array_at(addresses[number] + moved, size, out), weights[number]
        if number + 1 < count:
            b, weight_b = array_at(addresses[number + 1] + moved, size, out), weights[number + 1]
            for index in range(size):
                total = add_exactly(scratch[index], decode(a[index]) * weight_a)
                scratch[index] = add_exactly(total, decode(b[index]) * weight_b)
        else:
            for index in range(size):
                scratch[index] = add_exactly(scratch[index], decode(a[index]) * weight_a)
        number += 2


@inner
def _add_eight(
    addresses: Any, moved: int, weights: Any, number: int, scratch: Any, out: Any, spread: int
) -> None:
    size = out.shape[0]
    a = array_at(addresses[number] + moved, size, out)
    b = array_at(addresses[number + 1] + moved, size, out)
    c = array_at(addresses[number + 2] + moved, size, out)
    d = array_at(addresses[number + 3] + moved, size, out)
    e = array_at(addresses[number + 4] + moved, size, out)
    f = array_at(addresses[number + 5] + moved, size, out)
    g = array_at(addresses[number + 6] + moved, size, out)
    h = array_at(addresses[number + 7] + moved, size, out)
    wa, wb, wc, wd = weights[number], weights[number + 1], weights[number + 2], weights[number + 3]
    next_four = number + 4
    we, wf, wg = weights[next_four], weights[next_four + 1], weights[next_four + 2]
    wh = weights[next_four + 3]
    if number == 0:
        for i in range(size):
            scratch[i] = -0.0
    for i in range(size):
        near = _are_near(a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i], spread)
        left = fma(decode(b[i]), wb, decode(a[i]) * wa)
        left = fma(decode(d[i]), wd, fma(decode(c[i]), wc, left))
        right = fma(decode(f[i]), wf, decode(e[i]) * we)
        right = fma(decode(h[i]), wh, fma(decode(g[i]), wg, right))
        scratch[i] = add_exactly(scratch[i], left + right if near else np.nan)


@by_type
def _are_near(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, spread: Any) -> Any:
    """Whether the exponents of eight stored values differ by at most ``spread``; zeros have none.

    All float16 do: they span 40 bits.
    """
    if a == types.int16:
        return lambda a, b, c, d, e, f, g, h, spread: True
    shift = np.int32(7 if a == types.uint16 else 23)

    def compare(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, spread: Any) -> Any:
        sa, sb, sc, sd = stored_size(a), stored_size(b), stored_size(c), stored_size(d)
        se, sf, sg, sh = stored_size(e), stored_size(f), stored_size(g), stored_size(h)
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


@inner
def finish_totals(scratch: Any, divisor: float, out: Any, doubts: Any) -> int:
    """Round a block's totals, and list those that are not exact."""
    size, sure_count = out.shape[0], 0
    if divisor == 1:
        for index in range(size):
            out[index] = encode(scratch[index], out)
            sure_count += abs(scratch[index]) < np.inf
    else:
        for index in range(size):
            out[index] = encode(mean_of_exact(scratch[index], divisor), out)
            sure_count += abs(scratch[index]) < np.inf
    found = 0
    if sure_count < size:
        for index in range(size):
            if not abs(scratch[index]) < np.inf:
                doubts[found] = index
                found += 1
    return found
