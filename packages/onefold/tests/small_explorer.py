"""Every state that a small world can reach, with the ledger held against the model in each.

A world is a policy and the events that may happen: messages, joins, leaves, closings, losses, the
passing of time. From each state each of them happens, so what is gone through is every order, every
repetition (an event stays possible after it has happened) and every loss (it may never happen). A
state is gone through once, however many ways lead to it, since what the ledger does depends on its
state alone. States that differ in nothing but when what stands arrived are taken for one; in
``test_small_systems`` all ways through the smallest worlds are gone apart. Breadth first, so the
way that is told of a disagreement is a shortest.

After every change the ledger is rebuilt from what a store kept of it, and goes on as what was
rebuilt: there is no state at which a restart has not been tried.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest
from small_model import (
    DEADLINE_HALVES,
    REFUSED,
    REFUSED_WHATEVER_IS_IN_IT,
    RUN,
    Key,
    Model,
    Sent,
)

from onefold.errors import NoUpdate, UnknownWorker
from onefold.ledger import (
    Change,
    Contributor,
    Ledger,
    Push,
    SignatureFixed,
    StepClosed,
    StepOpened,
)
from onefold.parts import Manifest
from onefold.parts.manifest import TensorManifest
from onefold.policy import Policy
from onefold.store import MemoryStore
from onefold.store.files import Files
from onefold.store.tables import Tables
from onefold.update import Signature, TensorSpec

NOW = 1000.0
_INFINITE = "a NaN"


class Joins(NamedTuple):
    """A life of a worker begins, or says so again."""

    worker: str
    life: str = "1"


class Leaves(NamedTuple):
    """A worker leaves; an incarnation may say so for itself."""

    worker: str
    incarnation: int | None = None


class Closes(NamedTuple):
    """A step is closed: it is due, or somebody says so."""

    step: int


class Loses(NamedTuple):
    """The numbers of what stands are lost."""

    step: int
    worker: str


class Waits(NamedTuple):
    """Half a deadline passes."""


Event: TypeAlias = Sent | Joins | Leaves | Closes | Loses | Waits


@dataclass(frozen=True)
class World:
    """What may happen.

    ``by_hand``: any open step may be closed at any time. ``lossy``: what stands may be lost at any
    time. ``prompt``: what is due is closed before anything else happens, as an aggregator does it
    while no other thread is closing a step. ``before`` has happened when the world begins.
    """

    name: str
    policy: Policy
    messages: tuple[Sent, ...]
    comings: tuple[Joins | Leaves, ...] = ()
    by_hand: bool = False
    lossy: bool = False
    prompt: bool = False
    before: tuple[Joins, ...] = ()

    @property
    def lives(self) -> list[tuple[str, str]]:
        """The lives that may begin."""
        comings = (*self.before, *self.comings)
        return sorted({(one.worker, one.life) for one in comings if isinstance(one, Joins)})

    def events(self, model: Model) -> Iterator[Event]:
        """What may happen next."""
        due = model.due()
        if due and self.prompt:
            yield Closes(due[0])
            return
        yield from self.messages
        yield from self.comings
        can_close = [step for step in sorted(model.open) if model.open[step].stands]
        yield from map(Closes, can_close if self.by_hand else due)
        if self.policy.deadline_seconds is not None:
            yield Waits()
        if self.lossy:
            for step, opened in sorted(model.open.items()):
                yield from (Loses(step, worker) for worker in sorted(opened.stands))


@dataclass(frozen=True)
class State:
    """A state: as the model has it, as the store kept it, and the way to it."""

    model: Model
    key: Key
    kept: tuple[Change, ...] = ()
    closed: tuple[StepClosed, ...] = ()
    changes: tuple[Change, ...] = ()
    way: tuple[State, Event] | None = None

    def passed(self) -> list[State]:
        """The states on a shortest way from the beginning, this one the last."""
        passed, before = [self], self.way
        while before is not None:
            passed.append(before[0])
            before = before[0].way
        return passed[::-1]

    def events(self) -> list[Event]:
        """What happened on that way."""
        return [state.way[1] for state in self.passed() if state.way is not None]

    def over(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        return next((one for one in self.closed if one.step == step), None)


class Disagreement(AssertionError):
    """The ledger and the model are of two minds; the message gives a shortest way there."""

    def __init__(self, world: World, state: State, event: Event | None, what: str) -> None:
        self.way = [*state.events(), *([] if event is None else [event])]
        lines = "\n".join(f"  {number}. {event!r}" for number, event in enumerate(self.way, 1))
        super().__init__(f"in the world {world.name!r}, after\n{lines}\n{what}")


@dataclass
class Explored:
    """How much there was; ``ends`` are the states right after a step has closed."""

    states: int = 0
    transitions: int = 0
    steps_closed: int = 0
    ends: tuple[State, ...] = ()
    found: tuple[State, ...] = ()

    @property
    def size(self) -> tuple[int, int, int]:
        """How many states, transitions and closings there are."""
        return (self.states, self.transitions, self.steps_closed)


def explore(world: World) -> Explored:
    """Go through all states of a world.

    Raises:
        Disagreement: The ledger and the model differ.
    """
    first = beginning(world)
    seen = {first.key}
    waiting, found = deque([first]), [first]
    explored = Explored()
    ends: dict[Key, State] = {}
    while waiting:
        state = waiting.popleft()
        for event, after in transitions(world, state, seen):
            explored.transitions += 1
            if after is None:
                continue
            if isinstance(event, Closes):
                explored.steps_closed += 1
                ends.setdefault((event.step, after.model.closed[event.step]), after)
            if after.key not in seen:
                seen.add(after.key)
                waiting.append(after)
                found.append(after)
    explored.states = len(seen)
    explored.ends, explored.found = tuple(ends.values()), tuple(found)
    return explored


def beginning(world: World) -> State:
    """The state in which a world begins."""
    model = Model(world.policy)
    state = State(model, model.key())
    for event in world.before:
        after = _Expansion(world, state, set()).after(event)
        assert after is not None
        state = after
    return state


def transitions(
    world: World, state: State, known: Set[Key] = frozenset()
) -> Iterator[tuple[Event, State | None]]:
    """Whatever may happen in a state, and what comes of it; None if that is the same state.

    A store is asked to keep what is not ``known`` yet; the others come without what it kept.
    """
    expansion = _Expansion(world, state, known)
    event: Event | None = None
    try:
        expansion.look()
        for event in world.events(state.model):
            yield event, expansion.after(event)
        event = None
        came = open_state(expansion.ledger, world.lives)
        same("the ledger, after it decided", came, state.key[:-2])
    except AssertionError as difference:
        raise Disagreement(world, state, event, str(difference)) from None


class _Difference(AssertionError):
    """What differs, without the way to it."""


def same(what: str, came: object, expected: object) -> None:
    """Hold what came of something against what the model says."""
    if came != expected:
        raise _Difference(f"{what}: expected {expected!r}, came {came!r}")


class _Expansion:
    """One state, from which events happen."""

    def __init__(self, world: World, state: State, known: Set[Key]) -> None:
        self.world, self.state, self.known = world, state, known
        self.model = state.model
        self.refusing: dict[tuple[object, ...], bool] = {}
        self.ledger = Ledger(RUN, world.policy, state.kept)

    def look(self) -> None:
        """What can be asked without changing anything."""
        self.model.check()
        half = (self.world.policy.deadline_seconds or 0) / DEADLINE_HALVES
        for halves in range(DEADLINE_HALVES + 1):
            same("due", self.ledger.due(NOW + halves * half), self.model.due(halves))
        if half:
            same("due", self.ledger.due(NOW + half - 1e-3), self.model.due())
        same("due, much later", self.ledger.due(NOW + 1e9), self.model.due(DEADLINE_HALVES))
        for step in {sent.step for sent in self.world.messages}:
            opened = self.model.open.get(step)
            if opened is not None:
                same("roster", self.ledger.roster(step), opened.roster)
            if opened is None or not opened.stands:
                with pytest.raises(NoUpdate):
                    self.ledger.close(step, NOW)

    def after(self, event: Event) -> State | None:
        """The state after an event."""
        match event:
            case Sent():
                return self._push(event)
            case Joins():
                return self._join(event)
            case Leaves():
                return self._changed(event, self.model.leaves(*event), self.ledger.leave(*event))
            case Closes():
                return self._close(event)
            case Loses():
                return self._changed(event, self.model.loses(*event), self.ledger.unrecord(*event))
            case Waits():
                return self._wait(event)

    def _push(self, sent: Sent) -> State | None:
        push, over = push_of(sent), self.state.over(sent.step)
        decision = self.ledger.push(push, NOW, over)
        answer, receipt = self.model.answer(sent), decision.receipt
        told = (receipt.status.value, receipt.counted, receipt.counted_as)
        same("receipt", told, tuple(answer))
        same("a reason", bool(receipt.reason), True)
        said = (receipt.step, receipt.worker, *(receipt.incarnation, receipt.attempt))
        same("whose", said, (sent.step, sent.worker, sent.incarnation, sent.attempt))
        refused = answer.status in REFUSED_WHATEVER_IS_IN_IT
        same("refused whatever is in it", self._refuses(sent, over), refused)
        after = self.model.pushed(sent, answer.status)
        self._check_stands(sent, answer.status, after)
        return self._changed(sent, after, decision.changes)

    def _refuses(self, sent: Sent, over: StepClosed | None) -> bool:
        who = (sent.step, sent.worker, sent.incarnation, sent.run)
        if who not in self.refusing:
            self.refusing[who] = self.ledger.refuses(
                *who[:2], incarnation=sent.incarnation, run=sent.run, closed=over
            )
        return self.refusing[who]

    def _check_stands(self, sent: Sent, status: str, after: Model) -> None:
        """The highest that was not refused stands: never a lower in place of a higher."""
        opened = self.model.open.get(sent.step)
        was = opened.stands.get(sent.worker) if opened else None
        stands = self.ledger.stands(sent.step, sent.worker, sent.incarnation, sent.attempt)
        sent_or_later = was is not None and (sent.attempt is None or was.order >= sent.order)
        same("stands", stands, sent_or_later)
        if status in REFUSED:
            return
        now = after.open[sent.step].stands[sent.worker]
        if sent.attempt is not None:
            same("the highest stands", now.order, max(sent.order, was.order if was else (0, 0)))
        else:
            same("the last to arrive stands", now.digest, sent.digest)

    def _join(self, event: Joins) -> State | None:
        worker, life = event
        if not self.model.has_place(worker):
            with pytest.raises(UnknownWorker):
                self.ledger.join(worker, life)
            return None
        joined, changes = self.ledger.join(worker, life)
        after = self.model.joins(worker, life)
        roster = self.model.roster_now(worker)
        same("incarnation", joined.incarnation, after.lives[worker, life])
        same("roster", joined.roster, roster)
        same("index", joined.index, None if roster is None else roster.index(worker))
        first = joined.first_open_step
        useful = Sent(worker, first, None, shape=after.shape or 1)
        answer = replace(after, left=after.left - {worker}).answer(useful).status
        same("the first open step", answer in ("unknown_worker", "closed"), False)
        return self._changed(event, after, changes)

    def _close(self, event: Closes) -> State | None:
        closing = self.ledger.close(event.step, NOW)
        end, closed = self.model.end(event.step), closing.closed
        same("outcome", closed.outcome, end.outcome)
        counted = [(c.worker, c.incarnation, c.attempt, c.digest) for c in closed.contributors]
        same("contributors", counted, [(one.worker, *one.identity) for one in end.counted])
        same(
            "weights", [c.weight for c in closed.contributors], [one.weight for one in end.counted]
        )
        same("to sum", [sent_of(one.payload) for one in closing.selected], [*end.counted])
        told = [(one.worker, _in_a_word(one.reason)) for one in closed.excluded]
        same("excluded", told, sorted(end.excluded.items()))
        after = self.model.closes(event.step)
        fixed = None if closing.fixed is None else shape_of(closing.fixed.signature)
        same("fixed", fixed, after.shape if self.model.shape is None else None)
        return self._changed(event, after, closing.changes)

    def _wait(self, event: Waits) -> State | None:
        """Time passes by deadlines coming nearer; one that is past stays just past."""
        after = self.model.waits()
        if after is self.model:
            return None
        seconds = self.world.policy.deadline_seconds or 0
        kept = tuple(_nearer(change, seconds) for change in self.state.kept)
        expansion = _Expansion(self.world, replace(self.state, kept=kept), self.known)
        waited = expansion._changed(event, after, (), waited=True)
        return None if waited is None else replace(waited, way=(self.state, event))

    def _changed(
        self, event: Event, after: Model, changes: Sequence[Change], *, waited: bool = False
    ) -> State | None:
        """The state after changes, as a store has it and as a ledger rebuilt from it."""
        key = after.key()
        if not changes and not waited:
            same("nothing was written down", self.state.key, key)
            return None
        ended = any(isinstance(one, StepClosed | SignatureFixed) for one in changes)
        same("a step is closed by closing it", ended, isinstance(event, Closes))
        self.ledger.apply(changes)
        same("the ledger", open_state(self.ledger, self.world.lives), key[:-2])
        same("due now", self.ledger.due(NOW), after.due())
        self.ledger = Ledger(RUN, self.world.policy, self.state.kept)
        if key in self.known:
            return State(after, key, way=(self.state, event))
        store = MemoryStore()
        store.commit((*self.state.closed, *self.state.kept), durable=False)
        store.commit(changes, durable=False)
        kept, closed = what_is_kept(store, after)
        check_kept(self.world, key, kept, closed)
        before = tuple(one for one in closed if self.state.over(one.step) is not None)
        same("a closed step, as it was", before, self.state.closed)
        return State(after, key, kept, closed, changes, (self.state, event))


def check_kept(
    world: World, key: Key, kept: tuple[Change, ...], closed: tuple[StepClosed, ...]
) -> None:
    """Hold what a store kept of a run against the state that it was in."""
    again = Ledger(RUN, world.policy, kept)
    same("the ledger rebuilt", open_state(again, world.lives), key[:-2])
    fixed = [shape_of(one.signature) for one in kept if isinstance(one, SignatureFixed)]
    same("the signature", fixed, [] if key[-1] is None else [key[-1]])
    counted = tuple((one.step, tuple(map(_identity, one.contributors))) for one in closed)
    same("closed steps", counted, key[-2])


def kept_by_tables(world: World, state: State) -> None:
    """Have SQLite keep each change on the way to a state, and hold what it kept against that."""
    tables = Tables(Path(":memory:"), Files())
    try:
        for passed in state.passed():
            tables.commit(passed.changes, durable=False)
        check_kept(world, state.key, *what_is_kept(tables, state.model))
    finally:
        tables.close()


def what_is_kept(
    store: MemoryStore | Tables, model: Model
) -> tuple[tuple[Change, ...], tuple[StepClosed, ...]]:
    """What a store has of a run: the changes that rebuild the ledger, and what closed."""
    closed = map(store.closed_step, sorted(model.closed))
    return tuple(store.changes()), tuple(one for one in closed if one is not None)


def open_state(ledger: Ledger, lives: Iterable[tuple[str, str]]) -> Key:
    """A ledger's state in the terms of the model, but for what is in the store alone."""
    members = ledger.members
    workers = ("a", "b", "c")
    known = ((worker, life, *members.join(worker, life)) for worker, life in lives)
    joined = members.seated()
    return (
        tuple((w, n) for w in workers if (n := members.incarnation(w))),
        tuple(((worker, life), number) for worker, life, number, new in known if not new),
        joined,
        tuple(worker for worker in workers if members.has_left(worker)),
        tuple((step, _open_key(ledger, step)) for step in sorted(ledger.steps.open)),
    )


def _open_key(ledger: Ledger, step: int) -> Key:
    opened = ledger.steps.open[step]
    seconds = ledger.policy.deadline_seconds
    at, halves = opened.opened.deadline_at, None
    if at is not None and seconds is not None:
        halves = round((at - NOW) / seconds * DEADLINE_HALVES)
    stands = [opened.standing[worker] for worker in sorted(opened.standing)]
    told = tuple((w, _in_a_word(reason)) for w, reason in sorted(opened.refusals.items()))
    return (ledger.roster(step), halves, tuple(sent_of(one.payload) for one in stands), told)


def _nearer(change: Change, seconds: float) -> Change:
    """A step that was opened half a deadline earlier; one that is late is just late."""
    if not isinstance(change, StepOpened):
        return change
    opened_at = max(change.opened_at - seconds / DEADLINE_HALVES, NOW - seconds)
    return replace(change, opened_at=opened_at, deadline_at=opened_at + seconds)


def _identity(one: Contributor) -> tuple[object, ...]:
    return (one.worker, one.incarnation, one.attempt, one.digest)


_WORDS = {
    "nothing had come": "nothing",
    "refused: mismatch": "mismatch",
    "refused: nonfinite": "nonfinite",
    "accepted": "lost",
    "its weight is 0": "weight",
    "the step was skipped": "skipped",
    _INFINITE: "nonfinite",
}


def _in_a_word(reason: str) -> str:
    words = [word for start, word in _WORDS.items() if reason.startswith(start)]
    return words[0] if words else reason


# A message as the ledger has it. Its payload is a manifest, so that every store can keep it.


@cache
def push_of(sent: Sent) -> Push:
    """The push that a message is."""
    tensor = TensorManifest("", TensorSpec("dense", "float64", (sent.shape,)), None)
    manifest = Manifest((tensor,), sent.weight, "0" * 32, (repr(sent),))
    payload = json.dumps(manifest.to_json())
    _SENT[payload] = sent
    return Push(
        step=sent.step,
        worker=sent.worker,
        digest=sent.digest,
        signature=signature(sent.shape),
        weight=sent.weight,
        incarnation=sent.incarnation,
        attempt=sent.attempt,
        run=sent.run,
        nonfinite=_INFINITE if sent.nonfinite else None,
        payload=payload,
    )


def sent_of(payload: str) -> Sent:
    """The message that a payload came with."""
    return _SENT[payload]


_SENT: dict[str, Sent] = {}


@cache
def signature(shape: int) -> Signature:
    """That of an update with so many values."""
    return Signature.of({"": np.zeros(shape)})


def shape_of(of: Signature) -> int:
    """How many values an update with this signature has."""
    return next(shape for shape in (1, 2) if signature(shape) == of)
