"""Rosters: whom a step waits for, who may push to it, and what the aggregate tells about them."""

from __future__ import annotations

import numpy as np
import pytest

from onefold.errors import NotYet, UnknownWorker
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import (
    MakeAggregator,
    number,
    one,
    push_all,
    reasons,
    wait_in_thread,
    who,
)

__all__ = ["RosterContract"]

AB = Policy(roster=["a", "b"])


class RosterContract:
    """A step closes on distinct workers of a roster that is fixed when it opens."""

    def test_a_step_closes_with_the_last_of_its_roster(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """The push that completes the roster is accepted, and the aggregate is there."""
        aggregator = make_aggregator(AB)
        aggregator.push(7, "a", one(2))
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        assert aggregator.push(7, "b", one(5)).status is Status.ACCEPTED
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (number(aggregate), who(aggregate)) == (7, ["a", "b"])
        assert (aggregate.outcome, aggregate.count, aggregate.total_weight) == ("update", 2, 2)
        assert reasons(aggregate) == {}

    def test_repeats_do_not_fill_a_roster(self, make_aggregator: MakeAggregator) -> None:
        """Contributors are counted, not messages: repeats and replacements of one worker wait."""
        aggregator = make_aggregator(AB)
        push_all(aggregator, [(7, "a", 2), (7, "a", 2), (7, "a", 3), (8, "b", 5)])
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)

    def test_a_name_outside_the_roster_is_unknown(self, make_aggregator: MakeAggregator) -> None:
        """It neither counts nor opens a step, and it has no place to join."""
        aggregator = make_aggregator(AB)
        receipt = aggregator.push(7, "c", one(100))
        assert receipt.status is Status.UNKNOWN_WORKER
        assert receipt.reason
        with pytest.raises(UnknownWorker):
            aggregator.join("c", "life")
        push_all(aggregator, [(8, "a", 2), (9, "a", 3)])  # 7 takes no place in the window
        push_all(aggregator, [(8, "b", 5)])
        assert number(aggregator.pull(8, timeout_seconds=0)) == 7

    def test_close_takes_what_is_there(self, make_aggregator: MakeAggregator) -> None:
        """Closing by hand does not wait for the roster; the missing are named, with a reason."""
        aggregator = make_aggregator(Policy(roster=["a", "b", "c"]))
        aggregator.push(7, "b", one(5))
        aggregate = aggregator.close(7)
        assert (number(aggregate), who(aggregate)) == (5, ["b"])
        assert sorted(reasons(aggregate)) == ["a", "c"]
        assert all(reasons(aggregate).values())

    def test_the_aggregate_tells_why_a_worker_was_refused(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A worker whose update was refused is excluded with that reason, not as if silent."""
        aggregator = make_aggregator(AB)
        aggregator.push(7, "a", one(2))
        receipt = aggregator.push(7, "b", np.zeros(4))
        assert receipt.status is Status.MISMATCH
        reason = reasons(aggregator.close(7))["b"]
        assert receipt.reason in reason or "mismatch" in reason

    def test_a_pull_waits_for_the_last(self, make_aggregator: MakeAggregator) -> None:
        """Whoever waits in pull gets the aggregate as soon as the step has closed."""
        aggregator = make_aggregator(AB)
        waiting = wait_in_thread(lambda: aggregator.pull(7, timeout_seconds=60))
        push_all(aggregator, [(7, "a", 2), (7, "b", 5)])
        assert number(waiting.result()) == 7

    def test_an_interrupt_ends_waiting(self, make_aggregator: MakeAggregator) -> None:
        """Interrupting wakes whoever waits, with NotYet."""
        aggregator = make_aggregator(AB)
        aggregator.push(7, "a", one(2))
        waiting = wait_in_thread(lambda: aggregator.pull(7, timeout_seconds=600))
        for _ in range(6000):
            aggregator.interrupt()  # again and again: it may have come before the wait began
            waiting.thread.join(0.01)
            if not waiting.thread.is_alive():
                break
        with pytest.raises(NotYet):
            waiting.result()

    def test_many_threads_push_at_once(self, make_aggregator: MakeAggregator) -> None:
        """Every worker counts once, however its retransmissions race."""
        names = [f"w{i}" for i in range(6)]
        aggregator = make_aggregator(Policy(roster=names))

        def work(index: int) -> None:
            for step in range(5):
                for _ in range(2):
                    aggregator.push(step, names[index], one(10**index), attempt=0, incarnation=1)
                aggregator.pull(step, timeout_seconds=60)

        threads = [wait_in_thread(lambda index=index: work(index)) for index in range(6)]  # type: ignore[misc]
        for thread in threads:
            thread.result()
        for step in range(5):
            aggregate = aggregator.pull(step, timeout_seconds=0)
            assert (number(aggregate), who(aggregate)) == (111111, names)
