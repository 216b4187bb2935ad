"""Arrow streams and files: those of real updates, and those of types that no update has."""

from __future__ import annotations

import decimal
import io
import json
from collections.abc import Callable, Iterator, Sequence

import ml_dtypes
import numpy as np
import pyarrow as pa
from mutations import framed

from onefold import Sparse, Update
from onefold.parts import PartWriter, Row, encode, manifest_of

__all__ = ["UPDATES", "file_seeds", "odd_batches", "stream_of", "update_seeds"]

UPDATES = (
    Update({"w": np.arange(6.0).reshape(2, 3)}),
    Update({"w": np.ones(3, np.float32), "v": np.array(2.0, np.float32)}, 7),
    Update({"": np.array([1, -2], np.int64)}),
    Update({"b": np.array([1, np.nan], ml_dtypes.bfloat16)}),
    Update({"s": Sparse([3, 1, 3], np.ones((3, 2)), (5, 2))}),
    Update({"s": Sparse([-1, 2**62], np.array([1, 2], np.int8))}),
    Update({"e": np.empty((0, 4)), "f": np.ones(1)}),
    Update({"none": Sparse([], np.ones(0))}),
)
"""Each of one kind and dtype, hence of one part at most."""


def stream_of(
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    *,
    new: Callable[..., pa.RecordBatchWriter] = pa.ipc.new_stream,
    compression: str | None = None,
) -> bytes:
    """Batches as an Arrow stream, or as a file."""
    sink = io.BytesIO()
    with new(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _manifest(update: Update) -> bytes:
    return json.dumps(manifest_of(update, ["0"]).to_json()).encode()


def _parts(update: Update) -> Iterator[tuple[pa.Schema, list[pa.RecordBatch]]]:
    for schema, batches in encode(update):
        yield schema, list(batches)


def update_seeds(new: Callable[..., pa.RecordBatchWriter] = pa.ipc.new_stream) -> list[bytes]:
    """Manifests, each framed with the stream of its part; some in chunks, some compressed."""
    seeds = []
    for update in UPDATES:
        for schema, batches in _parts(update):
            seeds.append(framed(_manifest(update), stream_of(schema, batches, new=new)))
    schema, batches = next(_parts(UPDATES[0]))
    for codec in ("lz4", "zstd") if new is pa.ipc.new_stream else ():
        packed = stream_of(schema, batches, new=new, compression=codec)
        seeds.append(framed(_manifest(UPDATES[0]), packed))
    for rows in (
        [Row("w", 0, None, np.arange(4.0)), Row("w", 4, None, np.arange(4.0, 6.0))],
        [Row("w", 0, None, np.empty(0)), Row("w", 0, None, np.arange(6.0))],
    ):
        writer = PartWriter("dense", "float64")
        pieces = [list(part) for _, part in writer.parts(rows)]
        seeds.append(framed(_manifest(UPDATES[0]), stream_of(schema, pieces[0], new=new)))
    seeds += [
        framed(_manifest(UPDATES[0]), stream_of(batch.schema, [batch], new=new))
        for batch in odd_batches()
    ]
    return seeds


def file_seeds() -> list[bytes]:
    """The same as Arrow files, which end with an index of their own; we never compress any."""
    return update_seeds(pa.ipc.new_file)


def odd_batches() -> list[pa.RecordBatch]:
    """Batches of whatever Arrow has: nested, shared, encoded, extended."""
    nested: pa.DataType = pa.float64()
    for _ in range(50):
        nested = pa.list_(nested)
    run_ends = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1.0]))
    union = pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["x"])]
    )
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 2)))
    columns: dict[str, list[pa.Array]] = {
        "dictionary": [pa.array(["w", "w"]).dictionary_encode(), pa.array([0, 0])],
        "nested": [pa.array([None], nested)],
        "struct": [pa.array([{"a": 1, "b": [None, "x"]}])],
        "union": [union],
        "run ends": [run_ends],
        "view": [pa.array(["w", "a long string that is not inlined"], pa.string_view())],
        "decimal": [pa.array([decimal.Decimal("1.5")])],
        "null": [pa.nulls(2)],
        "map": [pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8()))],
        "tensor": [tensors],
        "fixed": [pa.array([b"ab", b"cd"], pa.binary(2))],
        "list view": [pa.array([[1.0], None], pa.list_view(pa.float64()))],
    }
    made = [
        pa.record_batch(arrays, [f"{name} {index}" for index in range(len(arrays))])
        for name, arrays in columns.items()
    ]
    names = pa.array(["w", None]).dictionary_encode()
    values = pa.array([[1.0, None], None], pa.large_list(pa.float64()))
    starts = pa.array([0, None], pa.int64())
    return [*made, pa.record_batch([names, starts, values], ["tensor", "start", "values"])]
