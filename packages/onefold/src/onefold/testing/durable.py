"""What an aggregator on a directory must do besides: go on after a shutdown, crash or damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from onefold.aggregator import Aggregator
from onefold.errors import Expired, InvalidPolicy, NotYet, StoreLocked
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.aggregator import AggregatorContract
from onefold.testing.support import (
    Clock,
    number,
    one,
    pairs,
    push_all,
    reasons,
    same_bits,
    sparse,
    who,
)
from onefold.update import Tensor

__all__ = ["DurableContract", "OpenRun"]

AB = Policy(roster=["a", "b"])
MARKED = 1234.56789
"""A number whose bytes occur nowhere else, so that its file can be found and damaged."""


class OpenRun(Protocol):
    """Opens the run of the test; an aggregator that it opened before is shut down first."""

    directory: Path

    def __call__(self, policy: Policy = ..., clock: Callable[[], float] = ...) -> Aggregator:
        """An open aggregator on :attr:`directory`."""


class DurableContract(AggregatorContract):
    """Subclass it with fixtures ``make_aggregator`` and ``open_run``; see :class:`OpenRun`."""

    @pytest.fixture
    def open_run(self) -> Iterator[OpenRun]:
        """To be overridden."""
        raise NotImplementedError

    def test_reopening_goes_on(self, open_run: OpenRun) -> None:
        """Open steps and their contributions are there, and repeats of them are known."""
        first = open_run(AB)
        first.push(7, "a", one(2), attempt=0, incarnation=1)
        run = first.run
        again = open_run(AB)
        assert again.run == run
        assert again.push(7, "a", one(2), attempt=0, incarnation=1).status is Status.DUPLICATE
        again.push(7, "b", one(5), attempt=0, incarnation=1)
        aggregate = again.pull(7, timeout_seconds=0)
        assert (number(aggregate), who(aggregate)) == (7, ["a", "b"])

    def test_arrival_order_survives(self, open_run: OpenRun) -> None:
        """Without attempts the last before the reopening is what a later arrival replaces."""
        push_all(open_run(), [(7, "a", 1), (7, "a", 2)])
        again = open_run()
        receipts = push_all(again, [(7, "a", 2), (7, "a", 1)])
        assert [r.status for r in receipts] == [Status.DUPLICATE, Status.REPLACED]
        assert number(again.close(7)) == 1

    def test_an_aggregate_survives(self, open_run: OpenRun) -> None:
        """The same bits, contributors, exclusions and digest, as often as it is opened."""
        tensors: dict[str, Tensor] = {
            "w": np.array([0.1, np.nan, -0.0]),
            "s": sparse((5, 1), (1, 2)),
            "scalar": np.array(3, dtype=np.uint8),
        }
        first = open_run(AB)
        first.push(7, "a", tensors, attempt=0, weight=3)
        before = first.close(7)
        for _ in range(2):
            after = open_run(AB).pull(7, timeout_seconds=0)
            assert same_bits(after.tensors, before.tensors)
            assert (after.contributors, after.digest) == (before.contributors, before.digest)
            assert after.excluded == before.excluded

    def test_what_was_read_stays_readable(self, open_run: OpenRun) -> None:
        """An aggregate in the hands of a caller outlives the aggregator that gave it."""
        first = open_run(Policy(keep_steps=1))
        first.push(7, "a", sparse((1, 2)))
        aggregate = first.close(7)
        first.push(8, "a", sparse((1, 3)))
        first.close(8)  # prunes 7
        open_run(Policy(keep_steps=1))
        assert pairs(aggregate.tensor) == [(1, 2)]

    def test_closed_answers_survive(self, open_run: OpenRun) -> None:
        """A repeat of what was closed before the restart is still told whether it counted."""
        first = open_run()
        first.push(7, "a", one(2), attempt=1, incarnation=1)
        first.close(7)
        again = open_run()
        counted = again.push(7, "a", one(2), attempt=1, incarnation=1)
        assert (counted.status, counted.counted, counted.counted_as) == (Status.CLOSED, True, 1)
        other = again.push(7, "a", one(3), attempt=2, incarnation=1)
        assert (other.status, other.counted, other.counted_as) == (Status.CLOSED, False, 1)
        assert again.push(6, "a", one(9), attempt=0).status is Status.CLOSED
        assert number(again.pull(7, timeout_seconds=0)) == 2

    def test_skipped_steps_survive(self, open_run: OpenRun) -> None:
        """A skipped step stays skipped, without tensors and with its reasons."""
        first = open_run(Policy(on_nonfinite="skip"))
        first.push(7, "a", one(np.nan))
        first.close(7)
        aggregate = open_run(Policy(on_nonfinite="skip")).pull(7, timeout_seconds=0)
        assert (aggregate.outcome, dict(aggregate.tensors)) == ("skipped", {})
        assert list(reasons(aggregate)) == ["a"]

    def test_incarnations_survive(self, open_run: OpenRun) -> None:
        """Lives keep their incarnations, fences stand, and those who left are gone."""
        policy = Policy(roster="joined")
        first = open_run(policy)
        lives = [first.join("a", life).incarnation for life in ("life 1", "life 2")]
        first.join("b", "life 1")
        first.leave("b")
        again = open_run(policy)
        assert [again.join("a", life).incarnation for life in ("life 1", "life 2")] == lives
        fenced = again.push(7, "a", one(100), attempt=0, incarnation=lives[0])
        assert fenced.status is Status.FENCED
        again.push(7, "a", one(2), attempt=0, incarnation=lives[1])
        assert number(again.pull(7, timeout_seconds=0)) == 2

    def test_a_fence_by_push_survives(self, open_run: OpenRun) -> None:
        """An incarnation that only a push stated is remembered."""
        open_run().push(7, "a", one(2), attempt=0, incarnation=5)
        again = open_run()
        assert again.push(8, "a", one(9), attempt=0, incarnation=4).status is Status.FENCED
        assert again.join("a", "life").incarnation > 5

    def test_seats_survive(self, open_run: OpenRun) -> None:
        """With roster N those who joined first keep their places."""
        open_run(Policy(roster=2)).join("y", "life")
        again = open_run(Policy(roster=2))
        assert again.join("x", "life").roster == ("y", "x")

    def test_a_roster_survives(self, open_run: OpenRun) -> None:
        """A step waits after the restart for whom it waited before, whoever joined or left."""
        policy = Policy(roster="joined")
        first = open_run(policy)
        for worker in ("a", "b"):
            first.join(worker, "life")
        first.push(7, "a", one(2))
        first.join("c", "life")
        first.leave("b")
        again = open_run(policy)
        assert again.push(7, "c", one(100)).status is Status.UNKNOWN_WORKER
        with pytest.raises(NotYet):
            again.pull(7, timeout_seconds=0)
        again.push(7, "b", one(5))
        assert number(again.pull(7, timeout_seconds=0)) == 7

    def test_a_signature_survives(self, open_run: OpenRun) -> None:
        """Of the first closed step, and of what stands in an open one."""
        open_run().push(7, "a", one(2))
        again = open_run()
        assert again.push(7, "b", np.zeros(2)).status is Status.MISMATCH
        again.close(7)
        assert open_run().push(8, "a", np.zeros(2)).status is Status.MISMATCH

    def test_a_deadline_survives(self, open_run: OpenRun) -> None:
        """It is a wall-clock time that was written down, and may pass while nothing runs."""
        clock = Clock()
        policy = Policy(roster=["a", "b"], minimum=1, deadline_seconds=10)
        open_run(policy, clock).push(7, "a", one(2))
        clock.advance(9)
        with pytest.raises(NotYet):
            open_run(policy, clock).pull(7, timeout_seconds=0)
        clock.advance(1)
        assert number(open_run(policy, clock).pull(7, timeout_seconds=0)) == 2

    def test_an_overflow_survives_and_heals(self, open_run: OpenRun) -> None:
        """A step that could not close is open after the restart and closes when it can."""
        first = open_run(AB)
        for worker in ("a", "b"):
            first.push(7, worker, one(100, "int8"), attempt=0)
        again = open_run(AB)
        assert again.push(7, "b", one(27, "int8"), attempt=1).status is Status.REPLACED
        assert number(again.pull(7, timeout_seconds=0)) == 127

    @pytest.mark.parametrize(
        ("policy", "named"),
        [
            (Policy(roster=["a", "b"], operation="mean"), "the operation 'mean'"),
            (Policy(roster=["b", "a"]), r"wait for \['b', 'a'\]"),
            (Policy(roster=2), "wait for the first 2 that join"),
            (Policy(roster="joined"), "wait for whoever has joined"),
            (Policy(), "wait for nobody in particular"),
        ],
    )
    def test_a_run_keeps_its_operation_and_its_roster(
        self, open_run: OpenRun, policy: Policy, named: str
    ) -> None:
        """Another one is refused, both named, and the run goes on with its own."""
        open_run(AB).push(7, "a", one(2))
        with pytest.raises(InvalidPolicy, match=named) as caught:
            open_run(policy)
        assert "the operation 'sum' and steps that wait for ['a', 'b']" in str(caught.value)
        again = open_run(AB)
        again.push(7, "b", one(5))
        assert number(again.pull(7)) == 7

    def test_the_rest_of_a_policy_may_change(self, open_run: OpenRun) -> None:
        """Deadlines, windows and what is kept are no part of what a sum is."""
        open_run(AB).push(7, "a", one(2))
        changed = Policy(
            roster=["a", "b"],
            minimum=1,
            deadline_seconds=5,
            on_nonfinite="skip",
            open_steps_max=9,
            sync_each_push=True,
            keep_steps=3,
        )
        again = open_run(changed)
        again.push(7, "b", one(5))
        assert number(again.pull(7)) == 7

    def test_pruned_stays_pruned(self, open_run: OpenRun) -> None:
        """Tensors that have expired are not there after a restart, and answers are."""
        policy = Policy(keep_steps=1)
        first = open_run(policy)
        for step in (7, 8):
            first.push(step, "a", one(step), attempt=0)
            first.close(step)
        again = open_run(policy)
        with pytest.raises(Expired):
            again.pull(7, timeout_seconds=0)
        assert again.push(7, "a", one(7), attempt=0).counted
        assert number(again.pull(8, timeout_seconds=0)) == 8

    def test_a_directory_has_one_aggregator(self, open_run: OpenRun) -> None:
        """A second one is refused while the first is open, and the first goes on."""
        first = open_run(AB)
        first.push(7, "a", one(2))
        with pytest.raises(StoreLocked), Aggregator(open_run.directory, AB):
            pytest.fail("a second aggregator opened the directory")
        first.push(7, "b", one(5))
        assert number(first.pull(7, timeout_seconds=0)) == 7

    @pytest.mark.parametrize("harm", ["damaged", "truncated", "missing"])
    def test_a_harmed_contribution_is_sent_again(self, open_run: OpenRun, harm: str) -> None:
        """Numbers that are not what was received are unrecorded at start; a resend heals."""
        first = open_run(AB)
        update = one(MARKED)
        first.push(7, "a", update, attempt=0, incarnation=1)
        first.push(8, "a", one(3), attempt=0, incarnation=1)
        first.shutdown()
        _harm(_files_with(open_run.directory, MARKED), harm)
        again = open_run(AB)
        assert not again.stands(7, "a", 1, 0)
        assert again.stands(8, "a", 1, 0)
        again.push(7, "b", one(5), attempt=0, incarnation=1)
        with pytest.raises(NotYet):
            again.pull(7, timeout_seconds=0)
        assert again.push(7, "a", update, attempt=0, incarnation=1).status is Status.ACCEPTED
        assert number(again.pull(7, timeout_seconds=0)) == MARKED + 5


def _files_with(directory: Path, value: float) -> list[Path]:
    """The payload files that hold ``value``: all but the ledger's."""
    pattern = np.array([value]).tobytes()
    files = [path for path in directory.rglob("*") if path.is_file()]
    payloads = [path for path in files if b"SQLite" not in path.read_bytes()[:16]]
    return [path for path in payloads if pattern in path.read_bytes() and "wal" not in path.name]


def _harm(files: list[Path], harm: str) -> None:
    assert files, "no payload file has the number that was pushed"
    for path in files:
        if harm == "missing":
            path.unlink()
            continue
        data = path.read_bytes()
        at = data.index(np.array([MARKED]).tobytes())
        damaged = data[: at + 3] + bytes([data[at + 3] ^ 1]) + data[at + 4 :]
        path.write_bytes(damaged if harm == "damaged" else data[:at])
