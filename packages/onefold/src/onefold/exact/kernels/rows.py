"""Sums of sparse entries whose values are rows of numbers.

Short rows are moved to their buckets, as numbers are. Long ones are not: entries are sorted with
the number of their row (its part, and its place in that). Either way every group of equal
coordinates is then a dense sum over the addresses of its rows, by the functions that sum dense
arrays, though two rows at a time. The rows of the groups that follow are fetched meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.dense import add_twos, finish_totals
from onefold.exact.kernels.integers import BLOCK as INTEGER_BLOCK
from onefold.exact.kernels.integers import add_integers
from onefold.exact.kernels.limbs import column
from onefold.exact.kernels.numbers import encode, encode_odd
from onefold.exact.kernels.pairs import BLOCK, add_pairs, finish_pairs
from onefold.exact.kernels.unsafe import prefetch

__all__ = ["integer_rows", "reduce_rows"]

_AHEAD = 16
"""So many rows are on their way from memory."""

_LINE_BYTES = 64

_TOLERATED = 8
"""Part of a row is added again in pairs if more than one number in so many was not exact."""


@entry
def reduce_rows(
    keys: Any,
    numbers: Any,
    first: int,
    stop: int,
    place: int,
    base: int,
    addresses: Any,
    row_bits: int,
    row_bytes: int,
    weights: Any,
    divisor: int,
    is_added: int,
    products_exact: int,
    odd: int,
    coordinates: Any,
    width: int,
    out: Any,
    scratch: Any,
    doubts: Any,
    limbs: Any,
    row_addresses: Any,
    row_weights: Any,
) -> None:
    """Put the quotients of sorted entries into ``out``, and their coordinates beside them.

    ``keys`` (uint64, sorted) and ``numbers`` (uint64: a part, shifted by ``row_bits``, and a row
    of it) are the entries of which those from ``first`` to before ``stop`` are summed, to rows of
    the result from ``place`` on; ``base`` is the coordinate of key 0. The rows of part ``i`` start
    at ``addresses[i]``, have ``width`` numbers, are ``row_bytes`` apart and count ``weights[i]``
    times. ``is_added`` says whether to try one float64 before pairs; all else is as for
    :func:`~onefold.exact.kernels.pairs.reduce_pairs` and
    :func:`~onefold.exact.kernels.limbs.reduce_columns`. ``row_addresses`` and ``row_weights`` have
    room for the largest group of equal keys.
    """
    fetched = first
    while first < stop:
        last = _end_of_group(keys, first, stop)
        fetched = _fetch(
            numbers, max(first, fetched), min(last + _AHEAD, stop), addresses, row_bits, row_bytes
        )
        for index in range(first, last):
            number = np.int64(numbers[index])
            row_addresses[index - first] = _address(number, addresses, row_bits, row_bytes)
            row_weights[index - first] = weights[number >> row_bits]
        moved, chosen = row_addresses[: last - first], row_weights[: last - first]
        target = out[place * width : place * width + width]
        _reduce_group(
            moved, chosen, divisor, is_added, products_exact, odd, target, scratch, doubts, limbs
        )
        coordinates[place] = np.int64(keys[first]) + base
        place += 1
        first = last


@inner
def _reduce_group(
    addresses: Any,
    weights: Any,
    divisor: int,
    is_added: int,
    products_exact: int,
    odd: int,
    out: Any,
    scratch: Any,
    doubts: Any,
    limbs: Any,
) -> None:
    """Put the quotients of the sums of some rows into ``out``, tier by tier."""
    scale, width = np.float64(divisor), out.shape[0]
    for start in range(0, width, BLOCK):
        block = out[start : min(start + BLOCK, width)]
        offset, size = start * out.itemsize, block.shape[0]
        found = size
        if is_added:
            add_twos(addresses, offset, weights, 0, scratch[0], block)
            found = finish_totals(scratch[0], scale, block, doubts)
        if found * _TOLERATED > size:
            add_pairs(addresses, offset, weights, products_exact, scratch, block)
            found = finish_pairs(scratch, scale, block, doubts, odd)
        for index in range(found):
            doubt = doubts[index]
            value = column(limbs, addresses, offset, weights, doubt, divisor, block)
            block[doubt] = encode_odd(value, block) if odd else encode(value, block)


@entry
def integer_rows(
    keys: Any,
    numbers: Any,
    first: int,
    stop: int,
    place: int,
    base: int,
    addresses: Any,
    row_bits: int,
    row_bytes: int,
    coordinates: Any,
    width: int,
    out: Any,
    scratch: Any,
    least: int,
    most: int,
    row_addresses: Any,
) -> int:
    """The same for sums of integers.

    ``scratch``, ``least`` and ``most`` are as for
    :func:`~onefold.exact.kernels.integers.reduce_integers`.

    Returns:
        The first row of ``out`` with a sum that does not fit, or -1.
    """
    misfit = -1
    while first < stop:
        last = _end_of_group(keys, first, stop)
        for index in range(first, last):
            number = np.int64(numbers[index])
            row_addresses[index - first] = _address(number, addresses, row_bits, row_bytes)
        moved = row_addresses[: last - first]
        for start in range(0, width, INTEGER_BLOCK):
            target = place * width + start
            block = out[target : target + min(INTEGER_BLOCK, width - start)]
            found = add_integers(moved, start * out.itemsize, scratch, block, least, most)
            if found >= 0 and misfit < 0:
                misfit = place
        coordinates[place] = np.int64(keys[first]) + base
        place += 1
        first = last
    return misfit


@inner
def _end_of_group(keys: Any, first: int, stop: int) -> int:
    last = first + 1
    while last < stop and keys[last] == keys[first]:
        last += 1
    return last


@inner
def _address(number: int, addresses: Any, row_bits: int, row_bytes: int) -> int:
    return addresses[number >> row_bits] + (number & ((1 << row_bits) - 1)) * row_bytes


@inner
def _fetch(
    numbers: Any, first: int, last: int, addresses: Any, row_bits: int, row_bytes: int
) -> int:
    """Let memory begin to bring some rows, though no more than a page of each; returns ``last``."""
    for index in range(first, last):
        address = _address(np.int64(numbers[index]), addresses, row_bits, row_bytes)
        for offset in range(0, min(row_bytes, 4096), _LINE_BYTES):
            prefetch(address + offset)
    return last
