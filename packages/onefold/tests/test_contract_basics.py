"""The two rules in plain Python: fixtures, kinds of numbers, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from onefold.contract import reduce_coordinates, reduce_replicas
from onefold.errors import InvalidInput, RowError

FLOAT_MAX = math.ldexp(2**53 - 1, 971)


def total(*values):
    return reduce_replicas([(0, number, value) for number, value in enumerate(values)], 0)


def bits(value):
    assert type(value) is float
    return value.hex(), math.copysign(1, value)


@pytest.mark.parametrize("n", [1, 2, 7, 10**30])
def test_the_replica_fixtures_hold(n):
    """Each worker's last row at the step counts; other rows neither contribute nor replace."""
    assert reduce_replicas([[n, "a", n], [n, "a", 3 * n], [n, "b", 2 * n]], n) == 5 * n
    assert reduce_replicas([], n) == 0
    assert reduce_replicas([[n + 1, "a", 9 * n]], n) == 0
    assert reduce_replicas([[n - 1, "a", 100], [n, "a", n]], n) == n
    assert reduce_replicas([[n, "a", 4]], n) == 4
    assert reduce_replicas([[n, "a", n], [n, "a", 0]], n) == 0
    assert reduce_replicas([[n, "a", n], [n - 1, "a", 50 * n]], n) == n


@pytest.mark.parametrize("n", [1, 2, 7, 10**30])
def test_the_coordinate_fixtures_hold(n):
    """Values are summed by explicit coordinate; what cancels stays, what nobody sent is absent."""
    rows = [("a", [(2, n), (0, 1)]), ("b", [(0, 3), (2, 4)])]
    assert reduce_coordinates(rows) == [[0, 4], [2, n + 4]]
    assert reduce_coordinates([]) == []
    assert reduce_coordinates([("a", [])]) == []
    assert reduce_coordinates([("a", [(n, n)])]) == [[n, n]]
    assert reduce_coordinates([("a", [(-1, n)]), ("b", [(-1, -n)])]) == [[-1, 0]]
    assert reduce_coordinates([("a", [(1, 2)]), ("b", [(3, 4)])]) == [[1, 2], [3, 4]]


def test_a_workers_own_list_and_repeated_rows_are_summed_too():
    """The coordinate rule has no notion of a last row."""
    assert reduce_coordinates([("a", [(1, 2), (1, 3)]), ("a", [[1, 5]])]) == [[1, 10]]


def test_the_kind_of_the_sum_is_that_of_the_winners():
    """Ints give int, Fractions Fraction, floats float; a row that lost does not matter."""
    assert type(total(1, 2)) is int
    assert type(total(Fraction(1, 2), Fraction(1, 2))) is Fraction
    assert type(total(1, Fraction(1), 1.0)) is float
    assert type(total(np.float64(np.inf))) is float
    assert type(reduce_replicas([(0, "a", 0.5), (1, "b", 0.5), (0, "a", 1)], 0)) is int


def test_a_sum_with_a_float_is_rounded_once():
    """No intermediate sum is rounded, neither of floats nor of what is mixed with them."""
    assert total(1e308, 1e308, -1e308) == 1e308
    assert total(0.1, Fraction(1, 3)) == float(Fraction(0.1) + Fraction(1, 3))
    assert total(2**53, 1, 2.0**-60) == 2.0**53 + 2
    assert total(2**53, 1, 0.0) == 2.0**53


def test_overflow_is_rounded_as_ieee_does():
    """Half an ulp beyond the largest float is the first value that becomes infinity."""
    assert total(FLOAT_MAX, 2**970 - 1) == FLOAT_MAX
    assert total(FLOAT_MAX, 2**970) == math.inf
    assert total(-FLOAT_MAX, -FLOAT_MAX) == -math.inf


def test_non_finite_values_follow_ieee():
    """NaN wins, opposite infinities give NaN, and an infinity wins over any finite sum."""
    assert math.isnan(total(math.nan, math.inf))
    assert math.isnan(total(math.inf, 1, -math.inf))
    assert total(-math.inf, 10**400, 1e308) == -math.inf


@pytest.mark.parametrize(
    ("values", "zero"),
    [
        ((-0.0,), -0.0),
        ((-0.0, -0.0), -0.0),
        ((-0.0, 0.0), 0.0),
        ((-0.0, 0), 0.0),
        ((Fraction(0), -0.0), 0.0),
        ((1.5, -1.5), 0.0),
        ((0.0, Fraction(-1, 2**1076)), -0.0),
    ],
)
def test_zero_is_positive_unless_every_addend_is_negative_zero(values, zero):
    """Only a nonzero sum that is too small may give -0.0 otherwise."""
    assert bits(total(*values)) == bits(zero)


def test_workers_are_told_apart_by_value_and_kind():
    """1 and "1" are two workers, 1 and NumPy's 1 are one."""
    assert reduce_replicas([(0, 1, 10), (0, "1", 5), (0, np.int64(1), 20)], 0) == 25


def test_rows_and_entries_may_come_from_generators():
    """Everything is read once."""
    assert reduce_replicas(((0, n, n) for n in range(4)), 0) == 6
    assert reduce_coordinates(("a", ((n % 2, n) for n in range(4))) for _ in "x") == [
        [0, 2],
        [1, 4],
    ]


@pytest.mark.parametrize(
    "row",
    [
        *(None, "abc", b"abc", (1, "a"), (1, "a", 1, 1), {1, 2, 3}),
        *((True, "a", 1), ("1", "a", 1), (1.0, "a", 1), (np.array([0.5]), "a", 1)),
        *((1, True, 1), (1, None, 1), (1, 1.5, 1)),
        *((1, "a", True), (1, "a", "1"), (1, "a", 1j), (1, "a", np.float32(1)), (1, "a", None)),
        (10**5000, 10**5000),
    ],
)
def test_a_malformed_replica_row_is_refused_with_its_position(row):
    """Of whatever step it is."""
    with pytest.raises(RowError, match="row 1: expected") as caught:
        reduce_replicas([(0, "a", 1), row], 0)
    assert caught.value.position == 1


@pytest.mark.parametrize(
    "row",
    [
        *(None, "ab", ("a",), ("a", [], []), (True, []), (1.5, [])),
        *(("a", 3), ("a", ""), ("a", {}), ("a", None)),
        *(("a", ["12"]), ("a", [(1,)]), ("a", [(1, 2, 3)]), ("a", [3])),
        *(("a", [(True, 1)]), ("a", [(1.0, 1)]), ("a", [(1, True)]), ("a", [(1, "x")])),
    ],
)
def test_a_malformed_coordinate_row_is_refused_with_its_position(row):
    """The row's worker, its list and each entry are checked."""
    with pytest.raises(RowError, match="row 1: expected") as caught:
        reduce_coordinates([("a", [(0, 1)]), row])
    assert caught.value.position == 1


@pytest.mark.parametrize("step", [None, True, 1.0, "1"])
def test_the_step_asked_for_must_be_an_integer(step):
    """It is no row, so the error has no position."""
    with pytest.raises(InvalidInput, match="a step is an integer"):
        reduce_replicas([], step)
