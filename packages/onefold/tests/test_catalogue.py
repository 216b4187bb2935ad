"""The ways in which deliveries and memberships go wrong, as pushes to an aggregator.

What goes wrong with numbers and names is in test_catalogue_values.py. The names M01 to M40 and X01
to X16 are those of the catalogue of failures. Rows are ``(step, worker, value)`` and the target
step is 7 unless stated. Each test says what a failing implementation gives and, where there is one,
what the fix that still fails gives, and asserts that ours is neither.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from onefold.aggregator import Aggregator
from onefold.errors import NotYet, OnefoldError
from onefold.ledger import Receipt, Status
from onefold.parts import encode, manifest_of
from onefold.policy import Policy
from onefold.testing.support import (
    Clock,
    Row,
    commit,
    number,
    one,
    push_all,
    reasons,
    statuses,
    who,
)

ACCEPTED, DUPLICATE, REPLACED = Status.ACCEPTED, Status.DUPLICATE, Status.REPLACED
CLOSED, FENCED, MISMATCH = Status.CLOSED, Status.FENCED, Status.MISMATCH

Make = Callable[..., Aggregator]


@pytest.fixture(params=["memory", "directory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Opens an empty aggregator; ``make(policy, clock=...)``."""
    numbers = count()
    with ExitStack() as stack:

        def opened(policy: Policy = Policy(), **options: Callable[[], float]) -> Aggregator:  # noqa: B008
            directory = tmp_path / f"run{next(numbers)}" if request.param == "directory" else None
            return stack.enter_context(Aggregator(directory, policy, **options))

        yield opened


def pushed(make: Make, rows: Sequence[Row], step: int = 7) -> tuple[float, list[Status]]:
    """The sum that ``rows`` give at ``step``, and what became of each row."""
    aggregator = make()
    receipts = push_all(aggregator, rows)
    return number(aggregator.close(step)), statuses(receipts)


# -- A. Delivery, identity and time ---------------------------------------------------------------


def test_m01_a_retry_counts_once(make: Make) -> None:
    """Keyed by arrival: 9. Dropping equal payloads instead loses honest equal values: 2."""
    result = pushed(make, [(7, "a", 2), (7, "b", 5), (7, "a", 2)])
    assert result == (7, [ACCEPTED, ACCEPTED, DUPLICATE])
    result = pushed(make, [(7, "a", 2), (7, "b", 2), (7, "a", 2)])
    assert result == (4, [ACCEPTED, ACCEPTED, DUPLICATE])


def test_m02_a_correction_wins(make: Make) -> None:
    """First copy wins: 7; summed: 10. Overwriting whatever the step: 14, or 9 alone."""
    rows: list[Row] = [(7, "a", 2), (7, "b", 5), (7, "a", 3)]
    assert pushed(make, rows) == (8, [ACCEPTED, ACCEPTED, REPLACED])
    assert pushed(make, [*rows, (6, "a", 9)]) == (8, [ACCEPTED, ACCEPTED, REPLACED, ACCEPTED])


def test_m03_other_steps_neither_contribute_nor_replace(make: Make) -> None:
    """The step not checked: 105. Accepting every step from mine on: 52 or 57."""
    assert pushed(make, [(7, "a", 2), (7, "b", 5), (6, "a", 100)])[0] == 7
    assert pushed(make, [(7, "a", 2), (7, "b", 5), (8, "b", 50)])[0] == 7


def test_m03_a_stale_row_is_told_so(make: Make) -> None:
    """Once its step has closed, a late row is closed and not counted, and changes nothing."""
    aggregator = make()
    push_all(aggregator, [(6, "a", 1)])
    assert number(aggregator.close(6)) == 1
    receipts = push_all(aggregator, [(7, "a", 2), (7, "b", 5), (6, "a", 100), (9, "a", 100)])
    assert statuses(receipts) == [ACCEPTED, ACCEPTED, CLOSED, Status.TOO_FAR]
    assert receipts[2].counted is False
    assert number(aggregator.close(7)) == 7
    assert number(aggregator.pull(6, timeout_seconds=0)) == 1


def test_m04_a_dead_session_does_not_count(make: Make) -> None:
    """Bound to the step alone: 105. Here a message in flight is refused by its run."""
    dead, live = make(), make()
    live_rows = [("a", 2, live.run), ("b", 5, live.run), ("a", 100, dead.run)]
    receipts = [
        commit(live, 7, worker, one(value), attempt=attempt, run=run)
        for attempt, (worker, value, run) in enumerate(live_rows)
    ]
    assert statuses(receipts) == [ACCEPTED, ACCEPTED, Status.OTHER_RUN]
    assert number(live.close(7)) == 7


def test_m05_a_restarted_worker_is_no_duplicate(make: Make) -> None:
    """Keyed by (worker, sequence): 4. Forgetting all on reconnect lets the old life in: 9."""
    aggregator = make()

    def send(incarnation: int, attempt: int, step: int, worker: str, value: float) -> Receipt:
        return aggregator.push(step, worker, one(value), attempt=attempt, incarnation=incarnation)

    rows = [(1, 0, 6, "a", 2), (1, 0, 6, "b", 5), (2, 0, 7, "a", 3), (1, 1, 7, "b", 4)]
    assert statuses([send(*row) for row in rows]) == [ACCEPTED] * 4
    assert [send(1, 0, step, "a", 2).status for step in (6, 7)] == [FENCED, FENCED]
    assert number(aggregator.close(7)) == 7
    assert number(aggregator.close(6)) == 7  # what the old life contributed stands


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("9", "265"),
        ("1", "65537"),
        ("é", "e\u0301"),
        ("w", "w "),
        ("a", "A"),
        ("x" * 254, "x" * 255),
    ],
)
def test_m06_identity_has_its_full_width(make: Make, left: str, right: str) -> None:
    """Names truncated to 8 bits: 5; to 16 bits the second pair collides; nothing is normalised."""
    assert pushed(make, [(7, left, 2), (7, right, 5)]) == (7, [ACCEPTED, ACCEPTED])


def test_m07_a_lost_reply_is_answered_again(make: Make) -> None:
    """A duplicate answered as an error: 5 at one of two aggregators and 7 at the other."""
    helper, leader = make(), make()
    assert helper.push(7, "a", one(2), attempt=0).stands  # this reply is lost
    assert helper.push(7, "a", one(2), attempt=0).stands
    assert leader.push(7, "a", one(2), attempt=0).stands
    for aggregator in (helper, leader):
        aggregator.push(7, "b", one(5), attempt=0)
    left, right = helper.close(7), leader.close(7)
    assert number(left) == number(right) == 7
    assert left.digest == right.digest


def test_m07_what_was_acknowledged_survives(tmp_path: Path) -> None:
    """Acknowledged before it was stored, and restarted: 5."""
    with Aggregator(tmp_path) as aggregator:
        assert aggregator.push(7, "a", one(2), attempt=0).status is ACCEPTED
    with Aggregator(tmp_path) as aggregator:
        assert aggregator.push(7, "a", one(2), attempt=0).status is DUPLICATE
        aggregator.push(7, "b", one(5), attempt=0)
        assert number(aggregator.close(7)) == 7


def test_m08_a_failed_attempt_leaves_no_mark(make: Make) -> None:
    """Marked as seen at receipt: 5. Marked in a second write after the effect: 9."""
    aggregator = make()
    update = one(2)
    staged = [aggregator.stage(7, schema, batches) for schema, batches in encode(update)]
    torn = dataclasses.replace(manifest_of(update, staged), digest="0" * 32)
    with pytest.raises(OnefoldError):
        aggregator.commit(7, "a", torn, attempt=0, incarnation=1, run=aggregator.run)
    receipts = [commit(aggregator, 7, "a", update, attempt=0, incarnation=1) for _ in range(2)]
    assert statuses(receipts) == [ACCEPTED, DUPLICATE]
    aggregator.push(7, "b", one(5))
    assert number(aggregator.close(7)) == 7


def test_m08_a_refused_attempt_leaves_no_mark(make: Make) -> None:
    """An attempt that was refused may be sent again, under the same number, when it is whole."""
    aggregator = make(Policy(on_nonfinite="reject"))
    sent = [one(np.nan), one(2), one(2)]
    receipts = [aggregator.push(7, "a", update, attempt=0) for update in sent]
    assert statuses(receipts) == [Status.NONFINITE, ACCEPTED, DUPLICATE]
    aggregator.push(7, "b", one(5))
    assert number(aggregator.close(7)) == 7


def test_m09_a_quorum_is_of_workers_at_this_step(make: Make) -> None:
    """Counting messages closes on the third: 11. Distinct workers at any step: 10."""
    aggregator = make(Policy(roster=["a", "b", "c"]))
    push_all(aggregator, [(7, "a", 2), (8, "a", 4), (7, "a", 2), (7, "b", 5), (8, "b", 1)])
    with pytest.raises(NotYet):
        aggregator.pull(7, timeout_seconds=0)
    assert push_all(aggregator, [(7, "c", 1)])[0].status is ACCEPTED
    assert number(aggregator.pull(7, timeout_seconds=0)) == 8
    with pytest.raises(NotYet):
        aggregator.pull(8, timeout_seconds=0)


def test_m10_every_step_has_its_own_rows(make: Make) -> None:
    """Target 8. Cleared after the gate opened: 2. The leftover of a worker that sits out: 16."""
    aggregator = make()
    receipts = push_all(aggregator, [(7, "c", 9), (8, "b", 5)])
    assert number(aggregator.close(7)) == 9
    receipts += push_all(aggregator, [(8, "a", 2)])
    assert statuses(receipts) == [ACCEPTED] * 3
    aggregate = aggregator.close(8)
    assert (number(aggregate), who(aggregate)) == (7, ["a", "b"])


# -- B. Membership, rounds and shards -------------------------------------------------------------


def test_m11_a_departed_worker_fills_no_ones_place(make: Make) -> None:
    """Count against shrunken membership: 6 without d, who is connected. Frozen at open: 10."""
    aggregator = make(Policy(roster="joined"))
    for worker in "abcd":
        aggregator.join(worker, "life")
    push_all(aggregator, [(7, "a", 1)])
    aggregator.leave("a")
    push_all(aggregator, [(7, "b", 2), (7, "c", 3)])
    with pytest.raises(NotYet):
        aggregator.pull(7, timeout_seconds=0)
    assert push_all(aggregator, [(7, "d", 4)])[0].status is ACCEPTED
    assert number(aggregator.pull(7, timeout_seconds=0)) == 10


def test_m12_an_update_is_not_torn(make: Make) -> None:
    """Accepted by one shard and refused by the other: [7, 50]. Out everywhere: [5, 50]."""
    aggregator = make()
    aggregator.push(7, "b", {"first": np.array([5.0]), "second": np.array([50.0])})
    torn = {"first": np.array([2.0]), "second": np.array([20.0], dtype=np.float32)}
    assert aggregator.push(7, "a", torn).status is MISMATCH
    tensors = aggregator.close(7).tensors
    assert [np.asarray(tensors[name]).tolist() for name in ("first", "second")] == [[5], [50]]


def test_m13_the_denominator_is_who_was_summed(make: Make) -> None:
    """Divided by the four configured: 4.5. By messages, with a resend of 3: 5.25."""
    clock = Clock()
    policy = Policy(roster=list("abcd"), minimum=3, deadline_seconds=10, operation="mean")
    aggregator = make(policy, clock=clock)
    push_all(aggregator, [(7, "a", 3), (7, "b", 6), (7, "a", 3), (7, "c", 9)])
    clock.advance(10)
    aggregate = aggregator.pull(7, timeout_seconds=0)
    assert (number(aggregate), aggregate.count) == (6, 3)
    assert list(reasons(aggregate)) == ["d"]


@pytest.mark.parametrize("operation", ["sum", "mean", "weighted_mean"])
def test_m14_a_lone_survivor_keeps_its_update(make: Make, operation: str) -> None:
    """Read from the peers' buffer only: 0. Skipped when alone: no update."""
    aggregator = make(Policy(roster="joined", operation=operation))  # type: ignore[arg-type]
    for worker in ("a", "b"):
        aggregator.join(worker, "life")
    aggregator.leave("b")
    push_all(aggregator, [(7, "a", 4)])
    aggregate = aggregator.pull(7, timeout_seconds=0)
    assert (aggregate.outcome, number(aggregate)) == ("update", 4)


@pytest.mark.parametrize("operation", ["mean", "weighted_mean"])
def test_m15_a_zero_total_keeps_the_previous_model(make: Make, operation: str) -> None:
    """NaN, or with an epsilon [0, 0], would overwrite it. Here the step is skipped."""
    aggregator = make(Policy(operation=operation))  # type: ignore[arg-type]
    aggregator.push(6, "a", np.array([5.0, 6.0]))
    aggregator.close(6)
    aggregator.push(7, "a", np.array([1.0, 2.0]), weight=0)
    aggregator.push(7, "b", np.array([3.0, 4.0]), weight=0)
    aggregate = aggregator.close(7)
    assert (aggregate.outcome, dict(aggregate.tensors)) == ("skipped", {})
    assert sorted(reasons(aggregate)) == ["a", "b"]
    assert np.asarray(aggregator.pull(6, timeout_seconds=0).tensor).tolist() == [5, 6]


def test_m16_exclusion_is_selection(make: Make) -> None:
    """Masked by multiplication: NaN. Here weight 0 is not looked at."""
    aggregator = make(Policy(operation="weighted_mean"))
    aggregator.push(7, "a", np.array([np.nan]), weight=0)
    aggregator.push(7, "b", np.array([4.0]), weight=2)
    aggregate = aggregator.close(7)
    assert (number(aggregate), who(aggregate)) == (4, ["b"])


@pytest.mark.parametrize("on_nonfinite", ["propagate", "reject", "skip"])
def test_m16_a_real_fault_is_not_hidden(make: Make, on_nonfinite: str) -> None:
    """NaN set to zero on input hides it: 2.667. Here it is seen, refused, or skips the step."""
    policy = Policy(operation="weighted_mean", on_nonfinite=on_nonfinite)  # type: ignore[arg-type]
    aggregator = make(policy)
    receipt = aggregator.push(7, "a", np.array([np.nan]), weight=1)
    aggregator.push(7, "b", np.array([4.0]), weight=2)
    aggregate = aggregator.close(7)
    if on_nonfinite == "propagate":
        assert np.isnan(number(aggregate))
    elif on_nonfinite == "reject":
        assert receipt.status is Status.NONFINITE
        assert number(aggregate) == 4
    else:
        assert (aggregate.outcome, dict(aggregate.tensors)) == ("skipped", {})


def test_m17_a_reused_buffer_changes_nothing(make: Make) -> None:
    """Base 10 and deltas 1, 4, -2 from one live buffer: 13 or 8. Copied on receipt: 11."""
    aggregator = make(Policy(operation="mean"))
    buffer = np.array([10.0])
    for worker, delta in [("a", 1), ("b", 4), ("c", -2)]:
        buffer[0] = 10 + delta
        aggregator.push(7, worker, buffer)
    assert number(aggregator.close(7)) == 11
