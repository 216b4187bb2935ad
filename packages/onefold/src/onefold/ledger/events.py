"""The frozen values that go into the ledger and come out of it.

*Events* are what happens to it: :class:`Push`, and the calls ``join``, ``leave``, ``close``.
*Receipts* are what it answers. *Changes* are what a decision does to the state: the ledger applies
them to itself, a store writes the same values down, and applying them again rebuilds the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import xxhash

from onefold.receipt import Receipt
from onefold.update import Signature

__all__ = [
    "Behind",
    "Change",
    "Closing",
    "Contributed",
    "Contribution",
    "Contributor",
    "Decision",
    "Excluded",
    "IncarnationSeen",
    "JoinAnswer",
    "Joined",
    "Outcome",
    "Push",
    "RefusalNoted",
    "SignatureFixed",
    "StepClosed",
    "StepOpened",
    "Unrecorded",
    "WorkerJoined",
    "WorkerLeft",
]

Outcome: TypeAlias = Literal["update", "skipped"]


@dataclass(frozen=True, slots=True)
class Push:
    """An update as the ledger sees it: everything but the numbers.

    ``attempt`` and ``incarnation`` are None where the sender states none: without attempts arrival
    decides, and without an incarnation nothing is fenced. ``nonfinite`` says where a NaN or
    infinity stands, if the policy asks and the weight is not 0. ``payload`` is the store's name for
    the numbers.
    """

    step: int
    worker: str
    digest: str
    signature: Signature
    weight: int = 1
    incarnation: int | None = None
    attempt: int | None = None
    run: str | None = None
    nonfinite: str | None = None
    payload: str = ""

    @property
    def order(self) -> tuple[int, int]:
        """By what "last" is decided where attempts are stated."""
        return _order(self.incarnation, self.attempt)


@dataclass(frozen=True, slots=True)
class Contribution:
    """The one update that counts, so far, for (step, worker)."""

    worker: str
    digest: str
    signature: Signature
    weight: int
    incarnation: int | None
    attempt: int | None
    arrival: int
    payload: str
    nonfinite: str | None = None

    @classmethod
    def of(cls, push: Push, arrival: int) -> Contribution:
        """The contribution that a push becomes; ``arrival`` counts them."""
        return cls(
            worker=push.worker,
            digest=push.digest,
            signature=push.signature,
            weight=push.weight,
            incarnation=push.incarnation,
            attempt=push.attempt,
            arrival=arrival,
            payload=push.payload,
            nonfinite=push.nonfinite,
        )

    @property
    def order(self) -> tuple[int, int]:
        """By what "last" is decided where attempts are stated."""
        return _order(self.incarnation, self.attempt)


@dataclass(frozen=True, slots=True)
class Contributor:
    """A worker that is in an aggregate, and with what."""

    worker: str
    incarnation: int | None
    attempt: int | None
    weight: int
    digest: str

    @property
    def identity(self) -> tuple[str, int | None, int | None, str]:
        """Which sending of which content it is."""
        return (self.worker, self.incarnation, self.attempt, self.digest)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A worker that is not in an aggregate, and why."""

    worker: str
    reason: str


class JoinAnswer:
    """What a join is answered with: :class:`Joined` or :class:`Behind`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Behind(JoinAnswer):
    """The join would have come after an incarnation that is no longer the newest; nothing changed.

    ``incarnation`` is the newest: whoever is alive to hear this may join after that one.
    """

    worker: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Joined(JoinAnswer):
    """The answer to a join.

    ``roster`` is whom a step that opened now would wait for, as far as they have joined (None: for
    nobody), ``index`` the worker's position in it, ``first_open_step`` where a worker that starts
    or restarts goes on. ``size`` is how many that step would wait for, those included who have yet
    to join: with a roster of N names or the first N that join it is N for each worker, whoever
    comes first, and so the one to share work by. With ``"joined"`` it is the members of this
    moment, and another worker's may differ.
    """

    run: str
    worker: str
    incarnation: int
    roster: tuple[str, ...] | None
    index: int | None
    first_open_step: int
    size: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerJoined:
    """A life of a worker begins."""

    worker: str
    life: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class WorkerLeft:
    """A worker has left: steps that open from now on do not wait for it."""

    worker: str


@dataclass(frozen=True, slots=True)
class IncarnationSeen:
    """A push stated a higher incarnation than was known, which fences those below it."""

    worker: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class StepOpened:
    """The first push of a step. Times are Unix seconds.

    ``roster`` is who the step waits for, None for nobody; ``vacant`` how many more it waits for
    who have yet to join.
    """

    step: int
    roster: tuple[str, ...] | None
    opened_at: float
    deadline_at: float | None
    vacant: int = 0


@dataclass(frozen=True, slots=True)
class Contributed:
    """An update becomes its worker's contribution, in place of any earlier one."""

    step: int
    contribution: Contribution


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A contribution whose numbers are missing or damaged is taken out; it is to be sent again.

    ``reason`` is told by the aggregate if that does not happen before the step closes.
    """

    step: int
    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class RefusalNoted:
    """Why a worker that the step waits for was refused last; the aggregate will tell."""

    step: int
    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class StepClosed:
    """A step is over."""

    step: int
    outcome: Outcome
    contributors: tuple[Contributor, ...]
    excluded: tuple[Excluded, ...]
    closed_at: float

    @property
    def count(self) -> int:
        """The number of contributions in the aggregate."""
        return len(self.contributors)

    @property
    def total_weight(self) -> int:
        """The weight of the contributions in the aggregate."""
        return sum(contributor.weight for contributor in self.contributors)

    def counted(self, push: Push) -> bool:
        """Whether this very incarnation, attempt and content is in the aggregate."""
        sent = (push.worker, push.incarnation, push.attempt, push.digest)
        return any(
            sent == (c.worker, c.incarnation, c.attempt, c.digest) for c in self.contributors
        )

    def attempt_of(self, worker: str) -> int | None:
        """The attempt that a worker is in the aggregate with; None if it is not, or stated none."""
        return next((c.attempt for c in self.contributors if c.worker == worker), None)

    def digest(self) -> str:
        """XXH3-128 of the included set: who counted, with which attempt, weight and content."""
        lines = [f"{self.step} {self.outcome}"]
        lines += [
            f"{c.worker!r} {c.incarnation} {c.attempt} {c.weight} {c.digest}"
            for c in sorted(self.contributors, key=lambda c: c.worker)
        ]
        return xxhash.xxh3_128_hexdigest("\n".join(lines).encode())


@dataclass(frozen=True, slots=True)
class SignatureFixed:
    """The first step with an aggregate has closed: later updates look like those of this one."""

    step: int
    signature: Signature


Change: TypeAlias = (
    WorkerJoined
    | WorkerLeft
    | IncarnationSeen
    | StepOpened
    | Contributed
    | Unrecorded
    | RefusalNoted
    | StepClosed
    | SignatureFixed
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the ledger answers to a push, and what is to be written down for it to be true."""

    receipt: Receipt
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """A step that is to close: what to sum, and the changes that make it so."""

    selected: tuple[Contribution, ...]
    closed: StepClosed
    fixed: SignatureFixed | None = None

    @property
    def changes(self) -> tuple[Change, ...]:
        """What to write down once the aggregate is durable."""
        return (self.closed,) if self.fixed is None else (self.closed, self.fixed)


def _order(incarnation: int | None, attempt: int | None) -> tuple[int, int]:
    return (incarnation or 0, -1 if attempt is None else attempt)
