"""A store in a directory: SQLite for the ledger, Arrow files for the numbers.

::

    lock                      held while a process has the directory open
    ledger.sqlite             members, open steps, what closed steps closed with
    staged/<step>-<id>.arrow  parts of updates to open steps
    aggregates/<step>/        the parts of an aggregate, and manifest.json

A file is written beside its place and renamed, so what stands under its name is whole. An aggregate
is visible once its step is closed in the ledger; before that its files, their directory and the
directory above have been synced. What a crash left half done is swept when the directory is opened.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa

from onefold.errors import Damaged, Expired, ProtocolError, StoreError, StoreLocked
from onefold.ledger import Change, Closing, StepClosed
from onefold.parts import Manifest, Payload, read_part, sync_directory, write_part
from onefold.store.base import Part, WrittenPart
from onefold.store.tables import Tables

__all__ = ["DirectoryStore"]

_UNFINISHED = ".unfinished"


class DirectoryStore:
    """Keeps everything under one directory, which is made if it does not exist."""

    def __init__(self, directory: Path | str) -> None:
        self._directory = Path(directory)
        self._staged = self._directory / "staged"
        self._aggregates = self._directory / "aggregates"
        self._lock: IO[str] | None = None
        self._open_tables: Tables | None = None

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._tables.run

    def open(self) -> None:
        """Lock the directory, open the ledger, sweep what a crash left half done."""
        with ExitStack() as undo:
            undo.callback(self.close)
            with _as_store_error(f"the directory {self._directory} cannot be opened"):
                self._staged.mkdir(parents=True, exist_ok=True)
                self._aggregates.mkdir(exist_ok=True)
                self._lock = _locked(self._directory / "lock")
                self._open_tables = Tables(self._directory / "ledger.sqlite")
                sync_directory(self._directory)
                self._sweep()
            undo.pop_all()

    def close(self) -> None:
        """Close the ledger and give the lock back."""
        if self._open_tables is not None:
            self._open_tables.close()
            self._open_tables = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def changes(self) -> Iterator[Change]:
        """The changes that rebuild the ledger."""
        return self._tables.changes()

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:
        """Write changes down, all or none."""
        self._tables.commit(changes, durable=durable)

    def stage(self, step: int, part: Part, *, durable: bool) -> str:
        """Keep a part as it streams in, whole or not at all."""
        schema, batches = part
        name = f"{step}-{uuid.uuid4().hex}"
        path = self._staged_path(name)
        with _as_store_error(f"the part {name} cannot be staged"):
            with _beside(path) as unfinished:
                write_part(unfinished, schema, batches, sync=durable)
            if durable:
                sync_directory(self._staged)
        return name

    def discard(self, parts: Iterable[str]) -> None:
        """Forget staged parts."""
        for part in parts:
            with suppress(Damaged):  # a name that no part can have
                self._staged_path(part).unlink(missing_ok=True)

    def payload(self, manifest: Manifest) -> Payload:
        """The staged parts that a manifest names."""
        parts = [read_part(self._staged_path(part))[1] for part in manifest.parts]
        return Payload(manifest, parts)

    def write_aggregate(self, step: int, parts: Iterable[Part]) -> list[WrittenPart]:
        """Write and sync the parts of an aggregate, beside its place."""
        unfinished = self._aggregates / f"{step}{_UNFINISHED}"
        with _as_store_error(f"the aggregate of step {step} cannot be written"):
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            written: list[WrittenPart] = []
            for index, (schema, batches) in enumerate(parts):
                path = unfinished / f"{index}.arrow"
                write_part(path, schema, batches, sync=True)
                written.append((str(index), read_part(path)[1]))
        return written

    def close_step(self, closing: Closing, manifest: Manifest | None) -> None:
        """Put the aggregate in its place, then close the step in the ledger, then clean up."""
        step = closing.closed.step
        if manifest is not None:
            with _as_store_error(f"the aggregate of step {step} cannot be written"):
                self._place_aggregate(step, manifest)
        self._tables.commit(closing.changes, durable=True)
        for path in self._staged.glob(f"{step}-*.arrow"):
            path.unlink(missing_ok=True)

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        return self._tables.closed_step(step)

    def aggregate_manifest(self, step: int) -> Manifest | None:
        """The manifest of a closed step's aggregate."""
        closed = self._tables.closed_step(step)
        if closed is not None and closed.outcome == "skipped":
            return None
        self._check_kept(step)
        path = self._aggregates / str(step) / "manifest.json"
        try:
            return Manifest.from_json(json.loads(path.read_text()))
        except (OSError, ValueError, ProtocolError) as error:
            raise Damaged(f"the aggregate of step {step} cannot be read: {error}") from error

    def aggregate_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of a visible aggregate, memory-mapped."""
        self._check_kept(step)
        if not part.isdecimal():
            raise Damaged(f"the aggregate of step {step} has no part {part!r}")
        return read_part(self._aggregates / str(step) / f"{part}.arrow")

    def prune(self, keep_steps: int) -> None:
        """Drop the tensors of all but the last steps to close."""
        for step in self._tables.prune(keep_steps):
            shutil.rmtree(self._aggregates / str(step), ignore_errors=True)

    def staged_bytes(self) -> int:
        """How many bytes of parts are staged."""
        total = 0
        for path in self._staged.glob("*.arrow"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # its step closed meanwhile
                continue
        return total

    @property
    def _tables(self) -> Tables:
        if self._open_tables is None:
            raise StoreError(f"the store in {self._directory} is not open")
        return self._open_tables

    def _staged_path(self, name: str) -> Path:
        if not re.fullmatch("-?[0-9]+-[0-9a-f]{32}", name):
            raise Damaged(f"there is no staged part {name!r}")
        return self._staged / f"{name}.arrow"

    def _place_aggregate(self, step: int, manifest: Manifest) -> None:
        place = self._aggregates / str(step)
        unfinished = self._aggregates / f"{step}{_UNFINISHED}"
        with (unfinished / "manifest.json").open("w") as file:
            json.dump(manifest.to_json(), file)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(unfinished)
        shutil.rmtree(place, ignore_errors=True)  # of a crash before the ledger knew
        unfinished.rename(place)
        sync_directory(self._aggregates)

    def _check_kept(self, step: int) -> None:
        if self._tables.is_pruned(step):
            raise Expired(f"the aggregate of step {step} was pruned (keep_steps)")

    def _sweep(self) -> None:
        named = {part for manifest in self._tables.payloads() for part in manifest.parts}
        for path in self._staged.iterdir():
            if path.stem not in named or path.suffix != ".arrow":
                path.unlink()
        kept = {str(step) for step in self._tables.kept_steps()}
        for directory in self._aggregates.iterdir():
            if directory.name not in kept:
                shutil.rmtree(directory)


def _locked(path: Path) -> IO[str]:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StoreLocked(
            f"the directory {path.parent} is open in another process; a directory has one server "
            "at a time: stop the other, or use another directory"
        ) from None
    return file


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A path to write to, renamed to ``path`` when all went well and removed when not."""
    unfinished = path.with_suffix(_UNFINISHED)
    try:
        yield unfinished
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _as_store_error(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what}: {error}") from error
