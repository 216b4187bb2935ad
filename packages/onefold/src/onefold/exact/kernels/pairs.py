"""The second tier: sums as a pair of float64 and a bound on what the pair dropped.

``high`` is the running sum, ``low`` the sum of its rounding errors and ``error`` the sum of the
sizes of *theirs*, which is nearly always nothing: then ``high + low`` is the exact sum. If it is
something, the sum is still known to some hundred bits, and as good as always that tells how it
rounds (:func:`~onefold.exact.kernels.numbers.finish_pair`). So even values of wildly different
sizes, for which this tier is not exact, end here, and only ties and infinities go on to the limbs.

This is where float64 begins, and what the first tier gave up on. Four arrays are added in one loop:
the three numbers are then loaded and stored once for four addends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.near import (
    FIRST_TOP,
    NEAR_MAX,
    SPREAD_SLICES,
    fill_near,
    fill_near_many,
)
from onefold.exact.kernels.numbers import decode, encode, encode_odd, finish_pair, two_sum
from onefold.exact.kernels.unsafe import array_at, fma

__all__ = ["BLOCK", "add_pairs", "add_to", "finish_pairs", "reduce_pairs"]

BLOCK = 1024
"""Elements in a block: its three numbers fill three quarters of the smallest first level cache."""


@entry
def reduce_pairs(
    addresses: Any,
    weights: Any,
    divisor: float,
    start: int,
    out: Any,
    doubts: Any,
    scratch: Any,
    padding: int,
    products_exact: int,
    odd: int,
) -> int:
    """Put the quotients of the sums of elements from ``start`` on into ``out``.

    Args:
        addresses: int64, where each array starts; the arrays are of the type of ``out``.
        weights: float64, an integer for each array.
        divisor: An integer below 2**53.
        start: The first element.
        out: float32 or float64, for as many elements as are wanted.
        doubts: int64, as long as ``out``: gets the indices of the elements left in doubt.
        scratch: float64, three rows of at least :data:`BLOCK`.
        padding: The address of :data:`BLOCK` negative zeros of the type of ``out``.
        products_exact: Whether a float64 holds every product of a weight and a value.
        odd: Whether to round float32 to odd, since they are to be rounded once more.

    Returns:
        How many elements are in doubt.
    """
    moved = start * out.itemsize
    doubtful, top = 0, FIRST_TOP
    for first in range(0, out.shape[0], BLOCK):
        block = out[first : first + BLOCK]
        near = -1
        if out.itemsize == 8 and products_exact:
            if addresses.shape[0] <= NEAR_MAX:
                near = fill_near(
                    addresses, moved, weights, divisor, block, padding, SPREAD_SLICES, top
                )
            else:
                near = fill_near_many(
                    addresses, moved, weights, divisor, block, scratch[0], padding, top
                )
        if near >= 0:
            top = near
            moved += BLOCK * out.itemsize
            continue
        add_pairs(addresses, moved, weights, products_exact, scratch, block)
        found = finish_pairs(scratch, divisor, block, doubts[doubtful:], odd)
        for index in range(doubtful, doubtful + found):
            doubts[index] += first
        doubtful += found
        moved += BLOCK * out.itemsize
    return doubtful


@inner
def add_pairs(
    addresses: Any, moved: int, weights: Any, products_exact: int, scratch: Any, out: Any
) -> None:
    """Put the pairs of a block's sums into ``scratch``."""
    size, count, number = out.shape[0], addresses.shape[0], 0
    highs, lows, errors = scratch[0], scratch[1], scratch[2]
    for index in range(size):
        highs[index], lows[index], errors[index] = -0.0, 0.0, 0.0
    if products_exact:
        while count - number >= 4:
            _add_four(addresses, moved, weights, number, highs, lows, errors, out)
            number += 4
    while number < count:
        a, weight = array_at(addresses[number] + moved, size, out), weights[number]
        for index in range(size):
            value = decode(a[index])
            product = value * weight
            high, low, error = add_to(highs[index], lows[index], errors[index], product)
            low, dropped = two_sum(low, fma(value, weight, -product))
            highs[index], lows[index], errors[index] = high, low, error + abs(dropped)
        number += 1


@inner
def _add_four(
    addresses: Any,
    moved: int,
    weights: Any,
    number: int,
    highs: Any,
    lows: Any,
    errors: Any,
    out: Any,
) -> None:
    size = out.shape[0]
    a = array_at(addresses[number] + moved, size, out)
    b = array_at(addresses[number + 1] + moved, size, out)
    c = array_at(addresses[number + 2] + moved, size, out)
    d = array_at(addresses[number + 3] + moved, size, out)
    wa, wb, wc, wd = weights[number], weights[number + 1], weights[number + 2], weights[number + 3]
    for index in range(size):
        high, low, error = highs[index], lows[index], errors[index]
        high, low, error = add_to(high, low, error, decode(a[index]) * wa)
        high, low, error = add_to(high, low, error, decode(b[index]) * wb)
        high, low, error = add_to(high, low, error, decode(c[index]) * wc)
        high, low, error = add_to(high, low, error, decode(d[index]) * wd)
        highs[index], lows[index], errors[index] = high, low, error


@inner
def add_to(high: float, low: float, error: float, value: float) -> tuple[float, float, float]:
    """The pair with one more addend."""
    high, rest = two_sum(high, value)
    low, dropped = two_sum(low, rest)
    return high, low, error + abs(dropped)


@inner
def finish_pairs(scratch: Any, divisor: float, out: Any, doubts: Any, odd: int) -> int:
    """Round a block's pairs, and list those in doubt."""
    highs, lows, errors = scratch[0], scratch[1], scratch[2]
    narrow = out.itemsize < 8
    sure_count = 0
    for index in range(out.shape[0]):
        value, sure = finish_pair(highs[index], lows[index], errors[index], divisor, narrow)
        out[index] = encode_odd(value, out) if odd else encode(value, out)
        errors[index] = 0.0 if sure else np.nan
        sure_count += sure
    found = 0
    if sure_count < out.shape[0]:
        for index in range(out.shape[0]):
            if errors[index] != 0:
                doubts[found] = index
                found += 1
    return found
