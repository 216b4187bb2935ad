"""Sums and means of dense arrays of one shape and type.

The arrays are read block by block and one after the other, in place: at any time only a few
blocks of float64 exist besides the arrays and the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from onefold.errors import InvalidInput, InvalidUpdate, Mismatch, NoContributions
from onefold.exact.blocks import BLOCK_ELEMENTS, boxes
from onefold.exact.certain import Addends, exact_quotients
from onefold.exact.finish import finish
from onefold.exact.integers import WideSum, sum_overflow
from onefold.exact.pairs import IndexArray, Pair
from onefold.exact.stored import add_stored, terms
from onefold.exact.subnormals import check_subnormals
from onefold.exact.weighting import Weighting, listed
from onefold.update import DTYPES, Array, refuse_mask

__all__ = ["mean_dense", "sum_dense"]

_FLOAT64 = np.dtype(np.float64)

_Kernel: TypeAlias = Callable[[list[Array], int], Array]
"""From the arrays' blocks (any layout) and their flat start to the flat block of the result."""


def sum_dense(arrays: Iterable[Array], out: Array | None = None) -> Array:
    """The correctly rounded sum of arrays, elementwise.

    Args:
        arrays: Of one shape and one dtype of :data:`onefold.update.DTYPES`, any layout and byte
            order. They are not changed.
        out: Where to put the result: of that shape and dtype, any layout. It may be one of the
            arrays. (If it overlaps one in another way, the result is computed beside it first.)

    Returns:
        ``out``, or a new array.

    Raises:
        NoContributions: There are no arrays.
        InvalidUpdate: Something is no array, or of another dtype.
        Mismatch: Shapes or dtypes differ; nothing broadcasts.
        InvalidInput: ``arrays`` cannot be iterated over, or ``out`` not written to.
        SumOverflow: A sum of integers does not fit their type. What ``out`` holds then is
            undefined; after any other error it is unchanged.
        FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
    """
    checked = _check_arrays(arrays)
    weighting = Weighting.sum(len(checked))
    dtype = checked[0].dtype.newbyteorder("=")
    return _reduce(
        checked, out, dtype, _integer_sum if dtype.kind in "iu" else _quotient(weighting, dtype)
    )


def mean_dense(
    arrays: Iterable[Array], weights: Iterable[object] | None = None, out: Array | None = None
) -> Array:
    """The correctly rounded mean of arrays, elementwise: divided once, after summing exactly.

    Args:
        arrays: As for :func:`sum_dense`.
        weights: An integer from 0 to 2**53 for each array; the divisor is their sum. An array of
            weight 0 is left out. Without weights each array counts once.
        out: As for :func:`sum_dense`, but float64 for integer arrays.

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
    return _reduce(
        [checked[index] for index in weighting.selected], out, dtype, _quotient(weighting, dtype)
    )


def _integer_sum(blocks: list[Array], start: int) -> Array:
    total = WideSum.of(blocks[0].reshape(-1))
    for block in blocks[1:]:
        total.add(WideSum.of(block.reshape(-1)))
    sums, overflows = total.narrowed(blocks[0].dtype.newbyteorder("="))
    if overflows.size:
        first = int(overflows[0])
        raise sum_overflow(total.total(first), start + first, sums.dtype)
    return sums


def _quotient(weighting: Weighting, dtype: np.dtype[np.generic]) -> _Kernel:
    """The kernel of float sums and of all means."""
    check_subnormals()
    weights = weighting.weights

    def kernel(blocks: list[Array], start: int) -> Array:  # noqa: ARG001  # of the kind of kernels
        pair = Pair.zeros((blocks[0].size,))
        for number, block in enumerate(blocks):
            add_stored(pair, block.reshape(-1), None if weights is None else weights[number])

        def gather(indices: IndexArray) -> Iterator[Addends]:
            owner = np.arange(indices.size)
            for number, block in enumerate(blocks):
                for term in terms(block.reshape(-1)[indices]):
                    yield Addends(owner, term, 1 if weights is None else weights[number])

        values, doubt = finish(pair, weighting.divisor, dtype)
        if doubt.size:
            values[doubt] = exact_quotients(doubt, gather, weighting.divisor, dtype)
        return values

    return kernel


def _reduce(
    arrays: list[Array], out: Array | None, dtype: np.dtype[np.generic], kernel: _Kernel
) -> Array:
    """Run the kernel over all blocks."""
    shape = arrays[0].shape
    if out is not None:
        _check_out(out, shape, dtype)
    if out is None or any(_entangled(out, array) for array in arrays):
        result = np.empty(shape, dtype)
    else:
        result = out
    with np.errstate(all="ignore"):
        _walk(arrays, result, kernel)
    if out is not None and out is not result:
        out[...] = result
        return out
    return result


def _walk(arrays: Sequence[Array], result: Array, kernel: _Kernel) -> None:
    if all(array.flags.c_contiguous for array in (*arrays, result)):
        arrays, result = [array.reshape(-1) for array in arrays], result.reshape(-1)
    for start, box in boxes(result.shape, BLOCK_ELEMENTS):
        block = result[box]
        block[...] = kernel([array[box] for array in arrays], start).reshape(block.shape)


def _check_arrays(arrays: Iterable[object]) -> list[Array]:
    checked = [_check_array(index, array) for index, array in enumerate(listed(arrays, "arrays"))]
    if not checked:
        raise NoContributions("expected at least one array; there is no sum of nothing")
    first = checked[0]
    for index, array in enumerate(checked):
        if (array.shape, array.dtype.name) != (first.shape, first.dtype.name):
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
    if array.dtype.name not in DTYPES:
        raise InvalidUpdate(
            f"array {index} has dtype {array.dtype.name}; the dtypes are {', '.join(DTYPES)}"
        )
    return array


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
