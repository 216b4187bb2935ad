"""The open steps: which may open, who each waits for, and when it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onefold.ledger.events import (
    Contributed,
    Contribution,
    RefusalNoted,
    StepClosed,
    StepOpened,
    Unrecorded,
)
from onefold.policy import Policy

__all__ = ["OpenStep", "Steps"]


@dataclass(slots=True)
class OpenStep:
    """A step that has been pushed to and has not closed.

    ``refusals`` says of workers without a contribution what became of what they sent last.
    """

    opened: StepOpened
    standing: dict[str, Contribution] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)

    def roster(self, seated: tuple[str, ...], seats: int | None) -> tuple[str, ...] | None:
        """Who the step waits for; places that were vacant when it opened go to who joined since."""
        if self.opened.roster is None or seats is None:
            return self.opened.roster
        return self.opened.roster + seated[seats - self.opened.vacant :]


class Steps:
    """The window of open steps."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.open: dict[int, OpenStep] = {}
        self.highest_closed: int | None = None

    def apply(
        self, change: StepOpened | Contributed | Unrecorded | RefusalNoted | StepClosed
    ) -> None:
        """Remember a change."""
        match change:
            case StepOpened():
                self.open[change.step] = OpenStep(change)
            case Contributed():
                self.open[change.step].standing[change.contribution.worker] = change.contribution
                self.open[change.step].refusals.pop(change.contribution.worker, None)
            case Unrecorded():
                self.open[change.step].standing.pop(change.worker, None)
                self.open[change.step].refusals[change.worker] = change.reason
            case RefusalNoted():
                self.open[change.step].refusals[change.worker] = change.reason
            case StepClosed():
                self.open.pop(change.step, None)
                if self.highest_closed is None or change.step > self.highest_closed:
                    self.highest_closed = change.step

    def standing(self, step: int, worker: str) -> Contribution | None:
        """A worker's contribution so far to an open step."""
        open_step = self.open.get(step)
        return open_step.standing.get(worker) if open_step else None

    def all_standing(self) -> Iterator[tuple[int, Contribution]]:
        """Every contribution to every open step, with the step."""
        for step, open_step in self.open.items():
            for contribution in open_step.standing.values():
                yield step, contribution

    def below(self, step: int) -> str | None:
        """Why ``step`` can no longer open; None if it is open or still can."""
        if step in self.open:
            return None
        if self.highest_closed is not None and step <= self.highest_closed:
            return f"the step is over: step {self.highest_closed} has closed"
        highest = max(self.open, default=step)
        if highest - step < self._policy.open_steps_max:
            return None
        return (
            f"the step is below the open window: step {highest} is open, "
            f"and at most {self._policy.open_steps_max} steps in a row are"
        )

    def beyond(self, step: int) -> str | None:
        """Why ``step`` is too far ahead to open; None if it is open or can."""
        lowest = min(self.open, default=step)
        if step in self.open or step - lowest < self._policy.open_steps_max:
            return None
        return (
            f"step {lowest} is still open, and at most {self._policy.open_steps_max} steps "
            "in a row are (open_steps_max); wait for it to close"
        )

    def first_open(self) -> int:
        """The lowest step that is open or opens next."""
        candidates = set(self.open)
        if self.highest_closed is not None:
            candidates.add(self.highest_closed + 1)
        return min(candidates, default=0)
