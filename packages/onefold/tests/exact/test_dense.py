"""Dense sums and means have the bits of the correctly rounded exact result, whatever the order.

Every seed stands in the name of its test or in the test; the oracle is ``oracle.py``.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from random import Random

import ml_dtypes
import numpy as np
import pytest
from columns import (
    COUNTS,
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
    column_sums,
    dtype_of,
    same_bits,
    same_columns,
)
from quick_oracle import mean_columns, sum_columns

import onefold
from onefold.errors import SumOverflow

STEADY = settings(deadline=None, max_examples=15, derandomize=True, database=None)
FLOATS = tuple(FORMATS)
BF16 = ml_dtypes.bfloat16

floats = pytest.mark.parametrize("name", FLOATS)
float_kinds = pytest.mark.parametrize("kind", FLOAT_KINDS)


def arrays_of(name, *columns):
    """One array for each worker from one list for each worker."""
    return [np.array(column, dtype=dtype_of(name)) for column in columns]


def fits(total, name):
    info = np.iinfo(name)
    return int(info.min) <= total <= int(info.max)


# -- floats against the oracle --------------------------------------------------------------------


@floats
@float_kinds
def test_a_float_sum_is_the_exact_sum_rounded_once(name, kind):
    """For 1 to 40 workers, over every kind of hard column, each bit is the oracle's."""
    for count in COUNTS:
        arrays = hard_arrays(name, kind, count, 20, seed=1)
        same_columns(onefold.sum_dense(arrays), sum_columns(arrays), arrays)


@floats
@float_kinds
def test_a_float_mean_is_the_exact_mean_rounded_once(name, kind):
    """The exact sum is divided exactly by the number of arrays and rounded once, for 1 to 40."""
    for count in COUNTS:
        arrays = hard_arrays(name, kind, count, 20, seed=2)
        same_columns(onefold.mean_dense(arrays), mean_columns(arrays), arrays)


@floats
@float_kinds
def test_a_weighted_float_mean_is_rounded_once(name, kind):
    """Weights up to 2**53 lose no bit: exact weighted sum over exact total weight, rounded once."""
    for count in COUNTS:
        for seed in range(2):
            weights = some_weights(count, seed)
            arrays = hard_arrays(name, kind, weights, 10, seed)
            expected = mean_columns(arrays, weights)
            same_columns(onefold.mean_dense(arrays, weights), expected, arrays)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *itertools.product(FLOATS, ["remainder", "midpoint"]),
        *itertools.product(INTEGERS, ["cancelling", "extremes"]),
    ],
)
def test_a_weighted_mean_of_products_that_nearly_cancel_is_rounded_once(name, kind):
    """What large products leave when they cancel is as exact as what small ones add up to."""
    for count, seed in itertools.product((2, 3, 4, 5, 7, 16), range(3)):
        weights = cancelling_weights(count, seed)
        arrays = hard_arrays(name, kind, weights, 10, seed)
        expected = mean_columns(arrays, weights)
        same_columns(onefold.mean_dense(arrays, weights), expected, arrays)


@floats
@STEADY
@given(data=st.data())
def test_sums_and_means_of_any_bits(name, data):
    """Whatever the bits, NaNs and infinities included, sum, mean and weighted mean are exact."""
    form = FORMATS[name]
    count, width = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 4))
    patterns = st.integers(0, 2**form.bits - 1) | st.sampled_from(
        [0, form.sign, 1, form.infinity - 1, form.infinity, form.sign + 1]
    )
    rows = st.lists(patterns, min_size=width, max_size=width)
    arrays = [np.array(data.draw(rows), dtype=form.unsigned).view(form.dtype) for _ in range(count)]
    weights = data.draw(
        st.lists(
            st.sampled_from(WEIGHTS) | st.integers(0, 2**53), min_size=count, max_size=count
        ).filter(any)
    )
    same_columns(onefold.sum_dense(arrays), sum_columns(arrays), arrays)
    same_columns(onefold.mean_dense(arrays), mean_columns(arrays), arrays)
    same_columns(onefold.mean_dense(arrays, weights), mean_columns(arrays, weights), arrays)


# -- integers against the oracle ------------------------------------------------------------------


def sum_or_overflow(arrays):
    """The sum of integer arrays, which must overflow just where the oracle does, and say so."""
    name = arrays[0].dtype.name
    totals = column_sums(arrays)
    bad = [at for at, total in enumerate(totals) if not fits(total, name)]
    if bad:
        with pytest.raises(SumOverflow) as caught:
            onefold.sum_dense(arrays)
        assert caught.value.coordinate == bad[0]
        assert str(bad[0]) in str(caught.value)
        arrays = [np.delete(array, bad) for array in arrays]
    same_columns(onefold.sum_dense(arrays), sum_columns(arrays), arrays)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_an_integer_sum_is_exact_or_an_overflow_that_names_the_first(name, kind):
    """The type is kept; only the final sum must fit, and the first that does not is named."""
    for count in COUNTS:
        sum_or_overflow(hard_arrays(name, kind, count, 15, seed=3))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_an_integer_mean_is_a_correctly_rounded_float64(name, kind):
    """Neither floored nor truncated nor overflown, weighted up to 2**53 or not."""
    for count in COUNTS:
        arrays = hard_arrays(name, kind, count, 20, seed=4)
        same_columns(onefold.mean_dense(arrays), mean_columns(arrays), arrays)
        weights = some_weights(count, seed=4)
        expected = mean_columns(arrays, weights)
        same_columns(onefold.mean_dense(arrays, weights), expected, arrays)


@pytest.mark.parametrize("name", INTEGERS)
@STEADY
@given(data=st.data())
def test_integer_sums_and_means_of_any_values(name, data):
    """Whatever the integers, sums are exact or refused and means rounded once."""
    info = np.iinfo(name)
    low, high = int(info.min), int(info.max)
    values = st.integers(low, high) | st.integers(max(low, -2), 2)
    count, width = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 4))
    rows = st.lists(values, min_size=width, max_size=width)
    arrays = [np.array(data.draw(rows), dtype=name) for _ in range(count)]
    weights = data.draw(
        st.lists(
            st.sampled_from(WEIGHTS) | st.integers(0, 2**53), min_size=count, max_size=count
        ).filter(any)
    )
    sum_or_overflow(arrays)
    same_columns(onefold.mean_dense(arrays), mean_columns(arrays), arrays)
    same_columns(onefold.mean_dense(arrays, weights), mean_columns(arrays, weights), arrays)


# -- worked out by hand ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "addends", "expected"),
    [
        ("bfloat16", [256] + [1] * 8, 264),
        ("float16", [2048] + [1] * 8, 2056),
        ("float16", [2.0**-24] * 4, 2.0**-22),
        ("float16", [40000, 40000], np.inf),
        ("float16", [40000, 40000, -40000], 40000),
        ("float16", [65504, 16], np.inf),
        ("float16", [65504, 15], 65504),
        ("float32", [1, 2.0**-24], 1),
        ("float32", [1, 2.0**-24, 2.0**-149], 1 + 2.0**-23),
        ("float32", [2.0**24, 1, 1], 2.0**24 + 2),
        ("float64", [1e16, 1, -1e16, 1], 2),
        ("float64", [1, 2.0**-53], 1),
        ("float64", [1, 2.0**-53, 5e-324], 1 + 2.0**-52),
        ("float64", [1, 2.0**-53, -5e-324], 1),
        ("float64", [1e308, 1e308, -1e308], 1e308),
        ("float64", [1.7976931348623157e308, 2.0**970], np.inf),
        ("float64", [1.7976931348623157e308, 2.0**970, -5e-324], 1.7976931348623157e308),
        ("float64", [5e-324, -5e-324, -0.0], 0.0),
        ("float64", [-0.0], -0.0),
        ("float64", [-0.0, -0.0], -0.0),
        ("float64", [-0.0, 0.0], 0.0),
        ("float64", [1, -1], 0.0),
        ("float64", [np.inf, 1e308, 1e308], np.inf),
        ("float64", [np.inf, -np.inf], np.nan),
        ("float64", [np.nan, np.inf], np.nan),
        ("int32", [2**31 - 1, 1, -1], 2**31 - 1),
        ("int64", [2**62 + 1, 2**62 - 2], 2**63 - 1),
        ("uint64", [2**63, 2**63 - 1], 2**64 - 1),
        ("uint8", [255, 0], 255),
        ("int8", [-128, 127, -127], -128),
    ],
)
def test_sums_worked_out_by_hand(name, addends, expected):
    """The catalogue's numerical traps give the exact answer, in several orders of the addends."""
    wanted = arrays_of(name, [expected])[0]
    orders = itertools.islice(itertools.permutations(addends), 24)
    for order in (*orders, addends[::-1]):
        same_bits(onefold.sum_dense(arrays_of(name, *([value] for value in order))), wanted)


@pytest.mark.parametrize(
    ("name", "addends", "weights", "expected"),
    [
        ("float16", [40000, 40000], None, 40000),
        ("float16", [65504] * 40, None, 65504),
        ("float16", [2.0**-24] * 4, None, 2.0**-24),
        ("float16", [65504, 65504], [2**53, 2**53], 65504),
        ("float16", [2.0**-24, 0], None, 0),  # half the least subnormal: to even
        ("float16", [3 * 2.0**-24, 0], None, 2.0**-23),
        ("bfloat16", [1, 1.0078125], None, 1),
        ("bfloat16", [1.0078125, 1.015625], None, 1.015625),
        ("float64", [1.7976931348623157e308] * 3, None, 1.7976931348623157e308),
        ("float64", [5e-324] * 3, [2**53, 2**53, 1], 5e-324),
        ("float64", [1, 0, 0], None, 1 / 3),
        ("float64", [10, 6], [1, 3], 7),
        ("float64", [np.nan, 4], [0, 2], 4),
        ("float64", [np.inf, -np.inf], [0, 1], -np.inf),
        ("float64", [np.nan, 4], [1, 2], np.nan),
        ("float64", [-0.0, 0.0], [1, 0], -0.0),
        ("float64", [-0.0, 0.0], [1, 1], 0.0),
        ("float64", [-0.0, -0.0], [2**53, 3], -0.0),
        ("float32", [1, -1], [2**29 - 1, 2**29 - 1], 0.0),
        ("float32", [3, 6, 9], None, 6),
        ("float32", [5], [2**53], 5),
    ],
)
def test_float_means_worked_out_by_hand(name, addends, weights, expected):
    """One division at the end, by what was summed; weight 0 selects out, NaN included."""
    arrays = arrays_of(name, *([value] for value in addends))
    same_bits(onefold.mean_dense(arrays, weights), arrays_of(name, [expected])[0])


@pytest.mark.parametrize(
    ("name", "addends", "weights", "expected"),
    [
        ("int64", [1, 2, 4], None, 7 / 3),
        ("int32", [-3, -4], None, -3.5),
        ("int8", [127, 127], None, 127.0),
        ("int8", [1, -1], None, 0.0),
        ("uint64", [2**64 - 1, 2**64 - 1], None, 2.0**64),
        ("int64", [2**53 + 1, 2**53 + 1], None, 2.0**53),
        ("int64", [2**53 + 1, 2**53 + 2], None, 2.0**53 + 2),
        ("int64", [-(2**63), -(2**63)], [2**53, 2**53], -(2.0**63)),
        ("int64", [2**63 - 1, 7], [0, 2**53], 7.0),
        ("uint8", [1, 0, 0], [2**53, 2**53, 2**53], 1 / 3),
    ],
)
def test_integer_means_worked_out_by_hand(name, addends, weights, expected):
    """The mean of integers is a float64, rounded once from the exact quotient."""
    arrays = arrays_of(name, *([value] for value in addends))
    same_bits(onefold.mean_dense(arrays, weights), np.array([expected]))


HIGH = 2**63 - 1


@pytest.mark.parametrize(
    ("name", "addends", "weights", "expected"),
    [
        ("int64", [-HIGH, -HIGH, HIGH], [2**53, 5, 2**53 - 1], -3071.999999999999),
        (
            "float64",
            [0.5288746378092399, -0.5288746378092399, 0.3333333333333333],
            [2**53 - 1, 2**53 - 2, 7],
            1.5888445954140697e-16,
        ),
        (
            "float64",
            [-4.055547155504371e-215, -1.5446486552529677e-181, 1.5446486552529677e-181],
            [2**29 - 1, 3, 3],
            -4.0555471101801003e-215,
        ),
        (
            "float64",
            [
                *(-0.0, -1.5381665044852847e227, -3.0927314189113556e212),
                *(-6.867743631517097e244, 6.867743631517097e244),
            ],
            None,
            -3.0763330089705753e226,
        ),
        (
            "float64",
            [
                *(-5e-324, 1.2353453901469964e-290, 4.648953736784795e-291),
                *(-1.1896511818115525e-290, -5.105895820139233e-291),
            ],
            None,
            -0.0,  # the sum is -5e-324
        ),
    ],
)
def test_means_of_what_is_left_when_large_addends_cancel(name, addends, weights, expected):
    """Once wrong by little more than half a unit in the last place, or in the sign of a zero."""
    arrays = arrays_of(name, *([value] for value in addends))
    same_bits(mean_columns(arrays, weights), np.array([expected]))
    same_bits(onefold.mean_dense(arrays, weights), np.array([expected]))


def test_the_mean_of_vectors_divides_by_the_workers_not_by_the_elements():
    """Two workers with a vector of three, 2 and 4, have mean 3."""
    arrays = arrays_of("int64", [2, 2, 2], [4, 4, 4])
    same_bits(onefold.mean_dense(arrays), np.array([3.0, 3.0, 3.0]))


@pytest.mark.parametrize("name", DTYPES)
def test_one_array_behaves_as_many(name):
    """One worker's sum and mean are its own values, -0.0 alone stays -0.0, in memory of its own."""
    array = arrays_of(name, [0, 1, 7])[0]
    if name in FORMATS:
        array = np.concatenate([array, arrays_of(name, [-0.0, np.inf, np.nan])[0]])
    total, mean = onefold.sum_dense([array]), onefold.mean_dense([array], [3])
    same_bits(total, array)
    same_bits(mean, array if name in FORMATS else array.astype(np.float64))
    assert not np.shares_memory(total, array)
    assert not np.shares_memory(mean, array)
    total[...] = mean[...] = 1
    assert array.tolist()[1] == 1
    assert array.tolist()[2] == 7


@floats
def test_a_mean_that_underflows_keeps_its_sign(name):
    """The zero rule is for an exact sum of zero; a negative mean that rounds to zero is -0.0."""
    form = FORMATS[name]
    arrays = [array_of([-form.tiny, form.tiny], name), array_of([0, 0], name)]
    same_bits(onefold.mean_dense(arrays), array_of([-0.0, 0], name))


# -- order, size, position, threads ---------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_bits_do_not_depend_on_the_order_of_the_arrays(name):
    """Sum, mean and weighted mean have the same bits for every shuffle of the workers."""
    kinds = FLOAT_KINDS if name in FORMATS else ("small", "cancelling")
    rng = Random(5)
    for kind, count in itertools.product(kinds, (2, 5, 17)):
        weights = some_weights(count, seed=5)
        arrays = hard_arrays(name, kind, weights, 10, seed=5)
        if name in INTEGERS:
            keep = [at for at, total in enumerate(column_sums(arrays)) if fits(total, name)]
            arrays = [array[keep] for array in arrays]
        results = onefold.sum_dense(arrays), onefold.mean_dense(arrays, weights)
        for _ in range(3):
            order = rng.sample(range(count), count)
            shuffled = [arrays[at] for at in order]
            same_columns(onefold.sum_dense(shuffled), results[0], shuffled)
            reweighted = onefold.mean_dense(shuffled, [weights[at] for at in order])
            same_columns(reweighted, results[1], shuffled)


def long_arrays(name, size, count, seed):
    """Arrays that are easy but for hard columns at both ends and about every power of two.

    Returns the arrays and, without asking the oracle for every element, their sum and mean.
    """
    rng = Random(f"{name} {size} {seed}")
    easy = [
        np.array([(worker + at) % 3 for at in range(61)], dtype=dtype_of(name))
        for worker in range(count)
    ]
    if name in FORMATS:
        pieces = [hard_arrays(name, kind, count, 20, seed) for kind in FLOAT_KINDS]
    else:
        pieces = [hard_arrays(name, kind, count, 20, seed) for kind in INTEGER_KINDS]
    hard = [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
    if name not in FORMATS:
        keep = [at for at, total in enumerate(column_sums(hard)) if fits(total, name)]
        hard = [array[keep] for array in hard]
    powers = {2**k + step for k in range(size.bit_length()) for step in (-1, 0, 1)}
    places = {0, size - 1} | {place for place in powers if place < size}
    places |= {rng.randrange(size) for _ in range(200)}
    places = np.array(sorted(places))
    which = np.array([rng.randrange(hard[0].size) for _ in places])

    def spread(of_easy, of_hard):
        whole = np.resize(of_easy, size)
        whole[places] = of_hard[which]
        return whole

    arrays = [spread(*pair) for pair in zip(easy, hard, strict=True)]
    return (
        arrays,
        spread(sum_columns(easy), sum_columns(hard)),
        spread(mean_columns(easy), mean_columns(hard)),
    )


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 64, 1025, 70_001, 600_011])
def test_bits_do_not_depend_on_where_in_how_large_an_array(name, size):
    """Hard columns about every boundary that a block or a thread may have are as right as alone."""
    arrays, total, mean = long_arrays(name, size, count=5, seed=6)
    same_columns(onefold.sum_dense(arrays), total, arrays)
    same_columns(onefold.mean_dense(arrays), mean, arrays)


@pytest.mark.parametrize("name", ["float32", "float64", "int64"])
def test_calls_from_several_threads_at_once_do_not_disturb_each_other(name):
    """Eight calls on four threads give the bits that each gives alone."""
    cases = [long_arrays(name, 70_001 + seed, count=4, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        totals = list(pool.map(onefold.sum_dense, [arrays for arrays, _, _ in cases]))
        means = list(pool.map(onefold.mean_dense, [arrays for arrays, _, _ in cases]))
    for (arrays, total, mean), our_total, our_mean in zip(cases, totals, means, strict=True):
        same_columns(our_total, total, arrays)
        same_columns(our_mean, mean, arrays)


@pytest.mark.parametrize("name", INTEGERS)
def test_the_first_overflow_of_a_long_array_is_named(name):
    """Of several sums that do not fit, in far apart blocks, the least flat index is named."""
    high = int(np.iinfo(name).max)
    first, second = np.zeros(600_011, dtype=name), np.ones(600_011, dtype=name)
    for at in (599_999, 300_000, 77_777, 3):
        first[at] = high
        with pytest.raises(SumOverflow) as caught:
            onefold.sum_dense([first, second])
        assert caught.value.coordinate == at


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_an_overflow_at_the_low_end_is_refused_too(name):
    """One below the least value does not wrap around."""
    low = int(np.iinfo(name).min)
    with pytest.raises(SumOverflow) as caught:
        onefold.sum_dense(arrays_of(name, [0, low], [-1, -1]))
    assert caught.value.coordinate == 1


def test_an_overflow_is_named_by_its_row_major_index_whatever_the_layout():
    """For arrays in Fortran order the first is still the first in row-major order."""
    first = np.asfortranarray(np.zeros((3, 4), dtype=np.int32))
    first[0, 3] = first[2, 0] = 2**31 - 1
    assert first.flags.f_contiguous
    with pytest.raises(SumOverflow) as caught:
        onefold.sum_dense([first, np.ones_like(first)])
    assert caught.value.coordinate == 3


@floats
def test_neighbouring_columns_do_not_touch(name):
    """A NaN, an infinity or an overflow in one element leaves the ones beside it exact."""
    form = FORMATS[name]
    rng = Random(7)
    arrays = hard_arrays(name, "gauss", 6, 90, seed=7)
    for at in range(0, 90, 3):
        rng.choice(arrays)[at] = rng.choice([np.nan, np.inf, -np.inf])
    arrays[0][1] = arrays[1][1] = np.ldexp(1.0, form.emax)
    same_columns(onefold.sum_dense(arrays), sum_columns(arrays), arrays)
    same_columns(onefold.mean_dense(arrays), mean_columns(arrays), arrays)


def test_ties_and_signs_are_told_apart_by_bits_here():
    """What these tests compare with is strict: a plain NumPy sum fails it where it should."""
    arrays = hard_arrays("float32", "ties", 5, 200, seed=8)
    plain = np.sum(np.stack(arrays), axis=0, dtype=np.float32)
    assert (bits_of(plain) != bits_of(sum_columns(arrays))).any()
    twice = np.sum(np.stack(arrays), axis=0, dtype=np.float64).astype(np.float32)
    assert (bits_of(twice) != bits_of(sum_columns(arrays))).any()
    assert arrays_of("bfloat16", [1])[0].dtype == BF16
