"""Sparse sums and means go by coordinate and have the bits of the rounded exact result.

Every seed stands in the name of its test or in the test; the oracle is ``sparse_oracle.py``.
"""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest
from columns import (
    FLOAT_KINDS,
    INTEGER_KINDS,
    WEIGHTS,
    cancelling_weights,
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
    mean_columns,
    same_bits,
    same_number,
    sum_columns,
)
from sparse_oracle import (
    AWKWARD,
    by_coordinate,
    check_mean,
    check_sum,
    one_each,
    pairs,
    scattered,
    sparse,
)

import onefold
from onefold import Sparse
from onefold.errors import SumOverflow

STEADY = settings(deadline=None, max_examples=15, derandomize=True, database=None)

dtypes = pytest.mark.parametrize("name", DTYPES)
SOME_COUNTS = (1, 2, 7, 40)
floats = pytest.mark.parametrize("name", FORMATS)
float_kinds = pytest.mark.parametrize("kind", FLOAT_KINDS)


# -- floats and integers against the oracle -------------------------------------------------------


@floats
@float_kinds
def test_a_float_sum_by_coordinate_is_rounded_once(name, kind):
    """Addends of 1 to 40 per coordinate, scattered over parts with duplicates, sum exactly."""
    rng = Random(f"{name} {kind} 1")
    for count in SOME_COUNTS:
        arrays = hard_arrays(name, kind, count, 12, seed=11)
        for parts in (1, 7):
            check_sum(scattered(arrays, parts, rng))


@floats
@float_kinds
def test_a_float_mean_by_coordinate_is_rounded_once(name, kind):
    """Means, weighted up to 2**53 or not, divide once by all parts or by the total weight."""
    rng = Random(f"{name} {kind} 2")
    for count in SOME_COUNTS:
        check_mean(scattered(hard_arrays(name, kind, count, 8, seed=12), 4, rng))
        weights = some_weights(count, seed=12)
        check_mean(one_each(hard_arrays(name, kind, weights, 8, seed=13), rng), weights)
        weights = some_weights(3, seed=count)
        check_mean(scattered(hard_arrays(name, kind, count, 8, seed=14), 3, rng), weights)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *itertools.product(FORMATS, ["remainder", "midpoint"]),
        *itertools.product(INTEGERS, ["cancelling", "extremes"]),
    ],
)
def test_a_mean_of_products_that_nearly_cancel_is_rounded_once(name, kind):
    """What large products leave when they cancel is exact, one part each or scattered."""
    rng = Random(f"{name} {kind} 5")
    for count, seed in itertools.product((2, 3, 4, 7, 16), range(2)):
        weights = cancelling_weights(count, seed)
        arrays = hard_arrays(name, kind, weights, 15, seed)
        check_mean(one_each(arrays, rng), weights)
        parts = scattered(arrays, 3, rng)
        for some in (None, [2, 1, 2], [3, 2**53, 1]):
            check_mean(parts, some)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_integers_by_coordinate(name, kind):
    """Sums keep the type or name the least coordinate that does not fit; means are float64."""
    rng = Random(f"{name} {kind} 3")
    info = np.iinfo(name)
    for count in SOME_COUNTS:
        parts = scattered(hard_arrays(name, kind, count, 15, seed=15), 3, rng)
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


def test_a_mean_of_what_is_left_when_large_addends_cancel():
    """Once wrong by 0.6 of a unit in the last place, and only beside another coordinate."""
    parts = [
        sparse("float64", (1, -1e30), (1, 1e30)),
        sparse("float64", (1, 4.636507688359277e-69)),
        sparse("float64", (1, 6.702684274487344e-53), (0, 1.0)),
    ]
    assert pairs(onefold.mean_sparse(parts, [2, 1, 2])) == [(0, 0.4), (1, 2.681073709794938e-53)]


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
    """Hard columns among 160000 entries of 30000 coordinates are as right as alone."""
    rng = np.random.default_rng(20)
    limit = 30_000
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
    picks = [rng.choice(easy_at, 40_000) for _ in range(4)]
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
