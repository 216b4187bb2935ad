"""Random runs of an aggregator against a model of a few lines: dictionaries and Fractions.

The model holds what stands for each (step, worker) and predicts every receipt. The aggregator is
driven through joins, leaves, pushes that are repeated, reordered, stale or from a dead life,
closes, deadlines and, on a directory, restarts at any point. Whatever happens:

* once: the contributors of a step are the model's winners, each with its very sending;
* whole: all tensors of a winner are in the sum, to the bit, and nothing else is;
* told: contributors and excluded are distinct and cover the roster;
* for good: an aggregate that was read once is the same ever after.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from onefold.aggregate import Aggregate
from onefold.aggregator import Aggregator
from onefold.contract import reduce_coordinates, reduce_replicas
from onefold.errors import NotYet, NoUpdate, UnknownWorker
from onefold.ledger import Joined, Status
from onefold.policy import Policy
from onefold.testing.support import Clock, pairs, reasons, sparse
from onefold.update import Tensor, Update

WORKERS = ("a", "b", "c")
POLICIES = {
    "by hand": Policy(operation="mean"),
    "list": Policy(roster=WORKERS, operation="sum"),
    "joined": Policy(roster="joined", operation="weighted_mean"),
    "seats": Policy(roster=2, open_steps_max=3),
    "deadline": Policy(roster=WORKERS, minimum=2, deadline_seconds=10, open_steps_max=1),
}
CONTENTS: list[tuple[float, list[tuple[int, float]]]] = [
    (0.1, [(3, 1e16), (1, 0.5)]),
    (1e16, [(3, 1.0), (3, -1e16)]),
    (-1e16, []),
    (2.0**-1074, [(-1, 0.1), (2**62, 3.0)]),
]


def update_of(content: int, weight: int) -> Update:
    dense, entries = CONTENTS[content]
    tensors: dict[str, Tensor] = {"d": np.array([dense]), "s": sparse(*entries)}
    return Update(tensors, weight)


@dataclass(frozen=True)
class Sent:
    """One sending, as the model keeps it."""

    incarnation: int | None
    attempt: int | None
    content: int
    weight: int

    @property
    def order(self) -> tuple[int, int]:
        return (self.incarnation or 0, -1 if self.attempt is None else self.attempt)


@dataclass
class Open:
    """A step that is open: its roster (None: nobody is waited for) and what stands."""

    roster: set[str] | None
    deadline_at: float
    stands: dict[str, Sent] = field(default_factory=dict)


@dataclass
class Model:
    policy: Policy
    fences: dict[str, int] = field(default_factory=dict)
    lives: dict[tuple[str, str], int] = field(default_factory=dict)
    joined: list[str] = field(default_factory=list)
    departed: set[str] = field(default_factory=set)
    open: dict[int, Open] = field(default_factory=dict)
    closed: dict[int, dict[str, Sent]] = field(default_factory=dict)

    def has_seat(self, worker: str) -> bool:
        seats = self.policy.seats
        return seats is None or worker in self.joined or len(self.joined) < seats

    def is_open(self, step: int) -> bool:
        """Whether the step is open or may open."""
        return step in self.open or (step > max(self.closed, default=-1) and self.fits(step))

    def front(self) -> int:
        """Where the run is: the oldest open step, or the next to open."""
        return min(self.open, default=max(self.closed, default=-1) + 1)

    def fits(self, step: int) -> bool:
        steps = {step, *self.open}
        return max(steps) - min(steps) + 1 <= self.policy.open_steps_max

    def roster_now(self) -> set[str] | None:
        if self.policy.roster is None:
            return None
        names = self.policy.names or self.joined
        return set(names) - self.departed

    def waits_for(self, step: int) -> set[str] | None:
        """With seats, also for who joined since; an empty seat is waited for as nobody's name."""
        roster = self.open[step].roster
        if roster is None or self.policy.seats is None:
            return roster
        return {*self.joined, *(f"seat {n}" for n in range(len(self.joined), self.policy.seats))}

    def is_stranger(self, step: int, worker: str) -> bool:
        if self.policy.roster is None and step in self.open:
            return False
        if self.policy.roster is None:
            return worker in self.departed
        roster = self.waits_for(step) if step in self.open else self.roster_now()
        return worker not in (roster or ())

    def expected(self, step: int, worker: str, sent: Sent) -> set[Status]:
        """What the push may be answered: one status, or two where it is over for a stranger."""
        over: set[Status] = set()
        if not self.is_open(step):
            beyond = step > max([*self.closed, *self.open], default=-1)
            over = {Status.TOO_FAR if beyond else Status.CLOSED}
        if self.is_stranger(step, worker):
            return {Status.UNKNOWN_WORKER} | over | ({Status.FENCED} if over else set())
        if sent.incarnation is not None and sent.incarnation < self.fences.get(worker, 0):
            return {Status.FENCED}
        return (
            over or {self.compared(self.open[step].stands.get(worker), sent)}
            if (over or step in self.open)
            else {Status.ACCEPTED}
        )

    @staticmethod
    def compared(standing: Sent | None, sent: Sent) -> Status:
        if standing is None:
            return Status.ACCEPTED
        same = (standing.content, standing.weight) == (sent.content, sent.weight)
        if (standing.attempt is None) != (sent.attempt is None):
            return Status.CONFLICT
        if sent.attempt is None:
            return Status.DUPLICATE if same else Status.REPLACED
        if standing.order == sent.order:
            return Status.DUPLICATE if same else Status.CONFLICT
        return Status.REPLACED if sent.order > standing.order else Status.SUPERSEDED

    def record(self, step: int, worker: str, sent: Sent, now: float) -> None:
        deadline = self.policy.deadline_seconds or float("inf")
        opened = self.open.setdefault(step, Open(self.roster_now(), now + deadline))
        opened.stands[worker] = sent

    def due(self, now: float) -> list[int]:
        return [step for step in sorted(self.open) if self.is_due(step, now)]

    def is_due(self, step: int, now: float) -> bool:
        roster, stands = self.waits_for(step), self.open[step].stands
        if roster is None:
            return False
        minimum = self.policy.minimum or len(roster)
        late = now >= self.open[step].deadline_at and len(stands) >= minimum
        return bool(stands) and (stands.keys() >= roster or late)


class Machine(RuleBasedStateMachine):
    """The aggregator and the model side by side."""

    directory: Path | None = None

    @initialize(name=st.sampled_from(sorted(POLICIES)))
    def start(self, name: str) -> None:
        self.clock = Clock()
        self.model = Model(POLICIES[name])
        self.read: dict[int, tuple[object, ...]] = {}
        self.open()

    def open(self) -> None:
        self.aggregator = Aggregator(self.directory, self.model.policy, clock=self.clock)
        self.aggregator.open()

    def teardown(self) -> None:
        if hasattr(self, "aggregator"):
            self.aggregator.shutdown()

    @rule(
        ahead=st.sampled_from([0, 0, 0, 1, 1, 2, -1, -2]),
        worker=st.sampled_from(WORKERS),
        incarnation=st.sampled_from([None, 1, 2, 3]),
        attempt=st.sampled_from([None, 0, 1, 2]),
        content=st.integers(0, len(CONTENTS) - 1),
        weight=st.sampled_from([1, 1, 3, 0]),
        times=st.integers(1, 2),
    )
    def push(self, *, ahead, worker, incarnation, attempt, content, weight, times) -> None:
        if attempt is None:
            incarnation = None
        if self.model.policy.deadline_seconds is not None:
            weight = max(1, weight)  # whether nothing counts towards the minimum is left open
        step = max(0, self.model.front() + ahead)
        for _ in range(times):
            self.send(step, worker, Sent(incarnation, attempt, content, weight))

    @rule(
        workers=st.permutations(WORKERS),
        attempt=st.sampled_from([None, 0, 1]),
        contents=st.tuples(*[st.integers(0, len(CONTENTS) - 1)] * 3),
    )
    def push_round(self, workers, attempt, contents) -> None:
        """What most of a run is: everybody pushes to the step at which it is."""
        step = self.model.front()
        for worker, content in zip(workers, contents, strict=True):
            self.send(step, worker, Sent(None, attempt, content, 1))

    def send(self, step: int, worker: str, sent: Sent) -> None:
        model, known = self.model, self.model.fences.get(worker, 0)
        self.settle()
        expected = model.expected(step, worker, sent)
        receipt = self.aggregator.push(
            step,
            worker,
            update_of(sent.content, sent.weight),
            attempt=sent.attempt,
            incarnation=sent.incarnation,
        )
        assert receipt.status in expected, receipt
        assert receipt.reason
        if receipt.status is Status.CLOSED:
            winner = model.closed.get(step, {}).get(worker)
            counts = winner == sent and sent.weight > 0
            assert receipt.counted == counts
            if winner is not None and winner.weight:
                assert receipt.counted_as == winner.attempt
        if receipt.status in (Status.ACCEPTED, Status.REPLACED):
            model.fences[worker] = max(known, sent.incarnation or 0)
            model.record(step, worker, sent, self.clock.now)
        self.settle()

    def settle(self) -> None:
        """Close, in the model, what is due by now, and look at what the aggregator made of it."""
        for step in self.model.due(self.clock.now):
            self.check_closed(step, self.aggregator.pull(step, timeout_seconds=0))

    @rule(worker=st.sampled_from(WORKERS), life=st.sampled_from(["1", "2"]))
    def join(self, worker: str, life: str) -> None:
        model = self.model
        if not model.has_seat(worker):
            with pytest.raises(UnknownWorker):
                self.aggregator.join(worker, life)
            return
        joined: Joined = self.aggregator.join(worker, life)
        known = model.lives.get((worker, life))
        if known is None:
            assert joined.incarnation > model.fences.get(worker, 0)
            model.fences[worker] = joined.incarnation
            model.lives[worker, life] = joined.incarnation
            model.departed.discard(worker)
            model.joined += [] if worker in model.joined else [worker]
        else:
            assert joined.incarnation == known
        if worker not in model.departed:
            self.check_first_open(worker, joined.first_open_step)
        self.settle()

    def check_first_open(self, worker: str, first: int) -> None:
        """It takes the update, at the latest when the window has moved on, and none is missed."""
        model = self.model
        top = max([*model.open, *model.closed], default=-1)
        assert not model.is_stranger(first, worker)
        assert model.is_open(first) or first > top
        takes = [step for step in model.open if not model.is_stranger(step, worker)]
        assert first <= min(takes, default=top + 1)

    @precondition(lambda self: self.model.policy.seats is None)
    @rule(worker=st.sampled_from(WORKERS))
    def leave(self, worker: str) -> None:
        if worker in self.model.joined:  # who never joined has nothing to leave
            self.aggregator.leave(worker)
            self.model.departed.add(worker)

    @rule(ahead=st.integers(-2, 2))
    def close(self, ahead: int) -> None:
        self.settle()
        step = max(0, self.model.front() + ahead)
        if step in self.model.open:
            self.check_closed(step, self.aggregator.close(step))
        elif step not in self.model.closed:
            with pytest.raises(NoUpdate):
                self.aggregator.close(step)

    @rule(seconds=st.sampled_from([3.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.aggregator.tick()
        self.settle()

    @rule(ahead=st.integers(-2, 2))
    def pull(self, ahead: int) -> None:
        step = max(0, self.model.front() + ahead)
        if step in self.model.closed:
            assert snapshot(self.aggregator.pull(step, timeout_seconds=0)) == self.read[step]
            return
        beyond = step > max([*self.model.closed, *self.model.open], default=-1)
        over = not (self.model.is_open(step) or beyond)
        with pytest.raises(NoUpdate if over else NotYet):
            self.aggregator.pull(step, timeout_seconds=0)

    def check_closed(self, step: int, aggregate: Aggregate) -> None:
        opened = self.model.open[step]
        roster = {w for w in self.model.waits_for(step) or () if w in WORKERS}
        del self.model.open[step]
        self.model.closed[step] = opened.stands
        winners = {worker: sent for worker, sent in opened.stands.items() if sent.weight}
        counted = {c.worker: c for c in aggregate.contributors}
        assert len(counted) == len(aggregate.contributors)
        assert {w: (c.incarnation, c.attempt, c.weight, c.digest) for w, c in counted.items()} == {
            w: (s.incarnation, s.attempt, s.weight, update_of(s.content, s.weight).digest())
            for w, s in winners.items()
        }
        assert reasons(aggregate).keys() == (roster | opened.stands.keys()) - winners.keys()
        assert len(reasons(aggregate)) == len(aggregate.excluded)
        assert aggregate.outcome == ("update" if winners else "skipped")
        assert aggregate.tensors.keys() == ({"d", "s"} if winners else set())
        if winners:
            self.check_numbers(step, aggregate, winners)
        self.read[step] = snapshot(aggregate)

    def check_numbers(self, step: int, aggregate: Aggregate, winners: dict[str, Sent]) -> None:
        operation = self.model.policy.operation
        factor = {w: s.weight if operation == "weighted_mean" else 1 for w, s in winners.items()}
        divisor = 1 if operation == "sum" else sum(factor.values())
        dense = [
            (step, w, Fraction(CONTENTS[s.content][0]) * factor[w] / divisor)
            for w, s in winners.items()
        ]
        rows = [
            (w, [(c, Fraction(v) * factor[w] / divisor) for c, v in CONTENTS[s.content][1]])
            for w, s in winners.items()
        ]
        assert np.asarray(aggregate.tensors["d"]).tolist() == [float(reduce_replicas(dense, step))]
        expected = [(c, float(v)) for c, v in reduce_coordinates(rows)]
        assert pairs(aggregate.tensors["s"]) == expected

    @invariant()
    def what_was_read_stays(self) -> None:
        for step in list(getattr(self, "read", ()))[-3:]:
            assert snapshot(self.aggregator.pull(step, timeout_seconds=0)) == self.read[step]


def snapshot(aggregate: Aggregate) -> tuple[object, ...]:
    """Everything about an aggregate, to the bit."""
    tensors = aggregate.tensors
    dense = np.asarray(tensors["d"]).tobytes() if tensors else b""
    entries = pairs(tensors["s"]) if tensors else []
    return (
        *(aggregate.step, aggregate.outcome, dense, entries),
        *(aggregate.contributors, aggregate.excluded, aggregate.digest),
    )


class DirectoryMachine(Machine):
    """The same on a directory, restarted at any point."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="onefold-model-"))

    @rule()
    def restart(self) -> None:
        self.aggregator.shutdown()
        self.open()

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory)


SETTINGS = settings(
    derandomize=True,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
)


class TestInMemory(Machine.TestCase):
    settings = settings(SETTINGS, max_examples=150, stateful_step_count=40)


class TestOnDirectory(DirectoryMachine.TestCase):
    settings = settings(SETTINGS, max_examples=25, stateful_step_count=25)
