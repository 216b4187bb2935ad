"""Deadlines: a step closes at its deadline with at least the minimum, and not before."""

from __future__ import annotations

import pytest

from onefold.errors import NotYet
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import (
    Clock,
    MakeAggregator,
    number,
    one,
    push_all,
    reasons,
    who,
)

__all__ = ["DeadlineContract"]

TWO_OF_THREE = Policy(roster=["a", "b", "c"], minimum=2, deadline_seconds=10)


class DeadlineContract:
    """Wall-clock deadlines; the clock is injected, so nothing waits."""

    def test_a_step_closes_at_its_deadline_with_the_minimum(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Not before; then without the missing, who are named; and a late push is told."""
        clock = Clock()
        aggregator = make_aggregator(TWO_OF_THREE, clock)
        push_all(aggregator, [(7, "a", 2), (7, "b", 5)])
        clock.advance(9.5)
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        clock.advance(0.5)
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (number(aggregate), who(aggregate)) == (7, ["a", "b"])
        assert list(reasons(aggregate)) == ["c"]
        assert reasons(aggregate)["c"]
        late = aggregator.push(7, "c", one(100))
        assert (late.status, late.counted) == (Status.CLOSED, False)

    def test_below_the_minimum_a_step_waits(self, make_aggregator: MakeAggregator) -> None:
        """After the deadline it closes as soon as there are enough."""
        clock = Clock()
        aggregator = make_aggregator(TWO_OF_THREE, clock)
        push_all(aggregator, [(7, "a", 2), (7, "a", 3)])
        clock.advance(1000)
        aggregator.tick()
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        assert aggregator.push(7, "b", one(5)).status is Status.ACCEPTED
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (number(aggregate), who(aggregate)) == (8, ["a", "b"])

    def test_the_minimum_is_the_whole_roster_by_default(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A deadline without a minimum closes nothing that is incomplete."""
        clock = Clock()
        aggregator = make_aggregator(Policy(roster=["a", "b"], deadline_seconds=10), clock)
        aggregator.push(7, "a", one(2))
        clock.advance(1000)
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        aggregator.push(7, "b", one(5))
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_a_complete_roster_does_not_wait(self, make_aggregator: MakeAggregator) -> None:
        """The deadline is the latest, not the earliest, moment."""
        aggregator = make_aggregator(TWO_OF_THREE, Clock())
        push_all(aggregator, [(7, "a", 2), (7, "b", 5), (7, "c", 1)])
        assert number(aggregator.pull(7, timeout_seconds=0)) == 8

    def test_a_tick_closes_what_is_due(self, make_aggregator: MakeAggregator) -> None:
        """Without traffic a tick is enough: what was there at the tick is what counts."""
        clock = Clock()
        aggregator = make_aggregator(TWO_OF_THREE, clock)
        push_all(aggregator, [(7, "a", 2), (7, "b", 5)])
        clock.advance(10)
        aggregator.tick()
        clock.advance(-10)  # so that no later call can be what closed it
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_a_push_after_the_deadline_is_too_late(self, make_aggregator: MakeAggregator) -> None:
        """What is due closes before the push is looked at, though nobody asked in between."""
        clock = Clock()
        aggregator = make_aggregator(TWO_OF_THREE, clock)
        push_all(aggregator, [(7, "a", 2), (7, "b", 5)])
        clock.advance(10)
        receipt = aggregator.push(7, "c", one(100))
        assert (receipt.status, receipt.counted) == (Status.CLOSED, False)
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_a_push_to_another_step_closes_what_is_due(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Deadlines are looked at on every push, whatever its step."""
        clock = Clock()
        aggregator = make_aggregator(TWO_OF_THREE, clock)
        push_all(aggregator, [(7, "a", 2), (7, "b", 5)])
        clock.advance(10)
        aggregator.push(8, "a", one(3))
        clock.advance(-10)
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_each_step_has_its_own_deadline(self, make_aggregator: MakeAggregator) -> None:
        """It runs from the opening of the step, its first push, not from later ones."""
        clock = Clock()
        aggregator = make_aggregator(TWO_OF_THREE, clock)
        aggregator.push(7, "a", one(2))
        clock.advance(6)
        push_all(aggregator, [(7, "b", 5), (8, "a", 3), (8, "b", 4)])
        clock.advance(4)
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7
        with pytest.raises(NotYet):
            aggregator.pull(8, timeout_seconds=0)
        clock.advance(6)
        assert number(aggregator.pull(8, timeout_seconds=0)) == 7
