"""What a seed stands for: who takes part, under which policy, and which faults there are.

Each kind of fault is left out of half of the scenarios. A run in which everything goes wrong all
the time hardly gets anywhere, and hides what goes wrong only if little else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from onefold.policy import OnNonfinite, Operation, Policy
from onefold.simulation.choices import Choices

__all__ = ["FAULTS", "Scenario"]

FAULTS: Mapping[str, float] = MappingProxyType(
    {
        "lose": 0.15,
        "lose reply": 0.15,
        "repeat": 0.3,
        "delay": 0.2,
        "partition": 0.04,
        "freeze": 0.06,
        "kill": 0.06,
        "leave": 0.15,
        "recompute": 0.4,
        "crash": 0.02,
        "crash before": 0.03,
        "crash after": 0.03,
        "power cut": 0.8,
        "write error": 0.03,
        "jump": 0.03,
        "late": 0.4,
    }
)
"""The kinds of faults, and how probable each is, where there may be one, if a scenario has it."""

_OPERATIONS: tuple[Operation, ...] = ("sum", "mean", "weighted_mean")
_ON_NONFINITE: tuple[OnNonfinite, ...] = ("propagate", "propagate", "reject", "skip")
_ROSTERS = ("names", "names", "joined", "seats", "by hand")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run, before anything has happened.

    Attributes:
        seed: What it was drawn from.
        workers: Their names.
        steps: How many steps each worker goes through.
        policy: The aggregator's.
        rates: How probable each kind of fault is, where there may be one.
        is_whole: Whether updates travel in one part.
        has_nan: Whether some updates have a NaN.
        timeout_seconds: How long clients go on without an answer.
        calm_at: From which virtual second on no fault strikes.
    """

    seed: int
    workers: tuple[str, ...]
    steps: int
    policy: Policy
    rates: Mapping[str, float]
    is_whole: bool
    has_nan: bool
    timeout_seconds: float
    calm_at: float

    @classmethod
    def of(cls, seed: int, workers: int | None = None, steps: int | None = None) -> Scenario:
        """The scenario of a seed; with that many workers and steps, if they are given."""
        choices = Choices(seed)
        count = workers or choices.whole(1, 4, "workers")
        names = tuple(f"w{index}" for index in range(count))
        return cls(
            seed=seed,
            workers=names,
            steps=steps or choices.whole(2, 5, "steps"),
            policy=_policy(choices, names),
            rates=MappingProxyType(
                {
                    kind: rate if choices.draw("has", kind) < 0.5 else 0.0
                    for kind, rate in FAULTS.items()
                }
            ),
            is_whole=choices.draw("whole") < 0.5,
            has_nan=choices.draw("nan") < 0.25,
            timeout_seconds=choices.among((120.0, 1e5, 1e5), "timeout"),
            calm_at=choices.among((100.0, 300.0, 600.0), "calm"),
        )

    def __str__(self) -> str:
        policy = self.policy
        words = [f"{len(self.workers)} workers, {self.steps} steps", f"roster {policy.roster!r}"]
        if policy.deadline_seconds is not None:
            words.append(f"minimum {policy.minimum} after {policy.deadline_seconds:g} s")
        words += [policy.operation, f"{policy.open_steps_max} open steps"]
        if policy.on_nonfinite != "propagate":
            words.append(f"on_nonfinite {policy.on_nonfinite}")
        if policy.sync_each_push:
            words.append("sync_each_push")
        if policy.keep_steps is not None:
            words.append(f"keep_steps {policy.keep_steps}")
        return ", ".join(words)


def _policy(choices: Choices, names: tuple[str, ...]) -> Policy:
    kind = choices.among(_ROSTERS, "roster")
    has_deadline = kind != "by hand" and choices.draw("deadline") < 0.5
    rosters = {"names": names, "joined": "joined", "seats": len(names), "by hand": None}
    return Policy(
        roster=rosters[kind],  # type: ignore[arg-type] # mypy joins the types to object
        minimum=choices.whole(1, len(names), "minimum") if has_deadline else None,
        deadline_seconds=choices.among((5.0, 20.0, 60.0), "seconds") if has_deadline else None,
        operation=choices.among(_OPERATIONS, "operation"),
        on_nonfinite=choices.among(_ON_NONFINITE, "on nonfinite"),
        open_steps_max=choices.whole(1, 3, "open steps"),
        sync_each_push=choices.draw("sync") < 0.3,
        keep_steps=2 if choices.draw("keep") < 0.2 else None,
    )
