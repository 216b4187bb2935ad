"""Selection: what is summed and what is not, who is told, and that nobody can change it."""

from __future__ import annotations

import numpy as np
import pytest

from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import MakeAggregator, number, one, reasons, same_bits, sparse, who
from onefold.update import Sparse, Tensor, Update

__all__ = ["SelectionContract"]


class SelectionContract:
    """What is summed, what is not, and that nobody can change it afterwards."""

    def test_an_aggregate_lists_its_contributors(self, make_aggregator: MakeAggregator) -> None:
        """Worker, incarnation, attempt, weight and digest of each."""
        aggregator = make_aggregator()
        updates = {"a": Update({"w": np.array([2.0])}, 3), "b": Update({"w": np.array([5.0])}, 4)}
        aggregator.push(7, "a", updates["a"], attempt=1, incarnation=2)
        aggregator.push(7, "b", updates["b"])
        aggregate = aggregator.close(7)
        assert (aggregate.step, aggregate.outcome) == (7, "update")
        assert {
            c.worker: (c.incarnation, c.attempt, c.weight, c.digest) for c in aggregate.contributors
        } == {
            "a": (2, 1, 3, updates["a"].digest()),
            "b": (None, None, 4, updates["b"].digest()),
        }
        assert (aggregate.count, aggregate.total_weight) == (2, 7)

    def test_arrays_are_copied_on_receipt(self, make_aggregator: MakeAggregator) -> None:
        """What the caller does with its arrays after the push changes nothing."""
        aggregator = make_aggregator()
        values = np.array([1.0, 2.0])
        coordinates, rows = np.array([3, 1]), np.array([10.0, 20.0])
        tensors: dict[str, Tensor] = {"w": values, "s": Sparse(coordinates, rows)}
        receipt = aggregator.push(7, "a", tensors, attempt=0)
        values += 100
        coordinates += 100
        rows += 100
        tensors.clear()
        aggregate = aggregator.close(7)
        expected: dict[str, Tensor] = {"w": np.array([1.0, 2.0]), "s": sparse((1, 20), (3, 10))}
        assert same_bits(aggregate.tensors, expected)
        assert [c.digest for c in aggregate.contributors] == [receipt.digest]

    def test_results_are_read_only(self, make_aggregator: MakeAggregator) -> None:
        """Nobody who pulled can change what another will pull."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", {"w": np.array([1.0]), "s": sparse((1, 2))})
        aggregator.close(7)
        tensors = aggregator.pull(7, timeout_seconds=0).tensors
        rows = tensors["s"]
        assert isinstance(rows, Sparse)
        for array in (tensors["w"], rows.coordinates, rows.values):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9  # type: ignore[index]
        with pytest.raises(TypeError):
            tensors["w"] = np.array([9.0])  # type: ignore[index]

    @pytest.mark.parametrize("operation", ["sum", "mean", "weighted_mean"])
    def test_weight_zero_selects_out(self, make_aggregator: MakeAggregator, operation: str) -> None:
        """It stands and fills the roster, but is not summed, NaN included, and is excluded."""
        policy = Policy(roster=["a", "b", "c"], operation=operation)  # type: ignore[arg-type]
        aggregator = make_aggregator(policy)
        nan = np.array([np.nan])
        assert aggregator.push(7, "a", nan, weight=0).status is Status.ACCEPTED
        aggregator.push(7, "b", np.array([2.0]), weight=2)
        aggregator.push(7, "c", np.array([4.0]), weight=2)
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert number(aggregate) == (6 if operation == "sum" else 3)
        assert who(aggregate) == ["b", "c"]
        assert (aggregate.count, aggregate.total_weight) == (2, 4)
        assert list(reasons(aggregate)) == ["a"]
        assert reasons(aggregate)["a"]
        repeat = aggregator.push(7, "a", nan, weight=0)
        assert (repeat.status, repeat.counted) == (Status.CLOSED, False)

    @pytest.mark.parametrize("operation", ["sum", "mean", "weighted_mean"])
    def test_a_total_weight_of_zero_skips_the_step(
        self, make_aggregator: MakeAggregator, operation: str
    ) -> None:
        """The step closes without tensors, so that the previous model is kept."""
        policy = Policy(roster=["a", "b"], operation=operation)  # type: ignore[arg-type]
        aggregator = make_aggregator(policy)
        for worker in ("a", "b"):
            aggregator.push(7, worker, np.array([2.0]), weight=0)
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (aggregate.outcome, dict(aggregate.tensors)) == ("skipped", {})
        assert (aggregate.count, aggregate.total_weight) == (0, 0)
        assert sorted(reasons(aggregate)) == ["a", "b"]

    def test_nonfinite_values_propagate_by_default(self, make_aggregator: MakeAggregator) -> None:
        """As IEEE 754 adds: NaN wins, opposite infinities give NaN, and only where they are."""
        aggregator = make_aggregator()
        inf, nan = np.inf, np.nan
        aggregator.push(7, "a", np.array([inf, inf, nan, 1.0]))
        aggregator.push(7, "b", np.array([1.0, -inf, 1.0, 2.0]))
        result = np.asarray(aggregator.close(7).tensor)
        assert np.array_equal(result, np.array([inf, nan, nan, 3.0]), equal_nan=True)

    def test_reject_refuses_the_update(self, make_aggregator: MakeAggregator) -> None:
        """The receipt says where it is not finite; what stood before stands; weight 0 may."""
        aggregator = make_aggregator(Policy(on_nonfinite="reject"))
        aggregator.push(7, "a", {"w": np.array([1.0, 2.0])}, attempt=0)
        receipt = aggregator.push(7, "a", {"w": np.array([1.0, np.inf])}, attempt=1)
        assert receipt.status is Status.NONFINITE
        assert "w" in receipt.reason
        assert aggregator.push(7, "b", {"w": np.array([np.nan, 0.0])}, weight=0).stands
        aggregate = aggregator.close(7)
        assert same_bits(aggregate.tensors, {"w": np.array([1.0, 2.0])})
        assert who(aggregate) == ["a"]

    def test_skip_closes_the_step_without_tensors(self, make_aggregator: MakeAggregator) -> None:
        """Nobody is in it, everybody is named with the reason, and repeats did not count."""
        aggregator = make_aggregator(Policy(roster=["a", "b"], on_nonfinite="skip"))
        assert aggregator.push(7, "a", one(np.nan), attempt=0).status is Status.ACCEPTED
        aggregator.push(7, "b", one(1), attempt=0)
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (aggregate.outcome, dict(aggregate.tensors)) == ("skipped", {})
        assert aggregate.contributors == ()
        assert sorted(reasons(aggregate)) == ["a", "b"]
        assert all(reasons(aggregate).values())
        repeat = aggregator.push(7, "b", one(1), attempt=0)
        assert (repeat.status, repeat.counted) == (Status.CLOSED, False)

    def test_a_replaced_nonfinite_update_skips_nothing(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Only what stands when the step closes decides; weight 0 does not."""
        policy = Policy(roster=["a", "b", "c"], on_nonfinite="skip")
        aggregator = make_aggregator(policy)
        aggregator.push(7, "a", one(np.nan), attempt=0)
        aggregator.push(7, "a", one(2), attempt=1)
        aggregator.push(7, "c", np.array([np.nan]), weight=0)
        aggregator.push(7, "b", one(5))
        aggregate = aggregator.pull(7, timeout_seconds=0)
        assert (aggregate.outcome, number(aggregate)) == ("update", 7)

    def test_an_update_counts_wholly_or_not_at_all(self, make_aggregator: MakeAggregator) -> None:
        """If one of its tensors does not fit, none of them is summed."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", {"v": np.array([5.0]), "w": np.array([50.0])})
        refused = aggregator.push(7, "b", {"v": np.array([2.0]), "w": np.zeros(2)})
        assert refused.status is Status.MISMATCH
        expected = {"v": np.array([5.0]), "w": np.array([50.0])}
        assert same_bits(aggregator.close(7).tensors, expected)
