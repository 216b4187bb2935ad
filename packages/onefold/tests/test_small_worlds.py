"""The ledger in every state that small worlds have, and bugs that are found there.

``python small_worlds.py`` prints how large each world is, and the larger ones that are left to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from small_explorer import (
    Disagreement,
    explore,
    kept_by_tables,
)
from small_worlds import BY_NAME, SIZES, WORLDS

from onefold.ledger import Change, IncarnationSeen, Ledger, StepClosed, Unrecorded, machine, rules
from onefold.ledger.members import Members
from onefold.ledger.steps import Steps
from onefold.receipt import Status
from onefold.store import MemoryStore


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_state(world):
    """In every state the ledger does what the model says, and what a store kept rebuilds it.

    The sizes are exact: an exploration that reached less would prove less.
    """
    assert explore(world).size == SIZES[world.name]


@pytest.mark.parametrize(
    "name", ["comings and goings", "lost numbers", "a NaN, reject", "three with two contents"]
)
def test_every_state_in_tables(name):
    """What SQLite kept along the way to a state rebuilds that state."""
    world = BY_NAME[name]
    for state in explore(world).found:
        kept_by_tables(world, state)


def without(*statuses: Status) -> dict[str, object]:
    """The rules, one or more left out."""
    left = tuple(rule for rule in rules.RULES if rule[0] not in statuses)
    return {"onefold.ledger.rules.RULES": left}


def standing_anywhere(self: Steps, step: int, worker: str) -> object:
    found = (open_step.standing.get(worker) for open_step in self.open.values())
    return next((one for one in found if one is not None), None)


def complete_by_messages(self: Ledger, step: int, now: float) -> bool:
    roster = self.roster(step)
    return roster is not None and self._arrivals >= len(roster)


def late_is_enough(self: Ledger, step: int, now: float) -> bool:
    deadline_at = self.steps.open[step].opened.deadline_at
    late = deadline_at is not None and now >= deadline_at
    return (late and bool(self.steps.open[step].standing)) or is_due(self, step, now)


def never_late(self: Ledger, step: int, now: float) -> bool:
    return is_due(self, step, 0.0)


def late_by_a_moment(self: Ledger, step: int, now: float) -> bool:
    return is_due(self, step, now - 1e-6)


def unrecord_nothing(self: Steps, change: Any) -> None:
    if not isinstance(change, Unrecorded):
        steps_apply(self, change)


def rebuilt_without_incarnations(self: MemoryStore) -> Iterator[Change]:
    return (one for one in store_changes(self) if not isinstance(one, IncarnationSeen))


def rebuilt_without_the_last_close(self: MemoryStore) -> Iterator[Change]:
    return (one for one in store_changes(self) if not isinstance(one, StepClosed))


def all_that_are_there(self: Members, joining: str | None = None) -> tuple[str, ...] | None:
    roster = next_roster(self, joining)
    return None if roster is None else tuple(name for name in roster if self.has_joined(name))


def of_this_worker(self: StepClosed, push: Any) -> bool:
    return any(one.worker == push.worker for one in self.contributors)


def the_last_closes(step: int, open_step: Any, *rest: Any) -> Any:
    kept = dict(list(open_step.standing.items())[-2:])
    return conclude(step, machine.OpenStep(open_step.opened, kept, open_step.refusals), *rest)


is_due = Ledger._is_due
steps_apply = Steps.apply
next_roster = Members.next_roster
store_changes = MemoryStore.changes
conclude = machine.conclude

DUE = "onefold.ledger.machine.Ledger._is_due"
CHANGES = "onefold.store.memory.MemoryStore.changes"
PLANTED: dict[str, tuple[str, dict[str, object]]] = {
    "an older life is not fenced": ("lives", without(Status.FENCED)),
    "another step's contribution is taken for this one's": (
        "a list of names",
        {"onefold.ledger.steps.Steps.standing": standing_anywhere},
    ),
    "a late older attempt takes the place": (
        "a list, one step at a time",
        without(Status.SUPERSEDED),
    ),
    "a repeat is taken for a new update": ("a list, one step at a time", without(Status.DUPLICATE)),
    "other content of the same attempt is taken": ("two contents", without(Status.CONFLICT)),
    "a closed step opens again": ("a list, one step at a time", without(Status.CLOSED)),
    "a step opens however far ahead": ("a list, one step at a time", without(Status.TOO_FAR)),
    "any run's push is taken": ("another run", without(Status.OTHER_RUN)),
    "a stranger's push is taken": ("a stranger", without(Status.UNKNOWN_WORKER)),
    "any signature is taken": ("two signatures", without(Status.MISMATCH)),
    "a NaN is taken": ("a NaN, reject", without(Status.NONFINITE)),
    "messages are counted": ("a list, one step at a time", {DUE: complete_by_messages}),
    "the deadline asks for no minimum": ("a deadline, two of three", {DUE: late_is_enough}),
    "the deadline never comes": ("a deadline, two of three", {DUE: never_late}),
    "the deadline comes a moment late": ("a deadline, two of three", {DUE: late_by_a_moment}),
    "what was lost still stands": (
        "lost numbers",
        {"onefold.ledger.steps.Steps.apply": unrecord_nothing},
    ),
    "a restart forgets who is fenced": ("incarnations", {CHANGES: rebuilt_without_incarnations}),
    "a restart forgets what closed": (
        "a list, one step at a time",
        {CHANGES: rebuilt_without_the_last_close},
    ),
    "a roster waits for nobody who has not come": (
        "a list, and goings",
        {"onefold.ledger.members.Members.next_roster": all_that_are_there},
    ),
    "another attempt is said to count": (
        "a list, one step at a time",
        {"onefold.ledger.events.StepClosed.counted": of_this_worker},
    ),
    "a step closes with the last two": (
        "a list, one step at a time",
        {"onefold.ledger.machine.conclude": the_last_closes},
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_is_found(monkeypatch, bug):
    """Each of these mistakes is found, by a way of at most seven events."""
    name, patches = PLANTED[bug]
    for place, wrong in patches.items():
        monkeypatch.setattr(place, wrong)
    with pytest.raises(Disagreement) as found:
        explore(BY_NAME[name])
    assert len(found.value.way) <= 7
