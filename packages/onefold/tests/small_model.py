"""What a run is to do, in dictionaries: the words of the design, and nothing from the ledger.

A :class:`Model` says what a push is answered, who is waited for, when a step is due and what it
closes with. ``small_explorer`` holds the ledger against it in every state that a small world has.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from onefold.policy import Policy

RUN = "run"
DEADLINE_HALVES = 2
"""A deadline comes nearer by halves, so that of two open steps one alone may be late."""

REFUSED_WHATEVER_IS_IN_IT = ("other_run", "unknown_worker", "fenced", "closed", "too_far")
REFUSED = (*REFUSED_WHATEVER_IS_IN_IT, "mismatch", "nonfinite", "conflict")


class Sent(NamedTuple):
    """One message. ``content`` and ``weight`` make up its digest, ``shape`` its signature."""

    worker: str
    step: int
    attempt: int | None = 1
    incarnation: int | None = None
    content: str = "x"
    weight: int = 1
    shape: int = 1
    nonfinite: bool = False
    run: str | None = None

    @property
    def order(self) -> tuple[int, int]:
        """By what the last one is decided; only among those that state attempts."""
        return (self.incarnation or 0, self.attempt or 0)

    @property
    def digest(self) -> str:
        """That of the content, which says everything that is in it."""
        return f"{self.content} {self.weight} {self.shape} {self.nonfinite}"

    @property
    def identity(self) -> tuple[int | None, int | None, str]:
        """Which sending of which content it is."""
        return (self.incarnation, self.attempt, self.digest)


class Answer(NamedTuple):
    """What a receipt is to say."""

    status: str
    counted: bool | None = None
    counted_as: int | None = None


class End(NamedTuple):
    """What a step is to close with; ``excluded`` gives each worker's reason in one word."""

    outcome: str
    counted: tuple[Sent, ...]
    excluded: dict[str, str]


@dataclass
class Open:
    """A step that is open.

    ``halves_left`` is the time to its deadline (None: it has none), ``told`` why a worker has no
    contribution, where something is known of it.
    """

    roster: tuple[str, ...] | None
    halves_left: int | None
    stands: dict[str, Sent] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def key(self) -> Key:
        """The same for the same state."""
        stands = tuple(self.stands[worker] for worker in sorted(self.stands))
        return (self.roster, self.halves_left, stands, tuple(sorted(self.told.items())))


Key: TypeAlias = tuple[object, ...]


@dataclass
class Model:
    """A run: ``newest`` incarnations, members, open steps, what closed ones closed with."""

    policy: Policy
    newest: dict[str, int] = field(default_factory=dict)
    lives: dict[tuple[str, str], int] = field(default_factory=dict)
    joined: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()
    open: dict[int, Open] = field(default_factory=dict)
    closed: dict[int, tuple[Sent, ...]] = field(default_factory=dict)
    shape: int | None = None

    def key(self) -> Key:
        """The same for the same state."""
        return (
            tuple(sorted((w, n) for w, n in self.newest.items() if n)),
            tuple(sorted(self.lives.items())),
            self.joined,
            tuple(sorted(self.left)),
            tuple((step, self.open[step].key()) for step in sorted(self.open)),
            tuple(
                (step, tuple((one.worker, *one.identity) for one in counted))
                for step, counted in sorted(self.closed.items())
            ),
            self.shape,
        )

    def changed(self, step: int | None = None) -> Model:
        """A copy to be changed, its ``step`` too."""
        other = copy(self)
        other.newest, other.lives = dict(self.newest), dict(self.lives)
        other.open, other.closed = dict(self.open), dict(self.closed)
        if step in other.open:
            was = self.open[step]
            other.open[step] = Open(was.roster, was.halves_left, dict(was.stands), dict(was.told))
        return other

    # Receipts: the first that applies.

    def answer(self, sent: Sent) -> Answer:
        """What the receipt of a push is to say."""
        status = self._status(sent)
        if status != "closed":
            return Answer(status)
        for one in self.closed.get(sent.step, ()):
            if one.worker == sent.worker:
                return Answer(status, one.identity == sent.identity, one.attempt)
        return Answer(status, counted=False)

    def _status(self, sent: Sent) -> str:
        if sent.run not in (None, RUN):
            return "other_run"
        if self._is_unknown(sent.worker, sent.step):
            return "unknown_worker"
        if sent.incarnation is not None and sent.incarnation < self.newest.get(sent.worker, 0):
            return "fenced"
        if self.is_over(sent.step):
            return "closed"
        if self.is_beyond(sent.step):
            return "too_far"
        if self._expected_shape(sent) not in (None, sent.shape):
            return "mismatch"
        if sent.nonfinite and self.policy.on_nonfinite == "reject":
            return "nonfinite"
        standing = self.open[sent.step].stands.get(sent.worker) if sent.step in self.open else None
        return _compared(standing, sent)

    def _is_unknown(self, worker: str, step: int) -> bool:
        """Whether the run has no place for it, or the step, open or opening now, has none."""
        roster = self.policy.roster
        if roster is not None and worker not in (self.policy.names or self.joined):
            return True
        if step in self.open:
            waits_for = self.open[step].roster
            return waits_for is not None and worker not in waits_for
        return worker in self.left and not self.is_over(step)

    def is_over(self, step: int) -> bool:
        """Whether the step has closed, or the window has gone past it."""
        if step in self.open:
            return False
        passed = step <= max(self.closed, default=step - 1)
        return passed or max(self.open, default=step) - step >= self.policy.open_steps_max

    def is_beyond(self, step: int) -> bool:
        """Whether the window does not reach to the step yet."""
        lowest = min(self.open, default=step)
        return step not in self.open and step - lowest >= self.policy.open_steps_max

    def _expected_shape(self, sent: Sent) -> int | None:
        """The policy's, else that of the first aggregate, else that of what stands elsewhere.

        All that stands together has one shape, so it does not matter which of it is the earliest;
        :meth:`check` holds that.
        """
        if self.policy.signature is not None:
            return self.policy.signature.tensors[0][1].shape[0]
        if self.shape is not None:
            return self.shape
        others = (
            one
            for step, opened in self.open.items()
            for one in opened.stands.values()
            if (step, one.worker) != (sent.step, sent.worker)
        )
        return next((one.shape for one in others), None)

    # What events do.

    def pushed(self, sent: Sent, status: str) -> Model:
        """The run after a push that was answered so; this very model if it changes nothing."""
        if status in ("mismatch", "nonfinite"):
            opened = self.open.get(sent.step)
            if opened is None or sent.worker not in (opened.roster or ()):
                return self
            after = self.changed(sent.step)
            after.open[sent.step].told[sent.worker] = status
            return after
        if status not in ("accepted", "replaced"):
            return self
        after = self.changed(sent.step)
        if sent.step not in after.open:
            halves = None if self.policy.deadline_seconds is None else DEADLINE_HALVES
            after.open[sent.step] = Open(self.roster_now(), halves)
        after.open[sent.step].stands[sent.worker] = sent
        after.open[sent.step].told.pop(sent.worker, None)
        after.newest[sent.worker] = max(self.newest.get(sent.worker, 0), sent.incarnation or 0)
        return after

    def roster_now(self, besides: str | None = None) -> tuple[str, ...] | None:
        """Whom a step that opened now would wait for, ``besides`` counted as present."""
        if self.policy.roster is None:
            return None
        names = self.policy.names or self.joined
        if besides is not None and besides not in names:
            names = (*names, besides)
        return tuple(name for name in names if name == besides or name not in self.left)

    def has_place(self, worker: str) -> bool:
        """Whether the worker may join."""
        names, seats = self.policy.names, self.policy.seats
        if names is not None:
            return worker in names
        return seats is None or worker in self.joined or len(self.joined) < seats

    def joins(self, worker: str, life: str) -> Model:
        """After a join: a known life changes nothing, a new one is the next incarnation."""
        if (worker, life) in self.lives:
            return self
        after = self.changed()
        after.newest[worker] = after.lives[worker, life] = self.newest.get(worker, 0) + 1
        after.left = self.left - {worker}
        if worker in self.joined:
            return after
        after.joined = (*self.joined, worker)
        if self.policy.seats is not None:  # it takes a place that the open steps kept free
            for step, opened in self.open.items():
                roster = (*(opened.roster or ()), worker)
                after.open[step] = Open(roster, opened.halves_left, opened.stands, opened.told)
        return after

    def leaves(self, worker: str, incarnation: int | None) -> Model:
        """After a leave, which no older incarnation can say for a newer."""
        if incarnation is not None and incarnation < self.newest.get(worker, 0):
            return self
        after = self.changed()
        after.left = self.left | {worker}
        return after

    def loses(self, step: int, worker: str) -> Model:
        """After the numbers of a contribution were lost."""
        after = self.changed(step)
        del after.open[step].stands[worker]
        after.open[step].told[worker] = "lost"
        return after

    def waits(self) -> Model:
        """After half of a deadline."""
        after = self
        for step, opened in self.open.items():
            if opened.halves_left:
                after = after.changed(step)
                after.open[step].halves_left = opened.halves_left - 1
        return after

    # When a step closes, and with what.

    def due(self, halves: int = 0) -> tuple[int, ...]:
        """The steps that are to close, so many halves of a deadline from now."""
        return tuple(step for step in sorted(self.open) if self._is_due(self.open[step], halves))

    def _is_due(self, opened: Open, halves: int) -> bool:
        if opened.roster is None or not opened.stands:
            return False
        seats_free = 0 if self.policy.seats is None else self.policy.seats - len(self.joined)
        missing = len(set(opened.roster) - opened.stands.keys()) + seats_free
        if missing == 0:
            return True
        late = opened.halves_left is not None and opened.halves_left <= halves
        minimum = self.policy.minimum
        return late and minimum is not None and len(opened.stands) >= minimum

    def end(self, step: int) -> End:
        """What the step would close with now."""
        opened = self.open[step]
        counted = [one for _, one in sorted(opened.stands.items()) if one.weight]
        why = dict.fromkeys(opened.roster or (), "nothing") | opened.told
        why |= dict.fromkeys(opened.stands, "weight")
        infinite = {one.worker for one in counted if one.nonfinite}
        if infinite and self.policy.on_nonfinite == "skip":
            why |= {one.worker: "skipped" for one in counted} | dict.fromkeys(infinite, "nonfinite")
            counted = []
        for one in counted:
            del why[one.worker]
        return End("update" if counted else "skipped", tuple(counted), why)

    def closes(self, step: int) -> Model:
        """After the step has closed."""
        counted = self.end(step).counted
        after = self.changed()
        del after.open[step]
        after.closed[step] = counted
        if after.shape is None and counted:
            after.shape = counted[0].shape
        return after

    # What must hold whatever the model says.

    def check(self) -> None:
        """What stands together looks alike; a step is open or closed; nobody stands uninvited."""
        standing = [one for opened in self.open.values() for one in opened.stands.values()]
        assert len({one.shape for one in standing}) <= 1
        assert not self.open.keys() & self.closed.keys()
        assert max(self.open, default=0) - min(self.open, default=0) < self.policy.open_steps_max
        for step, opened in self.open.items():
            assert opened.roster is None or opened.stands.keys() <= set(opened.roster)
            assert all(one.step == step for one in opened.stands.values())


def _compared(standing: Sent | None, sent: Sent) -> str:
    if standing is None:
        return "accepted"
    if (standing.attempt is None) != (sent.attempt is None):
        return "conflict"
    same = standing.digest == sent.digest
    if sent.attempt is None:  # arrival decides
        return "duplicate" if same else "replaced"
    if standing.order == sent.order:
        return "duplicate" if same else "conflict"
    return "replaced" if sent.order > standing.order else "superseded"
