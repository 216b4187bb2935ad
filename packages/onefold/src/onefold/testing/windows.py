"""Steps: which may be open, what a repeat after the close is told, what pull and close raise."""

from __future__ import annotations

import pytest

from onefold.errors import Expired, NotYet, NoUpdate
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import (
    MakeAggregator,
    number,
    one,
    push_all,
    same_bits,
    statuses,
)

__all__ = ["ClosedContract", "WindowContract"]


class WindowContract:
    """The open window: above the highest closed step, and few steps at a time."""

    def test_a_step_beyond_the_window_is_too_far(self, make_aggregator: MakeAggregator) -> None:
        """The span of open steps is at most open_steps_max; nothing of the push is kept."""
        aggregator = make_aggregator(Policy(open_steps_max=2))
        receipts = push_all(aggregator, [(7, "a", 2), (8, "a", 3), (9, "a", 4)])
        assert statuses(receipts) == [Status.ACCEPTED, Status.ACCEPTED, Status.TOO_FAR]
        assert receipts[-1].reason
        assert number(aggregator.close(7)) == 2
        with pytest.raises(NotYet):
            aggregator.pull(9, timeout_seconds=0)
        assert push_all(aggregator, [(9, "a", 4)])[0].status is Status.ACCEPTED

    def test_a_step_just_below_an_open_one_may_open(self, make_aggregator: MakeAggregator) -> None:
        """A worker that is one step behind is within the window while that is not closed."""
        aggregator = make_aggregator(Policy(open_steps_max=2))
        receipts = push_all(aggregator, [(8, "a", 3), (7, "b", 5), (7, "a", 2)])
        assert statuses(receipts) == [Status.ACCEPTED] * 3
        assert number(aggregator.close(7)) == 7
        assert number(aggregator.close(8)) == 3

    def test_a_step_below_the_window_is_closed(self, make_aggregator: MakeAggregator) -> None:
        """It is answered closed, as not counted, though it never had an update."""
        aggregator = make_aggregator(Policy(open_steps_max=2))
        push_all(aggregator, [(7, "a", 2), (8, "a", 3)])
        receipt = aggregator.push(6, "a", one(9), attempt=0)
        assert (receipt.status, receipt.counted) == (Status.CLOSED, False)
        assert receipt.counted_as is None

    def test_a_step_below_the_highest_closed_does_not_open(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """What the run has gone past stays past, also when nothing is open."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2))
        aggregator.close(7)
        receipt = aggregator.push(6, "a", one(9), attempt=0)
        assert (receipt.status, receipt.counted) == (Status.CLOSED, False)
        with pytest.raises(NoUpdate):
            aggregator.pull(6, timeout_seconds=0)

    def test_an_open_step_outlives_the_close_of_a_later_one(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Closing 8 first loses nothing of 7, and the oldest open step holds the window."""
        aggregator = make_aggregator(Policy(open_steps_max=2))
        push_all(aggregator, [(7, "a", 2), (8, "a", 3)])
        assert number(aggregator.close(8)) == 3
        assert push_all(aggregator, [(9, "a", 4)])[0].status is Status.TOO_FAR
        assert push_all(aggregator, [(7, "b", 5)])[0].status is Status.ACCEPTED
        assert number(aggregator.close(7)) == 7
        assert push_all(aggregator, [(9, "a", 4)])[0].status is Status.ACCEPTED

    def test_with_nothing_open_any_later_step_may_open(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Steps need not be consecutive: the window is a span, not a count."""
        aggregator = make_aggregator(Policy(open_steps_max=1))
        aggregator.push(0, "a", one(2))
        aggregator.close(0)
        assert aggregator.push(2**40, "a", one(3)).status is Status.ACCEPTED
        assert number(aggregator.close(2**40)) == 3

    def test_a_refused_push_opens_nothing(self, make_aggregator: MakeAggregator) -> None:
        """A step opens with its first update that stands, not with one that is refused."""
        aggregator = make_aggregator(Policy(open_steps_max=2, on_nonfinite="reject"))
        assert aggregator.push(7, "a", one(float("nan"))).status is Status.NONFINITE
        receipts = push_all(aggregator, [(8, "a", 2), (9, "a", 3)])
        assert statuses(receipts) == [Status.ACCEPTED] * 2


class ClosedContract:
    """After the close: repeats are answered, nothing is reopened, tensors may be pruned."""

    def test_a_repeat_after_the_close_is_told_that_it_counted(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """The very sending that is in the aggregate is closed and counted, as often as it comes."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        sendings = [("a", one(2)), ("b", one(5))]
        for worker, update in sendings:
            aggregator.push(7, worker, update, attempt=3, incarnation=1)
        for worker, update in sendings * 2:
            receipt = aggregator.push(7, worker, update, attempt=3, incarnation=1)
            assert (receipt.status, receipt.counted) == (Status.CLOSED, True)
            assert receipt.counted_as == 3
            assert receipt.stands
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_what_is_not_in_the_aggregate_is_told_so(self, make_aggregator: MakeAggregator) -> None:
        """Another attempt, content or worker is not counted, and learns what is."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(1), attempt=0, incarnation=1)
        aggregator.push(7, "a", one(2), attempt=1, incarnation=1)
        aggregator.close(7)
        sendings = [("a", 1.0, 0, 1), ("a", 2.0, 2, 1), ("a", 9.0, 1, 1), ("b", 2.0, 1, None)]
        receipts = [
            aggregator.push(7, worker, one(value), attempt=attempt, incarnation=incarnation)
            for worker, value, attempt, incarnation in sendings
        ]
        assert statuses(receipts) == [Status.CLOSED] * 4
        assert [receipt.counted for receipt in receipts] == [False] * 4
        assert [receipt.counted_as for receipt in receipts] == [1, 1, 1, None]
        assert number(aggregator.pull(7, timeout_seconds=0)) == 2

    def test_another_incarnation_is_not_the_one_that_counted(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A new life that recomputed the same numbers did not count itself."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0, incarnation=1)
        aggregator.close(7)
        receipt = aggregator.push(7, "a", one(2), attempt=0, incarnation=2)
        assert (receipt.status, receipt.counted) == (Status.CLOSED, False)
        assert receipt.counted_as == 0

    def test_without_attempts_the_content_tells(self, make_aggregator: MakeAggregator) -> None:
        """An equal payload after the close is a repeat that counted; another is not."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2))
        aggregator.close(7)
        receipts = push_all(aggregator, [(7, "a", 2), (7, "a", 3)])
        assert statuses(receipts) == [Status.CLOSED] * 2
        assert [receipt.counted for receipt in receipts] == [True, False]
        assert [receipt.counted_as for receipt in receipts] == [None, None]

    def test_an_aggregate_does_not_change(self, make_aggregator: MakeAggregator) -> None:
        """Whatever is pushed afterwards, pull gives the same bits and the same included set."""
        aggregator = make_aggregator()
        push_all(aggregator, [(7, "a", 0.1), (7, "b", 0.2)])
        before = aggregator.close(7)
        push_all(aggregator, [(7, "a", 9), (7, "c", 9), (8, "a", 9), (6, "a", 9)])
        after = aggregator.pull(7, timeout_seconds=0)
        assert same_bits(before.tensors, after.tensors)
        assert before.digest == after.digest
        assert before.contributors == after.contributors

    def test_closing_again_gives_the_same_answer(self, make_aggregator: MakeAggregator) -> None:
        """A repeated close is a repeat like any other: answered, with the same aggregate."""
        aggregator = make_aggregator()
        push_all(aggregator, [(7, "a", 2), (7, "b", 5)])
        first = aggregator.close(7)
        again = aggregator.close(7)
        assert same_bits(first.tensors, again.tensors)
        assert first.digest == again.digest

    def test_a_step_with_nothing_has_no_aggregate(self, make_aggregator: MakeAggregator) -> None:
        """Closing it raises NoUpdate, which is not zero, and changes nothing."""
        aggregator = make_aggregator()
        with pytest.raises(NoUpdate):
            aggregator.close(7)
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        assert push_all(aggregator, [(7, "a", 0)])[0].status is Status.ACCEPTED
        assert number(aggregator.close(7)) == 0

    def test_a_step_that_was_passed_over_has_no_update(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Below the highest closed step and never pushed: NoUpdate; above it: NotYet."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2))
        aggregator.close(7)
        with pytest.raises(NoUpdate):
            aggregator.pull(5, timeout_seconds=0)
        with pytest.raises(NoUpdate):
            aggregator.close(5)
        with pytest.raises(NotYet):
            aggregator.pull(8, timeout_seconds=0)

    def test_pruning_drops_tensors_and_keeps_answers(self, make_aggregator: MakeAggregator) -> None:
        """Of all but the newest keep_steps the numbers expire; repeats are still answered."""
        aggregator = make_aggregator(Policy(keep_steps=2))
        for step in range(5):
            aggregator.push(step, "a", one(step), attempt=0)
            aggregator.close(step)
        for step in range(3):
            with pytest.raises(Expired):
                aggregator.pull(step, timeout_seconds=0)
            repeat = aggregator.push(step, "a", one(step), attempt=0)
            assert (repeat.status, repeat.counted, repeat.counted_as) == (Status.CLOSED, True, 0)
        assert [number(aggregator.pull(step, timeout_seconds=0)) for step in (3, 4)] == [3, 4]

    def test_pruning_goes_by_closing(self, make_aggregator: MakeAggregator) -> None:
        """The newest are the last to close, so whoever waits for a step can read it."""
        aggregator = make_aggregator(Policy(keep_steps=1))
        push_all(aggregator, [(7, "a", 2), (8, "a", 3)])
        aggregator.close(8)
        assert number(aggregator.close(7)) == 2
        assert number(aggregator.pull(7, timeout_seconds=0)) == 2
        with pytest.raises(Expired):
            aggregator.pull(8, timeout_seconds=0)

    def test_stands_tells_whether_to_resend(self, make_aggregator: MakeAggregator) -> None:
        """An open step has that sending, or a later one, or it is to be sent again."""
        aggregator = make_aggregator()
        assert not aggregator.stands(7, "a", 1, 1)
        aggregator.push(7, "a", one(2), attempt=1, incarnation=1)
        assert aggregator.stands(7, "a", 1, 1)
        assert aggregator.stands(7, "a", 1, 0)
        assert not aggregator.stands(7, "a", 1, 2)
        assert not aggregator.stands(7, "b", 1, 1)
