"""Partial sums that round only at the end, so that any tree of them gives the bits of the flat sum.

In hierarchical aggregation a region sums its workers and sends the sum on. If it rounds, bits are
lost that depend on the tree. A partial sum is carried exactly instead (see
:mod:`onefold.exact.running`): 8 bytes for each coordinate while one float64 holds every sum, as is
usual for float32 and narrower; 16 once any needs a second; and some 300 bytes for each single
coordinate that needs more, or has met a NaN or an infinity. A sparse one has 8 more for each
coordinate.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from onefold.checks import check_weight
from onefold.errors import InvalidUpdate, Mismatch, NoContributions, ZeroWeight
from onefold.exact.certain import integers_of
from onefold.exact.groups import Groups, reduce_pairs
from onefold.exact.integers import sum_overflow
from onefold.exact.pairs import Pair
from onefold.exact.partial_bytes import Contents, read, write
from onefold.exact.running import RunningSums
from onefold.exact.stored import add_stored, terms
from onefold.update import DTYPES, Array, Sparse, as_tensor_array

__all__ = ["ExactPartial"]

_BLOCK = 1 << 15


class ExactPartial:
    """An exact sum in the making; :meth:`dense` and :meth:`sparse` make one."""

    def __init__(
        self,
        dtype: np.dtype[np.generic],
        shape: tuple[int, ...],
        coordinates: npt.NDArray[np.int64] | None,
        sums: RunningSums,
    ) -> None:
        self.dtype, self.shape, self.coordinates = dtype, shape, coordinates
        self.sums = sums
        self.count = 0
        self.weight = 0

    @classmethod
    def dense(cls, shape: tuple[int, ...], dtype: npt.DTypeLike) -> ExactPartial:
        """The sum of no arrays of a shape and dtype."""
        return cls(_checked(dtype), tuple(shape), None, RunningSums.zeros(math.prod(shape)))

    @classmethod
    def sparse(cls, dtype: npt.DTypeLike, row: tuple[int, ...] = ()) -> ExactPartial:
        """The sum of no sparse parts of a dtype, with rows of a shape."""
        return cls(_checked(dtype), tuple(row), np.empty(0, np.int64), RunningSums.zeros(0))

    @property
    def nbytes(self) -> int:
        """The memory in use, about."""
        arrays = (self.sums.high, self.sums.low, self.coordinates)
        return sum(0 if a is None else a.nbytes for a in arrays) + 300 * len(self.sums.longs)

    def add(self, contribution: Array | Sparse, weight: int = 1) -> None:
        """Add ``weight`` times an array or Sparse; weight 0 leaves it out.

        Raises:
            InvalidUpdate: It is no such thing, or the weight no integer from 0 to 2**53.
            Mismatch: Its kind, dtype or shape is another.
        """
        weight = check_weight(weight)
        if self.coordinates is None:
            array = as_tensor_array(contribution, "of a dense partial sum")
            self._require(array.dtype.name, array.shape)
            if weight:
                self._add_array(array, weight)
        else:
            if not isinstance(contribution, Sparse):
                raise InvalidUpdate(
                    f"a sparse partial sum takes a Sparse, not {type(contribution).__name__}"
                )
            self._require(contribution.values.dtype.name, contribution.row)
            if weight and len(contribution):
                self._add_entries(contribution, weight)
        if weight:
            self.count, self.weight = self.count + 1, self.weight + weight

    def merge(self, other: ExactPartial) -> None:
        """Add all that was added to ``other``.

        Raises:
            Mismatch: Its kind, dtype or shape is another.
        """
        if (other.coordinates is None) != (self.coordinates is None):
            raise Mismatch("one partial sum is dense, the other sparse; nothing is converted")
        self._require(other.dtype.name, other.shape)
        if other.coordinates is None:
            with np.errstate(all="ignore"):
                self.sums.merge(other.sums, slice(None))
        else:
            self._merge_at(other.coordinates, other.sums)
        self.count, self.weight = self.count + other.count, self.weight + other.weight

    def sum(self) -> Array | Sparse:
        """The correctly rounded sum, weights applied.

        Raises:
            NoContributions: Nothing was added.
            SumOverflow: A sum of integers does not fit their type.
        """
        self._require_any()
        if self.dtype.kind in "iu":
            return self._shaped(self._integer_sums())
        return self._shaped(self.sums.quotients(1, self.dtype))

    def mean(self) -> Array | Sparse:
        """The correctly rounded mean: the sum, divided once by the sum of the weights.

        Raises:
            NoContributions: Nothing was added.
        """
        self._require_any()
        kind = np.dtype(np.float64) if self.dtype.kind in "iu" else self.dtype
        return self._shaped(self.sums.quotients(self.weight, kind))

    def to_bytes(self) -> bytes:
        """All of it, for :meth:`from_bytes`, on any machine."""
        contents = (self.dtype, self.shape, self.coordinates, self.sums, self.count, self.weight)
        return write(Contents(*contents))

    @classmethod
    def from_bytes(cls, data: bytes) -> ExactPartial:
        """What :meth:`to_bytes` gave.

        Raises:
            InvalidInput: The bytes are something else; nothing in them is trusted.
        """
        contents = read(data)
        partial = cls(contents.dtype, contents.shape, contents.coordinates, contents.sums)
        partial.count, partial.weight = contents.count, contents.weight
        return partial

    def _add_array(self, array: Array, weight: int) -> None:
        flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
        with np.errstate(all="ignore"):
            for first in range(0, array.size, _BLOCK):
                block = flat[first : first + _BLOCK]
                chosen = slice(first, first + block.size)
                pair = Pair.zeros(block.shape)
                add_stored(pair, block, None if weight == 1 else weight)
                self._add_pair(chosen, pair, block, np.arange(first, first + block.size), weight)

    def _add_pair(
        self,
        positions: slice,
        pair: Pair,
        values: Array,
        owners: npt.NDArray[np.intp],
        weight: int,
    ) -> None:
        """Add a pair; where that is not exact, the values that it was made of, by their owner."""
        bad = ~np.isfinite(pair.high)
        if pair.low is not None:
            bad |= ~np.isfinite(pair.low)
        if pair.error is not None:
            bad |= pair.error != 0
        if bad.any():
            pair.high[bad] = -0.0
            if pair.low is not None:
                pair.low[bad] = 0.0
            chosen = bad[owners - positions.start]
            for term in terms(values[chosen]):
                self.sums.add_long(owners[chosen], term, weight)
        self.sums.add(positions, pair.high, pair.low)

    def _add_entries(self, part: Sparse, weight: int) -> None:
        size = math.prod(self.shape)
        groups = Groups.of(np.asarray(part.coordinates, np.int64))
        values = part.values.reshape(len(part), size)[groups.order]
        sizes = np.diff(groups.starts)
        owners = np.repeat(np.arange(sizes.size), sizes)[:, None] * size + np.arange(size)
        own = ExactPartial(
            self.dtype, self.shape, groups.coordinates, RunningSums.zeros(sizes.size * size)
        )
        with np.errstate(all="ignore"):
            pair = Pair.zeros(values.shape)
            add_stored(pair, values, None if weight == 1 else weight)
            pair = reduce_pairs(pair, groups.starts[:-1])
            flat = Pair(
                pair.high.reshape(-1),
                None if pair.low is None else pair.low.reshape(-1),
                None if pair.error is None else pair.error.reshape(-1),
            )
            own._add_pair(  # of this class
                slice(0, sizes.size * size), flat, values.reshape(-1), owners.reshape(-1), weight
            )
        self._merge_at(groups.coordinates, own.sums)

    def _merge_at(self, coordinates: npt.NDArray[np.int64], sums: RunningSums) -> None:
        assert self.coordinates is not None, "of sparse sums"
        size = math.prod(self.shape)
        union = np.union1d(self.coordinates, coordinates)
        if union.size > self.coordinates.size:
            places = _rows(np.searchsorted(union, self.coordinates), size)
            self.sums = self.sums.moved(union.size * size, places)
            self.coordinates = union
        with np.errstate(all="ignore"):
            self.sums.merge(sums, _rows(np.searchsorted(union, coordinates), size))

    def _integer_sums(self) -> Array:
        limits = np.iinfo(self.dtype)  # type: ignore[type-var]  # an integer type
        sums = self.sums
        easy = (np.abs(sums.high) < 2**53) & (sums.high >= limits.min) & (sums.high <= limits.max)
        if sums.low is not None:
            easy &= sums.low == 0
        easy[list(sums.longs)] = False
        result: Array = np.where(easy, sums.high, 0).astype(self.dtype)
        unit = int(integers_of(np.array([1.0]))[0])
        for at in np.flatnonzero(~easy).tolist():
            total = sums.integer(at) // unit
            if not limits.min <= total <= limits.max:
                row = at // max(1, math.prod(self.shape))
                where = at if self.coordinates is None else int(self.coordinates[row])
                raise sum_overflow(total, where, self.dtype)
            result[at] = total
        return result

    def _shaped(self, flat: Array) -> Array | Sparse:
        if self.coordinates is None:
            return flat.reshape(self.shape)
        values = flat.reshape(self.coordinates.size, *self.shape)
        return Sparse(self.coordinates.copy(), values)

    def _require(self, dtype: str, shape: tuple[int, ...]) -> None:
        if (dtype, shape) != (self.dtype.name, self.shape):
            raise Mismatch(
                f"the partial sum is of {self.dtype.name}{list(self.shape)}, "
                f"not {dtype}{list(shape)}; nothing broadcasts"
            )

    def _require_any(self) -> None:
        if not self.count:
            raise NoContributions("nothing was added to this partial sum, or all with weight 0")
        if not self.weight:
            raise ZeroWeight("all weights are 0; there is no mean of nothing")


def _checked(dtype: npt.DTypeLike) -> np.dtype[np.generic]:
    name = np.dtype(dtype).name
    if name not in DTYPES:
        raise InvalidUpdate(
            f"a partial sum cannot be of {name}; the dtypes are {', '.join(DTYPES)}"
        )
    return DTYPES[name]


def _rows(rows: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """The positions of the elements of rows."""
    return (rows[:, None] * size + np.arange(size)).reshape(-1)
