"""What sums and means of sparse parts take, return and refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest
from oracle import (
    DTYPES,
    dtype_of,
)
from sparse_oracle import (
    by_coordinate,
    check,
    sparse,
)

import onefold
from onefold import Sparse
from onefold.errors import InvalidInput, Mismatch, NoContributions, SumOverflow, ZeroWeight

dtypes = pytest.mark.parametrize("name", DTYPES)


@dtypes
def test_inputs_are_left_alone_and_the_result_is_new(name):
    """No byte of a part changes, read-only parts do, and the result shares no memory with them."""
    part = sparse(name, (3, 1), (1, 2), (3, 3))
    one = sparse(name, (1, 1), (3, 2))
    for array in (part.coordinates, part.values):
        array.flags.writeable = False
    for parts in ([part, one], [one], [part]):
        before = [(p.coordinates.tobytes(), p.values.tobytes()) for p in parts]
        for result in (onefold.sum_sparse(parts), onefold.mean_sparse(parts, [2] * len(parts))):
            for p in parts:
                assert not np.shares_memory(result.values, p.values)
                assert not np.shares_memory(result.coordinates, p.coordinates)
        assert [(p.coordinates.tobytes(), p.values.tobytes()) for p in parts] == before


@dtypes
def test_strided_and_narrow_coordinates_and_values(name):
    """Entries may lie anyhow in memory, coordinates be of any integer type."""
    where = np.array([7, 1, 0, 4, 7, 9], dtype=np.int64)
    values = np.arange(12, dtype=np.int64).astype(dtype_of(name)).reshape(6, 2)
    wide = np.zeros((12, 4), dtype=dtype_of(name))
    wide[::2, ::2] = values
    plain = Sparse(where, values)
    parts = [
        Sparse(np.repeat(where, 2)[::2], wide[::2, ::2]),
        Sparse(where[::-1].copy()[::-1], np.asfortranarray(values)),
        Sparse(where.astype(np.uint8), values),
        Sparse(where.astype(">i4"), values),
        Sparse(where.astype(np.uint64), values),
    ]
    expected = by_coordinate([plain] * 5)
    check(onefold.sum_sparse(parts), expected, name, plain)
    check(onefold.sum_sparse(tuple(parts)), expected, name, plain)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64", "uint64"])
def test_the_least_coordinate_that_overflows_is_named(name):
    """Of several, wherever they stand and whether repeats or parts overflow, the least is named."""
    high = int(np.iinfo(name).max)
    parts = [sparse(name, (7, high), (2**53 + 1, high), (-4, high)), sparse(name, (7, 1), (-4, 0))]
    for more, expected in [((2**53 + 1, 1), 7), ((-4, 1), -4), ((-(2**63), high), 7)]:
        with pytest.raises(SumOverflow) as caught:
            onefold.sum_sparse([*parts, sparse(name, more)])
        assert caught.value.coordinate == expected
    with pytest.raises(SumOverflow) as caught:
        onefold.sum_sparse([sparse(name, (5, [1, high]), (-6, [2, 2]), (5, [1, 1]), row=(2,))])
    assert caught.value.coordinate == 5


def test_a_sum_or_mean_of_nothing_is_refused():
    """No part is not the same as parts without entries."""
    with pytest.raises(NoContributions):
        onefold.sum_sparse([])
    with pytest.raises(NoContributions):
        onefold.mean_sparse([])


@pytest.mark.parametrize("weights", [[0, 0], [0]])
def test_a_total_weight_of_zero_is_refused(weights):
    """A mean over nothing selected is refused, with entries or without."""
    for part in (sparse("float32", (1, 1)), sparse("float32"), sparse("int8", (1, 1))):
        with pytest.raises(ZeroWeight):
            onefold.mean_sparse([part] * len(weights), weights)


@pytest.mark.parametrize("weight", [None, -1, 1.0, True, np.True_, "1", 2**53 + 1, float("nan")])
def test_a_weight_that_is_no_count_is_refused(weight):
    """Missing, negative, fractional, boolean or too large weights do not become another number."""
    parts = [sparse("float64", (1, 1)), sparse("float64")]
    for weights in ([1, weight], [weight, 1]):
        with pytest.raises(InvalidInput):
            onefold.mean_sparse(parts, weights)


@pytest.mark.parametrize("weights", [[], [1], [1, 1, 1]])
def test_a_wrong_number_of_weights_is_refused(weights):
    """There is one weight for each part, also for those without entries."""
    with pytest.raises(InvalidInput):
        onefold.mean_sparse([sparse("float64", (1, 1)), sparse("float64")], weights)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (sparse("float32", shape=(17,)), sparse("float32", shape=(23,)), ["17", "23"]),
        (
            sparse("float32", row=(17,), shape=(5, 17)),
            sparse("float32", row=(23,), shape=(5, 23)),
            ["17", "23"],
        ),
        (sparse("float32", row=(17,)), sparse("float32", row=(23,)), ["17", "23"]),
        (sparse("float32", (1, [1] * 17), row=(17,)), sparse("float32", (1, 1)), ["17"]),
        (sparse("float32", row=(17, 1)), sparse("float32", row=(17,)), ["17"]),
        (sparse("float32", (1, 1)), sparse("int32", (1, 1)), ["float32", "int32"]),
        (sparse("float16", (1, 1)), sparse("bfloat16", (1, 1)), ["float16", "bfloat16"]),
        (sparse("int64"), sparse("uint64"), ["int64", "uint64"]),
    ],
)
def test_rows_shapes_and_dtypes_that_differ_are_refused_with_both_named(one, other, words):
    """Nothing broadcasts, also where a part has no entries."""
    for parts in ([one, other], [other, one], [one, one, other]):
        for call in (onefold.sum_sparse, onefold.mean_sparse):
            with pytest.raises(Mismatch) as caught:
                call(parts)
            assert set(words) <= set(re.findall(r"\w+", str(caught.value)))


def test_a_dense_array_among_sparse_parts_is_refused():
    """A kind that does not fit is refused rather than left out."""
    for parts in ([np.ones(3)], [sparse("float64", (1, 1)), np.ones(3)], [None], [[(1, 2.0)]]):
        with pytest.raises(InvalidInput):
            onefold.sum_sparse(parts)
    with pytest.raises(InvalidInput):
        onefold.sum_dense([sparse("float64", (1, 1))])


@pytest.mark.parametrize("coordinate", [-1, 3, 2**63 - 1, -(2**63)])
def test_a_coordinate_outside_a_known_shape_is_refused(coordinate):
    """Neither a sentinel nor the row count is a coordinate of a tensor whose shape is known."""
    with pytest.raises(InvalidInput, match=str(coordinate)):
        sparse("float64", (0, 1), (coordinate, 9), shape=(3,))
