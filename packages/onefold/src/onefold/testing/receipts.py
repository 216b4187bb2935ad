"""Receipts: every push is told what became of it, and the first rule that applies decides."""

from __future__ import annotations

import numpy as np
import pytest

from onefold.errors import InvalidInput, InvalidUpdate
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import MakeAggregator, commit, number, one, push_all, statuses, who
from onefold.update import Signature, Update

__all__ = ["ReceiptContract"]


class ReceiptContract:
    """One contribution for each (step, worker), ordered by (incarnation, attempt)."""

    def test_a_receipt_repeats_what_was_sent(self, make_aggregator: MakeAggregator) -> None:
        """A receipt names step, worker, incarnation, attempt and the digest of the content."""
        update = one(2)
        receipt = make_aggregator().push(7, "a", update, attempt=4, incarnation=3)
        assert (receipt.step, receipt.worker) == (7, "a")
        assert (receipt.incarnation, receipt.attempt) == (3, 4)
        assert receipt.digest == update.digest()
        assert receipt.status is Status.ACCEPTED
        assert receipt.reason
        assert receipt.counted is None

    def test_the_same_attempt_with_the_same_content_is_a_duplicate(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A retransmission keeps its attempt; it is answered and counts once."""
        aggregator = make_aggregator()
        receipts = [aggregator.push(7, "a", one(2), attempt=0) for _ in range(3)]
        assert statuses(receipts) == [Status.ACCEPTED, Status.DUPLICATE, Status.DUPLICATE]
        assert all(receipt.stands for receipt in receipts)
        assert number(aggregator.close(7)) == 2

    def test_the_same_attempt_with_other_content_is_a_conflict(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A changed replay is told so, and what came first stands."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0)
        receipt = aggregator.push(7, "a", one(3), attempt=0)
        assert receipt.status is Status.CONFLICT
        assert receipt.reason
        assert not receipt.stands
        assert number(aggregator.close(7)) == 2

    def test_another_weight_is_other_content(self, make_aggregator: MakeAggregator) -> None:
        """The weight is part of the digest: equal numbers under another weight conflict."""
        aggregator = make_aggregator()
        values = np.array([2.0])
        aggregator.push(7, "a", values, weight=1, attempt=0)
        receipt = aggregator.push(7, "a", values, weight=2, attempt=0)
        assert receipt.status is Status.CONFLICT
        assert aggregator.close(7).total_weight == 1

    def test_a_later_attempt_replaces_and_an_earlier_one_is_superseded(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """The highest attempt stands, whatever arrives last."""
        aggregator = make_aggregator()
        pushed = [(1, 2.0), (3, 4.0), (2, 3.0), (0, 1.0), (1, 2.0)]
        receipts = [aggregator.push(7, "a", one(v), attempt=attempt) for attempt, v in pushed]
        assert statuses(receipts) == [
            *(Status.ACCEPTED, Status.REPLACED),
            *(Status.SUPERSEDED, Status.SUPERSEDED, Status.SUPERSEDED),
        ]
        aggregate = aggregator.close(7)
        assert number(aggregate) == 4
        assert [c.attempt for c in aggregate.contributors] == [3]

    def test_an_equal_later_attempt_replaces(self, make_aggregator: MakeAggregator) -> None:
        """A recomputed update takes the next attempt even where its numbers are the same."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0)
        assert aggregator.push(7, "a", one(2), attempt=1).status is Status.REPLACED
        aggregate = aggregator.close(7)
        assert [c.attempt for c in aggregate.contributors] == [1]
        assert number(aggregate) == 2

    def test_incarnations_come_before_attempts(self, make_aggregator: MakeAggregator) -> None:
        """The first attempt of a later incarnation replaces the last of an earlier one."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=9, incarnation=1)
        receipt = aggregator.push(7, "a", one(3), attempt=0, incarnation=2)
        assert receipt.status is Status.REPLACED
        assert number(aggregator.close(7)) == 3

    def test_an_older_incarnation_is_fenced(self, make_aggregator: MakeAggregator) -> None:
        """Stating a higher incarnation fences those below it, at every step and without a join."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0, incarnation=2)
        for step, attempt in [(7, 9), (8, 0)]:
            receipt = aggregator.push(step, "a", one(100), attempt=attempt, incarnation=1)
            assert receipt.status is Status.FENCED
            assert receipt.reason
        assert number(aggregator.close(7)) == 2

    def test_a_refused_push_fences_nobody(self, make_aggregator: MakeAggregator) -> None:
        """A life that never joined is known once an update of it stands, and not before."""
        for step, update, status in [
            (6, one(1), Status.CLOSED),
            (9, one(1), Status.TOO_FAR),
            (7, Update.of(np.zeros(2)), Status.MISMATCH),
            (7, one(np.nan), Status.NONFINITE),
            (8, one(1), Status.CONFLICT),
        ]:
            aggregator = make_aggregator(Policy(on_nonfinite="reject"))
            push_all(aggregator, [(6, "b", 1)])
            aggregator.close(6)
            push_all(aggregator, [(7, "b", 1), (8, "a", 1)])
            receipt = aggregator.push(step, "a", update, attempt=0, incarnation=5)
            assert receipt.status is status
            assert aggregator.join("a", "life").incarnation == 1, status
            old = aggregator.push(7, "a", one(100), attempt=0, incarnation=1)
            assert old.status is Status.ACCEPTED, status

    def test_a_fence_is_that_of_one_worker(self, make_aggregator: MakeAggregator) -> None:
        """The incarnation of one worker says nothing about another."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0, incarnation=5)
        assert aggregator.push(7, "b", one(5), attempt=0, incarnation=1).stands

    def test_no_incarnation_is_not_fenced(self, make_aggregator: MakeAggregator) -> None:
        """A sender that states no incarnation passes the fence; at a fresh step it is accepted."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0, incarnation=5)
        assert aggregator.push(8, "a", one(3), attempt=0).status is Status.ACCEPTED

    def test_an_earlier_incarnation_stands_until_it_is_replaced(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A new life does not take back what the old one contributed."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        first = aggregator.join("a", "life 1")
        aggregator.push(7, "a", one(2), attempt=0, incarnation=first.incarnation)
        aggregator.join("a", "life 2")
        aggregator.push(7, "b", one(5))
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert number(aggregate) == 7
        assert who(aggregate) == ["a", "b"]

    def test_without_attempts_arrival_decides(self, make_aggregator: MakeAggregator) -> None:
        """A, A is a duplicate; A, B, A ends at A."""
        aggregator = make_aggregator()
        receipts = push_all(aggregator, [(7, "a", v) for v in (1, 1, 2, 1)])
        assert statuses(receipts) == [
            *(Status.ACCEPTED, Status.DUPLICATE, Status.REPLACED, Status.REPLACED)
        ]
        assert number(aggregator.close(7)) == 1

    def test_stating_attempts_and_not_stating_them_do_not_mix(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """For one (step, worker) either all rows state attempts or none does."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0)
        assert aggregator.push(7, "a", one(2)).status is Status.CONFLICT
        aggregator.push(7, "b", one(5))
        assert aggregator.push(7, "b", one(5), attempt=0).status is Status.CONFLICT
        assert number(aggregator.close(7)) == 7

    def test_another_run_is_refused(self, make_aggregator: MakeAggregator) -> None:
        """A message of another run does not count, whatever else it says; one of this run does."""
        aggregator = make_aggregator()
        receipt = commit(aggregator, 7, "a", one(2), attempt=0, run="another run")
        assert receipt.status is Status.OTHER_RUN
        assert receipt.reason
        receipt = commit(aggregator, 7, "a", one(3), attempt=0, run=aggregator.run)
        assert receipt.status is Status.ACCEPTED
        assert number(aggregator.close(7)) == 3

    def test_another_run_fences_nobody(self, make_aggregator: MakeAggregator) -> None:
        """The incarnations of another run are not those of this one."""
        aggregator = make_aggregator()
        commit(aggregator, 7, "a", one(2), attempt=0, incarnation=9, run="another run")
        assert aggregator.push(7, "a", one(3), attempt=0, incarnation=1).stands

    def test_push_and_commit_are_the_same_act(self, make_aggregator: MakeAggregator) -> None:
        """An update pushed whole and its retransmission in parts have one identity."""
        aggregator = make_aggregator()
        update = Update.of({"w": np.arange(6.0).reshape(2, 3), "n": np.array([1, 2])}, weight=3)
        assert aggregator.push(7, "a", update, attempt=0).status is Status.ACCEPTED
        assert commit(aggregator, 7, "a", update, attempt=0).status is Status.DUPLICATE
        assert commit(aggregator, 7, "b", update, attempt=0).status is Status.ACCEPTED
        assert aggregator.close(7).total_weight == 6

    def test_a_mismatch_names_both_sides(self, make_aggregator: MakeAggregator) -> None:
        """The reason of a mismatch says what was expected and what came; nothing broadcasts."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", np.zeros(3))
        receipt = aggregator.push(7, "b", np.zeros(1))
        assert receipt.status is Status.MISMATCH
        assert "float64[3]" in receipt.reason
        assert "float64[1]" in receipt.reason
        assert who(aggregator.close(7)) == ["a"]

    def test_the_first_rule_that_applies_decides(self, make_aggregator: MakeAggregator) -> None:
        """Fenced before closed, closed before mismatch, mismatch before conflict and superseded."""
        aggregator = make_aggregator()
        aggregator.push(6, "a", one(1), attempt=0, incarnation=1)
        aggregator.close(6)
        aggregator.push(7, "b", one(1), attempt=1, incarnation=2)
        wide = np.zeros(2)
        assert [
            aggregator.push(6, "b", one(1), attempt=0, incarnation=1).status,
            aggregator.push(6, "b", wide, attempt=0, incarnation=2).status,
            aggregator.push(9, "b", wide, attempt=0, incarnation=2).status,
            aggregator.push(7, "b", wide, attempt=1, incarnation=2).status,
            aggregator.push(7, "b", wide, attempt=0, incarnation=2).status,
        ] == [
            *(Status.FENCED, Status.CLOSED, Status.TOO_FAR),
            *(Status.MISMATCH, Status.MISMATCH),
        ]

    def test_an_incarnation_needs_an_attempt(self, make_aggregator: MakeAggregator) -> None:
        """An incarnation without an attempt orders nothing; it raises and nothing is done."""
        aggregator = make_aggregator()
        with pytest.raises(InvalidUpdate):
            aggregator.push(7, "a", one(2), incarnation=1)
        assert aggregator.push(7, "a", one(3)).status is Status.ACCEPTED

    @pytest.mark.parametrize("ordinal", [-1, 1.5, "1", True])
    def test_ordinals_are_integers_from_zero(
        self, make_aggregator: MakeAggregator, ordinal: object
    ) -> None:
        """Attempts and incarnations are integers >= 0; anything else raises."""
        aggregator = make_aggregator()
        with pytest.raises(InvalidInput):
            aggregator.push(7, "a", one(2), attempt=ordinal)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            aggregator.push(7, "a", one(2), attempt=0, incarnation=ordinal)  # type: ignore[arg-type]
        assert aggregator.push(7, "a", one(3)).status is Status.ACCEPTED

    @pytest.mark.parametrize(("step", "worker"), [(1.5, "a"), ("7", "a"), (7, 3), (7, None)])
    def test_a_step_is_an_integer_and_a_worker_a_name(
        self, make_aggregator: MakeAggregator, step: object, worker: object
    ) -> None:
        """What is neither raises; a number is not silently read as a name."""
        with pytest.raises(InvalidInput):
            make_aggregator().push(step, worker, one(2))  # type: ignore[arg-type]

    @pytest.mark.parametrize("weight", [-1, 1.0, None, "2", 2**53 + 1, True])
    def test_a_weight_is_a_count(self, make_aggregator: MakeAggregator, weight: object) -> None:
        """Weights are integers from 0 to 2**53; a missing one does not become 1."""
        aggregator = make_aggregator()
        with pytest.raises(InvalidUpdate):
            aggregator.push(7, "a", np.array([2.0]), weight=weight)  # type: ignore[arg-type]
        assert aggregator.push(7, "a", one(3)).status is Status.ACCEPTED

    def test_the_policy_may_state_the_signature(self, make_aggregator: MakeAggregator) -> None:
        """A stated signature holds from the first push."""
        signature = Signature.of({"": np.zeros(1)})
        aggregator = make_aggregator(Policy(signature=signature))
        assert aggregator.push(7, "a", np.zeros(2)).status is Status.MISMATCH
        assert aggregator.push(7, "a", one(2)).status is Status.ACCEPTED
