"""The ledger by itself: a pure state machine, driven by frozen events and a time."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.errors import NoUpdate, UnknownWorker
from onefold.ledger import (
    RULES,
    Change,
    Closing,
    Contributed,
    Decision,
    Joined,
    Ledger,
    Push,
    Receipt,
    RefusalNoted,
    Status,
    StepClosed,
    StepOpened,
)
from onefold.policy import Policy
from onefold.update import Signature

SIGNATURE = Signature.of({"w": np.zeros(1)})
OTHER = Signature.of({"w": np.zeros(2)})
AB = Policy(roster=["a", "b"])


class Run:
    """A ledger with what a store does around it: it keeps the changes and the closed steps."""

    def __init__(self, policy: Policy = AB, changes: Sequence[Change] = ()) -> None:
        self.ledger = Ledger("run", policy, changes)
        self.changes = list(changes)
        self.closed = {c.step: c for c in changes if isinstance(c, StepClosed)}
        self.now = 1000.0

    def apply(self, changes: Iterable[Change]) -> None:
        changes = tuple(changes)
        self.ledger.apply(changes)
        self.changes += changes
        self.closed |= {c.step: c for c in changes if isinstance(c, StepClosed)}

    def decide(self, push: Push) -> Decision:
        return self.ledger.push(push, self.now, self.closed.get(push.step))

    def send(self, push: Push) -> Receipt:
        decision = self.decide(push)
        self.apply(decision.changes)
        return decision.receipt

    def join(self, worker: str, life: str = "life") -> Joined:
        joined, changes = self.ledger.join(worker, life)
        self.apply(changes)
        return joined

    def close(self, step: int) -> Closing:
        closing = self.ledger.close(step, self.now)
        self.apply(closing.changes)
        return closing

    def close_due(self) -> None:
        for step in self.ledger.due(self.now):
            self.close(step)


def push(
    worker: str = "a",
    digest: str = "x",
    *,
    step: int = 7,
    attempt: int | None = None,
    incarnation: int | None = None,
    signature: Signature = SIGNATURE,
    weight: int = 1,
    run: str | None = None,
    nonfinite: str | None = None,
) -> Push:
    return Push(
        step=step,
        worker=worker,
        digest=digest,
        signature=signature,
        weight=weight,
        incarnation=incarnation,
        attempt=attempt,
        run=run,
        nonfinite=nonfinite,
        payload=f"{worker} {digest}",
    )


# -- the receipts ---------------------------------------------------------------------------------

REJECT = dataclasses.replace(AB, on_nonfinite="reject")

SEQUENCES: dict[Status, tuple[Policy, list[Push]]] = {
    Status.OTHER_RUN: (AB, [push(run="another")]),
    Status.UNKNOWN_WORKER: (AB, [push("c")]),
    Status.FENCED: (AB, [push(attempt=0, incarnation=2), push(attempt=9, incarnation=1)]),
    Status.CLOSED: (AB, [push("a"), push("b"), push("a")]),
    Status.TOO_FAR: (AB, [push(step=7), push(step=9)]),
    Status.MISMATCH: (AB, [push("a"), push("b", signature=OTHER)]),
    Status.NONFINITE: (REJECT, [push(nonfinite="tensor 'w', element 0: nan")]),
    Status.CONFLICT: (AB, [push(attempt=0), push(digest="y", attempt=0)]),
    Status.DUPLICATE: (AB, [push(attempt=0), push(attempt=0)]),
    Status.SUPERSEDED: (AB, [push(attempt=1), push(digest="y", attempt=0)]),
    Status.REPLACED: (AB, [push(attempt=0), push(digest="y", attempt=1)]),
    Status.ACCEPTED: (AB, [push(attempt=0)]),
}


def last_receipt(policy: Policy, pushes: Sequence[Push]) -> Receipt:
    run = Run(policy)
    receipts = []
    for event in pushes:
        receipts.append(run.send(event))
        run.close_due()
    return receipts[-1]


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_sequence_that_gives_it(status: Status) -> None:
    """All the receipts exist, each with its reason in words and what was sent."""
    policy, pushes = SEQUENCES[status]
    receipt = last_receipt(policy, pushes)
    assert receipt.status is status
    assert receipt.reason.strip()
    sent = pushes[-1]
    assert (receipt.step, receipt.worker, receipt.digest) == (sent.step, sent.worker, sent.digest)
    assert (receipt.incarnation, receipt.attempt) == (sent.incarnation, sent.attempt)
    assert (receipt.counted is not None) == (status is Status.CLOSED)


def test_the_table_has_every_rule_once() -> None:
    """The transition table is complete and in the order in which the rules are documented."""
    named = [str(status) for rule in RULES for status in Status if status in _statuses_of(rule)]
    assert named == sorted(set(named), key=[str(status) for status in Status].index)
    assert set(named) == {str(status) for status in Status}


def _statuses_of(rule: object) -> set[Status]:
    values = (
        [getattr(rule, field.name) for field in dataclasses.fields(rule)]
        if dataclasses.is_dataclass(rule)
        else list(rule)  # type: ignore[call-overload]
    )
    return {value for value in values if isinstance(value, Status)}


ONLY_FIRST = [
    # what both apply to the last push; the first of them is the answer
    (Status.OTHER_RUN, AB, [push("c", run="another")]),  # and unknown
    (Status.OTHER_RUN, AB, [push("a"), push("b"), push("a", run="another")]),  # and closed
    (Status.FENCED, AB, [*SEQUENCES[Status.FENCED][1], push(attempt=0, incarnation=1)]),
    (
        Status.FENCED,  # and closed
        AB,
        [push(attempt=0, incarnation=2), push("b"), push(attempt=0, incarnation=1)],
    ),
    (
        Status.FENCED,  # and too far
        AB,
        [push(attempt=0, incarnation=2), push(step=20, attempt=0, incarnation=1)],
    ),
    (Status.CLOSED, AB, [push("a"), push("b"), push("a", signature=OTHER)]),  # and mismatch
    (Status.CLOSED, REJECT, [push("a"), push("b"), push("a", nonfinite="nan")]),
    (Status.TOO_FAR, AB, [push("a"), push("a", step=9, signature=OTHER)]),
    (
        Status.MISMATCH,  # and nonfinite
        REJECT,
        [push("a"), push("b", signature=OTHER, nonfinite="nan")],
    ),
    (
        Status.MISMATCH,  # and conflict
        Policy(),
        [push("b"), push("a", attempt=1), push("a", "y", attempt=1, signature=OTHER)],
    ),
    (
        Status.MISMATCH,  # and superseded
        Policy(),
        [push("b"), push("a", attempt=1), push("a", "y", attempt=0, signature=OTHER)],
    ),
    (
        Status.NONFINITE,  # and conflict
        REJECT,
        [push("a", attempt=1), push("a", "y", attempt=1, nonfinite="nan")],
    ),
    (
        Status.NONFINITE,  # and superseded
        REJECT,
        [push("a", attempt=1), push("a", "y", attempt=0, nonfinite="nan")],
    ),
]


@pytest.mark.parametrize(("status", "policy", "pushes"), ONLY_FIRST)
def test_the_first_rule_that_applies_is_the_answer(
    status: Status, policy: Policy, pushes: list[Push]
) -> None:
    """Where two rules apply to a push, the receipt has the earlier in the list of statuses."""
    assert last_receipt(policy, pushes).status is status


def test_an_unknown_worker_comes_before_its_fence() -> None:
    """A departed worker's old life, at a step that it is not waited for at: unknown."""
    run = Run(Policy(roster="joined"))
    for life in ("life 1", "life 2"):
        run.join("b", life)
    run.join("a")
    run.apply(run.ledger.leave("b"))
    receipt = run.send(push("b", attempt=0, incarnation=1))
    assert receipt.status is Status.UNKNOWN_WORKER


# -- purity ---------------------------------------------------------------------------------------


def test_a_decision_changes_nothing_by_itself() -> None:
    """Until its changes are applied the same push gets the same decision."""
    run = Run()
    first = run.decide(push(attempt=0, incarnation=1))
    assert run.decide(push(attempt=0, incarnation=1)) == first
    assert first.receipt.status is Status.ACCEPTED
    run.apply(first.changes)
    assert run.decide(push(attempt=0, incarnation=1)).receipt.status is Status.DUPLICATE


def test_a_first_push_opens_its_step_with_roster_and_deadline() -> None:
    """The roster and the deadline are in the change that opens, so that they are written down."""
    policy = Policy(roster=["b", "a"], minimum=1, deadline_seconds=10)
    changes = Run(policy).decide(push()).changes
    opened = [change for change in changes if isinstance(change, StepOpened)]
    assert len(opened) == 1
    assert (opened[0].step, opened[0].opened_at, opened[0].deadline_at) == (7, 1000.0, 1010.0)
    assert opened[0].roster is not None
    assert sorted(opened[0].roster) == ["a", "b"]
    contributed = [change for change in changes if isinstance(change, Contributed)]
    assert [change.contribution.payload for change in contributed] == ["a x"]


@pytest.mark.parametrize("status", [status for status in Status if status.value != "closed"])
def test_only_what_stands_becomes_a_contribution(status: Status) -> None:
    """Accepted and replaced record one; every other answer records none and opens nothing."""
    policy, pushes = SEQUENCES[status]
    run = Run(policy)
    for event in pushes[:-1]:
        run.send(event)
    changes = run.decide(pushes[-1]).changes
    recorded = sum(isinstance(change, Contributed) for change in changes)
    assert recorded == (status in (Status.ACCEPTED, Status.REPLACED))
    assert any(isinstance(change, StepOpened) for change in changes) <= bool(recorded)


def test_a_refusal_is_noted_until_an_update_stands() -> None:
    """The reason is kept for the aggregate, and forgotten once the worker contributed."""
    run = Run()
    run.send(push("a"))
    decision = run.decide(push("b", signature=OTHER))
    noted = [change for change in decision.changes if isinstance(change, RefusalNoted)]
    assert [(note.step, note.worker) for note in noted] == [(7, "b")]
    run.apply(decision.changes)
    rebuilt = Run(AB, run.changes)
    closing = rebuilt.close(7)
    assert [excluded.worker for excluded in closing.closed.excluded] == ["b"]
    run.send(push("b"))
    assert run.close(7).closed.excluded == ()


def test_time_is_an_argument() -> None:
    """Nothing is due but by the time that is passed in, before and after, as often as asked."""
    run = Run(Policy(roster=["a", "b"], minimum=1, deadline_seconds=10))
    run.send(push("a"))
    assert [tuple(run.ledger.due(now)) for now in (1009.0, 1010.0, 1009.0)] == [(), (7,), ()]


# -- closing --------------------------------------------------------------------------------------


def test_a_closing_says_what_to_sum() -> None:
    """Selected are the contributions with weight; the change names them and all the others."""
    run = Run(Policy(roster=["a", "b", "c"]))
    run.send(push("b", "y", weight=3, attempt=2, incarnation=1))
    run.send(push("a", weight=0))
    closing = run.close(7)
    assert [contribution.worker for contribution in closing.selected] == ["b"]
    change = closing.closed
    assert (change.step, change.outcome, change.closed_at) == (7, "update", 1000.0)
    assert (change.count, change.total_weight) == (1, 3)
    only = change.contributors[0]
    assert (only.worker, only.incarnation, only.attempt, only.digest) == ("b", 1, 2, "y")
    assert {excluded.worker for excluded in change.excluded} == {"a", "c"}
    assert len({excluded.reason for excluded in change.excluded}) == 2


def test_a_skipped_step_has_nothing_to_sum() -> None:
    """Whether for a nonfinite value or for want of weight."""
    for policy, event in [
        (dataclasses.replace(AB, on_nonfinite="skip"), push(nonfinite="tensor 'w': nan")),
        (AB, push(weight=0)),
    ]:
        run = Run(policy)
        run.send(event)
        closing = run.close(7)
        assert closing.selected == ()
        assert (closing.closed.outcome, closing.closed.contributors) == ("skipped", ())
        assert {excluded.worker for excluded in closing.closed.excluded} == {"a", "b"}


def test_nothing_cannot_be_closed() -> None:
    """A step without a contribution raises and stays as it was, also one that lost its only one."""
    run = Run(Policy())
    with pytest.raises(NoUpdate):
        run.ledger.close(7, run.now)
    run.send(push())
    run.apply(run.ledger.unrecord(7, "a"))
    with pytest.raises(NoUpdate):
        run.ledger.close(7, run.now)
    assert run.send(push()).status is Status.ACCEPTED
    assert run.close(7).closed.count == 1


def test_the_digest_of_a_close_does_not_depend_on_arrival() -> None:
    """The same contributions in another order are the same included set."""
    digests = set()
    for order in itertools.permutations("abc"):
        run = Run(Policy(roster=["a", "b", "c"]))
        for worker in order:
            run.send(push(worker, attempt=0))
        digests.add(run.close(7).closed.digest())
    assert len(digests) == 1


def test_a_stranger_cannot_join() -> None:
    """It raises with its name, and nothing changes."""
    run = Run()
    with pytest.raises(UnknownWorker, match="'c'"):
        run.ledger.join("c", "life")


@pytest.mark.parametrize("order", [(0, -1), (-1, 0)])
def test_the_highest_closed_step_is_the_highest(order: tuple[int, int]) -> None:
    """Step 0 counts as any other: closing a negative one after it does not open it again."""
    run = Run(Policy())
    for step in order:
        run.send(push(step=step))
    for step in order:
        run.close(step)
    assert run.ledger.steps.highest_closed == 0
    assert run.send(push("b", step=0)).status is Status.CLOSED


def test_what_was_lost_is_told() -> None:
    """With a roster or without one, unless it was sent again before the step closed."""
    for policy in (Policy(), AB):
        run = Run(policy)
        run.send(push("a", attempt=2, incarnation=1))
        run.send(push("b"))
        run.apply(run.ledger.unrecord(7, "a"))
        excluded = Run(policy, run.changes).close(7).closed.excluded
        assert [other.worker for other in excluded] == ["a"]
        assert "accepted as attempt 2, then its numbers were lost" in excluded[0].reason
        run.send(push("a", attempt=2, incarnation=1))
        assert run.close(7).closed.excluded == ()


def test_only_what_stands_fences() -> None:
    """A push that is refused, by whoever it was, ends nobody's life."""
    run = Run()
    run.join("a")
    run.send(push("b", step=7))
    assert run.send(push("a", signature=OTHER, attempt=0, incarnation=9)).status is Status.MISMATCH
    assert run.send(push("a", attempt=0, incarnation=1)).status is Status.ACCEPTED
    assert run.send(push("a", attempt=0, incarnation=2)).status is Status.REPLACED
    assert run.send(push("a", attempt=1, incarnation=1)).status is Status.FENCED


@pytest.mark.parametrize("status", Status)
def test_who_is_refused_whatever_comes(status: Status) -> None:
    """Before its content is known a push is refused for the first five statuses alone."""
    policy, pushes = SEQUENCES[status]
    run = Run(policy)
    for event in pushes[:-1]:
        run.send(event)
        run.close_due()
    last = pushes[-1]
    refused = run.ledger.refuses(
        last.step,
        last.worker,
        incarnation=last.incarnation,
        run=last.run,
        closed=run.closed.get(last.step),
    )
    assert refused == (list(Status).index(status) < list(Status).index(Status.MISMATCH))


# -- properties -----------------------------------------------------------------------------------

ordinals = st.integers(0, 2)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(data=st.data())
def test_neither_order_nor_repetition_decides(data: st.DataObject) -> None:
    """With attempts stated, any order of any repeats ends at the highest (incarnation, attempt)."""
    sendings = data.draw(
        st.lists(
            st.tuples(st.sampled_from("ab"), ordinals, ordinals),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    repeated = data.draw(st.permutations(sendings * 2))
    run = Run(Policy())
    for worker, incarnation, attempt in repeated:
        run.send(push(worker, f"{incarnation}.{attempt}", attempt=attempt, incarnation=incarnation))
    winners = {w: max((i, a) for v, i, a in sendings if v == w) for w, _, _ in sendings}
    counted = run.close(7).closed.contributors
    assert {c.worker: (c.incarnation, c.attempt) for c in counted} == winners
    assert len(counted) == len(winners)


ROSTERS = [["a", "b"], 2, "joined", None]

operations = st.one_of(
    st.tuples(st.just("join"), st.sampled_from("abc"), st.sampled_from(["1", "2"])),
    st.tuples(st.just("leave"), st.sampled_from("abc")),
    st.tuples(st.just("close"), st.integers(0, 4)),
    st.tuples(st.just("unrecord"), st.integers(0, 4), st.sampled_from("abc")),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 10.0])),
    st.tuples(
        st.just("push"),
        st.integers(0, 4),
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([SIGNATURE, SIGNATURE, OTHER]),
        st.sampled_from([0, 1]),
    ),
)


def perform(run: Run, operation: tuple[object, ...]) -> None:
    kind, *arguments = operation
    if kind == "join":
        try:
            run.join(*arguments)  # type: ignore[arg-type]
        except UnknownWorker:
            return
    elif kind == "leave":
        run.apply(run.ledger.leave(*arguments))  # type: ignore[arg-type]
    elif kind == "close":
        if arguments[0] in run.closed:
            return
        try:
            run.close(*arguments)  # type: ignore[arg-type]
        except NoUpdate:
            return
    elif kind == "unrecord":
        step, worker = arguments
        if step not in run.closed and stands(run, step, worker):  # type: ignore[arg-type]
            run.apply(run.ledger.unrecord(step, worker))  # type: ignore[arg-type]
    elif kind == "wait":
        run.now += arguments[0]  # type: ignore[operator]
    else:
        run.send(event_of(arguments))
    run.close_due()


def event_of(arguments: Sequence[object]) -> Push:
    step, worker, digest, attempt, incarnation, signature, weight = arguments
    return push(
        worker,  # type: ignore[arg-type]
        digest,  # type: ignore[arg-type]
        step=step,  # type: ignore[arg-type]
        attempt=attempt,  # type: ignore[arg-type]
        incarnation=incarnation if attempt is not None else None,  # type: ignore[arg-type]
        signature=signature,  # type: ignore[arg-type]
        weight=weight,  # type: ignore[arg-type]
    )


def stands(run: Run, step: int, worker: str) -> bool:
    """Whether the log has a contribution that was not taken out again."""
    standing = False
    for change in run.changes:
        if getattr(change, "step", None) != step:
            continue
        if isinstance(change, Contributed):
            standing |= change.contribution.worker == worker
        elif type(change).__name__ == "Unrecorded":
            standing &= change.worker != worker  # type: ignore[union-attr]
    return standing


def answers(run: Run) -> list[object]:
    """What a ledger says to every probe: its state, as far as anyone can tell."""
    probes = [
        *itertools.product(range(5), "abc", "xy", [None, 0, 1], [None, 1, 2], [SIGNATURE]),
        *itertools.product(range(5), "abc", "x", [0], [2], [OTHER]),
    ]
    said: list[object] = [run.decide(event_of([*probe, 1])) for probe in probes]
    said += [tuple(run.ledger.due(run.now + later)) for later in (0, 5, 50)]
    for worker, life in itertools.product("abc", "123"):
        try:
            said.append(run.ledger.join(worker, life))
        except UnknownWorker as error:
            said.append(str(error))
    return said


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    roster=st.sampled_from(ROSTERS),
    deadline=st.booleans(),
    sequence=st.lists(operations, max_size=25),
)
def test_the_changes_rebuild_the_state(
    roster: object, sequence: list[tuple[object, ...]], *, deadline: bool
) -> None:
    """A ledger that is given the changes again answers every question as the one that made them."""
    settled = {"minimum": 1, "deadline_seconds": 10} if deadline and roster is not None else {}
    policy = Policy(roster=roster, **settled)  # type: ignore[arg-type]
    run = Run(policy)
    for operation in sequence:
        perform(run, operation)
    rebuilt = Run(policy, run.changes)
    rebuilt.now = run.now
    assert answers(rebuilt) == answers(run)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(roster=st.sampled_from(ROSTERS), sequence=st.lists(operations, max_size=25))
def test_every_close_tells_about_everyone(
    roster: object, sequence: list[tuple[object, ...]]
) -> None:
    """Contributors and excluded are distinct, cover the roster, and close a step once."""
    run = Run(Policy(roster=roster))  # type: ignore[arg-type]
    for operation in sequence:
        perform(run, operation)
    opened = {change.step: change for change in run.changes if isinstance(change, StepOpened)}
    closes = [change for change in run.changes if isinstance(change, StepClosed)]
    assert len({change.step for change in closes}) == len(closes)
    for change in closes:
        counted = [contributor.worker for contributor in change.contributors]
        excluded = [other.worker for other in change.excluded]
        assert len({*counted, *excluded}) == len(counted) + len(excluded)
        assert {*counted, *excluded} >= set(opened[change.step].roster or ())
        assert all(other.reason for other in change.excluded)
        assert change.outcome == ("update" if counted else "skipped")
