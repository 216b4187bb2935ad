"""Parts to tensors: checked on the way in, read as views where one chunk suffices."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from onefold.errors import Damaged, ProtocolError
from onefold.parts.decoding import check_batch, decode_rows
from onefold.parts.encoding import part_schema
from onefold.parts.files import malformed
from onefold.parts.manifest import Manifest, TensorManifest
from onefold.update import (
    DTYPES,
    Array,
    Sparse,
    Tensor,
    TensorSpec,
    Update,
    content_digest,
    first_nonfinite,
)

__all__ = ["Chunk", "Payload"]


_ROWS_FREE = 1 << 16
_ROW_BYTES_MEAN_MIN = 1 << 12
"""Rows are of about a block each, but the last of a tensor; so many may be of any size."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive elements (dense) or entries (sparse) of a tensor, beginning at ``start``."""

    start: int
    coordinates: Array | None
    values: Array


class Payload:
    """The numbers of an update, in parts.

    Args:
        manifest: What the parts must make up.
        parts: The record batches of each part.

    Raises:
        ProtocolError: The parts do not make up the manifest; the message names the tensor.
    """

    def __init__(self, manifest: Manifest, parts: Iterable[Sequence[pa.RecordBatch]]) -> None:
        self.manifest = manifest
        self._tensors = {tensor.name: tensor for tensor in manifest.tensors}
        self._chunks: dict[str, list[Chunk]] = {name: [] for name in self._tensors}
        self._rows, self._size_bytes = 0, 0
        for batches in parts:
            for batch in batches:
                with malformed(ProtocolError, "a part holds a malformed record batch"):
                    self._add(batch)
        for tensor in manifest.tensors:
            self._check(tensor)

    def chunks(self, name: str) -> Sequence[Chunk]:
        """The chunks of a tensor, in order."""
        return self._chunks[name]

    def dense(self, name: str, start: int, stop: int) -> Array:
        """Elements ``start`` to ``stop`` of a dense tensor, flat; a view within one chunk."""
        chunks = self._chunks[name]
        first = bisect.bisect_right(chunks, start, key=lambda chunk: chunk.start) - 1
        pieces = []
        for chunk in itertools.islice(chunks, max(first, 0), None):
            if chunk.start >= stop:
                break
            pieces.append(chunk.values[max(0, start - chunk.start) : stop - chunk.start])
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces or [np.empty(0, self._dtype(name))])

    def update(self) -> Update:
        """The update. Tensors of one chunk are views, others are put together; all read-only."""
        tensors = {name: self._tensor(tensor) for name, tensor in self._tensors.items()}
        return Update(tensors, self.manifest.weight)

    def digest(self) -> str:
        """The digest of what the parts hold."""
        return content_digest(self._contents(), self.manifest.weight)

    def verify(self) -> None:
        """Read everything once and compare the digest.

        Raises:
            Damaged: The parts do not have the digest that the manifest states.
        """
        digest = self.digest()
        if digest != self.manifest.digest:
            raise Damaged(f"expected an update of digest {self.manifest.digest}, found {digest}")

    def first_nonfinite(self) -> str | None:
        """Where the first NaN or infinity stands, in words; None if all is finite."""
        for name, tensor in self._tensors.items():
            for chunk in self._chunks[name]:
                index = first_nonfinite(chunk.values)
                if index is not None:
                    element = chunk.start * tensor.row_size + index
                    return f"tensor {name!r}, element {element}: {chunk.values[index]}"
        return None

    def _dtype(self, name: str) -> np.dtype[np.generic]:
        return DTYPES[self._tensors[name].spec.dtype]

    def _contents(self) -> Iterator[tuple[str, TensorSpec, int | None, Iterator[Array]]]:
        for name, tensor in self._tensors.items():
            yield name, tensor.spec, tensor.entries, self._pieces(name)

    def _pieces(self, name: str) -> Iterator[Array]:
        for chunk in self._chunks[name]:
            if chunk.coordinates is not None:
                yield chunk.coordinates
        for chunk in self._chunks[name]:
            yield chunk.values

    def _tensor(self, tensor: TensorManifest) -> Tensor:
        chunks = self._chunks[tensor.name]
        values = _joined([chunk.values for chunk in chunks], self._dtype(tensor.name))
        shape = tensor.spec.shape
        if tensor.entries is None:
            return values.reshape(cast("tuple[int, ...]", shape))
        coordinates = [chunk.coordinates for chunk in chunks if chunk.coordinates is not None]
        return Sparse(
            _joined(coordinates, np.dtype(np.int64)),
            values.reshape(tensor.entries, *cast("tuple[int, ...]", shape[1:])),
            None if shape[0] is None else cast("tuple[int, ...]", shape),
        )

    def _add(self, batch: pa.RecordBatch) -> None:
        check_batch(batch)
        self._check_rows(batch)
        fitting: set[tuple[str, str]] = set()
        for row in decode_rows(batch):
            tensor = self._tensors.get(row.tensor)
            if tensor is None:
                raise ProtocolError(f"a part holds tensor {row.tensor!r}, which the manifest lacks")
            kind = tensor.spec.kind, tensor.spec.dtype
            if kind not in fitting:
                if batch.schema != part_schema(*kind):
                    raise ProtocolError(
                        f"tensor {row.tensor!r} ({tensor.spec}) cannot be in a part of "
                        f"{batch.schema.names} with values of {batch.schema.types[-1]}"
                    )
                fitting.add(kind)
            values = row.values.view(self._dtype(row.tensor))
            self._chunks[row.tensor].append(Chunk(row.start, row.coordinates, values))

    def _check_rows(self, batch: pa.RecordBatch) -> None:
        """A row costs time and memory whatever it holds, so there are not many more than needed."""
        self._rows += batch.num_rows
        self._size_bytes += batch.nbytes
        most = _ROWS_FREE + len(self._tensors) + self._size_bytes // _ROW_BYTES_MEAN_MIN
        if self._rows > most:
            raise ProtocolError(
                f"parts of {self._size_bytes} bytes for {len(self._tensors)} tensors have at most "
                f"{most} rows, these have {self._rows}; send tensors in rows of about a block"
            )

    def _check(self, tensor: TensorManifest) -> None:
        position = 0
        for chunk in self._chunks[tensor.name]:
            rows = chunk.values.size if chunk.coordinates is None else chunk.coordinates.size
            if chunk.start != position or rows * tensor.row_size != chunk.values.size:
                raise ProtocolError(
                    f"tensor {tensor.name!r}: expected the chunk at {position}, with "
                    f"{tensor.row_size} values an entry; found one at {chunk.start} of {rows} "
                    f"entries and {chunk.values.size} values"
                )
            position += rows
            _check_coordinates(tensor, chunk)
        if position != tensor.length:
            raise ProtocolError(
                f"tensor {tensor.name!r} ({tensor.spec}) has {tensor.length} elements or entries; "
                f"the parts hold {position}"
            )


def _check_coordinates(tensor: TensorManifest, chunk: Chunk) -> None:
    size = tensor.spec.shape[0] if tensor.spec.shape else None
    if chunk.coordinates is None or chunk.coordinates.size == 0 or size is None:
        return
    for coordinate in (int(chunk.coordinates.min()), int(chunk.coordinates.max())):
        if not 0 <= coordinate < size:
            raise ProtocolError(
                f"tensor {tensor.name!r}: coordinate {coordinate} is outside its {size} rows"
            )


def _joined(pieces: list[Array], dtype: np.dtype[np.generic]) -> Array:
    if len(pieces) == 1:
        return pieces[0]
    joined = np.concatenate(pieces) if pieces else np.empty(0, dtype)
    joined.flags.writeable = False
    return joined
