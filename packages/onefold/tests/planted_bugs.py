"""Mistakes that an aggregator or client could make, each planted into the real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from onefold import aggregator, register
from onefold.client import session, spool
from onefold.ledger import Ledger, Unrecorded, machine, rules, steps
from onefold.ledger.members import Members
from onefold.receipt import Status
from onefold.server.dispatch import Dispatcher
from onefold.simulation.disk import SimulatedStore

Plant = Callable[[pytest.MonkeyPatch], None]


def _without(patch: pytest.MonkeyPatch, status: Status) -> None:
    patch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule[0] is not status))


def no_fencing(patch: pytest.MonkeyPatch) -> None:
    """An older incarnation may go on contributing."""
    _without(patch, Status.FENCED)


def last_to_arrive_wins(patch: pytest.MonkeyPatch) -> None:
    """A delayed older attempt takes the place of a newer one."""
    _without(patch, Status.SUPERSEDED)


def first_to_arrive_wins(patch: pytest.MonkeyPatch) -> None:
    """A later attempt is acknowledged, and the earlier one stays."""
    apply = steps.Steps.apply

    def applied(self: steps.Steps, change: object) -> None:
        if isinstance(change, machine.Contributed):
            standing = self.open[change.step].standing
            if change.contribution.worker in standing:
                return
        apply(self, change)  # type: ignore[arg-type]

    patch.setattr(steps.Steps, "apply", applied)


def step_ignored(patch: pytest.MonkeyPatch) -> None:
    """What a worker contributed to another open step is taken for that of this one."""

    def standing(self: steps.Steps, _step: int, worker: str) -> object:
        found = [known for _, known in self.all_standing() if known.worker == worker]
        return found[0] if found else None

    patch.setattr(steps.Steps, "standing", standing)


def messages_counted(patch: pytest.MonkeyPatch) -> None:
    """A step is complete once as many pushes have come as it waits for workers."""
    counts: Counter[tuple[int, int]] = Counter()
    push, is_due = Ledger.push, Ledger._is_due

    def pushed(self: Ledger, what: machine.Push, now: float, closed: object = None) -> object:
        counts[id(self), what.step] += 1
        return push(self, what, now, closed)  # type: ignore[arg-type]

    def due(self: Ledger, step: int, now: float) -> bool:
        open_step = self.steps.open[step]
        expected = len(self._roster(open_step) or ()) + self.members.vacant()
        many = bool(open_step.standing) and 0 < expected <= counts[id(self), step]
        return many or is_due(self, step, now)

    patch.setattr(Ledger, "push", pushed)
    patch.setattr(Ledger, "_is_due", due)


def minimum_ignored(patch: pytest.MonkeyPatch) -> None:
    """At its deadline a step closes with whoever is there."""
    is_due = Ledger._is_due

    def due(self: Ledger, step: int, now: float) -> bool:
        deadline_at = self.steps.open[step].opened.deadline_at
        return is_due(self, step, now) or (deadline_at is not None and now >= deadline_at)

    patch.setattr(Ledger, "_is_due", due)


def deadline_ignored(patch: pytest.MonkeyPatch) -> None:
    """A step closes with the minimum, without waiting for its deadline."""
    is_due = Ledger._is_due

    def due(self: Ledger, step: int, now: float) -> bool:
        late = self.steps.open[step].opened.deadline_at or now
        return is_due(self, step, max(now, late))

    patch.setattr(Ledger, "_is_due", due)


def vacant_seats_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A step waits only for those of the first N who have joined already."""
    patch.setattr(Members, "vacant", lambda _self: 0)


def leaving_takes_back(patch: pytest.MonkeyPatch) -> None:
    """The contribution of a worker that leaves is dropped."""
    leave = Ledger.leave

    def left(self: Ledger, worker: str, incarnation: int | None = None) -> tuple[object, ...]:
        changes = leave(self, worker, incarnation)
        dropped = [step for step, known in self.steps.all_standing() if known.worker == worker]
        return (*changes, *(Unrecorded(step, worker, "it left") for step in dropped if changes))

    patch.setattr(Ledger, "leave", left)


def closed_step_reopens(patch: pytest.MonkeyPatch) -> None:
    """A push for a closed step begins it anew."""
    _without(patch, Status.CLOSED)
    patch.setattr(steps.Steps, "below", lambda _self, _step: None)


def remembered_before_written(patch: pytest.MonkeyPatch) -> None:
    """What is known is changed first and written then, and stays if the disk refuses."""

    def write(self: register.Register, write: Callable[[], None], changes: object) -> None:
        self._ledger.apply(changes)  # type: ignore[arg-type]
        write()

    patch.setattr(register.Register, "_write", write)


def answered_before_written(patch: pytest.MonkeyPatch) -> None:
    """A push is acknowledged, and written down with the next one."""
    commit = SimulatedStore.commit

    def commits(self: SimulatedStore, changes: object, *, durable: bool) -> None:
        held = vars(self).setdefault("held", [])
        held.append(changes)
        while held and (durable or len(held) > 1):
            commit(self, held.pop(0), durable=durable)

    patch.setattr(SimulatedStore, "commit", commits)


def late_join_counts(patch: pytest.MonkeyPatch) -> None:
    """A join takes the place of whoever has joined, however late it comes."""
    patch.setattr(Members, "is_behind", lambda *_: False)


def join_not_synced(patch: pytest.MonkeyPatch) -> None:
    """A join is answered before it has reached the disk."""
    commit = SimulatedStore.commit

    def commits(self: SimulatedStore, changes: tuple[object, ...], *, durable: bool) -> None:
        joins = isinstance(changes[0], machine.WorkerJoined)
        commit(self, changes, durable=durable and not joins)  # type: ignore[arg-type]

    patch.setattr(SimulatedStore, "commit", commits)


def close_not_synced(patch: pytest.MonkeyPatch) -> None:
    """A closed step is visible before it has reached the disk."""
    close_step = SimulatedStore.close_step

    def closes(self: SimulatedStore, *closing: object) -> None:
        close_step(self, *closing)  # type: ignore[arg-type]
        changes, _ = self._disk.transactions.pop()
        self._disk.transactions.append((changes, False))

    patch.setattr(SimulatedStore, "close_step", closes)


def recovery_trusts_the_disk(patch: pytest.MonkeyPatch) -> None:
    """At its start the server does not look at what it finds."""
    patch.setattr(register.Register, "_recovered", register.Register._kept)


def lost_update_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    """The server does not tell a client that it lacks the update."""
    patch.setattr(Dispatcher, "_has_update", lambda _self, _command: True)


def retransmission_summed_twice(patch: pytest.MonkeyPatch) -> None:
    """What was sent as a second attempt is summed twice."""
    write = aggregator.write_aggregate
    conclude = machine.conclude
    selected: list[bool] = []

    def concluded(*arguments: object) -> object:
        closing = conclude(*arguments)  # type: ignore[arg-type]
        selected[:] = [(known.attempt or 0) > 1 for known in closing.selected]
        return closing

    def writes(
        store: object, step: int, payloads: list[object], *, weights: list[int], operation: str
    ) -> object:
        again = [index for index, twice in enumerate(selected) if twice]
        payloads = [*payloads, *(payloads[index] for index in again)]
        weights = [*weights, *(weights[index] for index in again)]
        return write(store, step, payloads, weights=weights, operation=operation)  # type: ignore[arg-type]

    patch.setattr(machine, "conclude", concluded)
    patch.setattr(aggregator, "write_aggregate", writes)


def late_parts_kept(patch: pytest.MonkeyPatch) -> None:
    """What comes in too late to be committed stays on the disk."""
    patch.setattr(register.Register, "refuses", lambda *_, **__: False)
    patch.setattr(aggregator.Unnamed, "take_expired", lambda _self, _now: set())


def client_forgets_what_was_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """The client drops an update as soon as there is a receipt."""
    send = session.Session._send

    def sends(self: session.Session, spooled: spool.Spooled) -> object:
        receipt = send(self, spooled)
        self._spool.forget(spooled.step)
        return receipt

    patch.setattr(session.Session, "_send", sends)


def client_keeps_the_attempt(patch: pytest.MonkeyPatch) -> None:
    """A recomputed update goes under the number of the first."""
    written = spool.Spool._written

    def writes(self: spool.Spool, step: int, _attempt: int, *rest: object) -> object:
        return written(self, step, 1, *rest)  # type: ignore[arg-type]

    patch.setattr(spool.Spool, "_written", writes)


def client_renews_its_incarnation(patch: pytest.MonkeyPatch) -> None:
    """The client takes the next incarnation of its own accord when it asks again."""
    poll = session.Session._poll

    def polls(self: session.Session, *arguments: object) -> object:
        self.joined = replace(self.joined, incarnation=self.joined.incarnation + 1)
        return poll(self, *arguments)  # type: ignore[arg-type]

    patch.setattr(session.Session, "_poll", polls)


PLANTS: Mapping[str, Plant] = MappingProxyType(
    {
        name: value
        for name, value in list(globals().items())
        if not name.startswith("_") and getattr(value, "__module__", "") == __name__
    }
)
