"""Parts in files: Arrow IPC files, read through the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from onefold.errors import Damaged

__all__ = ["read_part", "sync_directory", "write_part"]


def write_part(
    path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, sync: bool
) -> int:
    """Write a part, batch by batch, and return its size in bytes.

    The file stands at ``path`` as it grows: write beside, then rename. With ``sync`` it has reached
    the disk when this returns (the rename has not).
    """
    with path.open("wb") as file:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        if sync:
            os.fsync(file.fileno())
        return file.tell()


def read_part(path: Path) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The schema and the record batches of a part, memory-mapped.

    Raises:
        Damaged: The file is missing, cut short, or no Arrow file.
    """
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
            return reader.schema, batches
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"the part {path.name} cannot be read: {error}") from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
