"""Changes as SQL statements, and rows as changes again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from onefold.errors import Damaged, ProtocolError
from onefold.ledger import (
    Change,
    Contributed,
    Contribution,
    IncarnationSeen,
    RefusalNoted,
    SignatureFixed,
    StepClosed,
    StepOpened,
    Unrecorded,
    WorkerJoined,
    WorkerLeft,
)
from onefold.parts import Manifest
from onefold.store.schema import content
from onefold.update import Signature, TensorSpec

__all__ = ["contribution_from", "signature_from", "statements"]

Statement: TypeAlias = tuple[str, Sequence[object]]

_REFUSED = (
    "insert into refusal values (?, ?, ?) on conflict (step, worker) do update set "
    "reason = excluded.reason"
)
_SEEN = (
    "insert into worker values (?, ?, 1) on conflict (worker) do update set "
    "incarnation = max(incarnation, excluded.incarnation)"
)


def statements(change: Change) -> Iterator[Statement]:
    """The SQL that writes a change down."""
    match change:
        case WorkerJoined() | WorkerLeft() | IncarnationSeen():
            yield from _member_statements(change)
        case StepClosed():
            yield from _closed_statements(change)
        case SignatureFixed():
            # Two first steps may close at the same time; as for the ledger, the first one counts.
            yield "insert or ignore into meta values ('signature', ?)", [_signature_json(change)]
        case StepOpened():
            roster = None if change.roster is None else json.dumps(change.roster)
            times = (change.opened_at, change.deadline_at)
            yield (
                "insert into step values (?, ?, ?, ?, ?)",
                [*(change.step, roster, *times, change.vacant)],
            )
        case Contributed():
            yield from _contributed_statements(change.step, change.contribution)
        case Unrecorded():
            yield (
                "delete from contribution where step = ? and worker = ?",
                [change.step, change.worker],
            )
            yield _REFUSED, [change.step, change.worker, change.reason]
        case RefusalNoted():
            yield _REFUSED, [change.step, change.worker, change.reason]


def _member_statements(change: WorkerJoined | WorkerLeft | IncarnationSeen) -> Iterator[Statement]:
    match change:
        case WorkerJoined():
            yield _SEEN, [change.worker, change.incarnation]
            yield "update worker set present = 1 where worker = ?", [change.worker]
            yield (
                "insert into life (worker, life, incarnation) values (?, ?, ?)",
                [change.worker, change.life, change.incarnation],
            )
        case WorkerLeft():
            yield _SEEN, [change.worker, 0]
            yield "update worker set present = 0 where worker = ?", [change.worker]
        case IncarnationSeen():
            yield _SEEN, [change.worker, change.incarnation]


def _contributed_statements(step: int, contribution: Contribution) -> Iterator[Statement]:
    # Not `or replace`: the rows that it removes are not told to triggers.
    yield (
        "delete from contribution where step = ? and worker = ?",
        [step, contribution.worker],
    )
    yield (
        "insert into contribution values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            step,
            contribution.worker,
            contribution.incarnation,
            contribution.attempt,
            contribution.weight,
            contribution.digest,
            contribution.arrival,
            contribution.payload,
            contribution.nonfinite,
        ],
    )
    yield "delete from refusal where step = ? and worker = ?", [step, contribution.worker]


def _closed_statements(closed: StepClosed) -> Iterator[Statement]:
    contributors = [
        (one.worker, one.incarnation, one.attempt, one.weight, one.digest)
        for one in sorted(closed.contributors, key=lambda one: one.worker)
    ]
    excluded = [
        (out.worker, out.reason) for out in sorted(closed.excluded, key=lambda out: out.worker)
    ]
    yield (
        "insert into closed (step, outcome, closed_at, content) values (?, ?, ?, ?)",
        [closed.step, closed.outcome, closed.closed_at, content(contributors, excluded)],
    )
    for fields in contributors:
        yield "insert into contributor values (?, ?, ?, ?, ?, ?)", [closed.step, *fields]
    for reasons in excluded:
        yield "insert into excluded values (?, ?, ?)", [closed.step, *reasons]
    for table in ("contribution", "refusal", "step"):
        yield f"delete from {table} where step = ?", [closed.step]  # noqa: S608 - our own names


def contribution_from(row: Sequence[Any]) -> Contribution:
    """A contribution from its row, without the step."""
    worker, incarnation, attempt, weight, digest, arrival, payload, nonfinite = row
    with _as_damage("a contribution"):
        signature = Manifest.from_json(json.loads(payload)).signature
    return Contribution(
        worker=worker,
        digest=digest,
        signature=signature,
        weight=weight,
        incarnation=incarnation,
        attempt=attempt,
        arrival=arrival,
        payload=payload,
        nonfinite=nonfinite,
    )


def _signature_json(fixed: SignatureFixed) -> str:
    tensors = [(name, spec.kind, spec.dtype, spec.shape) for name, spec in fixed.signature.tensors]
    return json.dumps([fixed.step, tensors])


def signature_from(text: str) -> SignatureFixed:
    """The signature that the first aggregate fixed, from its JSON."""
    with _as_damage("the signature"):
        step, tensors = json.loads(text)
        specs = [
            (name, TensorSpec(kind, dtype, tuple(shape))) for name, kind, dtype, shape in tensors
        ]
        return SignatureFixed(step, Signature(tuple(specs)))


@contextmanager
def _as_damage(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, RecursionError, ProtocolError) as error:
        raise Damaged(
            f"the ledger is damaged: {what} in it cannot be read: {error}; "
            "only a copy has it as it was"
        ) from error
