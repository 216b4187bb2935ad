"""The contract of the aggregator, kept in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from onefold.aggregator import Aggregator
from onefold.policy import Policy
from onefold.testing import AggregatorContract, MakeAggregator


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
