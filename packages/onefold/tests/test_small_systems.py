"""Real aggregators, driven through small worlds: each closing, and each order of messages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_explorer import World, explore
from small_systems import Dispatched, InProcess, drive, sequences
from small_worlds import BY_NAME, PAIR, each

from onefold.policy import Policy

ONE_STEP = each("abc", [1])
WORLDS = {
    "a list": World("a list", Policy(roster=["a", "b", "c"]), ONE_STEP),
    "by hand": World("by hand", Policy(), ONE_STEP, by_hand=True),
    "a deadline": replace(BY_NAME["a deadline, two of three"], messages=ONE_STEP),
    "without attempts": replace(
        BY_NAME["without attempts"], messages=each("abc", [1], [None], contents="xy")
    ),
    **{
        name: BY_NAME[name]
        for name in (
            *("comings and goings", "lives", "three steps"),
            *("a NaN, reject", "a NaN, skip", "weight 0 and a NaN", "three with two signatures"),
        )
    },
}
CLOSINGS = {
    "a list": 8,
    "by hand": 26,
    "a deadline": 20,
    "without attempts": 8,
    "comings and goings": 6,
    "lives": 6,
    "three steps": 9,
    "a NaN, reject": 26,
    "a NaN, skip": 27,
    "weight 0 and a NaN": 9,
    "three with two signatures": 2,
}
"""How many different sets of contributors there are to close a step with."""


@pytest.mark.parametrize("name", WORLDS)
def test_every_closing(name):
    """Whatever steps can close with, they close with, to the bit; sums and both means."""
    world = replace(WORLDS[name], prompt=True)
    ends = explore(world).ends
    for operation in ("sum", "mean", "weighted_mean"):
        policy = replace(world.policy, operation=operation)
        for end in ends:
            model = drive(InProcess(policy), policy, end.events())
            assert model.closed == end.model.closed
    assert len(ends) == CLOSINGS[name]


@pytest.mark.parametrize(
    ("system", "length", "count"),
    [
        pytest.param(InProcess, 5, 600, id="in process"),
        pytest.param(Dispatched, 4, 204, id="dispatched"),
    ],
)
@pytest.mark.parametrize(
    ("steps", "attempts", "is_sparse"),
    [pytest.param([1], [1, 2], True, id="attempts"), pytest.param([1, 2], [1], False, id="steps")],
)
def test_every_order(system, length, count, steps, attempts, is_sparse):
    """Every order of so many messages, of four that come at most twice each; and what is shorter.

    ``python small_systems.py`` goes through all eight.
    """
    orders = sequences(each("ab", steps, attempts, [1]), times=2, length=length)
    assert len(set(orders)) == count
    for order in orders:
        drive(system(PAIR, is_sparse=is_sparse), PAIR, order)
