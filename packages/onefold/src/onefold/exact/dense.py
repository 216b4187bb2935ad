"""Sums and means of dense arrays of one shape and type.

Plain arrays are read where they lie, in ranges that go to several threads; others are copied, a
block at a time. What the kernels do is in :mod:`onefold.exact.kernels.dense`; which of them, in
:mod:`onefold.exact.plan`; what they leave out goes to :mod:`onefold.exact.slow_dense`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NoReturn, cast

import numpy as np

from onefold.errors import InvalidInput, InvalidUpdate, Mismatch, NoContributions
from onefold.exact.blocks import boxes
from onefold.exact.buffers import Buffers, is_plain, plain
from onefold.exact.integers import sum_overflow
from onefold.exact.plan import IntegerPlan, Plan, plan_for
from onefold.exact.pool import in_pieces, thread_count
from onefold.exact.slow_dense import reduce_slowly
from onefold.exact.subnormals import check_subnormals
from onefold.exact.weighting import Weighting, listed
from onefold.update import DTYPES, Array, refuse_mask

__all__ = ["mean_dense", "sum_dense"]

_FLOAT64 = np.dtype(np.float64)

PIECE_ELEMENTS = 1 << 16
"""What a thread takes at a time: much more work than it is to take it."""

COPIED_ELEMENTS = 1 << 13
"""The same for arrays that are copied, so that the copies of all of them fit a cache."""


def sum_dense(
    arrays: Iterable[Array], out: Array | None = None, *, threads: int | None = None
) -> Array:
    """The correctly rounded sum of arrays, elementwise.

    Args:
        arrays: Of one shape and one dtype of :data:`onefold.update.DTYPES`, any layout and byte
            order. They are not changed.
        out: Where to put the result: of that shape and dtype, any layout. It may be one of the
            arrays. (If it overlaps one in another way, the result is computed beside it first.)
        threads: How many to use at most; the default is ``ONEFOLD_THREADS``, else all processors.
            The bits do not depend on it.

    Returns:
        ``out``, or a new array.

    Raises:
        NoContributions: There are no arrays.
        InvalidUpdate: Something is no array, or of another dtype.
        Mismatch: Shapes or dtypes differ; nothing broadcasts.
        InvalidInput: ``arrays`` cannot be iterated over, or ``out`` not written to.
        SumOverflow: A sum of integers does not fit their type. What ``out`` holds then is
            undefined; after any other error it is unchanged.
        FlushToZero: This thread's arithmetic takes subnormal numbers for zero, which only sums
            of integers bear.
    """
    checked = _check_arrays(arrays)
    weighting = Weighting.sum(len(checked))
    dtype = checked[0].dtype.newbyteorder("=")
    return _reduce(checked, weighting, out, dtype, thread_count(threads))


def mean_dense(
    arrays: Iterable[Array],
    weights: Iterable[object] | None = None,
    out: Array | None = None,
    *,
    threads: int | None = None,
) -> Array:
    """The correctly rounded mean of arrays, elementwise: divided once, after summing exactly.

    Args:
        arrays: As for :func:`sum_dense`.
        weights: An integer from 0 to 2**53 for each array; the divisor is their sum. An array of
            weight 0 is left out. Without weights each array counts once.
        out: As for :func:`sum_dense`, but float64 for integer arrays.
        threads: As for :func:`sum_dense`.

    Returns:
        ``out``, or a new array: of the arrays' dtype, or float64 for integers.

    Raises:
        NoContributions: There are no arrays.
        InvalidUpdate: Something is no array, or of another dtype, or a weight is no such integer.
        Mismatch: Shapes or dtypes differ; nothing broadcasts.
        InvalidInput: There are not as many weights as arrays, or ``out`` cannot be written to.
        ZeroWeight: All weights are 0.
        FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
    """
    checked = _check_arrays(arrays)
    weighting = Weighting.mean(len(checked), weights)
    dtype = checked[0].dtype.newbyteorder("=")
    dtype = _FLOAT64 if dtype.kind in "iu" else dtype
    selected = [checked[index] for index in weighting.selected]
    return _reduce(selected, weighting, out, dtype, thread_count(threads))


def _reduce(
    arrays: list[Array],
    weighting: Weighting,
    out: Array | None,
    dtype: np.dtype[np.generic],
    threads: int,
) -> Array:
    """Check ``out`` and fill it, or a new array."""
    shape = arrays[0].shape
    if out is not None:
        _check_out(out, shape, dtype)
    if out is None or any(_entangled(out, array) for array in arrays):
        result = np.empty(shape, dtype)
    else:
        result = out
    plan = plan_for(arrays[0].dtype, result.dtype, weighting)
    if not isinstance(plan, IntegerPlan):
        check_subnormals()
    if plan is None:
        reduce_slowly(arrays, weighting, result)
    elif _is_direct(arrays, result, is_given=result is out):
        _reduce_in_place(arrays, result, plan, threads)
    else:
        _reduce_copies(arrays, result, plan, threads)
    if out is not None and out is not result:
        out[...] = result
        return out
    return result


def _is_direct(arrays: Sequence[Array], result: Array, *, is_given: bool) -> bool:
    """Whether kernels can read and write all of it where it lies.

    They read an addend again after a first tier has written its result, so none may be there.
    """
    return (
        is_plain(result)
        and all(map(is_plain, arrays))
        and not (is_given and any(np.may_share_memory(result, array) for array in arrays))
    )


def _reduce_in_place(arrays: Sequence[Array], result: Array, plan: Plan, threads: int) -> None:
    """Ranges of plain arrays, several at a time."""
    buffers, flat = Buffers.of(arrays), result.reshape(-1)
    overflows: list[int] = []

    def work(piece: int) -> None:
        first = piece * PIECE_ELEMENTS
        overflow = plan.reduce(buffers, first, flat[first : first + PIECE_ELEMENTS])
        if overflow >= 0:
            overflows.append(first + overflow)

    in_pieces(work, -(-flat.size // PIECE_ELEMENTS), threads)
    if overflows:
        _raise_overflow(arrays, min(overflows))


def _reduce_copies(arrays: Sequence[Array], result: Array, plan: Plan, threads: int) -> None:
    """Arrays that kernels cannot read or write as they lie: by way of copies, box by box."""
    pieces = list(boxes(result.shape, COPIED_ELEMENTS))
    overflows: list[int] = []

    def work(piece: int) -> None:
        start, box = pieces[piece]
        copies = Buffers.of([plain(array[box]) for array in arrays])
        block = np.empty(result[box].shape, result.dtype.newbyteorder("="))
        overflow = plan.reduce(copies, 0, block.reshape(-1))
        result[box] = block
        if overflow >= 0:
            overflows.append(start + overflow)

    in_pieces(work, len(pieces), threads)
    if overflows:
        _raise_overflow(arrays, min(overflows))


def _raise_overflow(arrays: Sequence[Array], index: int) -> NoReturn:
    total = sum(int(cast("int", array.flat[index])) for array in arrays)
    raise sum_overflow(total, index, arrays[0].dtype.newbyteorder("="))


def _check_arrays(arrays: Iterable[object]) -> list[Array]:
    checked = [_check_array(index, array) for index, array in enumerate(listed(arrays, "arrays"))]
    if not checked:
        raise NoContributions("expected at least one array; there is no sum of nothing")
    first = checked[0]
    for index, array in enumerate(checked):
        if (array.shape, _kind(array.dtype)) != (first.shape, _kind(first.dtype)):
            raise Mismatch(
                f"array {index} is {array.dtype.name}{list(array.shape)}, but array 0 is "
                f"{first.dtype.name}{list(first.shape)}; nothing broadcasts"
            )
    return checked


def _check_array(index: int, value: object) -> Array:
    if not isinstance(value, np.ndarray | np.generic):
        raise InvalidUpdate(f"array {index} must be a NumPy array, not {type(value).__name__}")
    refuse_mask(value, f"array {index}")
    array = np.asarray(value)
    if _kind(array.dtype) not in DTYPES:
        raise InvalidUpdate(
            f"array {index} has dtype {array.dtype.name}; the dtypes are {', '.join(DTYPES)}"
        )
    return array


@cache  # the name of a type is slow to find out
def _kind(dtype: np.dtype[np.generic]) -> str:
    """Its name, of either byte order."""
    return dtype.name


def _check_out(out: object, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    if not isinstance(out, np.ndarray):
        raise InvalidInput(f"out must be a NumPy array, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise Mismatch(
            f"out is {out.dtype}{list(out.shape)}, but the result is {dtype}{list(shape)}"
        )
    if not out.flags.writeable:
        raise InvalidInput("out is read-only; pass an array that can be written to")


def _entangled(out: Array, array: Array) -> bool:
    """Whether writing a block of ``out`` could change a block of ``array`` yet to be read."""
    if not np.may_share_memory(out, array):
        return False
    places = [(each.__array_interface__["data"][0], each.strides) for each in (out, array)]
    return places[0] != places[1]
