"""Dense sums and means with NumPy: the slow way, for what the kernels leave out.

That is means of integers, and weights or divisors too large for the kernels; and it is the oracle
that the kernels are compared with. The arrays are read block by block and one after the other, in
place: at any time only a few blocks of float64 exist besides the arrays and the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from onefold.exact import blocks as _blocks
from onefold.exact.blocks import boxes
from onefold.exact.certain import Addends, exact_quotients
from onefold.exact.finish import finish
from onefold.exact.integers import WideSum, sum_overflow
from onefold.exact.pairs import IndexArray, Pair
from onefold.exact.stored import add_stored, terms
from onefold.exact.weighting import Weighting
from onefold.update import Array

__all__ = ["reduce_slowly"]

_Kernel: TypeAlias = Callable[[list[Array], int], Array]
"""From the arrays' blocks (any layout) and their flat start to the flat block of the result."""


def reduce_slowly(arrays: Sequence[Array], weighting: Weighting, result: Array) -> None:
    """Put the sums or means of arrays of one shape and dtype into ``result``.

    Raises:
        SumOverflow: ``result`` is of an integer type that does not hold a sum.
    """
    is_integer_sum = result.dtype.kind in "iu"
    kernel = _integer_sum if is_integer_sum else _quotient(weighting, result.dtype)
    with np.errstate(all="ignore"):
        _walk(arrays, result, kernel)


def _walk(arrays: Sequence[Array], result: Array, kernel: _Kernel) -> None:
    if all(array.flags.c_contiguous for array in (*arrays, result)):
        arrays, result = [array.reshape(-1) for array in arrays], result.reshape(-1)
    for start, box in boxes(result.shape, _blocks.BLOCK_ELEMENTS):
        block = result[box]
        block[...] = kernel([array[box] for array in arrays], start).reshape(block.shape)


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
