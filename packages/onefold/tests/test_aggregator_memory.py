"""The contract of the aggregator, kept in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from onefold.aggregator import Aggregator
from onefold.errors import InvalidInput, InvalidPolicy, InvalidUpdate, NoUpdate, StoreError
from onefold.policy import Policy
from onefold.testing import AggregatorContract, MakeAggregator
from onefold.testing.support import one


class TestMemory(AggregatorContract):
    """``directory=None`` keeps everything in memory."""

    @pytest.fixture
    def make_aggregator(self) -> Iterator[MakeAggregator]:
        with ExitStack() as stack:

            def make(
                policy: Policy = Policy(),  # noqa: B008 - frozen
                clock: Callable[[], float] = time.time,
            ) -> Aggregator:
                return stack.enter_context(Aggregator(None, policy, clock=clock))

            yield make


@pytest.mark.parametrize(
    ("directory", "message"),
    [
        (Policy(roster=["a"]), r"Aggregator\(policy=...\) keeps everything in memory"),
        (3, "directory is a path, or None .*, not 3"),
        ("", "current directory"),
    ],
)
def test_what_is_no_directory_is_told(directory: object, message: str) -> None:
    """A policy in the first place above all."""
    with pytest.raises(InvalidInput, match=message):
        Aggregator(directory)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [{"roster": ["a"]}, "sum", 3, {}])
def test_what_is_no_policy_is_told(policy: object) -> None:
    """Not only where it is used first."""
    with pytest.raises(InvalidPolicy, match=r"onefold.Policy\(...\), not "):
        Aggregator(policy=policy)  # type: ignore[arg-type]


def test_the_one_tensor_is_there_or_is_told() -> None:
    """Of a skipped step there is none; those with names have their names."""
    with Aggregator(policy=Policy(on_nonfinite="skip")) as aggregator:
        aggregator.push(0, "a", one(np.nan))
        with pytest.raises(NoUpdate, match="step 0 was skipped"):
            _ = aggregator.close(0).tensor
    with Aggregator() as aggregator:
        aggregator.push(0, "a", {"w": np.ones(1), "b": np.ones(1)})
        with pytest.raises(InvalidInput, match=r"have names \(\['b', 'w'\]\)"):
            _ = aggregator.close(0).tensor


@pytest.mark.parametrize("seconds", [np.nan, -1, "x"])
def test_what_is_no_time_to_wait_is_told(seconds: object) -> None:
    """A wait for NaN seconds would never end, and hold a thread of the server."""
    with Aggregator() as aggregator:
        aggregator.push(0, "a", one(1))
        for wait in (aggregator.pull, aggregator.wait):
            with pytest.raises(InvalidInput, match="timeout_seconds"):
                wait(0, seconds)  # type: ignore[operator]


@pytest.mark.parametrize("step", ["0", 2**70, None])
def test_what_is_no_step_is_told(step: object) -> None:
    """Also where nothing is contributed."""
    with Aggregator() as aggregator:
        for call in (aggregator.pull, aggregator.close):
            with pytest.raises(InvalidInput, match="a step is an integer"):
                call(step)  # type: ignore[operator]


def test_numpys_integers_are_integers() -> None:
    """Of a step, weight, attempt and incarnation; the receipt has plain ints."""
    with Aggregator() as aggregator:
        receipt = aggregator.push(
            np.int64(0),  # type: ignore[arg-type]
            "a",
            np.ones(1),
            weight=np.int64(3),  # type: ignore[arg-type]
            attempt=np.int32(1),  # type: ignore[arg-type]
            incarnation=np.uint8(2),  # type: ignore[arg-type]
        )
        assert receipt.stands
        said = (receipt.step, receipt.attempt, receipt.incarnation)
        assert said == (0, 1, 2)
        assert {type(value) for value in said} == {int}
        assert aggregator.close(np.int64(0)).total_weight == 3  # type: ignore[arg-type]


def test_a_wrong_update_is_told_with_worker_and_step() -> None:
    """A message alone has to be enough where many workers write to one log."""
    with Aggregator() as aggregator, pytest.raises(InvalidUpdate, match="worker 'a', step 3: "):
        aggregator.push(3, "a", [1.0])  # type: ignore[arg-type]


def test_an_aggregator_is_over_after_with() -> None:
    """It does not open again behind the back of whoever has shut it down."""
    with Aggregator() as aggregator:
        aggregator.push(0, "a", one(1))
    for call in (
        lambda: aggregator.push(0, "b", one(1)),
        lambda: aggregator.pull(0),
        lambda: aggregator.close(0),
        lambda: aggregator.join("a", "life"),
        aggregator.status,
    ):
        with pytest.raises(StoreError, match=r"open\(\) it to go on"):
            call()
    with aggregator:
        assert aggregator.close(0).count == 1
