"""What a server answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import TypeAlias, TypeVar, cast

from onefold.errors import ProtocolError
from onefold.ledger import Behind, Contributor, Excluded, Joined, Outcome, StepClosed
from onefold.parts import Manifest
from onefold.receipt import Receipt, Status
from onefold.status import OpenStepStatus, RunStatus
from onefold.wire.fields import Fields, from_bytes, to_bytes

__all__ = [
    "Answer",
    "Closed",
    "Done",
    "Open",
    "PullAnswer",
    "Resend",
    "Staged",
    "decode_answer",
    "encode_answer",
    "read_receipt",
]

_ANSWER_BYTES_MAX = 64 << 20

_STEP_MIN = -(2**63)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Staged:
    """The part is kept, by this name, until it is committed or the server restarts."""

    part: str


@dataclass(frozen=True, slots=True)
class Done:
    """It has been done; there is nothing to tell."""


class PullAnswer:
    """What a pull is answered with: :class:`Open`, :class:`Resend` or :class:`Closed`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Open(PullAnswer):
    """The step has not closed yet."""


@dataclass(frozen=True, slots=True)
class Resend(PullAnswer):
    """The step is open and lacks the update that the client keeps: send it again."""


@dataclass(frozen=True, slots=True)
class Closed(PullAnswer):
    """What the step closed with; ``manifest`` is None where it was skipped."""

    closed: StepClosed
    manifest: Manifest | None


Answer: TypeAlias = Joined | Behind | Done | Staged | Receipt | RunStatus | Open | Resend | Closed


def encode_answer(answer: Answer) -> bytes:
    """An answer as JSON."""
    match answer:
        case Closed(closed, manifest):
            said: Mapping[str, object] = {
                "closed": _shallow(closed)
                | {
                    "contributors": [_shallow(each) for each in closed.contributors],
                    "excluded": [_shallow(each) for each in closed.excluded],
                },
                "manifest": None if manifest is None else manifest.to_json(),
            }
        case _:
            said = asdict(answer)
    return to_bytes("answer", _NAMES[type(answer)], said)


def _shallow(value: StepClosed | Contributor | Excluded) -> dict[str, object]:
    """The fields by name; ``asdict`` copies each value deeply, and takes ten times as long."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def decode_answer(data: bytes, expected: type[_T]) -> _T:
    """The answer that a server sent, of the type that was asked for.

    Raises:
        ProtocolError: It is another one, or none that this version knows.
    """
    name, fields = from_bytes(data, "answer", _ANSWER_BYTES_MAX)
    if name not in _READERS:
        raise ProtocolError(f"the server answered {name!r}, which this version does not know")
    answer = _READERS[name](fields)
    fields.end()
    if not isinstance(answer, expected):
        raise ProtocolError(f"expected the answer {expected.__name__}, not {name!r}")
    return answer


def read_receipt(fields: Fields) -> Receipt:
    """A receipt from its fields."""
    return Receipt(
        status=_choice(Status, fields.text("status")),
        reason=fields.text("reason"),
        step=fields.integer("step", _STEP_MIN),
        worker=fields.text("worker"),
        incarnation=fields.optional("incarnation", fields.integer),
        attempt=fields.optional("attempt", fields.integer),
        digest=fields.text("digest"),
        counted=fields.optional("counted", fields.flag),
        counted_as=fields.optional("counted_as", fields.integer),
    )


def _choice(enum: type[Status], name: str) -> Status:
    try:
        return enum(name)
    except ValueError:
        raise ProtocolError(f"{name!r} is no status of a receipt") from None


def _joined(fields: Fields) -> Joined:
    return Joined(
        run=fields.text("run"),
        worker=fields.text("worker"),
        incarnation=fields.integer("incarnation"),
        roster=fields.optional("roster", fields.texts),
        index=fields.optional("index", fields.integer),
        first_open_step=fields.integer("first_open_step", _STEP_MIN),
        size=fields.optional("size", fields.integer),
    )


def _closed(fields: Fields) -> Closed:
    inside = fields.inner("closed")
    outcome = inside.text("outcome")
    if outcome not in ("update", "skipped"):
        raise ProtocolError(f"an outcome is update or skipped, not {outcome!r}")
    closed = StepClosed(
        step=inside.integer("step", _STEP_MIN),
        outcome=cast("Outcome", outcome),
        contributors=inside.items("contributors", _contributor),
        excluded=inside.items("excluded", _excluded),
        closed_at=inside.seconds("closed_at"),
    )
    inside.end()
    manifest = fields.optional("manifest", lambda name: Manifest.from_json(fields.raw(name)))
    return Closed(closed, manifest)


def _contributor(value: object) -> Contributor:
    fields = Fields("a contributor", value)
    contributor = Contributor(
        worker=fields.text("worker"),
        incarnation=fields.optional("incarnation", fields.integer),
        attempt=fields.optional("attempt", fields.integer),
        weight=fields.integer("weight"),
        digest=fields.text("digest"),
    )
    fields.end()
    return contributor


def _excluded(value: object) -> Excluded:
    fields = Fields("an excluded worker", value)
    excluded = Excluded(fields.text("worker"), fields.text("reason"))
    fields.end()
    return excluded


def _status(fields: Fields) -> RunStatus:
    receipts = fields.inner("receipts")
    return RunStatus(
        run=fields.text("run"),
        operation=fields.text("operation"),
        highest_closed=fields.optional("highest_closed", lambda n: fields.integer(n, _STEP_MIN)),
        open_steps=fields.items("open_steps", _open_step),
        roster=fields.optional("roster", fields.texts),
        receipts={name: receipts.integer(name) for name in receipts.names()},
        received_bytes=fields.integer("received_bytes"),
        staged_bytes=fields.integer("staged_bytes"),
    )


def _open_step(value: object) -> OpenStepStatus:
    fields = Fields("an open step", value)
    status = OpenStepStatus(
        step=fields.integer("step", _STEP_MIN),
        contributed=fields.texts("contributed"),
        missing=fields.optional("missing", fields.texts),
        vacant=fields.integer("vacant"),
        deadline_at=fields.optional("deadline_at", fields.seconds),
        problem=fields.optional("problem", fields.text),
    )
    fields.end()
    return status


_NAMES: Mapping[type, str] = MappingProxyType(
    {
        Joined: "joined",
        Behind: "behind",
        Done: "done",
        Staged: "staged",
        Receipt: "receipt",
        RunStatus: "status",
        Open: "open",
        Resend: "resend",
        Closed: "closed",
    }
)

_READERS: Mapping[str, Callable[[Fields], Answer]] = MappingProxyType(
    {
        "joined": _joined,
        "behind": lambda fields: Behind(fields.text("worker"), fields.integer("incarnation")),
        "done": lambda _: Done(),
        "staged": lambda fields: Staged(fields.text("part")),
        "receipt": read_receipt,
        "status": _status,
        "open": lambda _: Open(),
        "resend": lambda _: Resend(),
        "closed": _closed,
    }
)
