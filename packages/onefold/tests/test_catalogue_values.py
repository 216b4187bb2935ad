"""The ways in which the numbers of an aggregation go wrong, as pushes to an aggregator.

What goes wrong with deliveries and members is in test_catalogue.py. The names M18 to M40 and X01 to
X16 are those of the catalogue of failures; the target step is 7 unless stated. Each test says what
a failing implementation gives and, where there is one, what the fix that still fails gives, and
asserts that ours is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from onefold.aggregate import Aggregate
from onefold.aggregator import Aggregator
from onefold.errors import InvalidUpdate, NoUpdate, SumOverflow
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing.support import (
    Row,
    number,
    one,
    pairs,
    push_all,
    sparse,
    who,
)
from onefold.update import Sparse, Update

ACCEPTED, DUPLICATE, REPLACED = Status.ACCEPTED, Status.DUPLICATE, Status.REPLACED
CLOSED, FENCED, MISMATCH = Status.CLOSED, Status.FENCED, Status.MISMATCH

Make = Callable[..., Aggregator]


@pytest.fixture(params=["memory", "directory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Opens an empty aggregator; ``make(policy, clock=...)``."""
    numbers = count()
    with ExitStack() as stack:

        def opened(policy: Policy = Policy(), **options: Callable[[], float]) -> Aggregator:  # noqa: B008
            directory = tmp_path / f"run{next(numbers)}" if request.param == "directory" else None
            return stack.enter_context(Aggregator(directory, policy, **options))

        yield opened


def mean_of(make: Make, *updates: tuple[object, int], operation: str = "mean") -> Aggregate:
    """The mean of ``(array, weight)`` pairs, each of a worker of its own."""
    aggregator = make(Policy(operation=operation))  # type: ignore[arg-type]
    for index, (tensor, weight) in enumerate(updates):
        aggregator.push(7, f"w{index}", tensor, weight=weight)  # type: ignore[arg-type]
    return aggregator.close(7)


# -- C. Denominators ------------------------------------------------------------------------------


def test_m18_a_weighted_mean_is_no_average_of_averages(make: Make) -> None:
    """Sums 10 and 6 over 1 and 3 tokens: 6 or, divided twice, 2. range(12) as 8+4: 6.5."""
    left = mean_of(make, (np.array([10.0]), 1), (np.array([2.0]), 3), operation="weighted_mean")
    assert number(left) == 4
    right = mean_of(make, (np.array([3.5]), 8), (np.array([9.5]), 4), operation="weighted_mean")
    assert number(right) == 5.5


def test_m22_an_integer_mean_is_a_number(make: Make) -> None:
    """1, 2, 4: 0 or 2 where it truncates. -3, -4: floor -4, truncation -3."""
    numbers = [np.array([value]) for value in (1, 2, 4)]
    assert number(mean_of(make, *((array, 1) for array in numbers))) == 7 / 3
    assert number(mean_of(make, (np.array([-3]), 1), (np.array([-4]), 1))) == -3.5


def test_m23_sparse_and_dense_divide_alike(make: Make) -> None:
    """Each row by how many touched it: {0: 4, 2: 4}. By all contributions: {0: 4, 2: 2}."""
    aggregate = mean_of(make, (sparse((0, 6), (2, 4)), 1), (sparse((0, 2)), 1))
    assert pairs(aggregate.tensor) == [(0, 4), (2, 2)]


# -- D. Sparse coordinates ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([(5, 1), (9, 2)], [(9, 10), (5, 20)], [(5, 21), (9, 12)]),  # M24
        ([(5, 1), (9, 2)], [(7, 10), (9, 20)], [(5, 1), (7, 10), (9, 22)]),  # M24, sets differ
        ([(3, 1), (3, 2)], [(3, 4)], [(3, 7)]),  # M25
        ([(2, 1), (5, 1)], [(5, 10), (2, 20)], [(2, 21), (5, 11)]),  # M26
        ([(2, 1), (5, 1)], [(2, 10), (2, 20)], [(2, 31), (5, 1)]),  # M26, duplicates
        ([(1, 2.0)], [], [(1, 2.0)]),  # M27
        ([], [], []),  # M27
        ([(1, 5)], [(1, -5), (2, 3)], [(1, 0), (2, 3)]),  # M28
        ([(-1, 9), (0, 1)], [], [(-1, 9), (0, 1)]),  # M29
        ([(16777216, 1)], [(16777217, 2)], [(16777216, 1), (16777217, 2)]),  # M30
        ([(2**53, 1)], [(2**53 + 1, 2)], [(2**53, 1), (2**53 + 1, 2)]),  # M30
        ([(59000001, 1)], [(40000, 1)], [(40000, 1), (59000001, 1)]),  # M30
    ],
)
def test_m24_to_m30_coordinates(
    make: Make,
    left: list[tuple[int, float]],
    right: list[tuple[int, float]],
    expected: list[tuple[int, float]],
) -> None:
    """Summed by coordinate, not by slot; duplicates, absences, zeros and wide ids included."""
    aggregator = make()
    aggregator.push(7, "a", sparse(*left))
    aggregator.push(7, "b", sparse(*right))
    assert pairs(aggregator.close(7).tensor) == expected


# -- E. Names, shapes and kinds -------------------------------------------------------------------


def test_m31_no_kind_is_silently_skipped(make: Make) -> None:
    """A sparse 5 that matches no listed type beside a dense 2: 2. Here it is refused."""
    aggregator = make()
    aggregator.push(7, "a", np.array([2.0], dtype=np.float32))
    receipt = aggregator.push(7, "b", sparse((0, 5), dtype="float32"))
    assert receipt.status is MISMATCH
    assert "sparse" in receipt.reason
    assert "dense" in receipt.reason
    for unknown in ([5.0], np.array([True]), np.array([1j]), np.array([None])):
        with pytest.raises(InvalidUpdate):
            aggregator.push(7, "b", unknown)  # type: ignore[arg-type]
    assert who(aggregator.close(7)) == ["a"]


def test_m32_tensors_are_matched_by_name(make: Make) -> None:
    """By position: w=21, b=12. Sorted and zipped, {b, w} and {v, w} add b to v: 15."""
    aggregator = make()
    aggregator.push(7, "a", {"w": np.array([1.0]), "b": np.array([10.0])})
    aggregator.push(7, "b", {"b": np.array([20.0]), "w": np.array([2.0])})
    receipt = aggregator.push(7, "c", {"v": np.array([5.0]), "w": np.array([5.0])})
    assert receipt.status is MISMATCH
    tensors = aggregator.close(7).tensors
    assert {name: np.asarray(tensor).item() for name, tensor in tensors.items()} == {
        "w": 3,
        "b": 30,
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [("grad:1", "grad:2"), ("a/b", "a_b"), ("é", "e\u0301"), ("w", "w\0"), ("", " "), ("w", "W")],
)
def test_m33_names_do_not_collide(make: Make, first: str, second: str) -> None:
    """The last characters cut: {grad: 20}. Every name is its own tensor, to the last character."""
    aggregator = make()
    for worker, factor in (("a", 1), ("b", 2)):
        tensors = {first: np.array([factor * 1.0]), second: np.array([factor * 10.0])}
        assert aggregator.push(7, worker, tensors).status is ACCEPTED
    tensors = aggregator.close(7).tensors
    assert {name: np.asarray(tensor).item() for name, tensor in tensors.items()} == {
        first: 3,
        second: 30,
    }


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([1.0, 2.0, 3.0]), np.array([10.0])),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(1), np.array(0.0)),
        (np.zeros((1, 3)), np.zeros(3)),
        (np.zeros((0, 2)), np.zeros((0, 3))),
    ],
    ids=["broadcast", "transposed", "scalar", "leading 1", "empty"],
)
def test_m34_a_shape_is_not_bent(make: Make, left: np.ndarray, right: np.ndarray) -> None:
    """Broadcast: [11, 12, 13]. Comparing element counts lets 2x3 pass for 3x2."""
    for first, second in ((left, right), (right, left)):
        aggregator = make()
        assert aggregator.push(7, "a", first).status is ACCEPTED
        assert aggregator.push(7, "b", second).status is MISMATCH
        result = np.asarray(aggregator.close(7).tensor)
        assert (result.shape, result.tolist()) == (first.shape, first.tolist())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("int32", "float32"),
        ("float32", "float64"),
        ("float16", "bfloat16"),
        ("bfloat16", "uint16"),
        ("int64", "uint64"),
    ],
)
def test_m35_a_dtype_is_not_reinterpreted(make: Make, left: str, right: str) -> None:
    """1 + 1.0 as raw bits: 1065353217. Checking the item size lets float32 pass for int32."""
    aggregator = make()
    assert aggregator.push(7, "a", one(1, left)).status is ACCEPTED
    receipt = aggregator.push(7, "b", one(1, right))
    assert receipt.status is MISMATCH
    assert left in receipt.reason
    assert right in receipt.reason
    assert number(aggregator.close(7)) == 1


# -- F. Numerics ----------------------------------------------------------------------------------


def test_m36_half_precision_neither_overflows_nor_vanishes(make: Make) -> None:
    """Added first: infinity. Divided first: four workers at 2**-24 give 0."""
    large = np.array([40000], dtype=np.float16)
    assert number(mean_of(make, (large, 1), (large, 1))) == 40000
    tiny = np.array([2**-24], dtype=np.float16)
    assert number(mean_of(make, *[(tiny, 1)] * 4)) == 2**-24


def test_m37_half_precision_does_not_stagnate(make: Make) -> None:
    """bfloat16 256 and then eight ones, in the type itself: 256."""
    aggregator = make()
    values = [256, *[1] * 8]
    for index, value in enumerate(values):
        aggregator.push(7, f"w{index}", np.array([value], dtype=ml_dtypes.bfloat16))
    assert number(aggregator.close(7)) == 264


def test_m39_an_integer_does_not_wrap(make: Make) -> None:
    """int32 2e9 + 2e9: -294967296. Refused in int32, where it does not fit; right in int64."""
    for dtype in ("int64", "int32"):
        aggregator = make()
        for worker in ("a", "b"):
            aggregator.push(7, worker, one(2_000_000_000, dtype))
        if dtype == "int64":
            assert number(aggregator.close(7)) == 4_000_000_000
        else:
            with pytest.raises(SumOverflow):
                aggregator.close(7)


def test_m40_all_skip_together(make: Make) -> None:
    """[1.0] and [nan], and one side says fine. Whoever pulls is told to skip."""
    aggregator = make(Policy(roster=["a", "b"], on_nonfinite="skip"))
    push_all(aggregator, [(7, "a", 1), (7, "b", float("nan"))])
    outcomes = {aggregator.pull(7, timeout_seconds=0).outcome for _ in range(2)}
    assert outcomes == {"skipped"}


# -- Further --------------------------------------------------------------------------------------


def test_x01_negative_zero_has_one_rule(make: Make) -> None:
    """From +0.0 two give +0.0 while one passes through as -0.0. Here -0.0 for both."""
    for workers in (["a"], ["a", "b"]):
        aggregator = make()
        push_all(aggregator, [(7, worker, -0.0) for worker in workers])
        assert np.signbit(number(aggregator.close(7)))


def test_x05_resuming_applies_nothing_twice(tmp_path: Path) -> None:
    """Updates 1, 2, 3 and after the restart 3 again: 9. Its step has closed: 6."""
    with Aggregator(tmp_path) as aggregator:
        for step in (1, 2, 3):
            aggregator.push(step, "a", one(step), attempt=0, incarnation=1)
            aggregator.close(step)
    with Aggregator(tmp_path) as aggregator:
        joined = aggregator.join("a", "another life")
        assert joined.first_open_step == 4
        receipt = aggregator.push(3, "a", one(3), attempt=0, incarnation=joined.incarnation)
        assert receipt.status is CLOSED
        assert sum(number(aggregator.pull(step, timeout_seconds=0)) for step in (1, 2, 3)) == 6


def test_x12_a_missing_weight_is_refused(make: Make) -> None:
    """10 with weight 100 and 0 with none, read as 1: 9.901. Refused, and 5 once it is stated."""
    aggregator = make(Policy(operation="weighted_mean"))
    aggregator.push(7, "a", np.array([10.0]), weight=100)
    with pytest.raises(InvalidUpdate):
        aggregator.push(7, "b", np.array([0.0]), weight=None)  # type: ignore[arg-type]
    aggregator.push(7, "b", np.array([0.0]), weight=100)
    assert number(aggregator.close(7)) == 5


def test_x15_a_duplicate_after_the_cleaning_up_is_known(make: Make) -> None:
    """A late resend of 2 when its record is gone: 9. Answered as counted, pruned or not."""
    aggregator = make(Policy(keep_steps=1))
    for worker, value in (("a", 2), ("b", 5)):
        aggregator.push(7, worker, one(value), attempt=0, incarnation=1)
    assert number(aggregator.close(7)) == 7
    for _ in range(2):
        late = aggregator.push(7, "a", one(2), attempt=0, incarnation=1)
        assert (late.status, late.counted, late.counted_as) == (CLOSED, True, 0)
        aggregator.push(8, "a", one(1))
        aggregator.close(8)  # prunes 7


def test_x16_a_worker_that_is_behind_learns_where_to_go_on(make: Make) -> None:
    """The reply carries the step that takes its update, so that it is not rejected for ever."""
    aggregator = make(Policy(roster=["a"]))
    for step in range(3):
        aggregator.push(step, "a", one(step))
    joined = aggregator.join("a", "life")
    assert joined.first_open_step == 3
    assert aggregator.push(3, "a", one(3)).status is ACCEPTED


# -- The fixtures of the two rules ----------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 2**31])
def test_the_fixtures_of_the_replica_rule(make: Make, n: int) -> None:
    """Every path gives them; no update is not zero, and here it has a name of its own."""
    fixtures: list[tuple[list[Row], float | None]] = [
        ([(n, "a", n), (n, "a", 3 * n), (n, "b", 2 * n)], 5 * n),
        ([], None),
        ([(n + 1, "a", 9 * n)], None),
        ([(n - 1, "a", 100), (n, "a", n)], n),
        ([(n, "a", 4)], 4),
        ([(n, "a", n), (n, "a", 0)], 0),
        ([(n, "a", n), (n - 1, "a", 50 * n)], n),
    ]
    for rows, expected in fixtures:
        aggregator = make()
        push_all(aggregator, rows)
        if expected is None:
            with pytest.raises(NoUpdate):
                aggregator.close(n)
        else:
            assert number(aggregator.close(n)) == expected


@pytest.mark.parametrize("n", [1, 7, 2**31])
def test_the_fixtures_of_the_sparse_rule(make: Make, n: int) -> None:
    """Through pushes of integers, by one worker or two."""
    fixtures: list[tuple[list[list[tuple[int, int]]], list[tuple[int, int]]]] = [
        ([[(2, n), (0, 1)], [(0, 3), (2, 4)]], [(0, 4), (2, n + 4)]),
        ([[]], []),
        ([[(n, n)]], [(n, n)]),
        ([[(-1, n)], [(-1, -n)]], [(-1, 0)]),
        ([[(1, 2)], [(3, 4)]], [(1, 2), (3, 4)]),
    ]
    for sent, expected in fixtures:
        aggregator = make()
        for worker, entries in zip("ab", sent, strict=False):
            aggregator.push(7, worker, sparse(*entries, dtype="int64"))
        assert pairs(aggregator.close(7).tensor) == expected


def test_m29_a_declared_shape_bounds_its_coordinates() -> None:
    """[(-1, 9), (0, 1)] into three rows: [1, 0, 9]. Once the shape is known it is refused."""
    for coordinate in (-1, 3):
        with pytest.raises(InvalidUpdate):
            Update.of(Sparse(np.array([coordinate, 0]), np.array([9.0, 1.0]), (3,)))
