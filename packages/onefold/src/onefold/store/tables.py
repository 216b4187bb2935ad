"""The SQLite tables of a directory store, and changes to rows and back.

The write-ahead log is used, so readers never wait. A commit survives a crash of the process; one
with ``durable`` also a power cut, and with it all commits before it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from onefold.errors import Damaged, StoreError
from onefold.ledger import (
    Change,
    Contributed,
    Contributor,
    Excluded,
    IncarnationSeen,
    Outcome,
    RefusalNoted,
    StepClosed,
    StepOpened,
    WorkerJoined,
    WorkerLeft,
)
from onefold.parts import Manifest
from onefold.store.files import Files
from onefold.store.rows import contribution_from, signature_from, statements
from onefold.store.schema import SCHEMA_VERSION, check, content, create, damaged, register, unsealed

__all__ = ["Tables"]

_T = TypeVar("_T")


_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""The latter for text that has been damaged, also within what SQLite says of damage."""

_USUAL = (sqlite3.OperationalError, sqlite3.IntegrityError, sqlite3.ProgrammingError)
"""Anything but a file that makes no sense to SQLite."""

_ADVICE = {
    "full": "nothing was changed; make room on the disk, and it goes on",
    "readonly": "nothing was changed; let this process write to the file and its directory",
    "locked": "another program has it open; end that one",
}
_NO_ADVICE = "nothing was changed; see that the disk is well, and try again"

_CHECKPOINT = "pragma wal_checkpoint(truncate)"


class _Closed(NamedTuple):
    """A row of the table ``closed``."""

    number: int
    step: int
    outcome: Outcome
    closed_at: float
    content: str
    aggregate: str | None
    pruned: int


class Tables:
    """The ledger in an SQLite file.

    Args:
        path: The file.
        files: What opens it.
        may_begin: Whether it may be empty, as it is before anything has happened.
    """

    def __init__(self, path: Path, files: Files, *, may_begin: bool = True) -> None:
        self._lock = threading.RLock()
        self._path = path
        self._database = files.connect(path)
        try:
            self._open(may_begin=may_begin)
        except _UNREADABLE as error:
            self._database.close()
            raise self._error("cannot be opened", error) from error
        except BaseException:
            self._database.close()
            raise
        self.run = self.fact("run", uuid.uuid4().hex)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:
        """Write changes down, all or none."""
        self._transact(lambda: self._write(changes), durable=durable)
        if durable and not any(isinstance(change, Contributed) for change in changes):
            self._settle()

    def close_step(self, changes: Sequence[Change], aggregate: str | None) -> None:
        """Write down, durably, that a step has closed; ``aggregate`` is its manifest's digest."""

        def write() -> None:
            self._write(changes)
            for change in changes:
                if isinstance(change, StepClosed):
                    self._execute(
                        "update closed set aggregate = ? where step = ?", aggregate, change.step
                    )

        self._transact(write, durable=True)
        self._settle()

    def fact(self, name: str, initial: str) -> str:
        """What was first said of the run by this name, durable."""
        known = self._transact(lambda: self._meta(name, initial), durable=True)
        self._settle()
        return known

    def changes(self) -> Iterator[Change]:
        """The changes that rebuild the ledger."""
        with self._lock:
            return iter([*self._member_changes(), *self._over_changes(), *self._step_changes()])

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        with self._lock:
            row = self._closed(step)
            if row is None:
                return None
            where = "where step = ? order by worker"
            contributors = [fields[1:] for fields in self._sealed("contributor", where, step)]
            excluded = [fields[1:] for fields in self._sealed("excluded", where, step)]
        if content(contributors, excluded) != row.content:
            what = f"who is in the aggregate of step {step}"
            raise damaged(f"the ledger {self._path}", what)
        return StepClosed(
            step=step,
            outcome=row.outcome,
            contributors=tuple(Contributor(*fields) for fields in contributors),
            excluded=tuple(Excluded(*fields) for fields in excluded),
            closed_at=row.closed_at,
        )

    def outcome(self, step: int) -> tuple[Outcome, bool] | None:
        """The outcome of a closed step, and whether its tensors were pruned; None if not closed."""
        row = self._closed(step)
        return None if row is None else (row.outcome, bool(row.pruned))

    def aggregate(self, step: int) -> str | None:
        """The digest of the manifest of a closed step's aggregate."""
        row = self._closed(step)
        return None if row is None else row.aggregate

    def prune(self, keep_steps: int) -> list[int]:
        """Mark all but the last steps to close as pruned, durably; those that were not before."""
        rows = self._transact(
            lambda: self._rows(
                "update closed set pruned = 1 where pruned = 0 and number <= "
                "(select number from closed order by number desc limit 1 offset ?) returning step",
                keep_steps,
            ),
            durable=True,
        )
        self._settle()
        return [row[0] for row in rows]

    def payloads(self) -> list[Manifest]:
        """The manifests of all contributions to open steps."""
        changes = (change for change in self._step_changes() if isinstance(change, Contributed))
        return [Manifest.from_json(json.loads(change.contribution.payload)) for change in changes]

    def kept_steps(self) -> set[int]:
        """The closed steps whose aggregates are kept."""
        rows = self._sealed("closed", "where pruned = 0 and outcome = 'update'")
        return {_Closed(*row).step for row in rows}

    def _open(self, *, may_begin: bool) -> None:
        """Begin an empty ledger, or check the one that is there, and bring it to the disk.

        A process that was killed may have written what it had not synced. Whoever asks again is
        told what is there, so that has to stay.
        """
        register(self._database)
        tables = {row[0] for row in self._database.execute("select name from sqlite_master")}
        if not tables and not may_begin:
            raise Damaged(
                f"the ledger {self._path} is empty, and the directory is not: the disk or another "
                "program has emptied it, and only a copy has it as it was"
            )
        if tables and not {"meta", "closed", "contributor"} <= tables:
            raise StoreError(
                f"{self._path} is an SQLite file, but no ledger of onefold; give another directory"
            )
        self._database.execute("pragma journal_mode = wal")
        if tables:
            self._check_version()
            check(self._database, f"the ledger {self._path}")
        else:
            create(self._database)
        self._database.execute("pragma foreign_keys = on")
        self._database.execute("pragma synchronous = full")
        self._database.execute(_CHECKPOINT)

    def _check_version(self) -> None:
        query = "select value from meta where key = 'schema'"
        version = self._database.execute(query).fetchone()
        if version is not None and version[0] != str(SCHEMA_VERSION):
            raise StoreError(
                f"the ledger {self._path} has schema {version[0]}; this version of onefold reads "
                f"{SCHEMA_VERSION}: finish the run with the version that began it, or give "
                "another directory"
            )

    def _settle(self) -> None:
        """Bring the file up to date and empty the log.

        SQLite takes a log up to the first frame that is not whole, so a bit that flips in it would
        undo all that came after; in the file it is noticed. What fails here is tried again by the
        next: the commit has reached the disk without it.
        """
        with self._lock, suppress(sqlite3.Error):
            self._database.execute(_CHECKPOINT)

    def _transact(self, work: Callable[[], _T], *, durable: bool) -> _T:
        with self._lock:
            try:
                if self._database.in_transaction:  # a Ctrl-C came before the rollback below
                    self._database.execute("rollback")
                level = "full" if durable else "normal"
                self._database.execute(f"pragma synchronous = {level}")
                self._database.execute("begin immediate")
                result = work()
                self._database.execute("commit")
            except _UNREADABLE as error:
                raise self._error("cannot be written", error) from error
            else:
                return result
            finally:
                if self._database.in_transaction:
                    self._database.execute("rollback")

    def _error(self, what: str, error: Exception) -> StoreError:
        if isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and not isinstance(
            error, _USUAL
        ):
            return damaged(f"the ledger {self._path}", f"what SQLite reads there ({error})")
        advice = next((text for sign, text in _ADVICE.items() if sign in str(error)), _NO_ADVICE)
        return StoreError(f"the ledger {self._path} {what}: {error}; {advice}")

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._database.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._execute(statement, *values).fetchall()
            except _UNREADABLE as error:
                raise self._error("cannot be read", error) from error

    def _sealed(self, table: str, rest: str, *values: object) -> list[tuple[Any, ...]]:
        rows = self._rows(f"select * from {table} {rest}", *values)  # noqa: S608 - our own names
        return unsealed(table, rows, f"the ledger {self._path}")

    def _closed(self, step: int) -> _Closed | None:
        rows = self._sealed("closed", "where step = ?", step)
        return _Closed(*rows[0]) if rows else None

    def _meta(self, key: str, initial: str) -> str:
        self._execute("insert or ignore into meta values (?, ?)", key, initial)
        return cast("str", self._sealed("meta", "where key = ?", key)[0][1])

    def _write(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for statement, values in statements(change):
                self._execute(statement, *values)

    def _member_changes(self) -> Iterator[Change]:
        for _, worker, life, incarnation in self._sealed("life", "order by number"):
            yield WorkerJoined(worker, life, incarnation)
        for worker, incarnation, present in self._sealed("worker", ""):
            yield IncarnationSeen(worker, incarnation)
            if not present:
                yield WorkerLeft(worker)

    def _over_changes(self) -> Iterator[Change]:
        for _, fixed in self._sealed("meta", "where key = 'signature'"):
            yield signature_from(fixed)
        for row in self._sealed("closed", "order by step desc limit 1"):
            yield cast("StepClosed", self.closed_step(_Closed(*row).step))

    def _step_changes(self) -> Iterator[Change]:
        for step, roster, opened_at, deadline_at, vacant in self._sealed("step", ""):
            names = None if roster is None else tuple(json.loads(roster))
            yield StepOpened(step, names, opened_at, deadline_at, vacant)
        for step, *fields in self._sealed("contribution", "order by arrival"):
            yield Contributed(step, contribution_from(fields))
        for step, worker, reason in self._sealed("refusal", ""):
            yield RefusalNoted(step, worker, reason)
