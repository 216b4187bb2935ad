"""Partial sums that round only at the end, so that any tree of them gives the bits of the flat sum.

In hierarchical aggregation a region sums its workers and sends the sum on. If it rounds, bits are
lost that depend on the tree. A partial sum is carried exactly instead (see
:mod:`onefold.exact.running`). Its memory for each coordinate: 8 bytes while one float64 holds every
sum, as is usual for float32 and narrower; 16 once any needs a second, as is usual for float64; and
some 300 bytes for each single coordinate that needs more, or has met a NaN or an infinity. A sparse
one has 8 more for each coordinate; of rows, for each row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt

from onefold.checks import as_integer, check_weight, show
from onefold.errors import InvalidUpdate, Mismatch, NoContributions
from onefold.exact.grouped import grouped_sums
from onefold.exact.integers import sum_overflow
from onefold.exact.pairs import FloatArray
from onefold.exact.partial_bytes import COUNT_MAX, Contents, Shape, is_possible, read, write
from onefold.exact.running import SUMS_BLOCK, Positions, RunningSums, blocks
from onefold.exact.stored import significant_bits, terms
from onefold.exact.subnormals import check_subnormals
from onefold.update import DTYPES, Array, Sparse, as_tensor_array, flat_slice

__all__ = ["ExactPartial"]

_ENTRIES_BLOCK = 4 * SUMS_BLOCK


class ExactPartial:
    """An exact sum in the making; :meth:`dense` and :meth:`sparse` make one.

    Attributes:
        dtype: Of what is added.
        shape: Of what is added. Of a sparse sum it is ``(size, *row)``, where size is None if it
            is not declared, and None altogether until something was added.
        count: How many were added, those of weight 0 not counted.
        weight: What their weights add up to.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        if not isinstance(contents, Contents):
            raise TypeError(
                "ExactPartial.dense(shape, dtype) and ExactPartial.sparse(dtype) make partial sums"
            )
        self.dtype, self.shape = contents.dtype, contents.shape
        self.count, self.weight = contents.count, contents.weight
        self._coordinates, self._sums = contents.coordinates, contents.sums

    @classmethod
    def dense(cls, shape: Iterable[int], dtype: npt.DTypeLike) -> ExactPartial:
        """The sum of no arrays of a shape and dtype.

        Raises:
            InvalidUpdate: They are no shape and dtype that can be contributed.
        """
        sizes = _checked_shape(shape)
        sums = RunningSums.zeros(math.prod(sizes))
        return cls(Contents(_checked_dtype(dtype), sizes, None, sums))

    @classmethod
    def sparse(cls, dtype: npt.DTypeLike) -> ExactPartial:
        """The sum of no sparse parts of a dtype; the first that is added says of which shape.

        Raises:
            InvalidUpdate: The dtype cannot be contributed.
        """
        coordinates = np.empty(0, np.int64)
        return cls(Contents(_checked_dtype(dtype), None, coordinates, RunningSums.zeros(0)))

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sum of :class:`~onefold.Sparse` parts."""
        return self._coordinates is not None

    @property
    def nbytes(self) -> int:
        """The memory in use, about."""
        coordinates = 0 if self._coordinates is None else self._coordinates.nbytes
        return coordinates + self._sums.nbytes

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return (
            f"ExactPartial.{kind}({self.dtype.name}, shape={self.shape}, count={self.count}, "
            f"weight={self.weight})"
        )

    def add(self, contribution: Array | Sparse, weight: int = 1) -> None:
        """Add ``weight`` times an array or Sparse; weight 0 leaves it out.

        Raises:
            InvalidUpdate: It is no such thing, or the weight no integer from 0 to 2**53.
            Mismatch: Its kind, dtype or shape is another.
            FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
        """
        weight = check_weight(weight)
        check_subnormals()
        if self._coordinates is None:
            if isinstance(contribution, Sparse):
                raise InvalidUpdate("a dense partial sum takes a NumPy array, not a Sparse")
            array = as_tensor_array(contribution, "of a dense partial sum")
            self._require(array.dtype, array.shape)
            if weight:
                self._add_array(array, weight)
        else:
            if not isinstance(contribution, Sparse):
                raise InvalidUpdate(
                    f"a sparse partial sum takes a Sparse, not {type(contribution).__name__}"
                )
            self._require(contribution.values.dtype, _shape_of(contribution))
            if weight:
                self._add_entries(contribution, weight)
        if weight:
            self.count, self.weight = self.count + 1, self.weight + weight

    def merge(self, other: ExactPartial) -> None:
        """Add all that was added to ``other``, which may be this very one.

        Raises:
            InvalidUpdate: It is no partial sum, or they would be 2**512 contributions.
            Mismatch: Its kind, dtype or shape is another.
            FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
        """
        if not isinstance(other, ExactPartial):
            raise InvalidUpdate(f"only an ExactPartial can be merged, not {show(other)}")
        check_subnormals()
        if other.is_sparse != self.is_sparse:
            raise Mismatch("one partial sum is dense, the other sparse; nothing is converted")
        if self.count + other.count >= COUNT_MAX:
            raise InvalidUpdate("a partial sum has fewer than 2^512 contributions")
        self._require(other.dtype, other.shape)
        if other._coordinates is None:  # of this class
            with np.errstate(all="ignore"):
                self._sums.merge(other._sums, slice(0, self._sums.high.size))
        else:
            self._make_room(other._coordinates)
            self._merge_at(other._coordinates, other._sums)
        self.count, self.weight = self.count + other.count, self.weight + other.weight

    def sum(self) -> Array | Sparse:
        """The correctly rounded sum, weights applied.

        Raises:
            NoContributions: Nothing was added.
            SumOverflow: A sum of integers does not fit their type.
            FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
        """
        if self.dtype.kind not in "iu":
            return self._quotients(1)
        self._require_any()
        values, misfit = self._sums.integers(self.dtype)
        if misfit is not None:
            position, total = misfit
            raise sum_overflow(total, self._coordinate(position), self.dtype)
        return self._shaped(values)

    def mean(self) -> Array | Sparse:
        """The correctly rounded mean: the sum, divided once by the sum of the weights.

        Raises:
            NoContributions: Nothing was added.
            FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
        """
        return self._quotients(max(1, self.weight))

    def divided_by(self, divisor: int) -> Array | Sparse:
        """The sum divided once by a positive integer, rounded as a mean is.

        For sums of one contribution in several pieces, each of which counts in :meth:`mean`.

        Raises:
            NoContributions: Nothing was added.
            FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
        """
        assert divisor > 0, "of a positive integer"
        return self._quotients(divisor)

    def to_bytes(self) -> bytes:
        """All of it, for :meth:`from_bytes`, on any machine."""
        contents = (self.dtype, self.shape, self._coordinates, self._sums, self.count, self.weight)
        return write(Contents(*contents))

    @classmethod
    def from_bytes(cls, data: bytes) -> ExactPartial:
        """What :meth:`to_bytes` gave.

        Raises:
            InvalidInput: The bytes are something else; nothing in them is trusted.
        """
        return cls(read(data))

    def _add_array(self, array: Array, weight: int) -> None:
        is_exact = significant_bits(self.dtype) + weight.bit_length() <= _FLOAT64_BITS
        with np.errstate(all="ignore"):
            for block in blocks(array.size):
                values = flat_slice(array, block.start, block.stop)
                short = _short_term(values, weight)
                for term in short or terms(values):
                    if weight == 1:
                        self._sums.add(block, term)
                    else:
                        exact = is_exact or short is not None
                        self._sums.add_product(block, term, weight, is_exact=exact)

    def _add_entries(self, part: Sparse, weight: int) -> None:
        coordinates = np.asarray(part.coordinates, np.int64)
        self._make_room(np.unique(coordinates))
        step = max(1, _ENTRIES_BLOCK // max(1, self._row_size))
        for first in range(0, len(part), step):
            chosen = slice(first, first + step)
            self._merge_at(*grouped_sums(coordinates[chosen], part.values[chosen], weight))

    def _make_room(self, coordinates: npt.NDArray[np.int64]) -> None:
        """Have sums, of nothing, at the coordinates that are not yet there."""
        assert self._coordinates is not None, "of sparse sums"
        union = np.union1d(self._coordinates, coordinates)
        if union.size > self._coordinates.size:
            places = np.searchsorted(union, self._coordinates)
            positions = _elements(places, self._row_size)
            self._sums = self._sums.moved(union.size * self._row_size, positions)
            self._coordinates = union

    def _merge_at(self, coordinates: npt.NDArray[np.int64], sums: RunningSums) -> None:
        """Merge sums at ascending coordinates, all of which are there."""
        assert self._coordinates is not None, "of sparse sums"
        if not coordinates.size:
            return
        places = np.searchsorted(self._coordinates, coordinates)
        first, last, size = int(places[0]), int(places[-1]), self._row_size
        positions: Positions = (
            slice(first * size, (last + 1) * size)
            if last - first + 1 == places.size
            else _elements(places, size)
        )
        with np.errstate(all="ignore"):
            self._sums.merge(sums, positions)

    def _quotients(self, divisor: int) -> Array | Sparse:
        self._require_any()
        dtype = np.dtype(np.float64) if self.dtype.kind in "iu" else self.dtype
        with np.errstate(all="ignore"):
            return self._shaped(self._sums.quotients(divisor, dtype))

    @property
    def _row_size(self) -> int:
        """How many numbers there are at a coordinate."""
        return math.prod(_row(self.shape or (None,)))

    def _coordinate(self, position: int) -> int:
        if self._coordinates is None:
            return position
        return int(self._coordinates[position // self._row_size])

    def _shaped(self, flat: Array) -> Array | Sparse:
        assert self.shape is not None, "something was added"
        if self._coordinates is None:
            return flat.reshape(cast("tuple[int, ...]", self.shape))
        values = flat.reshape(self._coordinates.size, *_row(self.shape))
        declared = None if self.shape[0] is None else cast("tuple[int, ...]", self.shape)
        return Sparse(self._coordinates.copy(), values, declared)

    def _require(self, dtype: np.dtype[np.generic], shape: Shape | None) -> None:
        """Refuse what is of another dtype or shape; the first that is added gives the shape."""
        shapes_differ = None not in {self.shape, shape} and shape != self.shape
        if self.is_sparse and shape is not None and not is_possible((0, *_row(shape))):
            raise InvalidUpdate(f"no sums are kept of rows of shape {_show(_row(shape))}")
        if dtype != self.dtype or shapes_differ:
            raise Mismatch(
                f"the partial sum is of {self.dtype.name}{_show(self.shape)}, "
                f"not {dtype.name}{_show(shape)}; nothing broadcasts"
            )
        self.shape = shape if self.shape is None else self.shape

    def _require_any(self) -> None:
        check_subnormals()
        if not self.count:
            raise NoContributions("nothing was added to this partial sum, or all with weight 0")


_FLOAT64_BITS = 53


def _short_term(values: Array, weight: int) -> tuple[FloatArray] | None:
    """64-bit integers as one term instead of two, where its products fit a float64."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None
    limit = 2**_FLOAT64_BITS // weight
    is_short = -limit <= int(values.min()) and int(values.max()) <= limit
    return (values.astype(np.float64),) if is_short else None


def _checked_dtype(dtype: npt.DTypeLike) -> np.dtype[np.generic]:
    if isinstance(dtype, str) and dtype in DTYPES:  # bfloat16, too, which NumPy may not know
        return DTYPES[dtype]
    try:
        name = "no dtype" if dtype is None else np.dtype(dtype).name
    except (TypeError, ValueError):
        name = show(dtype)
    if name not in DTYPES:
        raise InvalidUpdate(
            f"a partial sum cannot be of {name}; the dtypes are {', '.join(DTYPES)}"
        )
    return DTYPES[name]


def _checked_shape(shape: object) -> tuple[int, ...]:
    sizes = [as_integer(size) for size in shape] if isinstance(shape, Iterable) else [None]
    whole = tuple(size for size in sizes if size is not None and size >= 0)
    if len(whole) != len(sizes):
        raise InvalidUpdate(
            "the shape of a dense partial sum is a sequence of non-negative integers, "
            f"not {show(shape)}"
        )
    if not is_possible(whole):
        raise InvalidUpdate(f"no array has the shape {show(whole)}")
    return whole


def _shape_of(part: Sparse) -> Shape:
    return (None, *part.row) if part.shape is None else part.shape


def _row(shape: Shape) -> tuple[int, ...]:
    """The shape of what stands at a coordinate."""
    return cast("tuple[int, ...]", shape[1:])


def _show(shape: Shape | None) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape or ('...',))}]"


def _elements(rows: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """The positions of the elements of rows."""
    return rows if size == 1 else (rows[:, None] * size + np.arange(size)).reshape(-1)
