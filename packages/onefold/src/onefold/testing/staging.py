"""Staging: updates that arrive in parts, as over a network, and aggregates that leave in parts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from onefold.aggregator import Aggregator
from onefold.errors import Damaged, InvalidUpdate, NotYet, ProtocolError, SumOverflow
from onefold.ledger import Status
from onefold.parts import Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.testing.support import (
    MakeAggregator,
    commit,
    number,
    one,
    same_bits,
    sparse,
    wait_in_thread,
)
from onefold.update import Tensor, Update

__all__ = ["StagingContract"]

SEVERAL: dict[str, Tensor] = {
    "w": np.arange(6.0).reshape(2, 3),
    "n": np.array([1, 2]),
    "s": sparse((3, 1), (-1, 2), (3, 4)),
}
"""Of three kinds, hence in three parts."""


def staged(aggregator: Aggregator, update: Update) -> list[str]:
    """The ids of the parts of ``update``."""
    return [aggregator.stage(7, schema, batches) for schema, batches in encode(update)]


class StagingContract:
    """``stage``, ``commit``, ``discard``, ``wait`` and ``read_part``: what a server calls."""

    def test_parts_make_up_an_update(self, make_aggregator: MakeAggregator) -> None:
        """Staged part by part and committed it is the update, in whatever order they came."""
        aggregator = make_aggregator()
        update = Update(SEVERAL, weight=3)
        receipt = commit(aggregator, 7, "a", update, attempt=0, incarnation=1)
        assert (receipt.status, receipt.digest) == (Status.ACCEPTED, update.digest())
        aggregate = aggregator.close(7)
        expected = SEVERAL | {"s": sparse((-1, 2), (3, 5))}
        assert same_bits(aggregate.tensors, expected)
        assert [c.digest for c in aggregate.contributors] == [update.digest()]

    def test_what_is_staged_does_not_count(self, make_aggregator: MakeAggregator) -> None:
        """Until the commit there is no contribution, and discarded parts cannot be committed."""
        aggregator = make_aggregator(Policy(roster=["a"]))
        parts = staged(aggregator, one(2))
        with pytest.raises(NotYet):
            aggregator.pull(7, timeout_seconds=0)
        aggregator.discard(parts)
        with pytest.raises(Damaged):
            aggregator.commit(
                *(7, "a", manifest_of(one(2), parts)), attempt=0, incarnation=1, run=None
            )
        assert aggregator.push(7, "a", one(3), attempt=0).status is Status.ACCEPTED

    @pytest.mark.parametrize("lie", [False, True], ids=["repeated", "with another digest"])
    def test_a_commit_of_the_parts_that_stand_takes_nothing_away(
        self, make_aggregator: MakeAggregator, lie: bool
    ) -> None:
        """A commit whose answer was lost comes again with the same parts, and still counts."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        parts = staged(aggregator, one(2))
        manifest = manifest_of(one(2), parts)
        for _ in range(3):
            receipt = aggregator.commit(7, "a", manifest, attempt=1, incarnation=1)
        assert receipt.status is Status.DUPLICATE
        if lie:
            false = dataclasses.replace(manifest, digest="0" * 32)
            with pytest.raises(ProtocolError):
                aggregator.commit(7, "a", false, attempt=1, incarnation=1)
        aggregator.push(7, "b", one(5), attempt=1)
        assert number(aggregator.pull(7)) == 7

    @pytest.mark.parametrize(
        "fault", ["missing", "repeated", "foreign", "digest", "weight", "unknown"]
    )
    def test_parts_that_are_not_the_update_are_refused(
        self, make_aggregator: MakeAggregator, fault: str
    ) -> None:
        """A torn or false commit raises, and leaves no mark: the whole one is then accepted."""
        aggregator = make_aggregator()
        update = Update(SEVERAL)
        parts = staged(aggregator, update)
        manifest = manifest_of(update, parts)
        faulty = {
            "missing": dataclasses.replace(manifest, parts=tuple(parts[:-1])),
            "repeated": dataclasses.replace(manifest, parts=(*parts, parts[0])),
            "foreign": dataclasses.replace(
                manifest, parts=(*parts[:-1], *staged(aggregator, one(2)))
            ),
            "digest": dataclasses.replace(manifest, digest="0" * 32),
            "weight": dataclasses.replace(manifest, weight=2),
            "unknown": dataclasses.replace(manifest, parts=(*parts[:-1], "no such part")),
        }[fault]
        with pytest.raises((ProtocolError, InvalidUpdate, Damaged)):
            aggregator.commit(7, "a", faulty, attempt=0, incarnation=1, run=None)
        receipt = commit(aggregator, 7, "a", update, attempt=0, incarnation=1)
        assert receipt.status is Status.ACCEPTED
        assert aggregator.close(7).count == 1

    @pytest.mark.parametrize("hostile", ["../ledger", "/etc/hostname", "", "a/b", "\0"])
    def test_a_part_is_no_path(self, make_aggregator: MakeAggregator, hostile: str) -> None:
        """The id of a part comes from a client: it names a staged part or nothing."""
        aggregator = make_aggregator()
        manifest = manifest_of(one(2), [hostile])
        with pytest.raises(Damaged):
            aggregator.commit(7, "a", manifest, attempt=0, incarnation=1, run=None)
        assert aggregator.push(7, "a", one(3), attempt=0).status is Status.ACCEPTED

    def test_a_refused_commit_keeps_what_stands(self, make_aggregator: MakeAggregator) -> None:
        """Superseded, duplicate and mismatching parts are dropped; the contribution's are not."""
        aggregator = make_aggregator()
        commit(aggregator, 7, "a", one(2), attempt=1, incarnation=1)
        commit(aggregator, 7, "b", one(5), attempt=1, incarnation=1)
        statuses = [
            commit(aggregator, 7, "a", update, attempt=attempt, incarnation=1).status
            for update, attempt in [(one(9), 0), (one(2), 1), (one(9), 1), (Update(SEVERAL), 2)]
        ]
        assert statuses == [
            *(Status.SUPERSEDED, Status.DUPLICATE, Status.CONFLICT, Status.MISMATCH)
        ]
        assert number(aggregator.close(7)) == 7

    def test_an_aggregate_leaves_in_parts(self, make_aggregator: MakeAggregator) -> None:
        """What wait and read_part give, put together, is what pull gives."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        for worker in ("a", "b"):
            aggregator.push(7, worker, SEVERAL)
        closed = aggregator.wait(7, 0)
        assert closed is not None
        assert closed.manifest is not None
        parts = [list(aggregator.read_part(7, part)[1]) for part in closed.manifest.parts]
        payload = Payload(closed.manifest, parts)
        payload.verify()
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert same_bits(payload.update().tensors, aggregate.tensors)
        assert closed.closed.digest() == aggregate.digest

    def test_wait_says_none_while_a_step_is_open(self, make_aggregator: MakeAggregator) -> None:
        """None at the timeout; the aggregate as soon as it is there."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        aggregator.push(7, "a", one(2))
        assert aggregator.wait(7, 0) is None
        assert aggregator.wait(8, 0) is None
        waiting = wait_in_thread(lambda: aggregator.wait(7, 60))
        aggregator.push(7, "b", one(5))
        closed = waiting.result()
        assert closed is not None
        assert closed.closed.count == 2

    def test_a_skipped_step_has_no_manifest(self, make_aggregator: MakeAggregator) -> None:
        """There is nothing to send but who was excluded and why."""
        aggregator = make_aggregator(Policy(roster=["a"], on_nonfinite="skip"))
        aggregator.push(7, "a", one(np.nan))
        closed = aggregator.wait(7, 0)
        assert closed is not None
        assert closed.manifest is None
        assert closed.closed.outcome == "skipped"

    def test_wait_raises_what_keeps_a_step_from_closing(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """An overflow reaches whoever waits, also who waited before it came about."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        aggregator.push(7, "a", one(100, "int8"), attempt=0)
        waiting = wait_in_thread(lambda: aggregator.wait(7, 60))
        aggregator.push(7, "b", one(100, "int8"), attempt=0)
        with pytest.raises(SumOverflow):
            waiting.result()
        with pytest.raises(SumOverflow):
            aggregator.wait(7, 0)
        aggregator.push(7, "b", one(1, "int8"), attempt=1)
        assert aggregator.wait(7, 0) is not None

    def test_status_tells_who_is_missing(self, make_aggregator: MakeAggregator) -> None:
        """The run, the open steps with who contributed, and how often each receipt was given."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        for worker in ("a", "a", "c"):
            aggregator.push(7, worker, one(2), attempt=0)
        status = repr(aggregator.status())
        assert aggregator.run in status
        for part in ("'a'", "'b'", "accepted", "duplicate", "unknown_worker"):
            assert part in status
