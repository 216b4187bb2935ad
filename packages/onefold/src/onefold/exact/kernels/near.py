"""Before the tiers: blocks whose values are so close together that no addition can lose anything.

That is what data of training usually looks like, and it takes one look at the largest and the least
value of a block to know. The sums of up to eight arrays are then finished in one loop, in which
everything stays in registers: the values are added, and meanwhile the extremes are found that tell
afterwards whether that was right. If it was not, the block is left to the tiers. So are more arrays
than eight, but for float64, of which eight after eight are added up and finished at the end.

**Up to 32 bits** the sum is one float64. All values are multiples of the last place of the least of
them, and the sum of eight is below eight times the largest, so all additions are exact if the
exponents lie close enough together for 53 bits. (For float16 they always do.)

**float64** is added as two sums, after Demmel and Nguyen's reproducible sums ("Fast Reproducible
Floating-Point Summation", 2013, where these slices of equal exponent come from). Adding a large
constant and taking it away again rounds a value to a multiple of a unit, 50 bits below the largest;
what is left is exact too. Eight of the former add up exactly, since the unit was chosen for that,
and eight of the latter if the least value is not too far below. Two float64 then are the sum. The
constant has to be known before the largest value is; that of the block before mostly does, and if
it does not the block is done again with the right one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from onefold.exact.kernels.compiled import by_type, inner
from onefold.exact.kernels.numbers import decode, encode_normal, mean_of_exact, two_sum
from onefold.exact.kernels.unsafe import array_at, fma, half_to_single

__all__ = ["FIRST_TOP", "NEAR_MAX", "SPREAD_SLICES", "fill_near", "fill_near_many"]

NEAR_MAX = 8
"""Arrays that are added at once."""

FIRST_TOP = 1024
"""A first guess: float64 below 2."""

SPREAD_SLICES = 49
"""How far apart the exponents of eight float64 may be."""

_SIGN_OFF = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITE = np.int64(0x7FF) << 52
_INFINITE_HALF = np.int16(0x7C00)
_HALF_UNIT = np.float32(1.5 * 2.0**18)
"""Float32 that are rounded by it are multiples of 2**-5, of which eight are below 2**19."""

_TAIL_ERROR = 2.0**-49
_TOP_MIN, _TOP_MAX = 64, 2030
_DOUBLINGS_MAX = 10
"""Of the number of arrays, beyond eight: a unit for the largest top is still a float64."""
_LEAST_DIVIDED = 64
"""What has a larger exponent has quotients by a divisor below 2**53 that are not subnormal."""


@inner
def fill_near(
    addresses: Any,
    moved: int,
    weights: Any,
    divisor: float,
    out: Any,
    padding: int,
    spread: int,
    top: int,
) -> int:
    """Fill a block with the quotients of sums, if its values are near each other.

    Args:
        addresses: int64, where each of at most :data:`NEAR_MAX` arrays starts.
        moved: How many bytes to go on from there.
        weights: An integer for each array; of float64 they are 1.
        divisor: An integer below 2**53.
        out: The block.
        padding: The address of as many negative zeros.
        spread: Eight products add up exactly if their values' exponents differ by no more; of
            float64, :data:`SPREAD_SLICES`.
        top: Of float64: what the exponents are hoped to be below.

    Returns:
        The ``top`` for the next block, or -1: then what ``out`` holds is undefined.
    """
    if not _bears(weights, out):
        return -1
    least, most, worst = _filled(addresses, moved, weights, divisor, out, padding, top)
    if _were_near(least, most, worst, spread, top, divisor, out):
        return top
    better = _top(most, out)
    if better != top:
        least, most, worst = _filled(addresses, moved, weights, divisor, out, padding, better)
        if _were_near(least, most, worst, spread, better, divisor, out):
            return better
    return -1


@by_type
def fill_near_many(
    addresses: Any,
    moved: Any,
    weights: Any,
    divisor: Any,
    out: Any,
    rests: Any,
    padding: Any,
    top: Any,
) -> Any:
    """The same for more arrays, of float64 (-1 for others), with ``rests`` to work in.

    Twice as many values need one more bit in either slice, so the unit is higher by one, and the
    exponents may differ by two less.
    """
    if out.dtype != types.float64:
        return lambda addresses, moved, weights, divisor, out, rests, padding, top: -1

    def fill_many(
        addresses: Any,
        moved: Any,
        weights: Any,
        divisor: Any,
        out: Any,
        rests: Any,
        padding: Any,
        top: Any,
    ) -> Any:
        doublings = 0
        while addresses.shape[0] > NEAR_MAX << doublings:
            doublings += 1
        if doublings > _DOUBLINGS_MAX:
            return -1
        spread = SPREAD_SLICES - 2 * doublings
        for _ in range(2):
            least, most = _added_up(
                addresses, moved, weights, out, rests, padding, top + doublings, spread
            )
            if _were_near(least, most, np.int64(0), spread, top, divisor, out):
                worst = _finished(divisor, out, rests)
                return top if worst < _INFINITE else -1
            better = _top(most, out)
            if better == top:
                return -1
            top = better
        return -1

    return fill_many


@inner
def _added_up(
    addresses: Any,
    moved: int,
    weights: Any,
    out: Any,
    rests: Any,
    padding: int,
    top: int,
    spread: int,
) -> tuple[int, int]:
    """Put slices into ``out`` and ``rests``, as long as it looks good; the extremes met."""
    block_least, block_most, _ = _extremes(out)
    for i in range(out.shape[0]):
        out[i] = rests[i] = -0.0
    for number in range(0, addresses.shape[0], NEAR_MAX):
        some, their = addresses[number : number + NEAR_MAX], weights[number : number + NEAR_MAX]
        if some.shape[0] > 4:
            least, most, _ = _sum_eight(some, moved, their, rests, out, padding, top, _kept)
        else:
            least, most, _ = _sum_four(some, moved, their, rests, out, padding, top, _kept)
        block_least, block_most = _lesser(block_least, least), _greater(block_most, most)
        if (block_most >> 52) - max(1, block_least >> 52) >= spread:
            break
    return block_least, block_most


@inner
def _finished(divisor: float, out: Any, rests: Any) -> int:
    """Make results of slices; returns the worst of them."""
    worst = np.int64(0)
    if np.int64(divisor) & (np.int64(divisor) - 1) == 0:
        for i in range(out.shape[0]):
            worst = _greater(worst, _scaled(out[i], rests[i], 1 / divisor, out, i))
    else:
        for i in range(out.shape[0]):
            worst = _greater(worst, _divided(out[i], rests[i], divisor, out, i))
    return worst


@inner
def _filled(
    addresses: Any, moved: int, weights: Any, divisor: float, out: Any, padding: int, top: int
) -> tuple[Any, Any, Any]:
    """The block's sums; the least and the largest value, and the worst result."""
    if np.int64(divisor) & (np.int64(divisor) - 1) == 0:
        factor = 1 / divisor  # of a power of two, and so is the product with it
        if addresses.shape[0] > 4:
            return _sum_eight(addresses, moved, weights, factor, out, padding, top, _scaled)
        return _sum_four(addresses, moved, weights, factor, out, padding, top, _scaled)
    if addresses.shape[0] > 4:
        return _sum_eight(addresses, moved, weights, divisor, out, padding, top, _divided)
    return _sum_four(addresses, moved, weights, divisor, out, padding, top, _divided)


@inner
def _sum_eight(
    addresses: Any,
    moved: int,
    weights: Any,
    operand: Any,
    out: Any,
    padding: int,
    top: int,
    finish: Any,
) -> tuple[Any, Any, Any]:
    a, wa = _array(addresses, 0, moved, weights, padding, out)
    b, wb = _array(addresses, 1, moved, weights, padding, out)
    c, wc = _array(addresses, 2, moved, weights, padding, out)
    d, wd = _array(addresses, 3, moved, weights, padding, out)
    e, we = _array(addresses, 4, moved, weights, padding, out)
    f, wf = _array(addresses, 5, moved, weights, padding, out)
    g, wg = _array(addresses, 6, moved, weights, padding, out)
    h, wh = _array(addresses, 7, moved, weights, padding, out)
    unit = _unit(top)
    block_least, block_most, block_worst = _extremes(out)
    for i in range(out.shape[0]):
        left = _add(a[i], wa, unit, _nothing(out))
        left = _add(b[i], wb, unit, left)
        left = _add(c[i], wc, unit, left)
        left = _add(d[i], wd, unit, left)
        right = _add(e[i], we, unit, _nothing(out))
        right = _add(f[i], wf, unit, right)
        right = _add(g[i], wg, unit, right)
        right = _add(h[i], wh, unit, right)
        worst = finish(left[0] + right[0], left[1] + right[1], operand, out, i)
        block_least = _lesser(block_least, _bits(_lesser(left[2], right[2])))
        block_most = _greater(block_most, _bits(_greater(left[3], right[3])))
        block_worst = _greater(block_worst, worst)
    return block_least, block_most, block_worst


@inner
def _sum_four(
    addresses: Any,
    moved: int,
    weights: Any,
    operand: Any,
    out: Any,
    padding: int,
    top: int,
    finish: Any,
) -> tuple[Any, Any, Any]:
    a, wa = _array(addresses, 0, moved, weights, padding, out)
    b, wb = _array(addresses, 1, moved, weights, padding, out)
    c, wc = _array(addresses, 2, moved, weights, padding, out)
    d, wd = _array(addresses, 3, moved, weights, padding, out)
    unit = _unit(top)
    block_least, block_most, block_worst = _extremes(out)
    for i in range(out.shape[0]):
        total = _add(a[i], wa, unit, _nothing(out))
        total = _add(b[i], wb, unit, total)
        total = _add(c[i], wc, unit, total)
        total = _add(d[i], wd, unit, total)
        worst = finish(total[0], total[1], operand, out, i)
        block_least = _lesser(block_least, _bits(total[2]))
        block_most = _greater(block_most, _bits(total[3]))
        block_worst = _greater(block_worst, worst)
    return block_least, block_most, block_worst


@inner
def _array(
    addresses: Any, number: int, moved: int, weights: Any, padding: int, out: Any
) -> tuple[Any, float]:
    """An array of the block and its weight; beyond the last, what adds nothing."""
    if number < addresses.shape[0]:
        return array_at(addresses[number] + moved, out.shape[0], out), weights[number]
    return array_at(padding, out.shape[0], out), 1.0


@inner
def _lesser(a: Any, b: Any) -> Any:
    """``b`` if ``a`` is NaN."""
    return min(b, a)


@inner
def _greater(a: Any, b: Any) -> Any:
    return max(b, a)


# -- by type: a sum is (high, rest, least, most) ------------------------------------------------


@by_type
def _nothing(out: Any) -> Any:
    """What adding begins with. The extremes are those of sizes less one: a zero has none."""
    if out.dtype == types.float64:
        return lambda out: (-0.0, -0.0, np.inf, 0.0)
    if out.dtype == types.float32:
        return lambda out: (-0.0, -0.0, np.uint32(0xFFFFFFFF), np.int32(-1))
    if out.dtype == types.uint16:
        return lambda out: (-0.0, -0.0, np.uint16(0xFFFF), np.int16(-1))
    return lambda out: (np.float32(-0.0), np.float32(-0.0), np.uint16(0), np.int16(0))


@by_type
def _add(stored: Any, weight: Any, unit: Any, total: Any) -> Any:
    """One more value. ``unit`` and the rest are for float64, weights for the others."""
    if stored == types.float64:

        def add_slices(stored: Any, weight: Any, unit: Any, total: Any) -> Any:
            high, rest, least, most = total
            rounded = (stored + unit) - unit
            size = np.int64((np.float64(stored).view(np.int64) & _SIGN_OFF) - 1).view(np.float64)
            least, most = _lesser(size, least), _greater(size, most)
            return high + rounded, rest + (stored - rounded), least, most

        return add_slices
    if stored == types.int16:

        def add_halves(stored: Any, weight: Any, unit: Any, total: Any) -> Any:
            high, rest, least, most = total
            value = half_to_single(stored)
            rounded = np.float32(np.float32(value + _HALF_UNIT) - _HALF_UNIT)
            rest = np.float32(rest + np.float32(value - rounded))
            return np.float32(high + rounded), rest, least, most

        return add_halves
    unsigned, signed = np.uint32, np.int32
    if stored == types.uint16:
        unsigned, signed = np.uint16, np.int16

    def add(stored: Any, weight: Any, unit: Any, total: Any) -> Any:
        high, rest, least, most = total
        size = stored_size(stored)
        return (
            fma(decode(stored), weight, high),
            rest,
            _lesser(unsigned(size), least),
            _greater(signed(size), most),
        )

    return add


@by_type
def stored_size(stored: Any) -> Any:
    """The bits of a stored float without its sign, less one: -1 for a zero; 0 for any float16."""
    if stored == types.int16:
        return lambda stored: np.int32(0)
    if stored == types.uint16:
        return lambda stored: np.int32((np.int32(stored) & np.int32(0x7FFF)) - np.int32(1))
    return lambda stored: np.int32(
        (np.float32(stored).view(np.int32) & np.int32(0x7FFFFFFF)) - np.int32(1)
    )


@by_type
def _bits(extreme: Any) -> Any:
    """Of the block's extremes only integers can be found by several lanes at a time."""
    if extreme == types.float64:
        return lambda extreme: np.float64(extreme).view(np.int64)
    return lambda extreme: extreme


@by_type
def _extremes(out: Any) -> Any:
    """What the search for the block's extremes begins with."""
    if out.dtype == types.float64:
        return lambda out: (_SIGN_OFF, np.int64(0), np.int64(0))
    if out.dtype == types.float32:
        return lambda out: (np.uint32(0xFFFFFFFF), np.int32(-1), np.int16(0))
    return lambda out: (np.uint16(0xFFFF), np.int16(-1), np.int16(0))


# -- what to do with a sum: put it into ``out``, and tell how bad it is; _INFINITE is too bad ----


@by_type
def _scaled(high: Any, rest: Any, factor: Any, out: Any, i: Any) -> Any:
    """The result times a power of two."""
    if out.dtype == types.float64:

        def scale_pair(high: Any, rest: Any, factor: Any, out: Any, i: Any) -> Any:
            total = _joined(high, rest, out)
            out[i] = total * factor
            return np.float64(abs(total)).view(np.int64)

        return scale_pair

    def scale(high: Any, rest: Any, factor: Any, out: Any, i: Any) -> Any:
        result = encode_normal(_joined(high, rest, out) * factor, out)
        out[i] = result
        return _badness(result)

    return scale


@by_type
def _divided(high: Any, rest: Any, divisor: Any, out: Any, i: Any) -> Any:
    """The result by a divisor."""
    if out.dtype == types.float64:

        def divide_pair(high: Any, rest: Any, divisor: Any, out: Any, i: Any) -> Any:
            total, rest = two_sum(high, rest) if high != 0 else (rest, 0.0)
            first = total / divisor
            remainder, lost = two_sum(fma(-first, divisor, total), rest)
            tail = remainder / divisor
            slack = abs(tail) * _TAIL_ERROR + abs(lost) * (2 / divisor)
            slack = 0.0 if (fma(-tail, divisor, remainder) == 0) & (lost == 0) else slack  # a tie
            least, most = first + (tail - slack), first + (tail + slack)
            out[i] = first if tail == 0 else least
            return np.float64(abs(total)).view(np.int64) if least == most else _INFINITE

        return divide_pair

    def divide(high: Any, rest: Any, divisor: Any, out: Any, i: Any) -> Any:
        result = encode_normal(mean_of_exact(_joined(high, rest, out), divisor), out)
        out[i] = result
        return _badness(result)

    return divide


@inner
def _kept(high: float, rest: float, rests: Any, out: Any, i: int) -> int:
    """Not finished yet: more is to be added to both slices of a float64."""
    out[i] += high
    rests[i] += rest
    return 0


@by_type
def _joined(high: Any, rest: Any, out: Any) -> Any:
    """One float64 of what is two for some types; where they cancel, the second has the sign.

    It is exact but of float64, where it is rounded.
    """
    if out.dtype == types.float64:
        return lambda high, rest, out: high + rest if high != 0 else rest
    if out.dtype == types.int16:

        def join_halves(high: Any, rest: Any, out: Any) -> Any:
            return np.float64(high) + np.float64(rest) if high != 0 else np.float64(rest)

        return join_halves
    return lambda high, rest, out: high


@by_type
def _badness(result: Any) -> Any:
    """The size of a float16, whose addends' sizes nobody looks at; those of others tell enough."""
    if result == types.int16:
        return lambda result: np.int16(np.int16(result) & np.int16(0x7FFF))
    return lambda result: np.int16(0)


@by_type
def _bears(weights: Any, out: Any) -> Any:
    """Whether slices of float16 have room for such weights."""
    if out.dtype != types.int16:
        return lambda weights, out: True

    def are_one(weights: Any, out: Any) -> Any:
        others = 0
        for weight in weights:
            others += weight != 1
        return others == 0

    return are_one


@by_type
def _were_near(
    least: Any, most: Any, worst: Any, spread: Any, top: Any, divisor: Any, out: Any
) -> Any:
    """Whether all of a block's additions were exact, from its extremes."""
    if out.dtype == types.float64:

        def were_slices_exact(
            least: Any, most: Any, worst: Any, spread: Any, top: Any, divisor: Any, out: Any
        ) -> Any:
            bottom = max(1, least >> 52)
            fits = (most >> 52 < top) & (top - bottom <= spread) & (top <= _TOP_MAX)
            return fits & (worst < _INFINITE) & ((divisor == 1) | (bottom > _LEAST_DIVIDED))

        return were_slices_exact
    if out.dtype == types.int16:
        return lambda least, most, worst, spread, top, divisor, out: worst < _INFINITE_HALF
    shift, infinite, lowest = 23, 0x7F800000, -1
    if out.dtype == types.uint16:
        shift, infinite, lowest = 7, 0x7F80, _LEAST_DIVIDED

    def were_exact(
        least: Any, most: Any, worst: Any, spread: Any, top: Any, divisor: Any, out: Any
    ) -> Any:
        bottom = np.int64(least) >> shift
        fits = (np.int64(most) >> shift) - bottom <= spread
        return fits & (most < infinite - 1) & ((divisor == 1) | (bottom > lowest))

    return were_exact


@by_type
def _top(most: Any, out: Any) -> Any:
    """What the exponents of a block are below; the same for all if there are no slices."""
    if out.dtype == types.float64:
        return lambda most, out: max(_TOP_MIN, (most >> 52) + 1)
    return lambda most, out: FIRST_TOP


@inner
def _unit(top: int) -> float:
    """What to add and take away again, to get a multiple of 2**-50 of what is below ``top``."""
    return 1.5 * np.int64(min(top + 2, 2046) << 52).view(np.float64)
