"""Joining and leaving: who belongs to the run, from when, and which of a worker's lives counts."""

from __future__ import annotations

import contextlib

import pytest

from onefold.errors import NotYet, OnefoldError, UnknownWorker
from onefold.ledger import Behind, Joined, Status
from onefold.policy import Policy
from onefold.testing.support import MakeAggregator, number, one, push_all, statuses, who

__all__ = ["JoiningContract"]

AB = Policy(roster=["a", "b"])
JOINED = Policy(roster="joined")


class JoiningContract:
    """Who belongs to the run: lives and incarnations, seats, joining late and leaving."""

    def test_a_repeated_join_is_harmless(self, make_aggregator: MakeAggregator) -> None:
        """The same life gets the same answer; another life the next incarnation."""
        aggregator = make_aggregator(AB)
        first = aggregator.join("a", "life 1")
        assert aggregator.join("a", "life 1") == first
        second = aggregator.join("a", "life 2")
        assert second.incarnation == first.incarnation + 1
        assert aggregator.join("a", "life 2") == second

    def test_a_delayed_join_of_an_earlier_life_does_not_rise_again(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Repeating the join of a fenced life gives its old incarnation, which stays fenced."""
        aggregator = make_aggregator(AB)
        first = aggregator.join("a", "life 1")
        second = aggregator.join("a", "life 2")
        assert aggregator.join("a", "life 1").incarnation == first.incarnation
        late = aggregator.push(7, "a", one(100), attempt=0, incarnation=first.incarnation)
        assert late.status is Status.FENCED
        assert aggregator.push(7, "a", one(2), attempt=0, incarnation=second.incarnation).stands

    def test_a_join_that_comes_too_late_changes_nothing(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Who joins after an incarnation that is no longer the newest fences nobody, and is told.

        A repeat of a join that had its effect is answered as before, however late it comes.
        """
        aggregator = make_aggregator(AB)
        first = aggregator.join_after("a", "life 1", 0)
        assert aggregator.join_after("a", "life of a dead process", 0) == Behind("a", 1)
        assert aggregator.push(7, "a", one(1), attempt=0, incarnation=1).status is Status.ACCEPTED
        second = aggregator.join_after("a", "life 2", 1)
        assert isinstance(second, Joined)
        assert second.incarnation == 2
        assert isinstance(first, Joined)
        again = aggregator.join_after("a", "life 1", 0)
        assert isinstance(again, Joined)
        assert again.incarnation == first.incarnation == 1
        assert aggregator.push(7, "a", one(1), attempt=1, incarnation=1).status is Status.FENCED

    def test_a_join_fences_the_life_before(self, make_aggregator: MakeAggregator) -> None:
        """From the join of the new life on, the older one's pushes are fenced."""
        aggregator = make_aggregator(AB)
        first = aggregator.join("a", "life 1")
        aggregator.push(7, "a", one(2), attempt=0, incarnation=first.incarnation)
        aggregator.join("a", "life 2")
        receipt = aggregator.push(7, "a", one(100), attempt=1, incarnation=first.incarnation)
        assert receipt.status is Status.FENCED

    def test_a_join_after_a_stated_incarnation_is_above_it(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """An incarnation that only a push stated is taken; a new life gets a higher one."""
        aggregator = make_aggregator(AB)
        aggregator.push(7, "a", one(2), attempt=0, incarnation=5)
        assert aggregator.join("a", "life").incarnation > 5

    def test_joining_tells_where_to_go_on(self, make_aggregator: MakeAggregator) -> None:
        """The answer has the run, the roster, the place in it and the first step that takes it."""
        aggregator = make_aggregator(AB)
        joined = aggregator.join("b", "life 1")
        assert (joined.run, joined.worker) == (aggregator.run, "b")
        assert (joined.roster, joined.index) == (("a", "b"), 1)
        push_all(aggregator, [(7, "a", 2)])
        assert aggregator.join("b", "life 1").first_open_step == 7
        push_all(aggregator, [(7, "b", 5)])
        assert aggregator.join("b", "life 2").first_open_step == 8

    def test_all_are_told_one_size(self, make_aggregator: MakeAggregator) -> None:
        """With names and with seats all know from the first join on how many there will be."""
        for policy in (Policy(roster=["x", "y", "z"]), Policy(roster=3)):
            aggregator = make_aggregator(policy)
            joined = [aggregator.join(worker, "life") for worker in ("x", "y", "z")]
            assert [(one.index, one.size) for one in joined] == [(0, 3), (1, 3), (2, 3)]
            assert aggregator.join("y", "life 2").size == 3

    def test_the_size_of_the_joined_is_of_the_moment(self, make_aggregator: MakeAggregator) -> None:
        """The members when it is asked, and nothing where a step waits for nobody."""
        aggregator = make_aggregator(JOINED)
        assert [aggregator.join(worker, "life").size for worker in ("a", "b")] == [1, 2]
        aggregator.leave("a")
        assert aggregator.join("c", "life").size == 2
        assert make_aggregator(Policy()).join("a", "life").size is None

    def test_the_first_open_step_takes_an_update(self, make_aggregator: MakeAggregator) -> None:
        """Also in a run in which nothing has been pushed."""
        aggregator = make_aggregator(AB)
        joined = aggregator.join("a", "life")
        receipt = aggregator.push(
            joined.first_open_step, "a", one(2), attempt=0, incarnation=joined.incarnation
        )
        assert receipt.status is Status.ACCEPTED

    def test_the_first_open_step_is_not_a_closed_one(self, make_aggregator: MakeAggregator) -> None:
        """Where the run has gone past a step, the answer is past it too."""
        aggregator = make_aggregator(Policy(roster=["a", "b"], open_steps_max=1))
        push_all(aggregator, [(0, "a", 1), (0, "b", 1), (2, "a", 1)])
        assert aggregator.join("b", "life").first_open_step == 2  # at 1 it would be told: closed

    def test_who_joins_while_an_older_step_is_open_starts_after_the_closed(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Step 0 does not wait for it, 1 has closed: the first that takes its update is 2."""
        aggregator = make_aggregator(JOINED)
        for worker in ("a", "b"):
            aggregator.join(worker, "life")
        push_all(aggregator, [(0, "a", 1), (1, "a", 1)])
        aggregator.close(1)
        assert aggregator.join("c", "life").first_open_step == 2

    def test_seats_go_to_the_first_names_that_join(self, make_aggregator: MakeAggregator) -> None:
        """Roster N: the first N names; a later one has no place, a returning one keeps its own."""
        aggregator = make_aggregator(Policy(roster=2))
        aggregator.join("x", "life 1")
        aggregator.join("y", "life 1")
        with pytest.raises(UnknownWorker):
            aggregator.join("z", "life 1")
        assert aggregator.join("x", "life 2").incarnation == 2
        assert aggregator.push(7, "z", one(100)).status is Status.UNKNOWN_WORKER
        assert statuses(push_all(aggregator, [(7, "y", 2), (7, "x", 5)])) == [Status.ACCEPTED] * 2
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_a_step_waits_for_a_vacant_seat(self, make_aggregator: MakeAggregator) -> None:
        """With roster N a step that opened before all have joined waits for who is to come."""
        aggregator = make_aggregator(Policy(roster=2))
        assert aggregator.push(7, "x", one(100)).status is Status.UNKNOWN_WORKER
        aggregator.join("x", "life")
        aggregator.push(7, "x", one(2))
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        assert aggregator.join("y", "life").first_open_step == 7
        aggregator.push(7, "y", one(5))
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    def test_joined_means_the_members_when_the_step_opens(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Who joins later is unknown to that step, and is told the first that takes its update."""
        aggregator = make_aggregator(JOINED)
        aggregator.join("a", "life")
        aggregator.join("b", "life")
        aggregator.push(7, "a", one(2))
        assert aggregator.join("c", "life").first_open_step == 8
        assert aggregator.push(7, "c", one(100)).status is Status.UNKNOWN_WORKER
        aggregator.push(7, "b", one(5))
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7
        assert push_all(aggregator, [(8, "c", 1)])[0].status is Status.ACCEPTED
        push_all(aggregator, [(8, "a", 2), (8, "b", 5)])
        assert number(aggregator.pull(8, timeout_seconds=0)) == 8

    def test_who_has_not_joined_is_unknown(self, make_aggregator: MakeAggregator) -> None:
        """With roster "joined" a push does not make a member."""
        aggregator = make_aggregator(JOINED)
        assert aggregator.push(7, "a", one(2)).status is Status.UNKNOWN_WORKER

    @pytest.mark.parametrize("policy", [AB, JOINED], ids=["list", "joined"])
    def test_a_departed_contribution_stays_and_the_step_waits(
        self, make_aggregator: MakeAggregator, policy: Policy
    ) -> None:
        """Leaving affects steps not yet open: an open one keeps its roster and its updates."""
        aggregator = make_aggregator(policy)
        for worker in ("a", "b"):
            aggregator.join(worker, "life")
        aggregator.push(7, "a", one(2))
        aggregator.leave("a")
        aggregator.leave("b")
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        assert aggregator.push(7, "b", one(5)).status is Status.ACCEPTED
        assert number(aggregator.pull(7, timeout_seconds=0)) == 7

    @pytest.mark.parametrize("policy", [AB, JOINED], ids=["list", "joined"])
    def test_later_steps_do_not_wait_for_the_departed(
        self, make_aggregator: MakeAggregator, policy: Policy
    ) -> None:
        """A step that opens after a worker left closes without it; its push is unknown there."""
        aggregator = make_aggregator(policy)
        for worker in ("a", "b"):
            aggregator.join(worker, "life")
        aggregator.leave("b")
        assert aggregator.push(7, "b", one(100)).status is Status.UNKNOWN_WORKER
        aggregator.push(7, "a", one(2))
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (number(aggregate), who(aggregate)) == (2, ["a"])

    @pytest.mark.parametrize("policy", [AB, JOINED], ids=["list", "joined"])
    def test_only_a_new_life_is_present_again(
        self, make_aggregator: MakeAggregator, policy: Policy
    ) -> None:
        """Repeating the join of the life that left changes nothing; a new life is a member."""
        aggregator = make_aggregator(policy)
        aggregator.join("a", "life 1")
        first = aggregator.join("b", "life 1")
        aggregator.leave("b", first.incarnation)
        assert aggregator.join("b", "life 1").incarnation == first.incarnation
        aggregator.push(7, "a", one(2))
        assert number(aggregator.pull(7, timeout_seconds=0)) == 2
        aggregator.join("b", "life 2")
        aggregator.push(8, "a", one(2))
        with pytest.raises(NotYet):
            aggregator.pull(8, timeout_seconds=0)
        assert aggregator.push(8, "b", one(5)).status is Status.ACCEPTED
        assert number(aggregator.pull(8, timeout_seconds=0)) == 7

    def test_who_has_left_opens_nothing(self, make_aggregator: MakeAggregator) -> None:
        """Without a roster too: it may go on with a step that is open, and opens none."""
        aggregator = make_aggregator()
        aggregator.join("a", "life")
        aggregator.leave("a")
        assert aggregator.push(7, "a", one(2)).status is Status.UNKNOWN_WORKER
        aggregator.push(7, "b", one(5))
        assert aggregator.push(7, "a", one(2)).status is Status.ACCEPTED
        assert number(aggregator.close(7)) == 7

    def test_a_fenced_life_cannot_take_the_newer_one_away(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A delayed leave of an earlier incarnation does not remove the one that runs."""
        aggregator = make_aggregator(AB)
        first = aggregator.join("b", "life 1")
        aggregator.join("b", "life 2")
        with contextlib.suppress(OnefoldError):
            aggregator.leave("b", first.incarnation)
        aggregator.push(7, "a", one(2))
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
