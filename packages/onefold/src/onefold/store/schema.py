"""The ledger's tables, and how damage to them is found: SQLite keeps no checksums of its own.

Each row ends in its *seal*, a digest of all that stands before it, which SQLite computes whenever
it writes the row. A row that is read must have the seal of its content. A row that has vanished has
none, so the table ``total`` has the number of rows of each table and their seals added up without
carry (XOR), kept by triggers. :func:`check` reads everything once and compares.

What a change by accident does not escape, somebody who means it can compute: this is no signature.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import xxhash

from onefold.errors import Damaged

__all__ = ["SCHEMA_VERSION", "check", "content", "create", "damaged", "register", "unsealed"]

SCHEMA_VERSION = 2

_NO_ROWID = "without rowid"

_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "meta": (("key text primary key", "value text not null"), (), _NO_ROWID),
    "worker": (
        ("worker text primary key", "incarnation integer not null", "present integer not null"),
        (),
        _NO_ROWID,
    ),
    "life": (
        (
            "number integer primary key",
            "worker text not null",
            "life text not null",
            "incarnation integer not null",
        ),
        ("unique (worker, life)",),
        "",
    ),
    "step": (
        (
            "step integer primary key",
            "roster text",
            "opened_at real not null",
            "deadline_at real",
            "vacant integer not null",
        ),
        (),
        "",
    ),
    "contribution": (
        (
            "step integer not null references step",
            "worker text not null",
            "incarnation integer",
            "attempt integer",
            "weight integer not null",
            "digest text not null",
            "arrival integer not null",
            "payload text not null",
            "nonfinite text",
        ),
        ("primary key (step, worker)",),
        _NO_ROWID,
    ),
    "refusal": (
        (
            "step integer not null references step",
            "worker text not null",
            "reason text not null",
        ),
        ("primary key (step, worker)",),
        _NO_ROWID,
    ),
    "closed": (
        (
            "number integer primary key",
            "step integer not null unique",
            "outcome text not null",
            "closed_at real not null",
            "content text not null",  # of the rows below
            "aggregate text",  # the digest of manifest.json
            "pruned integer not null default 0",
        ),
        (),
        "",
    ),
    "contributor": (
        (
            "step integer not null",
            "worker text not null",
            "incarnation integer",
            "attempt integer",
            "weight integer not null",
            "digest text not null",
        ),
        ("primary key (step, worker)",),
        _NO_ROWID,
    ),
    "excluded": (
        ("step integer not null", "worker text not null", "reason text not null"),
        ("primary key (step, worker)",),
        _NO_ROWID,
    ),
}

_EXTRAS = (
    """create table total (
    name text primary key, number integer not null, seals integer not null
) without rowid""",
    "create index kept on closed (number) where pruned = 0",
    """create trigger a_closed_step_stays_closed before insert on step
when exists (select 1 from closed where closed.step = new.step)
begin
    select raise(abort, 'the step has closed');
end""",
)


def create(database: sqlite3.Connection) -> None:
    """Make the tables in an empty database; all or none."""
    database.execute("pragma synchronous = full")
    version = f"insert into meta values ('schema', '{SCHEMA_VERSION}')"  # noqa: S608
    database.executescript("; ".join(["begin immediate", *_statements(), version, "commit;"]))


def register(database: sqlite3.Connection) -> None:
    """Let a database compute seals."""
    database.create_function("seal", -1, seal, deterministic=True)


def seal(table: str, *fields: object) -> int:
    """The seal of a row: 63 bits of XXH3 of its table and fields."""
    return xxhash.xxh3_64_intdigest(json.dumps([table, *fields]).encode()) >> 1


def unsealed(
    table: str, rows: Sequence[tuple[Any, ...]], where: str = "the ledger"
) -> list[tuple[Any, ...]]:
    """Rows without their seals.

    Raises:
        Damaged: A row does not have the seal of its content.
    """
    for *fields, found in rows:
        if found != _seal_of(table, fields):
            raise damaged(where, f"the row {_shown(table, fields)} of its table {table!r}")
    return [row[:-1] for row in rows]


def content(contributors: Sequence[Sequence[Any]], excluded: Sequence[Sequence[Any]]) -> str:
    """The digest of who is in an aggregate and who is not."""
    rows = [[list(row) for row in contributors], [list(row) for row in excluded]]
    return xxhash.xxh3_128_hexdigest(json.dumps(rows).encode())


def check(database: sqlite3.Connection, where: str) -> None:
    """Read everything once.

    Raises:
        Damaged: It is not what was written; the message names the file, and the row where one is
            known.
        sqlite3.Error: It cannot be read.
    """
    told = [row[0] for row in database.execute("pragma integrity_check(3)")]
    if told != ["ok"]:
        raise damaged(where, f"its structure ({'; '.join(told)})")
    if _objects(database) != _expected_objects():
        raise damaged(where, "the definition of its tables")
    totals = {}
    for table in _TABLES:
        rows = database.execute(f"select * from {table}").fetchall()  # noqa: S608 - our own names
        unsealed(table, rows, where)
        seals = 0
        for row in rows:
            seals ^= row[-1]
        totals[table] = (len(rows), seals)
    kept = {name: (number, seals) for name, number, seals in database.execute(_TOTALS)}
    for table, found in totals.items():
        if kept.get(table) != found:
            raise damaged(where, f"the number or content of the rows of its table {table!r}")


_TOTALS = "select name, number, seals from total"


def _seal_of(table: str, fields: Sequence[object]) -> int | None:
    try:
        return seal(table, *fields)
    except (TypeError, ValueError):  # bytes, where text had been
        return None


def _shown(table: str, fields: Sequence[object]) -> str:
    """The row's step and worker, or whatever else it begins with."""
    names = [column.partition(" ")[0] for column in _TABLES[table][0]]
    known = dict(zip(names, fields, strict=True))
    chosen = [name for name in ("step", "worker") if name in known] or names[:1]
    return ", ".join(f"{name} {known[name]!r}" for name in chosen)


def damaged(where: str, what: str) -> Damaged:
    """The error about a file in which something cannot be what was written."""
    return Damaged(
        f"{where} is damaged: {what} cannot be what was written; the disk or another program has "
        "changed it, and only a copy has it as it was"
    )


def _statements() -> Iterator[str]:
    for table, (columns, constraints, options) in _TABLES.items():
        names = ", ".join(column.partition(" ")[0] for column in columns)
        sealed = f"seal integer not null as (seal('{table}', {names})) stored"
        yield f"create table {table} ({', '.join((*columns, sealed, *constraints))}) {options}"
    yield from _EXTRAS
    for table in _TABLES:
        yield f"insert into total values ('{table}', 0, 0)"  # noqa: S608 - our own names
        yield from _triggers(table)


def _triggers(table: str) -> Iterator[str]:
    changed = _xor("old.seal", "new.seal")
    for event, count, seals in (
        ("insert", " + 1", "new.seal"),
        ("delete", " - 1", "old.seal"),
        ("update", "", changed),
    ):
        update = (
            f"update total set number = number{count}, seals = {_xor('seals', seals)} "  # noqa: S608
            f"where name = '{table}'"
        )
        yield f"create trigger {table}_{event} after {event} on {table} begin {update}; end"


def _xor(left: str, right: str) -> str:
    return f"((({left}) | ({right})) - (({left}) & ({right})))"


def _objects(database: sqlite3.Connection) -> list[tuple[Any, ...]]:
    objects = database.execute("select type, name, tbl_name, coalesce(sql, '') from sqlite_master")
    return sorted(objects, key=repr)  # of any type, where the file is damaged


def _expected_objects() -> list[tuple[Any, ...]]:
    database = sqlite3.connect(":memory:")
    try:
        register(database)
        create(database)
        return _objects(database)
    finally:
        database.close()
