"""The SQLite tables of a directory store, and changes to rows and back.

The write-ahead log is used, so readers never wait. A commit survives a crash of the process; one
with ``durable`` also a power cut, and with it all commits before it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from onefold.errors import StoreError
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
from onefold.store.rows import contribution_from, signature_from, statements

__all__ = ["Tables"]

_SCHEMA_VERSION = 1

_SCHEMA = """
create table if not exists meta (key text primary key, value text not null) without rowid;
create table if not exists worker (
    worker text primary key, incarnation integer not null, present integer not null
) without rowid;
create table if not exists life (
    number integer primary key, worker text not null, life text not null,
    incarnation integer not null, unique (worker, life)
);
create table if not exists step (
    step integer primary key, roster text, opened_at real not null, deadline_at real,
    vacant integer not null
);
create table if not exists contribution (
    step integer not null, worker text not null, incarnation integer, attempt integer,
    weight integer not null, digest text not null, arrival integer not null,
    payload text not null, nonfinite text, primary key (step, worker)
) without rowid;
create table if not exists refusal (
    step integer not null, worker text not null, reason text not null, primary key (step, worker)
) without rowid;
create table if not exists closed (
    number integer primary key, step integer not null unique, outcome text not null,
    closed_at real not null, pruned integer not null default 0
);
create table if not exists contributor (
    step integer not null, worker text not null, incarnation integer, attempt integer,
    weight integer not null, digest text not null, primary key (step, worker)
) without rowid;
create table if not exists excluded (
    step integer not null, worker text not null, reason text not null, primary key (step, worker)
) without rowid;
"""


class Tables:
    """The ledger in an SQLite file."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            self._database.execute("pragma journal_mode = wal")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"the ledger {path} cannot be opened: {error}") from error
        with self._transaction(durable=True):
            self.run = self._meta("run", uuid.uuid4().hex)
            version = self._meta("schema", str(_SCHEMA_VERSION))
        if version != str(_SCHEMA_VERSION):
            raise StoreError(
                f"the ledger {path} has schema {version}; this version of onefold reads "
                f"{_SCHEMA_VERSION}"
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:
        """Write changes down, all or none."""
        with self._transaction(durable=durable):
            for change in changes:
                self._write(change)

    def changes(self) -> Iterator[Change]:
        """The changes that rebuild the ledger."""
        with self._lock:
            yield from self._member_changes()
            fixed = self._row("select value from meta where key = 'signature'")
            if fixed is not None:
                yield signature_from(fixed[0])
            highest = self._row("select max(step) from closed")
            if highest is not None and highest[0] is not None:
                yield cast("StepClosed", self.closed_step(highest[0]))
            yield from self._step_changes()

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        with self._lock:
            row = self._row("select outcome, closed_at from closed where step = ?", step)
            if row is None:
                return None
            contributors = self._rows(
                "select worker, incarnation, attempt, weight, digest from contributor "
                "where step = ? order by worker",
                step,
            )
            excluded = self._rows(
                "select worker, reason from excluded where step = ? order by worker", step
            )
        return StepClosed(
            step=step,
            outcome=cast("Outcome", row[0]),
            contributors=tuple(Contributor(*fields) for fields in contributors),
            excluded=tuple(Excluded(*fields) for fields in excluded),
            closed_at=row[1],
        )

    def is_pruned(self, step: int) -> bool:
        """Whether a closed step's tensors were pruned."""
        row = self._row("select pruned from closed where step = ?", step)
        return row is not None and bool(row[0])

    def prune(self, keep_steps: int) -> list[int]:
        """Mark all but the last steps to close as pruned, and say which were not before."""
        with self._transaction(durable=False):
            rows = self._rows(
                "update closed set pruned = 1 where pruned = 0 and step not in "
                "(select step from closed order by number desc limit ?) returning step",
                keep_steps,
            )
        return [row[0] for row in rows]

    def payloads(self) -> list[Manifest]:
        """The manifests of all contributions to open steps."""
        return [
            Manifest.from_json(json.loads(row[0]))
            for row in self._rows("select payload from contribution")
        ]

    def kept_steps(self) -> set[int]:
        """The closed steps whose aggregates are kept."""
        rows = self._rows("select step from closed where pruned = 0 and outcome = 'update'")
        return {row[0] for row in rows}

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[None]:
        with self._lock:
            try:
                level = "full" if durable else "normal"
                self._database.execute(f"pragma synchronous = {level}")
                self._database.execute("begin immediate")
                yield
                self._database.execute("commit")
            except sqlite3.Error as error:
                raise StoreError(f"the ledger cannot be written: {error}") from error
            finally:
                if self._database.in_transaction:
                    self._database.execute("rollback")

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._database.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._execute(statement, *values).fetchall()

    def _row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        rows = self._rows(statement, *values)
        return rows[0] if rows else None

    def _meta(self, key: str, initial: str) -> str:
        self._execute("insert or ignore into meta values (?, ?)", key, initial)
        return cast("str", self._rows("select value from meta where key = ?", key)[0][0])

    def _write(self, change: Change) -> None:
        for statement, values in statements(change):
            self._execute(statement, *values)

    def _member_changes(self) -> Iterator[Change]:
        for worker, life, incarnation in self._rows(
            "select worker, life, incarnation from life order by number"
        ):
            yield WorkerJoined(worker, life, incarnation)
        for worker, incarnation, present in self._rows("select * from worker"):
            yield IncarnationSeen(worker, incarnation)
            if not present:
                yield WorkerLeft(worker)

    def _step_changes(self) -> Iterator[Change]:
        for step, roster, opened_at, deadline_at, vacant in self._rows("select * from step"):
            names = None if roster is None else tuple(json.loads(roster))
            yield StepOpened(step, names, opened_at, deadline_at, vacant)
        for step, *fields in self._rows("select * from contribution order by arrival"):
            yield Contributed(step, contribution_from(fields))
        for step, worker, reason in self._rows("select * from refusal"):
            yield RefusalNoted(step, worker, reason)
