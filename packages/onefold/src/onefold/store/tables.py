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
from pathlib import Path
from typing import Any, TypeVar, cast

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
from onefold.store.files import Files
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
    step integer not null references step, worker text not null, incarnation integer,
    attempt integer,
    weight integer not null, digest text not null, arrival integer not null,
    payload text not null, nonfinite text, primary key (step, worker)
) without rowid;
create table if not exists refusal (
    step integer not null references step, worker text not null, reason text not null,
    primary key (step, worker)
) without rowid;
create table if not exists closed (
    number integer primary key, step integer not null unique, outcome text not null,
    closed_at real not null, pruned integer not null default 0
);
create index if not exists kept on closed (number) where pruned = 0;
create trigger if not exists a_closed_step_stays_closed before insert on step
when exists (select 1 from closed where closed.step = new.step)
begin
    select raise(abort, 'the step has closed');
end;
create table if not exists contributor (
    step integer not null, worker text not null, incarnation integer, attempt integer,
    weight integer not null, digest text not null, primary key (step, worker)
) without rowid;
create table if not exists excluded (
    step integer not null, worker text not null, reason text not null, primary key (step, worker)
) without rowid;
"""


_ORPHANS = (
    "delete from step where step in (select step from closed)",
    "delete from contribution where step not in (select step from step)",
    "delete from refusal where step not in (select step from step)",
)
"""Drop what the constraints refuse today and an earlier version, or damage, may have left."""

_T = TypeVar("_T")


class Tables:
    """The ledger in an SQLite file."""

    def __init__(self, path: Path, files: Files) -> None:
        self._lock = threading.RLock()
        self._database = files.connect(path)
        try:
            self._refuse_what_is_not_ours(path)
            self._database.execute("pragma journal_mode = wal")
            self._database.executescript(f"begin immediate; {_SCHEMA} commit;")
            for statement in _ORPHANS:
                self._database.execute(statement)
            self._database.execute("pragma foreign_keys = on")
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"the ledger {path} cannot be opened: {error}") from error
        except StoreError:
            self._database.close()
            raise
        self.run = self.fact("run", uuid.uuid4().hex)
        version = self.fact("schema", str(_SCHEMA_VERSION))
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
        self._transact(lambda: self._write(changes), durable=durable)

    def fact(self, name: str, initial: str) -> str:
        """What was first said of the run by this name, durable."""
        return self._transact(lambda: self._meta(name, initial), durable=True)

    def changes(self) -> Iterator[Change]:
        """The changes that rebuild the ledger."""
        with self._lock:
            return iter([*self._member_changes(), *self._over_changes(), *self._step_changes()])

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

    def outcome(self, step: int) -> tuple[Outcome, bool] | None:
        """The outcome of a closed step, and whether its tensors were pruned; None if not closed."""
        row = self._row("select outcome, pruned from closed where step = ?", step)
        return None if row is None else (cast("Outcome", row[0]), bool(row[1]))

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

    def _refuse_what_is_not_ours(self, path: Path) -> None:
        tables = {row[0] for row in self._rows("select name from sqlite_master")}
        if tables and not {"meta", "closed", "contributor"} <= tables:
            raise StoreError(
                f"{path} is an SQLite file, but no ledger of onefold; give another directory"
            )

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
            except sqlite3.Error as error:
                raise StoreError(f"the ledger cannot be written: {error}") from error
            else:
                return result
            finally:
                if self._database.in_transaction:
                    self._database.execute("rollback")

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._database.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._execute(statement, *values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"the ledger cannot be read: {error}") from error

    def _row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        rows = self._rows(statement, *values)
        return rows[0] if rows else None

    def _meta(self, key: str, initial: str) -> str:
        self._execute("insert or ignore into meta values (?, ?)", key, initial)
        return cast("str", self._rows("select value from meta where key = ?", key)[0][0])

    def _write(self, changes: Sequence[Change]) -> None:
        for change in changes:
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

    def _over_changes(self) -> Iterator[Change]:
        fixed = self._row("select value from meta where key = 'signature'")
        if fixed is not None:
            yield signature_from(fixed[0])
        highest = self._row("select max(step) from closed")
        if highest is not None and highest[0] is not None:
            yield cast("StepClosed", self.closed_step(highest[0]))

    def _step_changes(self) -> Iterator[Change]:
        for step, roster, opened_at, deadline_at, vacant in self._rows("select * from step"):
            names = None if roster is None else tuple(json.loads(roster))
            yield StepOpened(step, names, opened_at, deadline_at, vacant)
        for step, *fields in self._rows("select * from contribution order by arrival"):
            yield Contributed(step, contribution_from(fields))
        for step, worker, reason in self._rows("select * from refusal"):
            yield RefusalNoted(step, worker, reason)
