"""An update to parts, chunk by chunk: nothing is copied but what a block holds."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from onefold.errors import ProtocolError
from onefold.update import DTYPES, Array, Sparse, Tensor, TensorSpec, Update, flat_slice

__all__ = [
    "BLOCK_BYTES",
    "PART_BYTES_MAX",
    "PartWriter",
    "Row",
    "check_part_schema",
    "chunk_rows",
    "encode",
    "part_schema",
]

BLOCK_BYTES = 1 << 20
"""About how many bytes a record batch holds at most."""

PART_BYTES_MAX = 64 << 20
"""About how many bytes a part holds at most: what is sent again when a connection breaks."""


class Row(NamedTuple):
    """One row of a part: a chunk of a tensor, flat; ``coordinates`` is None for a dense one."""

    tensor: str
    start: int
    coordinates: Array | None
    values: Array

    @property
    def size_bytes(self) -> int:
        """The size of its numbers."""
        return self.values.nbytes + (0 if self.coordinates is None else self.coordinates.nbytes)


class PartWriter:
    """Makes parts of one kind and dtype.

    Args:
        kind: ``"dense"`` or ``"sparse"``.
        dtype: A name of :data:`onefold.update.DTYPES`.
    """

    def __init__(self, kind: str, dtype: str) -> None:
        self.schema = part_schema(kind, dtype)

    def parts(self, rows: Iterable[Row]) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """The parts that hold ``rows``, at least one; each is read before the next is taken."""
        blocks = _packed(rows)
        following = next(blocks, None)

        def batches(block: list[Row] | None) -> Iterator[pa.RecordBatch]:
            nonlocal following
            size_bytes = 0
            while block is not None:
                yield self._batch(block)
                size_bytes += sum(row.size_bytes for row in block)
                following = block = next(blocks, None)
                if block and size_bytes + sum(row.size_bytes for row in block) > PART_BYTES_MAX:
                    return

        while True:
            part = batches(following)
            yield self.schema, part
            for _ in part:  # what was not read is passed over
                pass
            if following is None:
                return

    def _batch(self, block: list[Row]) -> pa.RecordBatch:
        names, starts, coordinates, values = zip(*block, strict=True)
        columns = [pa.array(names, pa.string()), pa.array(starts, pa.int64())]
        if "coordinates" in self.schema.names:
            columns.append(_list_array(coordinates, pa.int64()))
        columns.append(_list_array(values, self.schema.field("values").type.value_type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@functools.cache
def part_schema(kind: str, dtype: str) -> pa.Schema:
    """The Arrow schema of a part."""
    fields = [pa.field("tensor", pa.string(), False), pa.field("start", pa.int64(), False)]
    if kind == "sparse":
        fields.append(pa.field("coordinates", _list_type(pa.int64()), False))
    fields.append(pa.field("values", _list_type(_arrow_type(dtype)), False))
    return pa.schema(fields)


def check_part_schema(schema: pa.Schema) -> None:
    """Refuse a schema that no part has, before anything is read by it.

    Whoever reads batches that another process sends asks this first: of types that parts do not
    have (dictionaries foremost) Arrow's own reader may not stand every order of messages. Parts
    have no metadata either: it would be kept with them, as much of it as there is.

    Raises:
        ProtocolError: It is not the schema of any part.
    """
    if not any(schema.equals(known, check_metadata=True) for known in _part_schemas()):
        raise ProtocolError("the schema of this stream is not that of a part")


@functools.cache
def _part_schemas() -> tuple[pa.Schema, ...]:
    return tuple(part_schema(kind, dtype) for kind in ("dense", "sparse") for dtype in DTYPES)


def encode(update: Update) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The parts of an update: for each its schema and its record batches, made as they are read."""
    groups: dict[tuple[str, str], list[tuple[str, Tensor]]] = {}
    for name, tensor in update.tensors.items():
        spec = TensorSpec.of(tensor)
        groups.setdefault((spec.kind, spec.dtype), []).append((name, tensor))
    for (kind, dtype), tensors in groups.items():
        writer = PartWriter(kind, dtype)
        rows = (row for name, tensor in tensors for row in chunk_rows(name, tensor))
        yield from writer.parts(rows)


def chunk_rows(name: str, tensor: Tensor) -> Iterator[Row]:
    """A tensor in rows of at most about a block each."""
    if isinstance(tensor, Sparse):
        row_bytes = tensor.values.itemsize * math.prod(tensor.row)
        step = max(1, BLOCK_BYTES // (8 + row_bytes))
        for start in range(0, len(tensor), step):
            values = tensor.values[start : start + step]
            coordinates = np.ascontiguousarray(tensor.coordinates[start : start + step])
            yield Row(name, start, coordinates, flat_slice(values, 0, values.size))
    else:
        step = max(1, BLOCK_BYTES // tensor.itemsize)
        for start in range(0, tensor.size, step):
            yield Row(name, start, None, flat_slice(tensor, start, start + step))


def _packed(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Consecutive rows together, up to a block."""
    block: list[Row] = []
    size_bytes = 0
    for row in rows:
        if block and size_bytes + row.size_bytes > BLOCK_BYTES:
            yield block
            block, size_bytes = [], 0
        block.append(row)
        size_bytes += row.size_bytes
    if block:
        yield block


def _arrow_type(dtype: str) -> pa.DataType:
    return pa.uint16() if dtype == "bfloat16" else pa.from_numpy_dtype(DTYPES[dtype])


def _list_type(item: pa.DataType) -> pa.DataType:
    return pa.large_list(pa.field("item", item, False))


def _list_array(arrays: tuple[Array, ...], item: pa.DataType) -> pa.Array:
    offsets = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int64)
    flat = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    if flat.dtype.name == "bfloat16":
        flat = flat.view(np.uint16)
    values = pa.array(flat, item)
    return pa.LargeListArray.from_arrays(pa.array(offsets), values, type=_list_type(item))
