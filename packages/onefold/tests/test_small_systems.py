"""Real aggregators, driven through small worlds: each closing, and each order of messages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_explorer import explore
from small_systems import Dispatched, InProcess, drive, sequences
from small_worlds import BY_NAME, PAIR, each

CLOSINGS = {
    "a list of names": 16,
    "closed by hand": 52,
}


@pytest.mark.parametrize("name", CLOSINGS)
def test_every_closing(name):
    """What a step can close with at all, it closes with, to the bit."""
    world = BY_NAME[name]
    ends = explore(replace(world, prompt=True)).ends
    print(name, len(ends), "closings")
    for operation in ("sum", "mean", "weighted_mean"):
        policy = replace(world.policy, operation=operation)
        for end in ends:
            model = drive(InProcess(policy), policy, end.events())
            assert model.closed == end.model.closed
    assert len(ends) == CLOSINGS[name]


@pytest.mark.parametrize("system", [InProcess, Dispatched])
@pytest.mark.parametrize(
    ("steps", "attempts", "is_sparse"),
    [pytest.param([1], [1, 2], True, id="attempts"), pytest.param([1, 2], [1], False, id="steps")],
)
def test_every_order(system, steps, attempts, is_sparse):
    """Every order of five messages, of four that come at most twice each; and what is shorter."""
    orders = sequences(each("ab", steps, attempts, [1]), times=2, length=5)
    assert len(set(orders)) == 600
    for order in orders:
        drive(system(PAIR, is_sparse=is_sparse), PAIR, order)
