"""Sums of sparse entries whose values are rows of numbers.

Rows are not moved: entries are sorted with the number of their row (its part, and its place in
that) and then every group of equal coordinates is a dense sum over the addresses of its rows, by
the functions that sum dense arrays, though two rows at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.dense import BLOCK, add_twos, begin_scratch, finish_block
from onefold.exact.kernels.integers import add_integers
from onefold.exact.kernels.limbs import LIMBS, column

__all__ = ["ROW_BITS", "integer_rows", "reduce_rows"]

ROW_BITS = 40
"""An entry's number is that of its part, shifted by this, and that of its row."""


@entry
def reduce_rows(
    keys: Any,
    numbers: Any,
    bounds: Any,
    base: int,
    addresses: Any,
    weights: Any,
    divisor: int,
    is_added: bool,
    products_exact: bool,
    coordinates: Any,
    out: Any,
) -> None:
    """Put the quotients of sorted entries into ``out``, and their coordinates beside them.

    Args:
        keys: Sorted, of some whole buckets.
        numbers: The numbers of their rows.
        bounds: The first entry, the one after the last, and the first row of the result.
        base: The coordinate of key 0.
        addresses: Where the rows of each part start.
        weights: float64, one for each part.
        divisor: From 1 to 2**53.
        is_added: Whether to try one float64 before pairs.
        products_exact: Whether a float64 holds every product of a weight and a value.
        coordinates: Those of the whole result.
        out: The rows of the whole result, end to end in one row each.
    """
    first, stop, place = bounds
    scratch, limbs, doubts = begin_scratch(), np.zeros(LIMBS, np.int64), np.empty(BLOCK, np.int64)
    size = _largest_group(keys, first, stop)
    row_addresses, row_weights = np.empty(size, np.int64), np.empty(size)
    row_bytes = out.shape[1] * out.itemsize
    while first < stop:
        last = _locate(keys, numbers, first, stop, addresses, row_bytes, row_addresses)
        count = last - first
        for index in range(count):
            row_weights[index] = weights[numbers[first + index] >> ROW_BITS]
        moved, chosen = row_addresses[:count], row_weights[:count]
        for start in range(0, out.shape[1], BLOCK):
            block = out[place, start : start + BLOCK]
            if is_added:
                add_twos(moved, chosen, 0, scratch[0], block)
            found = finish_block(
                moved, chosen, divisor, block, doubts, is_added, products_exact, scratch
            )
            for index in doubts[:found]:
                block[index] = column(limbs, moved, chosen, index, divisor, block)
            for index in range(count):
                moved[index] += BLOCK * out.itemsize
        coordinates[place] = np.int64(keys[first]) + base
        place += 1
        first = last


@entry
def integer_rows(
    keys: Any, numbers: Any, bounds: Any, base: int, addresses: Any, coordinates: Any, out: Any
) -> int:
    """The same for sums of integers.

    Returns:
        The first row of ``out`` with a sum that does not fit, or -1.
    """
    first, stop, place = bounds
    sums, uppers = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    row_addresses = np.empty(_largest_group(keys, first, stop), np.int64)
    row_bytes = out.shape[1] * out.itemsize
    misfit = -1
    while first < stop:
        last = _locate(keys, numbers, first, stop, addresses, row_bytes, row_addresses)
        moved = row_addresses[: last - first]
        for start in range(0, out.shape[1], BLOCK):
            found = add_integers(moved, sums, uppers, out[place, start : start + BLOCK])
            if found >= 0 and misfit < 0:
                misfit = place
            for index in range(moved.shape[0]):
                moved[index] += BLOCK * out.itemsize
        coordinates[place] = np.int64(keys[first]) + base
        place += 1
        first = last
    return misfit


@inner
def _largest_group(keys: Any, first: int, stop: int) -> int:
    largest, begin = 0, first
    for index in range(first, stop):
        if keys[index] != keys[begin]:
            begin = index
        largest = max(largest, index + 1 - begin)
    return largest


@inner
def _locate(
    keys: Any, numbers: Any, first: int, stop: int, addresses: Any, row_bytes: int, found: Any
) -> int:
    """Put the addresses of the rows of the group at ``first`` into ``found``; returns its end."""
    last = first
    while last < stop and keys[last] == keys[first]:
        number = numbers[last]
        row = number & ((1 << ROW_BITS) - 1)
        found[last - first] = addresses[number >> ROW_BITS] + row * row_bytes
        last += 1
    return last
