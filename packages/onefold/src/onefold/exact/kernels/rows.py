"""Sums of sparse entries whose values are rows of numbers.

Short rows are moved to their buckets, as numbers are. Long ones are not: entries are sorted with
the number of their row (its part, and its place in that). Either way every group of equal
coordinates is then a dense sum over the addresses of its rows, by the functions that sum dense
arrays, though two rows at a time. The rows of the groups that follow are fetched meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.dense import BLOCK, add_twos, finish_block
from onefold.exact.kernels.integers import add_integers
from onefold.exact.kernels.limbs import column

__all__ = ["BLOCK", "integer_rows", "reduce_rows"]

_AHEAD = 16
"""So many rows are on their way from memory."""

_LINE_BYTES = 64


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
    is_added: bool,
    products_exact: bool,
    coordinates: Any,
    out: Any,
    scratch: Any,
    doubts: Any,
    limbs: Any,
    row_addresses: Any,
    row_weights: Any,
) -> None:
    """Put the quotients of sorted entries into ``out``, and their coordinates beside them.

    Args:
        keys: uint64, sorted, of some whole buckets.
        numbers: uint64, the numbers of their rows: a part, shifted by ``row_bits``, and a row.
        first: The first entry.
        stop: The one after the last.
        place: The first row of the result.
        base: The coordinate of key 0.
        addresses: Where the rows of each part start.
        row_bits: See ``numbers``.
        row_bytes: From one row of a part to the next.
        weights: float64, one for each part.
        divisor: From 1 to 2**53.
        is_added: Whether to try one float64 before pairs.
        products_exact: Whether a float64 holds every product of a weight and a value.
        coordinates: Those of the whole result.
        out: The rows of the whole result, end to end in one row each.
        scratch: float64, two rows of ``BLOCK``.
        doubts: int64, ``BLOCK`` of them.
        limbs: As for :func:`onefold.exact.kernels.limbs.columns`.
        row_addresses: int64, as many as the largest group of equal keys has entries.
        row_weights: float64, as many.
    """
    pair = (scratch[0], scratch[1])
    fetched, width = first, out.shape[1]
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
        for start in range(0, width, BLOCK):
            block = out[place, start : start + BLOCK]
            if is_added:
                add_twos(moved, chosen, 0, pair[0], block)
            found = finish_block(
                moved, chosen, divisor, block, doubts, is_added, products_exact, pair
            )
            for index in range(found):
                doubt = doubts[index]
                block[doubt] = column(limbs, moved, chosen, doubt, divisor, block)
            if start + BLOCK < width:
                for index in range(last - first):
                    moved[index] += BLOCK * out.itemsize
        coordinates[place] = np.int64(keys[first]) + base
        place += 1
        first = last


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
    out: Any,
    sums: Any,
    row_addresses: Any,
) -> int:
    """The same for sums of integers; ``sums`` is int64, two rows of ``BLOCK``.

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
        for start in range(0, out.shape[1], BLOCK):
            found = add_integers(moved, sums[0], sums[1], out[place, start : start + BLOCK])
            if found >= 0 and misfit < 0:
                misfit = place
            for index in range(last - first):
                moved[index] += BLOCK * out.itemsize
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
            _prefetch(address + offset)
    return last


@intrinsic
def _prefetch(_context: Any, _address: Any) -> Any:
    """Ask for the line of an address. It reads nothing, so no address is wrong."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word, pointer = ir.IntType(32), cgutils.voidptr_t
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        target = builder.inttoptr(arguments[0], pointer)
        builder.call(function, [target, word(0), word(3), word(1)])
        return _context.get_dummy_value()

    return types.void(types.intp), generate
