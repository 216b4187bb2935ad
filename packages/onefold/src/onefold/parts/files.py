"""Parts in files: Arrow IPC files, read through the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from onefold.errors import Damaged, OnefoldError, StoreError

__all__ = ["malformed", "read_part", "sync_directory", "write_part"]


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
        StoreError: It cannot be opened now, whatever it holds (too many open files, a bad disk).
    """
    try:
        source = pa.memory_map(str(path))
    except FileNotFoundError as error:
        raise Damaged(f"the part {path.name} is missing: {error}") from error
    except OSError as error:
        raise StoreError(f"the part {path.name} cannot be opened: {error}") from error
    damage = malformed(Damaged, f"the part {path.name} is damaged")
    # Read as a buffer, which is a view: from a file Arrow has its own threads fetch the footer.
    with source, damage, pa.ipc.open_file(source.read_buffer()) as reader:
        batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        for batch in batches:
            batch.validate()  # or whoever sends it ends where its offsets lead
        return reader.schema, batches


@contextmanager
def malformed(kind: type[OnefoldError], what: str) -> Iterator[None]:
    """Let whatever Arrow raises over bytes that make no sense to it be one error of ours.

    Where a bit has flipped, that is any of these: names that are no UTF-8, keys that are not there,
    offsets beyond the end. Too little memory says nothing about the bytes.
    """
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, ValueError, LookupError, TypeError, OSError) as error:
        raise kind(f"{what}: {error}") from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
