"""An update as Arrow record batches, and back.

An update travels and is stored as *parts*: Arrow record batches of one kind and dtype each, at most
:data:`PART_BYTES_MAX` together, beside a :class:`Manifest` that says what they make up. A row of a
batch is one chunk of one tensor::

    tensor: string            its name
    start: int64              first element (dense) or first entry (sparse) of the chunk
    coordinates: list<int64>  of the entries (sparse only)
    values: list<T>           flat, row-major

so that a large tensor is many rows, each contiguous in memory, and many small tensors share a
batch. bfloat16, which Arrow lacks, travels as uint16; the manifest has the dtype.

* :mod:`~onefold.parts.manifest`: the manifest and its JSON.
* :mod:`~onefold.parts.encoding`: an update to parts, chunk by chunk.
* :mod:`~onefold.parts.decoding`: rows out of record batches.
* :mod:`~onefold.parts.payload`: parts to tensors, as views where one chunk suffices.
* :mod:`~onefold.parts.files`: parts in files.
"""

from onefold.parts.decoding import check_batch, decode_rows
from onefold.parts.encoding import (
    BLOCK_BYTES,
    PART_BYTES_MAX,
    PartWriter,
    Row,
    check_part_schema,
    chunk_rows,
    encode,
    part_schema,
)
from onefold.parts.files import malformed, read_part, sync_directory, write_part
from onefold.parts.manifest import Manifest, TensorManifest, manifest_of
from onefold.parts.payload import Chunk, Payload

__all__ = [
    "BLOCK_BYTES",
    "PART_BYTES_MAX",
    "Chunk",
    "Manifest",
    "PartWriter",
    "Payload",
    "Row",
    "TensorManifest",
    "check_batch",
    "check_part_schema",
    "chunk_rows",
    "decode_rows",
    "encode",
    "malformed",
    "manifest_of",
    "part_schema",
    "read_part",
    "sync_directory",
    "write_part",
]
