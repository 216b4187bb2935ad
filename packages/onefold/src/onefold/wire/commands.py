"""What a client asks for.

Every command says who asks: the run that it means, worker, incarnation, step and attempt, as far as
there are any. ``retry`` (``try`` in JSON) counts how often this very call has been made before,
polls included, so that whatever stands between client and server can tell calls apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Final, TypeAlias

from onefold.errors import ProtocolError
from onefold.parts import Manifest
from onefold.wire.fields import Fields, from_bytes, to_bytes

__all__ = [
    "COMMAND_BYTES_MAX",
    "Command",
    "Commit",
    "Get",
    "GetStatus",
    "Join",
    "Leave",
    "Pull",
    "Put",
    "decode_command",
    "encode_command",
    "verb_of",
]

COMMAND_BYTES_MAX = 16 << 20
"""The size of a command at most; only one with a manifest of very many tensors comes near it."""

_STEP_MIN: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class Join:
    """A process begins to work; the same life id always gets the same incarnation.

    ``after`` is the newest incarnation that it has heard of, 0 at first; if another is the newest
    the join has no effect, and the answer says so. None joins after any.
    """

    worker: str
    life: str
    after: int | None = None
    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> Join:
        """The command from its fields."""
        return cls(
            worker=words.text("worker"),
            life=words.text("life"),
            after=words.optional("after", words.integer),
            retry=words.integer("try"),
        )


@dataclass(frozen=True, slots=True)
class Leave:
    """Steps not yet open need not wait for this worker."""

    run: str
    worker: str
    incarnation: int
    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> Leave:
        """The command from its fields."""
        return cls(
            run=words.text("run"),
            worker=words.text("worker"),
            incarnation=words.integer("incarnation"),
            retry=words.integer("try"),
        )


@dataclass(frozen=True, slots=True)
class Put:
    """One part of an update; ``part`` is its position among the parts.

    ``manifest`` is there if this part is the whole update, which is then committed at once.
    """

    run: str
    worker: str
    incarnation: int
    step: int
    attempt: int
    part: int = 0
    manifest: Manifest | None = None
    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> Put:
        """The command from its fields."""
        return cls(
            run=words.text("run"),
            worker=words.text("worker"),
            incarnation=words.integer("incarnation"),
            step=words.integer("step", _STEP_MIN),
            attempt=words.integer("attempt"),
            part=words.integer("part"),
            manifest=words.optional("manifest", lambda name: Manifest.from_json(words.raw(name))),
            retry=words.integer("try"),
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """The parts that ``manifest`` names, as the server called them, are an update."""

    run: str
    worker: str
    incarnation: int
    step: int
    attempt: int
    manifest: Manifest
    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> Commit:
        """The command from its fields."""
        return cls(
            run=words.text("run"),
            worker=words.text("worker"),
            incarnation=words.integer("incarnation"),
            step=words.integer("step", _STEP_MIN),
            attempt=words.integer("attempt"),
            manifest=Manifest.from_json(words.raw("manifest")),
            retry=words.integer("try"),
        )


@dataclass(frozen=True, slots=True)
class Pull:
    """What did the step close with? The server may take ``wait_seconds`` to answer.

    ``attempt`` is that of the update which the client keeps for this step, if it keeps one.
    """

    run: str
    worker: str
    incarnation: int
    step: int
    attempt: int | None
    wait_seconds: float
    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> Pull:
        """The command from its fields."""
        return cls(
            run=words.text("run"),
            worker=words.text("worker"),
            incarnation=words.integer("incarnation"),
            step=words.integer("step", _STEP_MIN),
            attempt=words.optional("attempt", words.integer),
            wait_seconds=words.seconds("wait_seconds"),
            retry=words.integer("try"),
        )


@dataclass(frozen=True, slots=True)
class Get:
    """One part of an aggregate; ``part`` is its position, ``name`` what the manifest calls it."""

    run: str
    worker: str
    incarnation: int
    step: int
    part: int
    name: str
    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> Get:
        """The command from its fields."""
        return cls(
            run=words.text("run"),
            worker=words.text("worker"),
            incarnation=words.integer("incarnation"),
            step=words.integer("step", _STEP_MIN),
            part=words.integer("part"),
            name=words.text("name"),
            retry=words.integer("try"),
        )


@dataclass(frozen=True, slots=True)
class GetStatus:
    """How does the run stand? Anybody may ask."""

    retry: int = 0

    @classmethod
    def read(cls, words: Fields) -> GetStatus:
        """The command from its fields."""
        return cls(words.integer("try"))


Command: TypeAlias = Join | Leave | Put | Commit | Pull | Get | GetStatus

_READERS: Mapping[str, Callable[[Fields], Command]] = MappingProxyType(
    {
        "join": Join.read,
        "leave": Leave.read,
        "put": Put.read,
        "commit": Commit.read,
        "pull": Pull.read,
        "get": Get.read,
        "status": GetStatus.read,
    }
)


def verb_of(command: Command) -> str:
    """The verb by which a command goes, which is also the type of its Flight action."""
    return "status" if isinstance(command, GetStatus) else type(command).__name__.lower()


def encode_command(command: Command) -> bytes:
    """A command as JSON."""
    values: dict[str, object] = {}
    for field in fields(command):
        value = getattr(command, field.name)
        if isinstance(value, Manifest):
            value = value.to_json()
        values["try" if field.name == "retry" else field.name] = value
    return to_bytes("verb", verb_of(command), values)


def decode_command(data: bytes | None) -> Command:
    """The command that a client sent.

    Raises:
        ProtocolError: It is none that this version knows; the message says what is wrong.
    """
    verb, words = from_bytes(data or b"", "verb", COMMAND_BYTES_MAX)
    if verb not in _READERS:
        raise ProtocolError(f"the verbs are {', '.join(_READERS)}; {verb!r} is none of them")
    command = _READERS[verb](words)
    words.end()
    if isinstance(command, Pull) and not 0 <= command.wait_seconds < math.inf:
        raise ProtocolError(f"wait_seconds must be at least 0, not {command.wait_seconds}")
    return command
