"""Updates that have been sent and may have to be sent again, encoded, in a temporary directory.

A client that is killed leaves its directory behind; the next one that connects removes it.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from onefold.client.owned import OwnedDirectory, remove_orphans
from onefold.errors import Damaged, StoreError
from onefold.parts import Manifest, encode, manifest_of, read_part, write_part
from onefold.update import Update

__all__ = ["Spool", "Spooled"]

_PREFIX = "onefold-spool-"
_ATTEMPTS_KEPT_MAX = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Spooled:
    """An update to a step; the manifest's parts are files in ``directory``.

    Whoever sends it holds ``sending``, so that it is not removed meanwhile.
    """

    step: int
    attempt: int
    manifest: Manifest
    sizes_bytes: tuple[int, ...]
    directory: Path
    sending: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size_bytes(self) -> int:
        """The size of all parts."""
        return sum(self.sizes_bytes)

    def part(self, index: int) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """One part, memory-mapped.

        Raises:
            StoreError: Somebody has removed it.
        """
        try:
            return read_part(self.directory / self.manifest.parts[index])
        except Damaged as error:
            raise StoreError(
                f"the update for step {self.step} is no longer in {self.directory}: {error}; "
                "push it again, with a spool_directory that nobody cleans up"
            ) from error


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
                shutil.rmtree(spooled.directory, ignore_errors=True)

    def _written(self, step: int, attempt: int, bare: Manifest, update: Update) -> Spooled:
        assert self._place is not None
        try:
            directory = Path(tempfile.mkdtemp(prefix=f"{step}-{attempt}-", dir=self._place.path))
            sizes_bytes = [
                write_part(directory / f"{index}.arrow", schema, batches, sync=False)
                for index, (schema, batches) in enumerate(encode(update))
            ]
        except OSError as error:
            raise StoreError(
                f"the update for step {step} cannot be spooled in {self._place.path}: {error}; "
                "make room there, or connect with another spool_directory"
            ) from error
        names = [f"{index}.arrow" for index in range(len(sizes_bytes))]
        manifest = bare.with_parts(names)
        return Spooled(step, attempt, manifest, tuple(sizes_bytes), directory)
