"""Files on which a chosen operation fails: before it, half-way through, or after it was done."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import pyarrow as pa

from onefold.store.files import Files

When = Literal["before", "within", "after"]


class Crash(BaseException):
    """The process ends here: nothing that it would do afterwards happens."""


@dataclass(frozen=True)
class Blow:
    """What befalls an operation, and when."""

    when: When
    error: BaseException


Strike = Callable[["StruckFiles", str], "Blow | None"]


class StruckFiles(Files):
    """Counts what is done to the disk and lets it fail where ``strike`` says so.

    ``done`` names every operation so far, the struck one included. After a :class:`Crash` every
    further one is a crash, too.
    """

    def __init__(self, strike: Strike | None = None, seed: int = 0) -> None:
        self.done: list[str] = []
        self.strike = strike
        self.dead = False
        self.rng = Random(seed)
        self.left_open: list[sqlite3.Connection] = []

    def connect(self, path: Path) -> sqlite3.Connection:
        self.check_alive()
        options = {"check_same_thread": False, "isolation_level": None}
        connection = sqlite3.connect(path, factory=_Connection, **options)
        connection.files = self
        return connection

    def write_part(
        self, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, sync: bool
    ) -> None:
        def whole() -> None:
            super(StruckFiles, self).write_part(path, schema, batches, sync=False)
            self.written(path, sync=sync)

        def half() -> None:
            super(StruckFiles, self).write_part(path, schema, batches, sync=False)
            self._cut(path)

        self.act(f"write part {path.parent.name}", whole, half)

    def write_bytes(self, path: Path, data: bytes) -> None:
        def whole() -> None:
            path.write_bytes(data)
            self.written(path, sync=True)

        def half() -> None:
            path.write_bytes(data)
            self._cut(path)

        self.act(f"write {path.name}", whole, half)

    def rename(self, path: Path, place: Path) -> None:
        def whole() -> None:
            super(StruckFiles, self).rename(path, place)
            self.renamed(path, place)

        self.act(f"rename in {path.parent.name}", whole)

    def remove(self, path: Path) -> None:
        def whole() -> None:
            super(StruckFiles, self).remove(path)
            self.removed(path)

        if path.exists() or self.dead:
            self.act(f"remove in {path.parent.name}", whole)

    def remove_tree(self, path: Path) -> None:
        def some() -> None:
            for file in sorted(path.iterdir()):
                if self.rng.random() < 0.5:
                    file.unlink()
                    self.removed(file)

        def whole() -> None:
            for file in sorted(path.iterdir()):
                self.removed(file)
            super(StruckFiles, self).remove_tree(path)
            self.removed(path)

        if path.is_dir() or self.dead:
            self.act(f"remove tree in {path.parent.name}", whole, some)

    def make_directory(self, path: Path) -> None:
        def whole() -> None:
            super(StruckFiles, self).make_directory(path)
            self.made(path)

        if not path.is_dir() or self.dead:
            self.act("make directory", whole)

    def sync_directory(self, path: Path) -> None:
        self.act(f"sync {path.name}", lambda: self.synced(path))

    def act(
        self, what: str, whole: Callable[[], None], half: Callable[[], None] = lambda: None
    ) -> None:
        """Do ``whole``, or what the blow leaves of it."""
        self.check_alive()
        self.done.append(what)
        blow = self.strike(self, what) if self.strike else None
        if blow is None:
            whole()
            return
        if blow.when == "within":
            half()
        if blow.when == "after":
            whole()
        self.dead = isinstance(blow.error, Crash)
        raise blow.error

    def bury(self) -> None:
        """Release what a process leaves by its end, once nobody looks at its files any more."""
        for connection in self.left_open:
            sqlite3.Connection.close(connection)
        self.left_open = []

    def check_alive(self) -> None:
        if self.dead:
            raise Crash

    def statement(self, what: str, do: Callable[[], object]) -> object:
        """Execute a statement that may write to the ledger's file."""
        results: list[object] = []

        def whole() -> None:
            self.stating()
            results.append(do())
            self.stated()

        try:
            self.act(what, whole, lambda: self.half_done(what, do))
        except OSError as error:
            said = {30: "attempt to write a readonly database", 28: "database or disk is full"}
            raise sqlite3.OperationalError(said.get(error.errno or 0, "disk I/O error")) from error
        return results[0]

    # What has happened, for a model of the disk.

    def written(self, path: Path, *, sync: bool) -> None:
        """A file has its content."""

    def renamed(self, path: Path, place: Path) -> None:
        """A name has become another."""

    def removed(self, path: Path) -> None:
        """A name is gone."""

    def made(self, path: Path) -> None:
        """A directory is there."""

    def synced(self, path: Path) -> None:
        """The names in a directory have reached the disk."""

    def stating(self) -> None:
        """A statement that may write to the ledger's file begins."""

    def stated(self) -> None:
        """A statement that may have written to the ledger's file is over."""

    def half_done(self, what: str, do: Callable[[], object]) -> None:
        """A statement is struck while it writes."""

    def set_level(self, level: str) -> None:
        """How the ledger synchronises from now on."""

    def _cut(self, path: Path) -> None:
        os.truncate(path, self.rng.randrange(path.stat().st_size))
        self.written(path, sync=False)


class _Connection(sqlite3.Connection):
    """A database whose commits and checkpoints are operations on the disk."""

    files: StruckFiles

    def execute(self, sql, parameters=()):  # type: ignore[no-untyped-def]
        self.files.check_alive()

        def do():  # type: ignore[no-untyped-def]
            return super(_Connection, self).execute(sql, parameters)

        if sql == "commit" or sql.startswith(("pragma wal_checkpoint", "pragma journal_mode")):
            return self.files.statement(sql, do)
        if sql.startswith("pragma synchronous ="):
            self.files.set_level(sql.rpartition(" ")[2])
        return do()

    def close(self):  # type: ignore[no-untyped-def]
        if self.files.dead:  # a process that is gone closes nothing, and so writes nothing
            self.files.left_open.append(self)
            return
        self.files.stating()
        super().close()
        self.files.stated()

    def executescript(self, script):  # type: ignore[no-untyped-def]
        return self.files.statement(
            "create tables", lambda: super(_Connection, self).executescript(script)
        )
