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
from onefold.exact.buffers import Buffers, NotPlain, is_plain, plain
from onefold.exact.integers import sum_overflow
from onefold.exact.kernels.address import address
from onefold.exact.kernels.sizes import BLOCK
from onefold.exact.plan import IntegerPlan, Plan, plan_for
from onefold.exact.pool import in_pieces, thread_count
from onefold.exact.scratch import Scratch, with_scratch
from onefold.exact.slow_dense import reduce_slowly
from onefold.exact.subnormals import check_subnormals
from onefold.exact.weighting import Weighting, listed
from onefold.update import DTYPES, Array, refuse_mask

__all__ = ["mean_dense", "sum_dense"]

_FLOAT64 = np.dtype(np.float64)

PIECE_VALUES = 1 << 21
"""At most so many values of all arrays together go to a thread at a time."""

_SMALL_PIECE_VALUES = 1 << 19
"""And no fewer than about these, as long as there are as many."""

_TURNS = 4
"""If there are enough values, so many times does a thread take some; then all end together."""

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
    overlapping = [] if out is None else [each for each in arrays if np.may_share_memory(out, each)]
    if out is None or any(_entangled(out, array) for array in overlapping):
        result, overlapping = np.empty(shape, dtype), []
    else:
        result = out
    plan = plan_for(arrays[0].dtype, result.dtype, weighting)
    if not isinstance(plan, IntegerPlan):
        check_subnormals()
    if plan is None:
        reduce_slowly(arrays, weighting, result)
    elif not overlapping and (buffers := _as_they_lie(arrays, result)):
        _reduce_in_place(buffers, result, plan, threads)
    else:
        _reduce_copies(arrays, result, plan, threads)
    if out is not None and out is not result:
        out[...] = result
        return out
    return result


def _as_they_lie(arrays: Sequence[Array], result: Array) -> Buffers | None:
    """The buffers of arrays, if kernels can read and write all of it where it lies.

    They read an addend again after a first tier has written its result, so none may overlap it.
    """
    if not is_plain(result):
        return None
    try:
        return Buffers.of(arrays)
    except NotPlain:
        return None


def _reduce_in_place(buffers: Buffers, result: Array, plan: Plan, threads: int) -> None:
    """Ranges of plain arrays, several at a time."""
    flat = result.reshape(-1)
    step = _step(len(buffers.arrays), flat.size, threads)
    overflows: list[int] = []

    @with_scratch
    def work(scratch: Scratch, piece: int) -> None:
        first = piece * step
        overflow = plan.reduce(scratch, buffers, first, flat[first : first + step])
        if overflow >= 0:
            overflows.append(first + overflow)

    in_pieces(work, -(-flat.size // step), threads)
    if overflows:
        _raise_overflow(buffers.arrays, min(overflows))


def _step(arrays: int, size: int, threads: int) -> int:
    """How many elements a thread takes at a time: much more work than it is to take it."""
    step = min(size // (_TURNS * threads), PIECE_VALUES // arrays)
    return BLOCK * max(1, step // BLOCK, _SMALL_PIECE_VALUES // arrays // BLOCK)


def _reduce_copies(arrays: Sequence[Array], result: Array, plan: Plan, threads: int) -> None:
    """Arrays that kernels cannot read or write as they lie: by way of copies, box by box."""
    pieces = list(boxes(result.shape, COPIED_ELEMENTS))
    overflows: list[int] = []

    @with_scratch
    def work(scratch: Scratch, piece: int) -> None:
        start, box = pieces[piece]
        copies = Buffers.of([plain(array[box]) for array in arrays])
        block = np.empty(result[box].shape, result.dtype.newbyteorder("="))
        overflow = plan.reduce(scratch, copies, 0, block.reshape(-1))
        if overflow >= 0:
            overflows.append(start + overflow)
        else:  # one of the arrays may lie there, whose elements are to be told
            result[box] = block

    in_pieces(work, len(pieces), threads)
    if overflows:
        _raise_overflow(arrays, min(overflows))


def _raise_overflow(arrays: Sequence[Array], index: int) -> NoReturn:
    total = sum(int(cast("int", array.flat[index])) for array in arrays)
    raise sum_overflow(total, index, arrays[0].dtype.newbyteorder("="))


def _check_arrays(arrays: Iterable[object]) -> list[Array]:
    checked = listed(arrays, "arrays")
    if not checked:
        raise NoContributions("expected at least one array; there is no sum of nothing")
    first = _check_array(0, checked[0])
    shape, dtype, kind = first.shape, first.dtype, _kind(first.dtype)
    for index, each in enumerate(checked):
        if type(each) is np.ndarray and each.dtype is dtype and each.shape == shape:
            continue  # what nearly all are, without further ado
        array = checked[index] = _check_array(index, each)
        if array.shape != shape or _kind(array.dtype) != kind:
            raise Mismatch(
                f"array {index} is {array.dtype.name}{list(array.shape)}, but array 0 is "
                f"{first.dtype.name}{list(shape)}; nothing broadcasts"
            )
    return cast("list[Array]", checked)


def _check_array(index: int, value: object) -> Array:
    if not isinstance(value, np.ndarray | np.generic):
        raise InvalidUpdate(
            f"array {index} must be a NumPy array, not {type(value).__name__}; "
            "np.asarray(...) makes one"
        )
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
    """Whether writing a block of ``out`` could change a block of ``array`` yet to be read.

    They may overlap, unless they are the same.
    """
    return (address(out), out.strides) != (address(array), array.strides)
