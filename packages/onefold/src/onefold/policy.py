"""What the two rules leave open, decided once per aggregator."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from onefold.checks import check_seconds, show, wrong_with_worker
from onefold.errors import InvalidInput, InvalidPolicy
from onefold.update import Signature

__all__ = ["OnNonfinite", "Operation", "Policy", "Roster"]

Operation: TypeAlias = Literal["sum", "mean", "weighted_mean"]
OnNonfinite: TypeAlias = Literal["propagate", "reject", "skip"]
Roster: TypeAlias = Sequence[str] | Literal["joined"] | int | None

_SECONDS_MAX = 1e9
"""A deadline is written down, sent as JSON and waited for: it is a time, never "no time"."""


@dataclass(frozen=True, slots=True)
class Policy:
    """When a step closes, what is computed then, and what is refused.

    Args:
        roster: The workers that a step waits for: a list of names; an integer N for the first N
            names that join; ``"joined"`` for the members at the moment the step opens; None for
            steps that only ``close(step)`` closes, with whoever contributed.
        minimum: How many contributions suffice once the deadline has passed; default: all.
        deadline_seconds: Wall-clock seconds from the opening of a step (its first push) to its
            deadline; default: none.
        operation: What an aggregate is: the sum, the mean over contributions, or the mean
            weighted by ``weight``.
        on_nonfinite: What becomes of NaN and infinity: ``"propagate"`` as IEEE 754 does,
            ``"reject"`` the update, or ``"skip"`` the step (it closes without tensors).
        signature: Names, kinds, dtypes and shapes that every update must have; default: those of
            the first closed step, before that of the earliest contribution that stands.
        open_steps_max: The span of steps that may be open at a time; a push beyond is ``too_far``.
        sync_each_push: Make each accepted update survive a power cut, not only a crash.
        keep_steps: How many aggregates, of the last steps to close, keep their tensors; default:
            all.

    Raises:
        InvalidPolicy: A value is out of range, or two contradict each other.
    """

    roster: Roster = None
    minimum: int | None = None
    deadline_seconds: float | None = None
    operation: Operation = "sum"
    on_nonfinite: OnNonfinite = "propagate"
    signature: Signature | None = None
    open_steps_max: int = 2
    sync_each_push: bool = False
    keep_steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "roster", _checked_roster(self.roster))
        if self.operation not in ("sum", "mean", "weighted_mean"):
            raise InvalidPolicy(
                f"operation must be sum, mean or weighted_mean, not {self.operation!r}"
            )
        if self.on_nonfinite not in ("propagate", "reject", "skip"):
            raise InvalidPolicy(
                f"on_nonfinite must be propagate, reject or skip, not {self.on_nonfinite!r}"
            )
        if self.signature is not None and not isinstance(self.signature, Signature):
            raise InvalidPolicy("signature must be a Signature: Signature.of({name: array, ...})")
        _at_least_one("open_steps_max", self.open_steps_max)
        if self.keep_steps is not None:
            _at_least_one("keep_steps", self.keep_steps)
        self._check_deadline()

    def _check_deadline(self) -> None:
        if self.roster is None and (self.minimum is not None or self.deadline_seconds is not None):
            raise InvalidPolicy(
                "minimum and deadline_seconds need a roster: without one only close(step) closes"
            )
        if self.deadline_seconds is not None:
            _positive_and_finite("deadline_seconds", self.deadline_seconds)
        if self.minimum is None:
            return
        _at_least_one("minimum", self.minimum)
        if self.deadline_seconds is None:
            raise InvalidPolicy(
                "minimum says how many suffice once the deadline has passed; "
                "it needs deadline_seconds"
            )
        size = self.roster if isinstance(self.roster, int) else len(self.names or ())
        if size and self.minimum > size:
            raise InvalidPolicy(f"minimum is {self.minimum} but the roster has {size} workers")

    @property
    def fixed(self) -> str:
        """What must not change within a run, as JSON: what is computed, and whom steps wait for."""
        return json.dumps({"operation": self.operation, "roster": self.roster})

    def check_fixed(self, kept: str, where: str) -> None:
        """Compare with :attr:`fixed` of the policy that a run began with.

        Raises:
            InvalidPolicy: They differ; sums would be mixed with means, or steps with other steps.
        """
        if kept != self.fixed:
            raise InvalidPolicy(
                f"the run in {where} has {_fixed_text(kept)}; it cannot go on with "
                f"{_fixed_text(self.fixed)}: state what it has, or begin another run elsewhere"
            )

    @property
    def names(self) -> tuple[str, ...] | None:
        """The roster where it is a list of names, else None."""
        return self.roster if isinstance(self.roster, tuple) else None

    @property
    def seats(self) -> int | None:
        """N where the roster is the first N names that join, else None."""
        return self.roster if isinstance(self.roster, int) else None


def _fixed_text(fixed: str) -> str:
    values = json.loads(fixed)
    whom = {None: "nobody in particular", "joined": "whoever has joined"}
    roster = values["roster"]
    if isinstance(roster, int):
        waits = f"the first {roster} that join"
    else:
        waits = reprlib.repr(roster) if isinstance(roster, list) else whom[roster]
    return f"the operation {values['operation']!r} and steps that wait for {waits}"


def _checked_roster(roster: object) -> tuple[str, ...] | int | str | None:
    if roster is None or roster == "joined":
        return "joined" if roster == "joined" else None
    if isinstance(roster, int) and not isinstance(roster, bool):
        _at_least_one("a roster's size", roster)
        return roster
    if isinstance(roster, str | bytes) or not isinstance(roster, Sequence):
        order = "; a set has no order: sorted(...) gives it one" if isinstance(roster, Set) else ""
        raise InvalidPolicy(
            "a roster is a list of names, an integer N (the first N that join), "
            f'"joined" or None, not {show(roster)}{order}'
        )
    names = tuple(roster)
    if not names:
        raise InvalidPolicy("a roster that is a list has at least one name")
    for wrong in filter(None, map(wrong_with_worker, names)):
        raise InvalidPolicy(f"in the roster {show(list(names))}: {wrong}")
    if len(set(names)) != len(names):
        raise InvalidPolicy(f"a roster names each worker once: {names!r}")
    return names


def _positive_and_finite(what: str, seconds: object) -> None:
    try:
        value = check_seconds(what, seconds, positive=True)
    except InvalidInput as error:
        raise InvalidPolicy(str(error)) from None
    if value > _SECONDS_MAX:
        raise InvalidPolicy(
            f"{what} must be at most 1e9 (30 years), not {value}; leave it out for a step without "
            "a deadline"
        )


def _at_least_one(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidPolicy(f"{what} must be an integer of at least 1, not {value!r}")
