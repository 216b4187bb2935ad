"""The contributions of a step to its aggregate, a block at a time.

Memory grows with the block, not with the number of workers nor the size of the model: dense tensors
are summed range by range of their elements, and sparse ones in passes over ranges of coordinates
that are chosen so that the entries within a range fit :data:`SCRATCH_ENTRIES_BYTES`. A coordinate
that alone has more (the padding token, a bias) is *hot*: its entries are added a few at a time to
an :class:`~onefold.ExactPartial`, which rounds only at the end, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from onefold.errors import SumOverflow
from onefold.exact import ExactPartial, mean_dense, mean_sparse, sum_dense, sum_sparse
from onefold.parts import (
    BLOCK_BYTES,
    Manifest,
    PartWriter,
    Payload,
    Row,
    TensorManifest,
    chunk_rows,
)
from onefold.policy import Operation
from onefold.store.base import Part, Store
from onefold.update import DTYPES, Array, Sparse, TensorSpec

__all__ = ["SCRATCH_ENTRIES_BYTES", "Reduction", "write_aggregate"]

SCRATCH_ENTRIES_BYTES = 32 << 20
"""About how many bytes of entries of a sparse tensor, from all workers, are summed at a time."""

_BUCKETS = 1 << 12


class Reduction:
    """One aggregate in the making.

    Args:
        payloads: The contributions, at least one, all of one signature.
        weights: The weight of each.
        operation: What to compute.
    """

    def __init__(
        self, payloads: Sequence[Payload], weights: Sequence[int], operation: Operation
    ) -> None:
        if operation == "weighted_mean" and any(weights):  # what has weight 0 is not there
            chosen = [index for index, weight in enumerate(weights) if weight]
            payloads = [payloads[index] for index in chosen]
            weights = [weights[index] for index in chosen]
        self._payloads = payloads
        self._operation = operation
        self._weights = list(weights) if operation == "weighted_mean" else None
        self._entries: dict[str, int] = {}

    def parts(self) -> Iterator[Part]:
        """The parts of the aggregate, each to be read before the next is taken.

        Raises:
            SumOverflow: An integer sum does not fit; the message names tensor and coordinate.
        """
        groups: dict[tuple[str, str], list[TensorManifest]] = {}
        for tensor in self._payloads[0].manifest.tensors:
            spec = self._spec(tensor)
            groups.setdefault((spec.kind, spec.dtype), []).append(tensor)
        for (kind, dtype), tensors in groups.items():
            yield from PartWriter(kind, dtype).parts(self._rows(tensors))

    def tensors(self) -> tuple[TensorManifest, ...]:
        """What the aggregate consists of, once all parts have been read."""
        return tuple(
            TensorManifest(tensor.name, self._spec(tensor), self._entries.get(tensor.name))
            for tensor in self._payloads[0].manifest.tensors
        )

    def _spec(self, tensor: TensorManifest) -> TensorSpec:
        """A mean of integers is a float64."""
        integers = DTYPES[tensor.spec.dtype].kind in "iu"
        dtype = "float64" if integers and self._operation != "sum" else tensor.spec.dtype
        return TensorSpec(tensor.spec.kind, dtype, tensor.spec.shape)

    def _rows(self, tensors: Iterable[TensorManifest]) -> Iterator[Row]:
        for tensor in tensors:
            try:
                yield from (
                    self._dense_rows(tensor)
                    if tensor.entries is None
                    else self._sparse_rows(tensor)
                )
            except SumOverflow as error:
                raise SumOverflow.at(error.coordinate, error.reason, tensor.name) from error

    def _dense_rows(self, tensor: TensorManifest) -> Iterator[Row]:
        step = BLOCK_BYTES // _dtype(tensor).itemsize
        for start in range(0, tensor.length, step):
            stop = min(start + step, tensor.length)
            arrays = [payload.dense(tensor.name, start, stop) for payload in self._payloads]
            yield Row(tensor.name, start, None, self._reduced_dense(arrays, start))

    def _reduced_dense(self, arrays: list[Array], start: int) -> Array:
        try:
            if self._operation == "sum":
                return sum_dense(arrays)
            return mean_dense(arrays, self._weights)
        except SumOverflow as error:
            raise SumOverflow.at(start + error.coordinate, error.reason) from error

    def _sparse_rows(self, tensor: TensorManifest) -> Iterator[Row]:
        count = 0
        entries_max = _entries_max(tensor)
        for chosen in _ranges(self._payloads, tensor, entries_max):
            reduced = (
                self._reduced_sparse(tensor, chosen)
                if chosen.entries <= entries_max
                else self._reduced_hot(tensor, chosen, entries_max)
            )
            for row in chunk_rows(tensor.name, reduced):
                yield row._replace(start=count + row.start)
            count += len(reduced)
        self._entries[tensor.name] = count

    def _reduced_sparse(self, tensor: TensorManifest, chosen: _Range) -> Sparse:
        entries = [_within(payload, tensor, chosen) for payload in self._payloads]
        if self._operation == "sum":
            return sum_sparse(entries)
        return mean_sparse(entries, self._weights)

    def _reduced_hot(self, tensor: TensorManifest, chosen: _Range, entries_max: int) -> Sparse:
        """The same of a range with more entries than are read at a time."""
        partial = ExactPartial.sparse(_dtype(tensor))
        weights = self._weights or [1] * len(self._payloads)
        for payload, weight in zip(self._payloads, weights, strict=True):
            for piece in _pieces(payload, tensor, chosen, entries_max):
                partial.add(piece, weight)
        if self._operation == "sum":
            return cast("Sparse", partial.sum())
        # A contribution counts once for the mean, in however many pieces it was added.
        return cast("Sparse", partial.divided_by(sum(weights)))


class _Range(NamedTuple):
    """The coordinates from ``first`` to ``last``, both included, and how many entries they have."""

    first: int
    last: int
    entries: int


def write_aggregate(
    store: Store,
    step: int,
    payloads: Sequence[Payload],
    *,
    weights: Sequence[int],
    operation: Operation,
) -> Manifest:
    """Reduce contributions into a store, durable but not yet visible.

    Returns:
        The manifest of the aggregate; its weight is 1.
    """
    reduction = Reduction(payloads, weights, operation)
    written = store.write_aggregate(step, reduction.parts())
    names = tuple(name for name, _ in written)
    manifest = Manifest(reduction.tensors(), weight=1, digest="", parts=names)
    return replace(manifest, digest=Payload(manifest, [part for _, part in written]).digest())


def _entries_max(tensor: TensorManifest) -> int:
    """How many entries of a tensor are summed at a time."""
    itemsize = _dtype(tensor).itemsize
    return max(1, SCRATCH_ENTRIES_BYTES // (8 + tensor.row_size * itemsize))


def _within(payload: Payload, tensor: TensorManifest, chosen: _Range) -> Sparse:
    """The entries of a payload in a range."""
    nothing = Sparse(np.empty(0, np.int64), np.empty((0, *_row(tensor)), _dtype(tensor)))
    return _joined([nothing, *_found(payload, tensor, chosen)])


def _pieces(
    payload: Payload, tensor: TensorManifest, chosen: _Range, entries_max: int
) -> Iterator[Sparse]:
    """The entries of a payload in a range, as many at a time as may be."""
    waiting: list[Sparse] = []
    space = entries_max
    for found in _found(payload, tensor, chosen):
        start = 0
        while len(found) - start >= space:
            waiting.append(_cut(found, start, start + space))
            yield _joined(waiting)
            start += space
            waiting, space = [], entries_max
        if start < len(found):
            waiting.append(_cut(found, start, len(found)))
            space -= len(found) - start
    if waiting:
        yield _joined(waiting)


def _found(payload: Payload, tensor: TensorManifest, chosen: _Range) -> Iterator[Sparse]:
    """The entries of a payload in a range, chunk by chunk."""
    for chunk in payload.chunks(tensor.name):
        coordinates = cast("Array", chunk.coordinates)
        at = np.flatnonzero(_between(coordinates, chosen.first, chosen.last))
        if at.size:
            values = chunk.values.reshape(coordinates.size, *_row(tensor))
            yield Sparse(coordinates[at], values[at])


def _cut(part: Sparse, start: int, stop: int) -> Sparse:
    return Sparse(part.coordinates[start:stop], part.values[start:stop])


def _joined(parts: Sequence[Sparse]) -> Sparse:
    return Sparse(
        np.concatenate([part.coordinates for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _row(tensor: TensorManifest) -> tuple[int, ...]:
    return cast("tuple[int, ...]", tensor.spec.shape[1:])


def _dtype(tensor: TensorManifest) -> np.dtype[np.generic]:
    return DTYPES[tensor.spec.dtype]


def _between(coordinates: Array, first: int, last: int) -> Array:
    return np.logical_and(np.greater_equal(coordinates, first), np.less_equal(coordinates, last))


def _ranges(
    payloads: Sequence[Payload], tensor: TensorManifest, entries_max: int
) -> Iterator[_Range]:
    """Ranges of coordinates, ascending, that together hold every entry of the tensor.

    One with more than ``entries_max`` entries is a single coordinate.
    """
    pieces = [
        cast("Array", chunk.coordinates)
        for payload in payloads
        for chunk in payload.chunks(tensor.name)
        if cast("Array", chunk.coordinates).size
    ]
    if pieces:
        first = min(int(piece.min()) for piece in pieces)
        last = max(int(piece.max()) for piece in pieces)
        yield from _split(pieces, first, last, entries_max)


def _split(pieces: Sequence[Array], first: int, last: int, entries_max: int) -> Iterator[_Range]:
    width = -(-(last - first + 1) // _BUCKETS)
    counts = _histogram(pieces, first, last, width)
    start, total = first, 0
    for bucket, count in enumerate(counts):
        low = first + bucket * width
        if total and total + count > entries_max:
            yield _Range(start, low - 1, total)
            start, total = low, 0
        if count > entries_max and width > 1:
            yield from _split(pieces, low, min(low + width - 1, last), entries_max)
            start = low + width
        else:
            total += count
    if total:
        yield _Range(start, last, total)


def _histogram(pieces: Sequence[Array], first: int, last: int, width: int) -> list[int]:
    """How many coordinates from ``first`` to ``last`` fall into each bucket of ``width``."""
    counts = np.zeros(-(-(last - first + 1) // width), np.int64)
    for piece in pieces:
        inside = piece[_between(piece, first, last)]
        # Differences of int64 may need 64 bits without a sign: they wrap to exactly that.
        offsets = inside.astype(np.uint64) - np.uint64(first % 2**64)
        buckets = (offsets // np.uint64(width)).astype(np.int64)
        counts += np.bincount(buckets, minlength=counts.size)
    return counts.tolist()
