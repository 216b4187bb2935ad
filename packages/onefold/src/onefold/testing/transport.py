"""What every transport must do: workers that push and pull get what the aggregator would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import ml_dtypes
import numpy as np
import pytest

from onefold.aggregate import Aggregate
from onefold.errors import Fenced, InvalidUpdate, NotYet, NoUpdate, Refused, UnknownWorker
from onefold.ledger import Joined, Receipt, Status
from onefold.policy import Policy
from onefold.testing.support import (
    number,
    one,
    pairs,
    reasons,
    same_bits,
    sparse,
    wait_in_thread,
    who,
)
from onefold.update import DTYPES, Sparse, Tensor, Update

__all__ = ["Cluster", "MakeCluster", "TransportContract", "Worker"]

AB = Policy(roster=["a", "b"])


class Worker(Protocol):
    """One life of a worker at its end of the transport."""

    @property
    def joined(self) -> Joined:
        """The answer to the join."""

    def push(
        self, step: int, update: Mapping[str, Tensor] | Tensor | Update, *, weight: int = 1
    ) -> Receipt:
        """Contribute; a refusal may be raised as :class:`Refused`."""

    def pull(self, step: int, timeout_seconds: float = ...) -> Aggregate:
        """The aggregate of a step."""

    def reduce(
        self, step: int, update: Mapping[str, Tensor] | Tensor | Update, weight: int = 1
    ) -> Aggregate:
        """Push, then pull."""

    def leave(self) -> None:
        """Leave the run."""


class Cluster(Protocol):
    """An aggregator and the way to it."""

    def connect(self, worker: str) -> Worker:
        """A new life of ``worker``, which has joined."""


class MakeCluster(Protocol):
    """Starts a cluster that the fixture stops at the end of the test."""

    def __call__(self, policy: Policy) -> Cluster:
        """A cluster with an empty aggregator of ``policy``."""


def receipt_of(push: Callable[[], Receipt]) -> Receipt:
    """The receipt, whether the transport returns or raises a refusal."""
    try:
        return push()
    except Refused as refused:
        return refused.receipt


class TransportContract:
    """Subclass it with a fixture ``make_cluster``; see :class:`MakeCluster`."""

    @pytest.fixture
    def make_cluster(self) -> Iterator[MakeCluster]:
        """To be overridden."""
        raise NotImplementedError

    @pytest.fixture
    def cluster(self, make_cluster: MakeCluster) -> Cluster:
        """Two workers, a and b."""
        return make_cluster(AB)

    def test_joining_tells_the_place(self, cluster: Cluster) -> None:
        """Run, incarnation, roster, index and the first open step come back with the join."""
        a, b = cluster.connect("a").joined, cluster.connect("b").joined
        assert a.run == b.run != ""
        assert (a.worker, a.roster, a.index) == ("a", ("a", "b"), 0)
        assert (b.worker, b.roster, b.index) == ("b", ("a", "b"), 1)

    def test_an_unknown_name_cannot_join(self, cluster: Cluster) -> None:
        """A name without a place raises UnknownWorker."""
        with pytest.raises(UnknownWorker):
            cluster.connect("c")

    def test_all_get_the_same_bits(self, cluster: Cluster) -> None:
        """Both workers' reduce gives the exact sum, to the bit."""
        workers = {name: cluster.connect(name) for name in ("a", "b")}
        updates: dict[str, dict[str, Tensor]] = {
            "a": {"w": np.array([0.1, 1e300, -0.0]), "s": sparse((3, 1), (1, 2), (3, 4))},
            "b": {"w": np.array([0.2, -1e300, -0.0]), "s": sparse((2, 8), (3, -5))},
        }
        calls = [
            wait_in_thread(lambda name=name: workers[name].reduce(0, updates[name]))  # type: ignore[misc]
            for name in workers
        ]
        expected: dict[str, Tensor] = {
            "w": np.array([0.1 + 0.2, 0.0, -0.0]),
            "s": sparse((1, 2), (2, 8), (3, 0)),
        }
        for call in calls:
            assert same_bits(call.result().tensors, expected)

    def test_a_job_of_many_steps(self, cluster: Cluster) -> None:
        """Workers that reduce step after step, each at its own pace, agree on every one."""

        def work(name: str) -> list[float]:
            worker = cluster.connect(name)
            scale = {"a": 1, "b": 100}[name]
            return [number(worker.reduce(step, one(scale * step))) for step in range(10)]

        calls = [wait_in_thread(lambda name=name: work(name)) for name in ("a", "b")]  # type: ignore[misc]
        for call in calls:
            assert call.result() == [101 * step for step in range(10)]

    def test_receipts_come_back(self, cluster: Cluster) -> None:
        """Accepted, then replaced by other content; the aggregate has the last."""
        a, b = cluster.connect("a"), cluster.connect("b")
        update = one(2)
        receipt = a.push(7, update)
        assert (receipt.status, receipt.step, receipt.worker) == (Status.ACCEPTED, 7, "a")
        assert receipt.digest == update.digest()
        assert receipt.incarnation == a.joined.incarnation
        assert a.push(7, one(3)).status is Status.REPLACED
        b.push(7, one(5))
        aggregate = b.pull(7)
        assert (number(aggregate), who(aggregate)) == (8, ["a", "b"])

    def test_pushing_again_counts_once(self, cluster: Cluster) -> None:
        """The same push made twice stands once, before the close and after it."""
        a, b = cluster.connect("a"), cluster.connect("b")
        for _ in range(2):
            assert a.push(7, one(2)).stands
        b.push(7, one(5))
        assert receipt_of(lambda: a.push(7, one(2))).status is Status.CLOSED
        assert number(a.pull(7)) == number(b.pull(7)) == 7

    def test_a_refusal_says_why(self, cluster: Cluster) -> None:
        """A mismatch comes back with its reason, and nothing of the update counts."""
        a, b = cluster.connect("a"), cluster.connect("b")
        a.push(7, one(2))
        receipt = receipt_of(lambda: b.push(7, np.zeros(3)))
        assert receipt.status is Status.MISMATCH
        assert "float64[3]" in receipt.reason
        assert "float64[1]" in receipt.reason
        b.push(7, one(5))
        assert number(a.pull(7)) == 7

    def test_not_yet(self, cluster: Cluster) -> None:
        """A step that has not closed raises NotYet at the timeout, pushed or not."""
        a = cluster.connect("a")
        a.push(7, one(2))
        for step in (7, 8):
            with pytest.raises(NotYet):
                a.pull(step, timeout_seconds=0)

    def test_no_update(self, cluster: Cluster) -> None:
        """A step that the run passed over raises NoUpdate."""
        a, b = cluster.connect("a"), cluster.connect("b")
        a.push(7, one(2))
        b.push(7, one(5))
        with pytest.raises(NoUpdate):
            a.pull(3, timeout_seconds=10)

    def test_a_new_life_fences_the_old(self, cluster: Cluster) -> None:
        """The older life's push raises Fenced and does not count; the newer's replaces."""
        old = cluster.connect("a")
        old.push(7, one(2))
        new = cluster.connect("a")
        assert new.joined.incarnation > old.joined.incarnation
        assert new.joined.first_open_step == 7
        with pytest.raises(Fenced) as caught:
            old.push(7, one(100))
        assert caught.value.receipt.status is Status.FENCED
        assert new.push(7, one(3)).status is Status.REPLACED
        b = cluster.connect("b")
        b.push(7, one(5))
        assert number(new.pull(7)) == 8

    def test_a_restarted_worker_goes_on(self, cluster: Cluster) -> None:
        """Its join tells the first step that takes its update, past those that have closed."""
        a, b = cluster.connect("a"), cluster.connect("b")
        for step in (0, 1):
            a.push(step, one(2))
            b.push(step, one(5))
        assert cluster.connect("a").joined.first_open_step == 2

    def test_leaving(self, make_cluster: MakeCluster) -> None:
        """Steps that open afterwards do not wait for who has left."""
        cluster = make_cluster(Policy(roster="joined"))
        a, b = cluster.connect("a"), cluster.connect("b")
        b.leave()
        assert number(a.reduce(0, one(2))) == 2

    def test_weights_travel(self, make_cluster: MakeCluster) -> None:
        """Weighted means use the weights of the push, and weight 0 selects out."""
        cluster = make_cluster(Policy(roster=["a", "b", "c"], operation="weighted_mean"))
        a, b, c = (cluster.connect(name) for name in ("a", "b", "c"))
        a.push(7, np.array([1.0]), weight=3)
        b.push(7, np.array([2.0]), weight=1)
        c.push(7, np.array([np.nan]), weight=0)
        aggregate = a.pull(7)
        assert number(aggregate) == 1.25
        assert (aggregate.count, aggregate.total_weight) == (2, 4)
        assert list(reasons(aggregate)) == ["c"]
        assert {w.worker: w.weight for w in aggregate.contributors} == {"a": 3, "b": 1}

    def test_a_skipped_step_travels(self, make_cluster: MakeCluster) -> None:
        """It has an outcome, reasons and no tensors, at every worker."""
        cluster = make_cluster(Policy(roster=["a", "b"], on_nonfinite="skip"))
        a, b = cluster.connect("a"), cluster.connect("b")
        a.push(7, one(np.inf))
        b.push(7, one(1))
        for worker in (a, b):
            aggregate = worker.pull(7)
            assert (aggregate.outcome, dict(aggregate.tensors)) == ("skipped", {})
            assert sorted(reasons(aggregate)) == ["a", "b"]

    def test_every_kind_travels(self, make_cluster: MakeCluster) -> None:
        """Every dtype, rank and odd name, empty tensors included, arrives bit for bit."""
        cluster = make_cluster(Policy(roster=["a"]))
        tensors: dict[str, Tensor] = {}
        for name, dtype in DTYPES.items():
            tensors[f"{name}/matrix"] = np.arange(6).reshape(2, 3).astype(dtype)
            tensors[f"{name}/scalar"] = np.array(7, dtype=dtype)
            tensors[f"{name}/empty"] = np.zeros((0, 3), dtype=dtype)
            rows = np.arange(4).reshape(2, 2).astype(dtype)
            tensors[f"{name}/rows"] = Sparse(np.array([1, 4]), rows, (5, 2))
            tensors[f"{name}/none"] = Sparse(np.array([], dtype=np.int64), np.zeros(0, dtype))
        for name in ("", "grad:1", "grad:2", "ω 'quoted' \"twice\"\n", "a/../b"):
            tensors[name] = np.array([len(name)])
        tensors["special"] = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
        tensors["small"] = np.array([-0.0, 1e-40], dtype=np.dtype(ml_dtypes.bfloat16))
        assert same_bits(cluster.connect("a").reduce(0, tensors).tensors, tensors)

    def test_more_than_a_block_travels(self, cluster: Cluster) -> None:
        """Tensors of several megabytes, dense and sparse, arrive whole and in order."""
        a, b = cluster.connect("a"), cluster.connect("b")
        size = 400_003
        dense = np.arange(size, dtype=np.float64)
        coordinates = np.arange(size)[::-1].copy()
        for worker, factor in ((a, 1), (b, 2)):
            rows = Sparse(coordinates, factor * coordinates.astype(np.float32))
            worker.push(0, {"w": factor * dense, "s": rows})
        tensors = a.pull(0).tensors
        assert np.array_equal(np.asarray(tensors["w"]), 3 * dense)
        result = tensors["s"]
        assert isinstance(result, Sparse)
        assert np.array_equal(result.coordinates, np.arange(size))
        assert np.array_equal(result.values, (3 * np.arange(size)).astype(np.float32))

    def test_arrays_may_be_reused_after_the_push(self, cluster: Cluster) -> None:
        """The caller's buffers are free when push returns."""
        a, b = cluster.connect("a"), cluster.connect("b")
        values = np.array([1.0])
        a.push(7, values)
        values += 100
        b.push(7, np.array([5.0]))
        assert number(a.pull(7)) == 6

    def test_a_result_is_read_only(self, make_cluster: MakeCluster) -> None:
        """What was pulled cannot be changed by accident."""
        cluster = make_cluster(Policy(roster=["a"]))
        tensor = cluster.connect("a").reduce(0, {"s": sparse((1, 2))}).tensors["s"]
        assert isinstance(tensor, Sparse)
        for array in (tensor.coordinates, tensor.values):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
        assert pairs(tensor) == [(1, 2)]

    def test_what_cannot_be_used_is_not_sent(self, cluster: Cluster) -> None:
        """A wrong weight or array raises at the caller, and costs no attempt of the step."""
        a = cluster.connect("a")
        with pytest.raises(InvalidUpdate):
            a.push(7, np.array([1.0]), weight=-1)
        with pytest.raises(InvalidUpdate):
            a.push(7, np.array(["text"]))
        assert a.push(7, one(2)).status is Status.ACCEPTED
