"""Who belongs to a run: lives, incarnations, and the roster that a step gets when it opens."""

from __future__ import annotations

from dataclasses import dataclass, field

from onefold.ledger.events import Change, IncarnationSeen, WorkerJoined, WorkerLeft
from onefold.policy import Policy

__all__ = ["Members"]

_UNJOINED_INCARNATION_MAX = 2**62
"""The highest incarnation that a push may state which no join gave. What joins give goes on from
there, so as many again are left of 64 bits."""


@dataclass(slots=True)
class _Member:
    lives: dict[str, int] = field(default_factory=dict)
    incarnation: int = 0
    present: bool = True


class Members:
    """The workers that have joined, left, or stated an incarnation."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._members: dict[str, _Member] = {}
        self._joined: list[str] = []

    def apply(self, change: WorkerJoined | WorkerLeft | IncarnationSeen) -> None:
        """Remember a change."""
        member = self._members.setdefault(change.worker, _Member())
        match change:
            case WorkerJoined():
                if not member.lives:
                    self._joined.append(change.worker)
                member.lives[change.life] = change.incarnation
                member.incarnation = max(member.incarnation, change.incarnation)
                member.present = True
            case WorkerLeft():
                member.present = False
            case IncarnationSeen():
                member.incarnation = max(member.incarnation, change.incarnation)

    def incarnation(self, worker: str) -> int:
        """The newest incarnation known of a worker; 0 if none is."""
        member = self._members.get(worker)
        return member.incarnation if member else 0

    def join(self, worker: str, life: str) -> tuple[int, tuple[Change, ...]]:
        """The incarnation of a life, and what a new one changes."""
        member = self._members.get(worker)
        if member is not None and life in member.lives:
            return member.lives[life], ()
        incarnation = self.incarnation(worker) + 1
        return incarnation, (WorkerJoined(worker, life, incarnation),)

    def is_behind(self, worker: str, life: str, after: int) -> bool:
        """Whether a new life that is to come right after an incarnation would come later."""
        member = self._members.get(worker)
        is_known = member is not None and life in member.lives
        return not is_known and after != self.incarnation(worker)

    def leave(self, worker: str, incarnation: int | None) -> tuple[Change, ...]:
        """What a leave changes: nothing if a newer incarnation has come, or it was said before."""
        stale = incarnation is not None and incarnation < self.incarnation(worker)
        return () if stale or self.has_left(worker) else (WorkerLeft(worker),)

    def has_joined(self, worker: str) -> bool:
        """Whether any life of the worker ever joined."""
        return worker in self._joined

    def has_left(self, worker: str) -> bool:
        """Whether the worker left and no new life has joined since."""
        member = self._members.get(worker)
        return member is not None and not member.present

    def seated(self) -> tuple[str, ...]:
        """The workers that joined, in the order in which they first did; at most the seats."""
        return tuple(self._joined[: self._policy.seats])

    def no_place(self, worker: str) -> str | None:
        """Why the roster can never have a place for this name; None if it can."""
        names, seats = self._policy.names, self._policy.seats
        if names is not None and worker not in names:
            return f"the roster is {', '.join(names)}"
        taken = self.seated()
        if seats is not None and len(taken) == seats and worker not in taken:
            return f"the roster's {seats} places are taken by {', '.join(taken)}"
        return None

    def no_life(self, worker: str, incarnation: int | None) -> str | None:
        """Why this can be no incarnation of the worker; None if it is or may be one."""
        known = self.incarnation(worker)
        if incarnation is None or incarnation <= max(known, _UNJOINED_INCARNATION_MAX):
            return None
        return (
            f"its newest incarnation is {known}, and one that no join gave is at most 2^62, "
            f"not {incarnation}"
        )

    def next_roster(self, joining: str | None = None) -> tuple[str, ...] | None:
        """Who a step that opened now would wait for, ``joining`` counted as present."""
        if self._policy.roster is None:
            return None
        candidates = self._policy.names or self.seated()
        if joining is not None and joining not in candidates:
            candidates = (*candidates, joining)
        return tuple(name for name in candidates if name == joining or not self.has_left(name))

    def vacant(self) -> int:
        """How many places of a roster of the first N are not taken yet."""
        return 0 if self._policy.seats is None else self._policy.seats - len(self.seated())
