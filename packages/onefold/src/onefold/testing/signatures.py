"""Signatures: names, kinds, dtypes and shapes agree between workers, whoever states them first."""

from __future__ import annotations

import numpy as np
import pytest

from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import MakeAggregator, number, one, sparse, who
from onefold.update import Sparse, Tensor

__all__ = ["SignatureContract"]

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)

DIFFERENT: dict[str, tuple[dict[str, Tensor], dict[str, Tensor]]] = {
    "shape": ({"w": np.zeros(3)}, {"w": np.zeros(1)}),
    "transposed": ({"w": np.zeros((2, 3))}, {"w": np.zeros((3, 2))}),
    "rank": ({"w": np.zeros(1)}, {"w": np.array(0.0)}),
    "dtype": ({"w": np.zeros(1, F32)}, {"w": np.zeros(1, F64)}),
    "item size": ({"w": np.zeros(1, F32)}, {"w": np.zeros(1, np.dtype(np.int32))}),
    "kind": ({"w": np.zeros(2)}, {"w": Sparse(np.array([0]), np.zeros(1), (2,))}),
    "missing": ({"v": np.zeros(1), "w": np.zeros(1)}, {"w": np.zeros(1)}),
    "unexpected": ({"w": np.zeros(1)}, {"v": np.zeros(1), "w": np.zeros(1)}),
    "other name": ({"w": np.zeros(1)}, {"w ": np.zeros(1)}),
    "declared": ({"w": sparse((0, 1))}, {"w": Sparse(np.array([0]), np.zeros(1), (5,))}),
    "declared otherwise": (
        {"w": Sparse(np.array([0]), np.zeros(1), (4,))},
        {"w": Sparse(np.array([0]), np.zeros(1), (5,))},
    ),
    "row": (
        {"w": Sparse(np.array([0]), np.zeros((1, 2)))},
        {"w": Sparse(np.array([0]), np.zeros((1, 3)))},
    ),
}


class SignatureContract:
    """Equality is strict: nothing is broadcast, promoted or matched by position."""

    @pytest.mark.parametrize("case", sorted(DIFFERENT))
    def test_what_differs_is_refused(self, make_aggregator: MakeAggregator, case: str) -> None:
        """Whichever of the two came first states what the other must be."""
        for first, second in (DIFFERENT[case], DIFFERENT[case][::-1]):
            aggregator = make_aggregator()
            assert aggregator.push(7, "a", first).status is Status.ACCEPTED
            receipt = aggregator.push(7, "b", second)
            assert receipt.status is Status.MISMATCH
            assert "w" in receipt.reason
            assert who(aggregator.close(7)) == ["a"]

    def test_what_stands_alone_may_be_replaced_by_its_sender(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """With no other contribution a worker may send another shape; then that is the one."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", np.zeros(3), attempt=0)
        assert aggregator.push(7, "a", one(2), attempt=1).status is Status.REPLACED
        assert aggregator.push(7, "b", np.zeros(3)).status is Status.MISMATCH
        assert aggregator.push(7, "b", one(5)).status is Status.ACCEPTED
        assert aggregator.push(7, "a", np.zeros(3), attempt=2).status is Status.MISMATCH
        assert number(aggregator.close(7)) == 7

    def test_the_earliest_that_stands_decides_across_open_steps(
        self, make_aggregator: MakeAggregator
    ) -> None:
        """A contribution to another open step stands too, that of the same worker included."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2), attempt=0)
        assert aggregator.push(8, "a", np.zeros(3), attempt=0).status is Status.MISMATCH
        assert aggregator.push(8, "a", one(3), attempt=0).status is Status.ACCEPTED
        assert aggregator.push(7, "a", np.zeros(3), attempt=1).status is Status.MISMATCH
        assert number(aggregator.close(7)) == 2

    def test_the_first_closed_step_decides_for_good(self, make_aggregator: MakeAggregator) -> None:
        """After a close nobody may change shape, standing alone or not."""
        aggregator = make_aggregator()
        aggregator.push(7, "a", one(2))
        aggregator.close(7)
        assert aggregator.push(8, "a", np.zeros(3)).status is Status.MISMATCH
        assert aggregator.push(8, "a", one(3)).status is Status.ACCEPTED

    def test_a_refused_update_states_nothing(self, make_aggregator: MakeAggregator) -> None:
        """The signature is that of what stands; a refused update's shape binds nobody."""
        aggregator = make_aggregator(Policy(on_nonfinite="reject"))
        aggregator.push(7, "a", np.full(3, np.nan))
        assert aggregator.push(7, "b", one(2)).status is Status.ACCEPTED
