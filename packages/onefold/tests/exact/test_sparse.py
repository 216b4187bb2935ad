"""Sparse sums and means go by coordinate and have the bits of the rounded exact result.

Every seed stands in the name of its test or in the test; the oracle is ``oracle.py``.
"""

from __future__ import annotations

import math
import re
from random import Random

import numpy as np
import pytest
from columns import (
    COUNTS,
    FLOAT_KINDS,
    INTEGER_KINDS,
    WEIGHTS,
    hard_arrays,
    some_weights,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import (
    DTYPES,
    FORMATS,
    INTEGERS,
    array_of,
    bits_of,
    dtype_of,
    exact_sum,
    mean_columns,
    numbers_of,
    quotient,
    same_bits,
    same_number,
    sum_columns,
)

import onefold
from onefold import Sparse
from onefold.errors import InvalidInput, Mismatch, NoContributions, SumOverflow, ZeroWeight

STEADY = settings(deadline=None, max_examples=80, derandomize=True, database=None)
AWKWARD = (-(2**63), 2**63 - 1, 0, -1, 1, 2**53, 2**53 + 1, 2**24, 2**24 + 1, 40000, -25536)

dtypes = pytest.mark.parametrize("name", DTYPES)
floats = pytest.mark.parametrize("name", FORMATS)
float_kinds = pytest.mark.parametrize("kind", FLOAT_KINDS)


# -- the oracle for coordinates -------------------------------------------------------------------


def by_coordinate(parts, weights=None):
    """For each coordinate that a selected part has, the exact sum of each element of its row."""
    weights = [1] * len(parts) if weights is None else weights
    found: dict[int, list] = {}
    for part, weight in zip(parts, weights, strict=True):
        size = math.prod(part.values.shape[1:])
        numbers = numbers_of(part.values)
        for entry, coordinate in enumerate(part.coordinates.tolist() if weight else []):
            row = numbers[entry * size : (entry + 1) * size]
            found.setdefault(coordinate, []).append((row, weight))
    return {
        coordinate: [
            exact_sum(column, [weight for _, weight in rows])
            for column in zip(*(row for row, _ in rows), strict=True)
        ]
        for coordinate, rows in sorted(found.items())
    }


def check(result, sums, name, like):
    """Assert that ``result`` is the Sparse that has these sums, with the row and shape of like."""
    assert isinstance(result, Sparse)
    assert result.coordinates.dtype == np.int64
    assert result.coordinates.tolist() == list(sums)
    assert result.values.shape == (len(sums), *like.values.shape[1:])
    assert result.shape == like.shape
    same_bits(result.values, array_of([number for row in sums.values() for number in row], name))


def check_sum(parts):
    check(onefold.sum_sparse(parts), by_coordinate(parts), parts[0].values.dtype.name, parts[0])


def check_mean(parts, weights=None):
    total = len(parts) if weights is None else sum(weights)
    means = {
        coordinate: [quotient(number, total) for number in row]
        for coordinate, row in by_coordinate(parts, weights).items()
    }
    name = parts[0].values.dtype.name
    result = onefold.mean_sparse(parts) if weights is None else onefold.mean_sparse(parts, weights)
    check(result, means, name if name in FORMATS else "float64", parts[0])


def sparse(name, *entries, row=(), shape=None):
    """A Sparse from pairs of coordinate and value."""
    coordinates = np.array([coordinate for coordinate, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=dtype_of(name))
    return Sparse(coordinates, values.reshape(len(entries), *row), shape)


def pairs(result):
    """The entries of a Sparse of numbers as a list of pairs."""
    return list(zip(result.coordinates.tolist(), result.values.tolist(), strict=True))


def coordinates_for(width, rng):
    """Distinct coordinates, in no order: those that narrower types confuse, and any others."""
    found = list(AWKWARD[:width])
    while len(found) < width:
        found.append(rng.choice([rng.randint(-(2**63), 2**63 - 1), rng.randint(41000, 49000)]))
    found = list(dict.fromkeys(found))
    rng.shuffle(found)
    return found


def scattered(arrays, parts, rng):
    """The columns of ``arrays`` as entries in random order of random parts, duplicates and all."""
    coordinates = coordinates_for(arrays[0].size, rng)
    arrays = [array[: len(coordinates)] for array in arrays]
    entries = [pair for array in arrays for pair in zip(coordinates, array, strict=True)]
    rng.shuffle(entries)
    name = arrays[0].dtype.name
    share = [[] for _ in range(parts)]
    for entry in entries:
        rng.choice(share).append(entry)
    return [sparse(name, *part) for part in share]


def one_each(arrays, rng):
    """Each array as a part that has every coordinate once, each part in an order of its own."""
    coordinates = coordinates_for(arrays[0].size, rng)
    parts = []
    for array in arrays:
        order = rng.sample(range(len(coordinates)), len(coordinates))
        parts.append(Sparse(np.array([coordinates[at] for at in order]), array[order]))
    return parts


# -- floats and integers against the oracle -------------------------------------------------------


@floats
@float_kinds
def test_a_float_sum_by_coordinate_is_rounded_once(name, kind):
    """Addends of 1 to 40 per coordinate, scattered over parts with duplicates, sum exactly."""
    rng = Random(f"{name} {kind} 1")
    for count in COUNTS:
        arrays = hard_arrays(name, kind, count, 30, seed=11)
        for parts in (1, 3, 40):
            check_sum(scattered(arrays, parts, rng))


@floats
@float_kinds
def test_a_float_mean_by_coordinate_is_rounded_once(name, kind):
    """Means, weighted up to 2**53 or not, divide once by all parts or by the total weight."""
    rng = Random(f"{name} {kind} 2")
    for count in COUNTS:
        check_mean(scattered(hard_arrays(name, kind, count, 15, seed=12), 4, rng))
        weights = some_weights(count, seed=12)
        check_mean(one_each(hard_arrays(name, kind, weights, 15, seed=13), rng), weights)
        weights = some_weights(3, seed=count)
        check_mean(scattered(hard_arrays(name, kind, count, 15, seed=14), 3, rng), weights)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_integers_by_coordinate(name, kind):
    """Sums keep the type or name the least coordinate that does not fit; means are float64."""
    rng = Random(f"{name} {kind} 3")
    info = np.iinfo(name)
    for count in COUNTS:
        parts = scattered(hard_arrays(name, kind, count, 30, seed=15), 3, rng)
        check_mean(parts)
        check_mean(parts, some_weights(3, seed=count))
        bad = [
            c for c, (total,) in by_coordinate(parts).items() if not info.min <= total <= info.max
        ]
        if bad:
            with pytest.raises(SumOverflow) as caught:
                onefold.sum_sparse(parts)
            assert caught.value.coordinate == bad[0]
            assert str(bad[0]) in str(caught.value)
            keep = [~np.isin(part.coordinates, bad) for part in parts]
            parts = [
                Sparse(part.coordinates[fits], part.values[fits])
                for part, fits in zip(parts, keep, strict=True)
            ]
        check_sum(parts)


@dtypes
@STEADY
@given(data=st.data())
def test_any_entries(name, data):
    """Whatever the coordinates, repeats, bits and weights, the oracle is met."""
    if name in FORMATS:
        form = FORMATS[name]
        bits = st.integers(0, 2**form.bits - 1) | st.sampled_from([0, form.sign, 1, form.infinity])
    else:
        bits = st.integers(0, 25) if name != "uint8" else st.integers(0, 3)
    coordinates = st.sampled_from(AWKWARD) | st.integers(-(2**63), 2**63 - 1)
    entries = st.lists(st.tuples(coordinates, bits), max_size=8)
    parts = []
    for part in data.draw(st.lists(entries, min_size=1, max_size=5)):
        values = np.array([value for _, value in part], dtype=f"uint{8 * dtype_of(name).itemsize}")
        where = np.array([coordinate for coordinate, _ in part], dtype=np.int64)
        parts.append(
            Sparse(where, values.view(dtype_of(name)) if name in FORMATS else values.astype(name))
        )
    count = len(parts)
    weights = data.draw(
        st.lists(
            st.sampled_from(WEIGHTS) | st.integers(0, 2**53), min_size=count, max_size=count
        ).filter(any)
    )
    if name not in ("int8", "uint8"):
        check_sum(parts)
    check_mean(parts)
    check_mean(parts, weights)


# -- worked out by hand ---------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([[(5, 1), (9, 2)], [(9, 10), (5, 20)]], [(5, 21), (9, 12)]),
        ([[(5, 1), (9, 2)], [(7, 10), (9, 20)]], [(5, 1), (7, 10), (9, 22)]),
        ([[(3, 1), (3, 2)], [(3, 4)]], [(3, 7)]),
        ([[(2, 1), (5, 1)], [(5, 10), (2, 20)]], [(2, 21), (5, 11)]),
        ([[(2, 1), (5, 1)], [(2, 10), (2, 20)]], [(2, 31), (5, 1)]),
        ([[(1, 2)], []], [(1, 2)]),
        ([[], [], []], []),
        ([[]], []),
        ([[(2, 9), (0, 1)], [(0, 3), (2, 4)]], [(0, 4), (2, 13)]),
        ([[(9, 9)]], [(9, 9)]),
        ([[(1, 2)], [(3, 4)]], [(1, 2), (3, 4)]),
        ([[(-1, 9), (0, 1)]], [(-1, 9), (0, 1)]),
        ([[(16777216, 1), (16777217, 2)]], [(16777216, 1), (16777217, 2)]),
        ([[(2**53, 1)], [(2**53 + 1, 2)]], [(2**53, 1), (2**53 + 1, 2)]),
        ([[(2**63 - 1, 1)], [(2**63 - 2, 2)]], [(2**63 - 2, 2), (2**63 - 1, 1)]),
        ([[(-(2**63), 1)], [(-(2**63) + 1, 2)]], [(-(2**63), 1), (-(2**63) + 1, 2)]),
        ([[(2**63 - 1, 1), (-(2**63), 2)]], [(-(2**63), 2), (2**63 - 1, 1)]),
        ([[(59000001, 1)], [(59000000, 2)]], [(59000000, 2), (59000001, 1)]),
    ],
)
def test_sums_by_coordinate_worked_out_by_hand(name, parts, expected):
    """Values add by coordinate, not by slot; repeats merge; ids keep all their 64 bits."""
    result = onefold.sum_sparse([sparse(name, *part) for part in parts])
    assert pairs(result) == expected
    assert result.values.dtype == dtype_of(name)


@floats
def test_a_coordinate_that_cancels_stays_with_positive_zero(name):
    """Absent is not zero: what was sent and cancelled is there as +0.0, in sums and in means."""
    parts = [sparse(name, (1, 5)), sparse(name, (1, -5), (2, 3))]
    total = onefold.sum_sparse(parts)
    assert pairs(total) == [(1, 0), (2, 3)]
    assert bits_of(total.values)[0] == 0
    mean = onefold.mean_sparse(parts)
    assert pairs(mean) == [(1, 0), (2, 1.5)]
    assert bits_of(mean.values)[0] == 0


@floats
def test_negative_zero_by_coordinate(name):
    """Only addends that were sent count: -0.0 alone stays, with +0.0 it goes."""
    parts = [sparse(name, (1, -0.0), (2, -0.0), (2, 0.0), (3, -0.0), (3, -0.0)), sparse(name)]
    expected = array_of([-0.0, 0, -0.0], name)
    same_bits(onefold.sum_sparse(parts).values, expected)
    same_bits(onefold.mean_sparse(parts).values, expected)
    one = sparse(name, (1, -0.0)), sparse(name, (1, 0.0))
    same_bits(onefold.mean_sparse(one, [1, 0]).values, array_of([-0.0], name))
    same_bits(onefold.mean_sparse(one, [1, 1]).values, array_of([0], name))


@dtypes
def test_a_mean_divides_by_every_part_not_by_those_that_touched_a_coordinate(name):
    """Sparse and dense means agree; a part without entries counts in the denominator."""
    parts = [sparse(name, (0, 6), (2, 4)), sparse(name, (0, 2))]
    assert pairs(onefold.mean_sparse(parts)) == [(0, 4), (2, 2)]
    assert pairs(onefold.mean_sparse([*parts, sparse(name), sparse(name)])) == [(0, 2), (2, 1)]
    assert pairs(onefold.mean_sparse([*parts, sparse(name)], [1, 1, 6])) == [(0, 1), (2, 0.5)]
    assert pairs(onefold.mean_sparse([sparse(name), sparse(name)])) == []


@floats
def test_weight_zero_selects_a_part_out(name):
    """A deselected part adds nothing, NaN included, nor a coordinate, nor to the denominator."""
    parts = [sparse(name, (1, np.nan), (7, 1)), sparse(name, (1, 4)), sparse(name, (2, 8))]
    assert pairs(onefold.mean_sparse(parts, [0, 1, 1])) == [(1, 2), (2, 4)]
    assert pairs(onefold.mean_sparse(parts, [0, 2**53, 0])) == [(1, 4)]


def test_a_half_precision_mean_does_not_overflow_on_the_way():
    """The mean of 40000 and 40000 in float16 is 40000, also as repeats within one part."""
    parts = [sparse("float16", (3, 40000)), sparse("float16", (3, 40000))]
    assert pairs(onefold.mean_sparse(parts)) == [(3, 40000)]
    assert pairs(onefold.sum_sparse(parts)) == [(3, np.inf)]
    parts = [sparse("float16", (3, 40000), (3, 40000)), sparse("float16")]
    assert pairs(onefold.mean_sparse(parts)) == [(3, 40000)]


def test_many_repeats_of_one_coordinate_do_not_stagnate():
    """256 and then 5000 ones under one coordinate are 5256, where bfloat16 would stop at 256."""
    part = Sparse(np.zeros(5001, np.int64), np.array([256] + [1] * 5000, dtype_of("bfloat16")))
    assert pairs(onefold.sum_sparse([part])) == [(0, 5248)]  # 5256, rounded once
    part = Sparse(np.zeros(4, np.int64), np.array([1e16, 1, -1e16, 1]))
    assert pairs(onefold.sum_sparse([part])) == [(0, 2.0)]


# -- order, rows, size ----------------------------------------------------------------------------


@floats
@float_kinds
def test_bits_do_not_depend_on_the_order_of_entries_or_parts_nor_on_the_split(name, kind):
    """The same entries in other parts and another order have the same sum, bit for bit."""
    rng = Random(f"{name} {kind} 4")
    parts = scattered(hard_arrays(name, kind, 9, 25, seed=16), 5, rng)
    first = onefold.sum_sparse(parts)
    where = np.concatenate([part.coordinates for part in parts])
    values = np.concatenate([part.values for part in parts])
    for cuts in ([], [1], [40, 40, 100], [10, 20, 30, 40, 50, 60]):
        order = np.array(rng.sample(range(where.size), where.size))
        again = onefold.sum_sparse(
            [Sparse(where[piece], values[piece]) for piece in np.split(order, cuts)]
        )
        assert again.coordinates.tolist() == first.coordinates.tolist()
        same_bits(again.values, first.values)


@dtypes
@pytest.mark.parametrize("row", [(1,), (3,), (2, 2), (0,), (2, 0)])
def test_rows_are_summed_element_by_element(name, row):
    """A value may be a row of any shape; its elements keep to themselves, repeats included."""
    size, rng = math.prod(row), Random(17)
    kind = "ties" if name in FORMATS else "small"
    parts = []
    for seed, entries in enumerate((5, 0, 1, 9)):
        flat = hard_arrays(name, kind, 1, max(1, entries * size), seed=seed)[0][: entries * size]
        where = np.array([rng.choice([4, -1, 2**63 - 1, 8]) for _ in range(entries)], np.int64)
        parts.append(Sparse(where, flat.reshape(entries, *row)))
    check_sum(parts)
    check_mean(parts)
    check_mean(parts, [2, 1, 0, 2**53])


@dtypes
def test_the_declared_shape_is_kept(name):
    """The dense shape that the parts declare is that of the result, with entries or without."""
    parts = [sparse(name, (9, 1), shape=(10,)), sparse(name, (0, 2), (9, 1), shape=(10,))]
    check_sum(parts)
    check_mean(parts)
    empty = [sparse(name, row=(2,), shape=(10, 2))] * 2
    check_sum(empty)
    check_mean(empty)
    check_sum([sparse(name, shape=(0,))])


@dtypes
def test_sparse_and_dense_agree(name):
    """Parts that have every coordinate once are dense arrays: sums and means have the same bits."""
    kind = "gauss" if name in FORMATS else "small"
    weights = [3, 0, 1, 2**53, 2**29 - 1]
    arrays = hard_arrays(name, kind, weights, 50, seed=18)
    rng = np.random.default_rng(18)
    orders = [rng.permutation(50) for _ in arrays]
    parts = [
        Sparse(order, array[order], (50,)) for order, array in zip(orders, arrays, strict=True)
    ]
    for ours, theirs in [
        (onefold.sum_sparse(parts), onefold.sum_dense(arrays)),
        (onefold.mean_sparse(parts), onefold.mean_dense(arrays)),
        (onefold.mean_sparse(parts, weights), onefold.mean_dense(arrays, weights)),
    ]:
        assert ours.coordinates.tolist() == list(range(50))
        same_bits(ours.values, theirs)


@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_sparse_arrays_and_the_plain_rule_agree(kind):
    """``sum_sparse`` of float64 gives what ``reduce_coordinates`` gives for the same entries."""
    parts = scattered(hard_arrays("float64", kind, 6, 30, seed=19), 4, Random(19))
    rows = [(f"w{at}", pairs(part)) for at, part in enumerate(parts)]
    result = onefold.sum_sparse(parts)
    plain = onefold.reduce_coordinates(rows)
    assert [coordinate for coordinate, _ in plain] == result.coordinates.tolist()
    for (_, one), other in zip(plain, result.values.tolist(), strict=True):
        same_number(one, other)


@dtypes
@pytest.mark.parametrize("spread", ["dense", "whole range"])
def test_many_entries(name, spread):
    """Hard columns among 300000 entries of 60000 coordinates are as right as alone."""
    rng = np.random.default_rng(20)
    limit = 60_000
    if spread == "dense":
        ids = np.arange(limit)
    else:
        ids = np.unique(rng.integers(-(2**63), 2**63 - 1, limit, endpoint=True))
        ids[0], ids[-1] = -(2**63), 2**63 - 1
    kind = "ties" if name in FORMATS else "extremes"
    hard = hard_arrays(name, kind, 4, 100, seed=20)
    if name in INTEGERS:
        info = np.iinfo(name)
        totals = [sum(map(int, column)) for column in zip(*hard, strict=True)]
        keep = [at for at, total in enumerate(totals) if info.min <= total <= info.max]
        hard = [array[keep] for array in hard]
    hard_at = np.sort(rng.choice(ids.size, hard[0].size, replace=False))
    easy_at = np.setdiff1d(np.arange(ids.size), hard_at)
    picks = [rng.choice(easy_at, 75_000) for _ in range(4)]
    parts = []
    for pick, array in zip(picks, hard, strict=True):
        where = np.concatenate([ids[pick], ids[hard_at]])
        values = np.concatenate([np.ones(pick.size, dtype_of(name)), array])
        order = rng.permutation(where.size)
        parts.append(Sparse(where[order], values[order]))
    counts = np.bincount(np.concatenate(picks), minlength=ids.size)
    present = np.flatnonzero(counts.astype(bool) | np.isin(np.arange(ids.size), hard_at))
    total = counts.astype(dtype_of(name))
    total[hard_at] = sum_columns(hard)
    result = onefold.sum_sparse(parts)
    assert np.array_equal(result.coordinates, ids[present])
    same_bits(result.values, total[present])
    mean = (counts / 4).astype(dtype_of(name) if name in FORMATS else np.float64)
    mean[hard_at] = mean_columns(hard)
    result = onefold.mean_sparse(parts)
    assert np.array_equal(result.coordinates, ids[present])
    same_bits(result.values, mean[present])


# -- arguments ------------------------------------------------------------------------------------


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
