"""Updates that have been sent and may have to be sent again, encoded: small ones in memory.

What is larger than a block is in files of a temporary directory, so that a client's memory does not
grow with its model. Files of a few KiB would take longer to make and to remove than to send.

A client that is killed leaves its directory behind; the next one that connects removes it.
"""

from __future__ import annotations

import errno
import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from onefold.client.owned import OwnedDirectory, remove_orphans
from onefold.errors import Damaged, StoreError
from onefold.parts import BLOCK_BYTES, Manifest, encode, manifest_of, read_part, write_part
from onefold.update import Sparse, Update

__all__ = ["Spool", "Spooled"]

_PREFIX = "onefold-spool-"
_ATTEMPTS_KEPT_MAX = 4096

_IN_MEMORY_BYTES_MAX = BLOCK_BYTES
"""Of an update; a client keeps those of a few steps."""

_Content: TypeAlias = tuple[pa.Schema, Sequence[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, eq=False)
class Spooled:
    """An update to a step, each of its parts a file or its content.

    Whoever sends it holds ``sending``, so that it is not removed meanwhile.
    """

    step: int
    attempt: int
    manifest: Manifest
    sizes_bytes: tuple[int, ...]
    parts: tuple[Path | _Content, ...]
    sending: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size_bytes(self) -> int:
        """The size of all parts."""
        return sum(self.sizes_bytes)

    def part(self, index: int) -> _Content:
        """One part; a file is memory-mapped.

        Raises:
            StoreError: Somebody has removed it.
        """
        part = self.parts[index]
        if not isinstance(part, Path):
            return part
        try:
            return read_part(part)
        except Damaged as error:
            raise StoreError(
                f"the update for step {self.step} is no longer in {part.parent}: {error}; "
                "push it again, with a spool_directory that nobody cleans up"
            ) from error

    def remove(self) -> None:
        """Remove its files."""
        _remove(part for part in self.parts if isinstance(part, Path))


class Spool:
    """At most one update for each step: the latest. Several threads may use it.

    Args:
        directory: Where to make the temporary directory; None for the system's usual place.
    """

    def __init__(self, directory: Path | str | None) -> None:
        self._parent = directory
        self._place: OwnedDirectory | None = None
        self._kept: OrderedDict[int, Spooled] = OrderedDict()
        self._attempts: OrderedDict[int, tuple[int, str]] = OrderedDict()
        self._serials = itertools.count()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Make the directory, and remove those of clients that are gone.

        Raises:
            StoreError: It cannot be made.
        """
        remove_orphans(_PREFIX, self._parent)
        try:
            self._place = OwnedDirectory(_PREFIX, self._parent)
        except OSError as error:
            raise StoreError(f"no directory for updates can be made: {error}") from error

    def close(self) -> None:
        """Remove the directory with all that is in it."""
        if self._place is not None:
            self._place.remove()
            self._place = None

    def keep(self, step: int, update: Update) -> Spooled:
        """Keep an update in place of any earlier one of the step.

        The same content as the last one for this step is a retransmission and keeps its attempt;
        other content takes the next.

        Raises:
            StoreError: It cannot be written.
        """
        bare = manifest_of(update, ())
        with self._lock:
            attempt, digest = self._attempts.get(step, (0, ""))
            before = self._kept.get(step)
        if digest == bare.digest and before is not None:
            return before
        if digest != bare.digest:
            attempt += 1
        spooled = self._written(step, attempt, bare, update)
        self.forget(step)
        with self._lock:
            self._kept[step] = spooled
            self._attempts[step] = (attempt, bare.digest)
            if len(self._attempts) > _ATTEMPTS_KEPT_MAX:
                self._attempts.popitem(last=False)
        return spooled

    def get(self, step: int) -> Spooled | None:
        """The update that is kept for a step."""
        with self._lock:
            return self._kept.get(step)

    def steps(self) -> list[int]:
        """The steps for which an update is kept, the oldest first."""
        with self._lock:
            return list(self._kept)

    def forget(self, step: int) -> None:
        """Keep the update for a step no longer."""
        with self._lock:
            spooled = self._kept.pop(step, None)
        if spooled is not None:
            with spooled.sending:
                spooled.remove()

    def _written(self, step: int, attempt: int, bare: Manifest, update: Update) -> Spooled:
        keep = self._in_memory if _size_bytes(update) <= _IN_MEMORY_BYTES_MAX else self._in_files
        kept = keep(step, update)
        manifest = bare.with_parts([str(index) for index in range(len(kept))])
        sizes_bytes, parts = zip(*kept, strict=True)
        return Spooled(step, attempt, manifest, sizes_bytes, parts)

    @staticmethod
    def _in_memory(_: int, update: Update) -> list[tuple[int, Path | _Content]]:
        return [_copied(schema, batches) for schema, batches in encode(update)]

    def _in_files(self, step: int, update: Update) -> list[tuple[int, Path | _Content]]:
        place = self._place
        if place is None:
            raise StoreError(f"the update for step {step} cannot be spooled: the spool is closed")
        written: list[tuple[int, Path | _Content]] = []
        paths: list[Path] = []
        try:
            for schema, batches in encode(update):
                paths.append(place.path / f"{step}-{next(self._serials)}.arrow")
                written.append((write_part(paths[-1], schema, batches, sync=False), paths[-1]))
        except BaseException as error:
            _remove(paths)
            if not isinstance(error, OSError):
                raise
            raise StoreError(
                f"the update for step {step} cannot be spooled in {place.path}: "
                f"{error.strerror or error}; {_advice(error)}"
            ) from error
        return written


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "somebody has removed it; connect with a spool_directory that nobody cleans up"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return "make room there, or connect with another spool_directory"
        case _:
            return "let this process write there, or connect with another spool_directory"


def _size_bytes(update: Update) -> int:
    return sum(
        tensor.coordinates.nbytes + tensor.values.nbytes
        if isinstance(tensor, Sparse)
        else tensor.nbytes
        for tensor in update.tensors.values()
    )


def _copied(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> tuple[int, _Content]:
    """A part apart from the arrays that it was made from, which are the caller's; and its size."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    content = sink.getvalue()
    with pa.ipc.open_stream(content) as reader:
        return content.size, (reader.schema, list(reader))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)
