"""Exactness: sums and means are correctly rounded, whatever the order, and keep type and shape."""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from onefold.errors import SumOverflow
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import MakeAggregator, number, one, pairs, push_all, same_bits, sparse
from onefold.update import DTYPES, Sparse, Tensor

__all__ = ["ExactContract"]


class ExactContract:
    """Every number is the correctly rounded exact sum or mean, of the right type and shape."""

    def test_the_order_of_arrival_changes_no_bit(self, make_aggregator: MakeAggregator) -> None:
        """1e16, 1, -1e16, 1 is 2.0 in every order, and the included set has one digest."""
        sent = {"a": 1e16, "b": 1.0, "c": -1e16, "d": 1.0}
        digests = set()
        for order in itertools.permutations(sent):
            aggregator = make_aggregator(Policy(roster=sorted(sent)))
            for worker in order:
                aggregator.push(7, worker, one(sent[worker]), attempt=0)
            aggregate = aggregator.pull(7, timeout_seconds=0)
            assert number(aggregate) == 2.0
            digests.add(aggregate.digest)
        assert len(digests) == 1

    def test_the_digest_tells_included_sets_apart(self, make_aggregator: MakeAggregator) -> None:
        """Another content, attempt, weight or contributor gives another digest."""
        digests = []
        for value, attempt, weight, worker in [
            (2.0, 0, 1, "a"),
            (3.0, 0, 1, "a"),
            (2.0, 1, 1, "a"),
            (2.0, 0, 2, "a"),
            (2.0, 0, 1, "b"),
        ]:
            aggregator = make_aggregator()
            aggregator.push(7, worker, np.array([value]), weight=weight, attempt=attempt)
            digests.append(aggregator.close(7).digest)
        assert len(set(digests)) == len(digests)

    @pytest.mark.parametrize("dtype", sorted(DTYPES))
    def test_a_sum_has_the_type_and_shape_of_its_addends(
        self, make_aggregator: MakeAggregator, dtype: str
    ) -> None:
        """Dense tensors of any rank, empty ones and scalars too, and sparse rows, come back."""
        kind = DTYPES[dtype]
        tensors: dict[str, Tensor] = {
            "scalar": np.array(3, dtype=kind),
            "matrix": np.arange(6).reshape(2, 3).astype(kind),
            "empty": np.zeros((0, 4), dtype=kind),
            "rows": Sparse(np.array([5, 1]), np.arange(4).reshape(2, 2).astype(kind), (9, 2)),
            "nothing": Sparse(np.array([], dtype=np.int64), np.zeros(0, dtype=kind)),
        }
        aggregator = make_aggregator()
        for worker in ("a", "b"):
            aggregator.push(7, worker, tensors)
        expected: dict[str, Tensor] = {
            "scalar": np.array(6, dtype=kind),
            "matrix": (2 * np.arange(6)).reshape(2, 3).astype(kind),
            "empty": np.zeros((0, 4), dtype=kind),
            "rows": Sparse(np.array([1, 5]), np.array([[4, 6], [0, 2]]).astype(kind), (9, 2)),
            "nothing": tensors["nothing"],
        }
        assert same_bits(aggregator.close(7).tensors, expected)

    def test_sparse_values_are_summed_by_coordinate(self, make_aggregator: MakeAggregator) -> None:
        """Also within one worker; sorted; what nobody sent is absent, what cancels is present."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", sparse((9, 1), (2, 2), (9, 3), (2**62, 1)))
        aggregator.push(7, "b", sparse((2, -2), (-1, 4)))
        assert pairs(aggregator.close(7).tensor) == [(-1, 4), (2, 0), (9, 4), (2**62, 1)]

    def test_a_replacing_update_replaces_all_its_coordinates(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A sparse update that is sent again takes also the coordinates away that it lacks."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", sparse((1, 10), (2, 20)))
        aggregator.push(7, "a", sparse((2, 5)))
        assert pairs(aggregator.close(7).tensor) == [(2, 5)]

    def test_one_worker_behaves_like_many(self, make_aggregator: MakeAggregator) -> None:
        """The aggregate of a single update is that update, merged and sorted."""
        aggregator = make_aggregator(Policy(operation="mean"))
        aggregator.push(7, "a", {"w": np.array([4.0]), "s": sparse((3, 1), (3, 2), (1, 1))})
        tensors = aggregator.close(7).tensors
        expected: dict[str, Tensor] = {"w": np.array([4.0]), "s": sparse((1, 1), (3, 3))}
        assert same_bits(tensors, expected)

    def test_a_zero_is_positive_unless_every_addend_is_negative_zero(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """One rule for one worker and for several."""
        for sent, negative in [
            ([-0.0], True),
            ([-0.0, -0.0], True),
            ([-0.0, 0.0], False),
            ([1.0, -1.0], False),
            ([0.0], False),
        ]:
            aggregator = make_aggregator()
            push_all(aggregator, [(7, f"w{i}", value) for i, value in enumerate(sent)])
            result = number(aggregator.close(7))
            assert (result, bool(np.signbit(result))) == (0.0, negative), sent

    def test_a_mean_divides_once_by_what_was_summed(self, make_aggregator: MakeAggregator) -> None:
        """Each operation gives the rounded exact quotient, not a sum of rounded parts."""
        values, weights = [0.1, 0.2, 0.4], [3, 1, 7]
        exact = [Fraction(value) for value in values]
        expected = {
            "sum": float(sum(exact)),
            "mean": float(sum(exact) / 3),
            "weighted_mean": float(sum(x * w for x, w in zip(exact, weights, strict=True)) / 11),
        }
        for operation, result in expected.items():
            aggregator = make_aggregator(Policy(operation=operation))  # type: ignore[arg-type]
            for i, (value, weight) in enumerate(zip(values, weights, strict=True)):
                aggregator.push(7, f"w{i}", np.array([value]), weight=weight)
            aggregate = aggregator.close(7)
            assert number(aggregate) == result, operation
            assert (aggregate.count, aggregate.total_weight) == (3, 11)

    def test_sparse_and_dense_means_agree(self, make_aggregator: MakeAggregator) -> None:
        """A coordinate that one worker sent is divided by the contributions, not by one."""
        aggregator = make_aggregator(Policy(operation="mean"))
        aggregator.push(7, "a", {"d": np.array([6.0, 0, 4]), "s": sparse((0, 6), (2, 4))})
        aggregator.push(7, "b", {"d": np.array([2.0, 0, 0]), "s": sparse((0, 2))})
        tensors = aggregator.close(7).tensors
        assert pairs(tensors["s"]) == [(0, 4), (2, 2)]
        assert np.asarray(tensors["d"]).tolist() == [4, 0, 2]

    def test_an_integer_mean_is_float64(self, make_aggregator: MakeAggregator) -> None:
        """It is correctly rounded and neither floored nor truncated; a sum that fits nowhere is."""
        aggregator = make_aggregator(Policy(operation="mean"))
        for worker, value in [("a", 2**63 - 1), ("b", 2**63 - 1), ("c", 2**63 - 2)]:
            aggregator.push(7, worker, np.array([value, -3], dtype=np.int64))
        aggregator.push(7, "d", np.array([1, -2], dtype=np.int64))
        tensor = np.asarray(aggregator.close(7).tensor)
        assert tensor.dtype == np.float64
        assert tensor.tolist() == [float(Fraction(3 * 2**63 - 3, 4)), -2.75]

    def test_a_half_precision_mean_does_not_overflow(self, make_aggregator: MakeAggregator) -> None:
        """The sum is exact before it is divided and rounded once."""
        for kind, value in [(np.float16, 40000), (ml_dtypes.bfloat16, 3e38)]:
            aggregator = make_aggregator(Policy(operation="mean"))
            array = np.array([value], dtype=kind)
            aggregator.push(7, "a", array)
            aggregator.push(7, "b", array)
            assert np.asarray(aggregator.close(7).tensor).tobytes() == array.tobytes()

    def test_an_integer_overflow_leaves_the_step_open(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """Pull names tensor and coordinate; a later attempt that fits closes the step."""
        aggregator = make_aggregator(Policy(roster=["a", "b"]))
        first = {"w": np.array([1, 100, 1], dtype=np.int8)}
        aggregator.push(7, "a", first, attempt=0)
        assert aggregator.push(7, "b", first, attempt=0).stands
        with pytest.raises(SumOverflow, match="w") as caught:
            aggregator.pull(7, timeout_seconds=0)
        assert caught.value.coordinate == 1
        assert "1" in str(caught.value)
        fitting = {"w": np.array([1, 27, 1], dtype=np.int8)}
        assert aggregator.push(7, "b", fitting, attempt=1).status is Status.REPLACED
        tensors = aggregator.pull(7, timeout_seconds=0).tensors
        assert same_bits(tensors, {"w": np.array([2, 127, 2], dtype=np.int8)})

    def test_a_close_by_hand_raises_the_overflow(self, make_aggregator: MakeAggregator) -> None:
        """Without a roster close raises it, and closes once the update has been replaced."""
        aggregator = make_aggregator()
        for worker in ("a", "b"):
            aggregator.push(7, worker, Sparse(np.array([5]), np.array([100], dtype=np.int8)))
        with pytest.raises(SumOverflow) as caught:
            aggregator.close(7)
        assert caught.value.coordinate == 5
        aggregator.push(7, "b", Sparse(np.array([6]), np.array([100], dtype=np.int8)))
        assert pairs(aggregator.close(7).tensor) == [(5, 100), (6, 100)]
