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

import errno
import json
import os
import re
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

import pyarrow as pa
import xxhash

from onefold.errors import Damaged, InvalidInput, ProtocolError, StoreError
from onefold.ledger import Change, Closing, StepClosed
from onefold.parts import Manifest, Payload, read_part
from onefold.store.base import Part, WrittenPart, check_readable
from onefold.store.files import Files
from onefold.store.lock import DirectoryLock
from onefold.store.tables import Tables

__all__ = ["DirectoryStore"]

_ONLY_A_COPY = "the disk or another program has changed it, and only a copy has it as it was"
_LEDGER = "ledger.sqlite"
_UNFINISHED = ".unfinished"
_STEP = re.compile(r"(0|-?[1-9][0-9]*)((-[0-9a-f]{32})?\.unfinished)?")
_INDEX = re.compile("0|[1-9][0-9]{0,18}")
_PART = re.compile("(0|-?[1-9][0-9]*)-[0-9a-f]{32}")


class DirectoryStore:
    """Keeps everything under one directory, which is made if it does not exist.

    Args:
        directory: Its path.
        files: What writes to it.
    """

    def __init__(self, directory: os.PathLike[str] | str, files: Files | None = None) -> None:
        if directory == "":
            raise InvalidInput('a directory has a name; "" is none ("." is the current directory)')
        self.files = files or Files()
        self._directory = Path(directory).absolute()  # wherever this process goes
        self._staged = self._directory / "staged"
        self._aggregates = self._directory / "aggregates"
        # No other store writes what is named after this one, wherever the directory is moved to.
        self._token = uuid.uuid4().hex
        self._lock: DirectoryLock | None = None
        self._open_tables: Tables | None = None
        self._process = 0
        self._placing = threading.Lock()
        _STORES.add(self)

    def __str__(self) -> str:
        return f"the directory {self._directory}"

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._tables.run

    def open(self) -> None:
        """Lock the directory, open the ledger, sweep what a crash left half done."""
        with ExitStack() as undo:
            undo.callback(self.close)
            with _as_store_error(f"the directory {self._directory} cannot be opened"):
                self._make_directory(self._directory)
                _refuse_what_is_not_ours(self._directory)
                self._lock = DirectoryLock(self._directory)
                self._process = os.getpid()
                self._open_tables = Tables(
                    self._directory / _LEDGER,
                    self.files,
                    may_begin=not (self._staged.exists() or self._aggregates.exists()),
                )
                self.files.make_directory(self._staged)
                self.files.make_directory(self._aggregates)
                self.files.sync_directory(self._directory)
                self._sweep()
            undo.pop_all()

    def close(self) -> None:
        """Close the ledger and give the lock back."""
        with self._placing:  # no part gets its name in a directory that is another's already
            tables, self._open_tables = self._open_tables, None
        if tables is not None and self._process == os.getpid():
            tables.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def leave_to_parent(self) -> None:
        """In a fork: have no part in the lock, so that it ends with the process that took it."""
        self._placing = threading.Lock()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def fact(self, name: str, initial: str) -> str:
        """What was first said of the run by this name."""
        return self._tables.fact(name, initial)

    def changes(self) -> Iterator[Change]:
        """The changes that rebuild the ledger."""
        return self._tables.changes()

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:
        """Write changes down, all or none."""
        self._tables.commit(changes, durable=durable)

    def stage(self, step: int, part: Part, *, durable: bool) -> str:
        """Keep a part as it streams in, whole or not at all.

        Raises:
            StoreError: It cannot be written, or the store has been closed meanwhile.
        """
        schema, batches = part
        name = f"{step}-{uuid.uuid4().hex}"
        path = self._staged_path(name)
        unfinished = path.with_suffix(_UNFINISHED)
        tables = self._tables
        try:
            with _as_store_error(f"the part {name} cannot be staged"):
                still = self._while_open(tables, batches)
                self.files.write_part(unfinished, schema, still, sync=durable)
                with self._placing:
                    self._check_still(tables)
                    self.files.rename(unfinished, path)
                if durable:
                    self.files.sync_directory(self._staged)
        except BaseException:
            with suppress(OSError):
                self.files.remove(unfinished)
            raise
        return name

    def discard(self, parts: Iterable[str]) -> None:
        """Forget staged parts. What cannot be removed is swept at the next start."""
        for part in sorted(parts):
            with suppress(Damaged, OSError):  # Damaged: a name that no part can have
                self.files.remove(self._staged_path(part))

    def payload(self, manifest: Manifest) -> Payload:
        """The staged parts that a manifest names."""
        try:
            parts = [read_part(self._staged_path(part))[1] for part in manifest.parts]
        except Damaged:
            self._check_in_place()  # else they are elsewhere, and whole
            raise
        return Payload(manifest, parts)

    def write_aggregate(self, step: int, parts: Iterable[Part]) -> list[WrittenPart]:
        """Write and sync the parts of an aggregate, beside its place."""
        unfinished = self._unfinished_aggregate(step)
        with _as_store_error(f"the aggregate of step {step} cannot be written"):
            self._check_in_place()
            self.files.remove_tree(unfinished)
            self.files.make_directory(unfinished)
            written: list[WrittenPart] = []
            for index, (schema, batches) in enumerate(parts):
                path = unfinished / f"{index}.arrow"
                self.files.write_part(path, schema, batches, sync=True)
                written.append((str(index), read_part(path)[1]))
        return written

    def close_step(self, closing: Closing, manifest: Manifest | None) -> None:
        """Put the aggregate in its place, then close the step in the ledger, then clean up.

        Once the ledger has it the step is closed, so what cannot be removed is no error: it is
        swept at the next start.
        """
        step = closing.closed.step
        self._check_in_place()
        if manifest is not None:
            with _as_store_error(f"the aggregate of step {step} cannot be written"):
                self._place_aggregate(step, manifest)
        digest = None if manifest is None else _digest(_manifest_bytes(manifest))
        self._tables.close_step(closing.changes, digest)
        with suppress(OSError, StoreError):
            self._check_in_place()
            self.discard(path.stem for path in self._staged.glob(f"{step}-*.arrow"))

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        return self._tables.closed_step(step)

    def aggregate_manifest(self, step: int) -> Manifest | None:
        """The manifest of a closed step's aggregate."""
        outcome, pruned = self._tables.outcome(step) or (None, False)
        if outcome == "skipped":
            return None
        check_readable(step, outcome, pruned=pruned)
        path = self._aggregates / str(step) / "manifest.json"
        with _as_store_error(f"the aggregate of step {step} cannot be read"):
            try:
                data = path.read_bytes()
                if _digest(data) != self._tables.aggregate(step):
                    raise ValueError(f"{path} is not what was written")  # noqa: TRY301
                return Manifest.from_json(json.loads(data))
            except (FileNotFoundError, ValueError, RecursionError, ProtocolError) as error:
                self._check_readable(step)  # it may have been pruned meanwhile
                raise Damaged(
                    f"the aggregate of step {step} is damaged: {error}; {_ONLY_A_COPY}"
                ) from error

    def aggregate_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of a visible aggregate, memory-mapped."""
        self._check_readable(step)
        if not _INDEX.fullmatch(part):
            raise Damaged(f"the aggregate of step {step} has no part {part!r}")
        try:
            return read_part(self._aggregates / str(step) / f"{part}.arrow")
        except Damaged as error:
            self._check_readable(step)  # it may have been pruned meanwhile
            raise Damaged(
                f"the aggregate of step {step} is damaged: {error}; {_ONLY_A_COPY}"
            ) from error

    def prune(self, keep_steps: int) -> None:
        """Drop the tensors of all but the last steps to close."""
        for step in self._tables.prune(keep_steps):
            with suppress(OSError, StoreError):  # it is swept at the next start
                self._check_in_place()
                self.files.remove_tree(self._aggregates / str(step))

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
        if self._process != os.getpid():
            raise StoreError(
                f"process {self._process} has the store in {self._directory} open; a fork of it, "
                f"as process {os.getpid()} is, cannot use it too"
            )
        self._check_in_place()
        return self._open_tables

    def _check_in_place(self) -> None:
        """See that the names under which this store writes are still those of its own files."""
        lock = self._lock  # another thread may close the store
        if lock is not None:
            lock.check()

    def _check_readable(self, step: int) -> None:
        outcome, pruned = self._tables.outcome(step) or (None, False)
        check_readable(step, outcome, pruned=pruned)

    def _while_open(
        self, tables: Tables, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._check_still(tables)
            yield batch

    def _check_still(self, tables: Tables) -> None:
        if self._open_tables is not tables:
            raise StoreError(f"the store in {self._directory} was closed while a part came in")
        self._check_in_place()

    def _staged_path(self, name: str) -> Path:
        if not _PART.fullmatch(name):
            raise Damaged(f"there is no staged part {name!r}")
        return self._staged / f"{name}.arrow"

    def _unfinished_aggregate(self, step: int) -> Path:
        return self._aggregates / f"{step}-{self._token}{_UNFINISHED}"

    def _make_directory(self, path: Path) -> None:
        """Make it, and those above it, so that each of their names survives a power cut."""
        if path.is_dir():
            return
        if path.exists():
            raise StoreError(f"{path} is a file, and a run is kept in a directory; give another")
        if path.parent != path:
            self._make_directory(path.parent)
        self.files.make_directory(path)
        self.files.sync_directory(path.parent)

    def _place_aggregate(self, step: int, manifest: Manifest) -> None:
        place = self._aggregates / str(step)
        unfinished = self._unfinished_aggregate(step)
        self.files.write_bytes(unfinished / "manifest.json", _manifest_bytes(manifest))
        self.files.sync_directory(unfinished)
        self._check_in_place()
        self.files.remove_tree(place)  # of a failure before the ledger knew
        self.files.rename(unfinished, place)
        self.files.sync_directory(self._aggregates)

    def _sweep(self) -> None:
        """Remove what nothing names any more, of what has a name that only this module gives."""
        named = {part for manifest in self._tables.payloads() for part in manifest.parts}
        for path in self._staged.iterdir():
            is_part = _PART.fullmatch(path.stem) and path.suffix in (".arrow", _UNFINISHED)
            is_named = path.stem in named and path.suffix == ".arrow"
            if is_part and not is_named and path.is_file():
                self.files.remove(path)
        kept = {str(step) for step in self._tables.kept_steps()}
        for directory in self._aggregates.iterdir():
            is_step = _STEP.fullmatch(directory.name)
            if is_step and directory.name not in kept and directory.is_dir():
                self.files.remove_tree(directory)


def _refuse_what_is_not_ours(directory: Path) -> None:
    """A run is kept in a directory of its own: what stands in it is swept."""
    names = {path.name for path in directory.iterdir()}
    if _LEDGER in names or names <= {DirectoryLock.NAME}:  # a crash may have left the lock alone
        return
    raise StoreError(
        f"the directory {directory} is not empty ({', '.join(sorted(names)[:3])}) and has no "
        f"{_LEDGER}, so it is none of onefold's; give a new or empty one, or that of an earlier run"
    )


def _manifest_bytes(manifest: Manifest) -> bytes:
    return json.dumps(manifest.to_json()).encode()


def _digest(data: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(data)


@contextmanager
def _as_store_error(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what}: {error}; {_advice(error)}") from error


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return "nothing that was accepted is lost; make room on the disk, and it goes on"
        case errno.ENOENT:
            return "it has been moved or removed: put it back, and it goes on"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return "let this process write there, or give another directory"
        case _:
            return "see that the disk is well, and try again"


_STORES: WeakSet[DirectoryStore] = WeakSet()


def _leave_to_parent() -> None:
    for store in _STORES:
        store.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
