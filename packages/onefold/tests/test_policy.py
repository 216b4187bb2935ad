"""Policies: what contradicts itself is refused when it is stated, not when it is needed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from onefold.errors import InvalidInput, InvalidPolicy
from onefold.policy import Policy
from onefold.update import Signature


def test_the_defaults() -> None:
    """Sums, closed by hand, NaN propagated, two open steps, every aggregate kept."""
    policy = Policy()
    assert dataclasses.asdict(policy) == {
        "roster": None,
        "minimum": None,
        "deadline_seconds": None,
        "operation": "sum",
        "on_nonfinite": "propagate",
        "signature": None,
        "open_steps_max": 2,
        "sync_each_push": False,
        "keep_steps": None,
    }


def test_a_policy_is_frozen_and_hashable() -> None:
    """One policy per aggregator: it cannot change under it."""
    policy = Policy(roster=["a", "b"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.minimum = 1  # type: ignore[misc]
    assert policy == Policy(roster=("a", "b"))
    assert hash(policy) == hash(Policy(roster=("a", "b")))


def test_a_roster_is_copied() -> None:
    """What the caller does with its list afterwards changes nothing."""
    names = ["a", "b"]
    policy = Policy(roster=names)
    names.append("c")
    assert policy.names == ("a", "b")


@pytest.mark.parametrize(
    ("roster", "names", "seats"),
    [
        (None, None, None),
        ("joined", None, None),
        (3, None, 3),
        (["b", "a"], ("b", "a"), None),
        (("joined",), ("joined",), None),
    ],
)
def test_a_roster_is_names_or_a_number_or_joined(
    roster: object, names: tuple[str, ...] | None, seats: int | None
) -> None:
    """The order of the names is kept; a list with the name "joined" is a list of names."""
    policy = Policy(roster=roster)  # type: ignore[arg-type]
    assert (policy.names, policy.seats) == (names, seats)


@pytest.mark.parametrize(
    "roster",
    [
        [],
        "a",
        "a,b",
        b"ab",
        0,
        -1,
        True,
        2.0,
        [""],
        ["a", "a"],
        ["a", 1],
        [None],
        {"a", "b"},
        {"a": 1},
        ["a\nb"],
        ["x" * 256],
    ],
)
def test_other_rosters_are_refused(roster: object) -> None:
    """A string is no list of its letters, a set has no order, a name comes once."""
    with pytest.raises(InvalidPolicy):
        Policy(roster=roster)  # type: ignore[arg-type]


def test_what_a_roster_may_be_is_told() -> None:
    """All of it, with what makes a list of a set."""
    with pytest.raises(InvalidPolicy, match="integer N") as caught:
        Policy(roster={"a", "b"})  # type: ignore[arg-type]
    assert "sorted(...)" in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"operation": "average"},
        {"operation": None},
        {"on_nonfinite": "ignore"},
        {"signature": {"w": np.zeros(1)}},
        {"open_steps_max": 0},
        {"open_steps_max": True},
        {"open_steps_max": 1.0},
        {"keep_steps": 0},
        {"keep_steps": -1},
        {"minimum": 1},
        {"deadline_seconds": 10},
        {"roster": ["a"], "minimum": 1},
        {"roster": ["a"], "deadline_seconds": 0},
        {"roster": ["a"], "deadline_seconds": -1},
        {"roster": ["a"], "deadline_seconds": float("nan")},
        {"roster": ["a"], "deadline_seconds": 1.1e9},
        {"roster": ["a"], "deadline_seconds": float("inf")},
        {"roster": ["a"], "deadline_seconds": "5"},
        {"roster": ["a"], "deadline_seconds": 10, "minimum": 0},
        {"roster": ["a"], "deadline_seconds": 10, "minimum": True},
        {"roster": ["a"], "deadline_seconds": 10, "minimum": 1.5},
        {"roster": ["a"], "deadline_seconds": 10, "minimum": 2},
        {"roster": 3, "deadline_seconds": 10, "minimum": 4},
    ],
    ids=str,
)
def test_contradictions_are_refused(settings: dict[str, object]) -> None:
    """InvalidPolicy, which is a ValueError, and its message is not empty."""
    with pytest.raises(InvalidPolicy) as caught:
        Policy(**settings)  # type: ignore[arg-type]
    assert isinstance(caught.value, InvalidInput | ValueError)
    assert str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"roster": ["a", "b"], "deadline_seconds": 0.5, "minimum": 2},
        {"roster": 3, "deadline_seconds": 10, "minimum": 3},
        {"roster": "joined", "deadline_seconds": 10, "minimum": 99},
        {"roster": ["a"], "deadline_seconds": 10},
        {"operation": "weighted_mean", "on_nonfinite": "skip", "keep_steps": 1},
        {"signature": Signature.of({"w": np.zeros(1)}), "open_steps_max": 100},
    ],
    ids=str,
)
def test_what_is_possible_is_accepted(settings: dict[str, object]) -> None:
    """The bounds themselves are inside."""
    Policy(**settings)  # type: ignore[arg-type]
