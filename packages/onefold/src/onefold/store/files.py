"""What a directory store does to the disk, in one place, so that a test can be the disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from onefold.parts import sync_directory, write_part

__all__ = ["Files"]


class Files:
    """Writes, renames and removes; every call may raise OSError.

    What a call has done is there for this process, and for others, when it returns. A power cut may
    undo it, in part and in any order, until the file has been written with ``sync`` and its
    directory has been synced.
    """

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open a database, made if there is none; it synchronises what it writes by itself."""
        return sqlite3.connect(path, check_same_thread=False, isolation_level=None)

    def write_part(
        self, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, sync: bool
    ) -> None:
        """Write a part to a new file, batch by batch."""
        write_part(path, schema, batches, sync=sync)

    def write_bytes(self, path: Path, data: bytes) -> None:
        """Write and sync a new file."""
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, path: Path, place: Path) -> None:
        """Give a file or directory another name in the same directory."""
        path.rename(place)

    def remove(self, path: Path) -> None:
        """Remove a file; one that is not there is none."""
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and what is in it; one that is not there is none."""
        if path.is_dir():
            shutil.rmtree(path)

    def make_directory(self, path: Path) -> None:
        """Make a directory unless it is there."""
        path.mkdir(exist_ok=True)

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory survive a power cut."""
        sync_directory(path)
