"""Sums and means of hostile addends have the bits that the contract promises.

The addends are those of ``adversaries.py``: all adversaries of a dtype lie side by side in one
array, so that one call answers for all of them. What is expected comes from whole numbers
(``quick_oracle.py``), which the first test holds against Fractions for every adversary. NaN must
be the canonical one. Every random choice comes from a seed that a failure's message shows.
"""

from __future__ import annotations

import itertools
from random import Random

import adversaries
import numpy as np
import pytest
import quick_oracle
from adversaries import HIGH, KEYS, LOW, bank, kinds_of, some_weights, values_for
from columns import FLOAT_KINDS, INTEGER_KINDS, hard_arrays
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import (
    DTYPES,
    FORMATS,
    INTEGERS,
    bits_of,
    dtype_of,
    mean_columns,
    same_bits,
    sum_columns,
)

import onefold
from onefold import ExactPartial, Sparse
from onefold.errors import SumOverflow
from onefold.exact.slow_dense import reduce_slowly
from onefold.exact.slow_sparse import reduce_slowly as reduce_sparse_slowly
from onefold.exact.weighting import Weighting

SEED = 20250611
STEADY = settings(deadline=None, max_examples=12, derandomize=True, database=None)
WORKERS = (1, 2, 7, 8, 9, 17, 64, 300)
SIZES = (0, 1, 1023, 1024, 1025)
LARGE = (65535, 65536, 65537)

dtypes = pytest.mark.parametrize("name", DTYPES)
floats = pytest.mark.parametrize("name", FORMATS)
"""Until signalling NaNs are summed by coordinate without one (see the end of this file)."""


def identical(result, expected, about=""):
    """Assert dtype, size and bits; a NaN must be the canonical one, which ``expected`` has."""
    assert result.dtype == expected.dtype, f"{result.dtype}, not {expected.dtype} {about}"
    assert result.size == expected.size, f"{result.size} elements, not {expected.size} {about}"
    ours, theirs = bits_of(result), bits_of(expected)
    where = np.flatnonzero(ours != theirs)
    if where.size:
        at = where[0]
        raise AssertionError(
            f"{where.size} of {ours.size} elements differ {about}; the first is {at}: "
            f"0x{ours[at]:x} instead of 0x{theirs[at]:x}"
        )


def rng_for(*what):
    return Random(" ".join(map(str, (SEED, *what))))


def fitting(columns):
    """Of an array (workers, columns) of integers, the columns whose sums fit their type."""
    if columns.dtype.name in FORMATS:
        return columns
    info = np.iinfo(columns.dtype)
    sums = columns.astype(object).sum(axis=0)
    return columns[:, [info.min <= total <= info.max for total in sums]]


def slowly(arrays, weighting, dtype):
    result = np.empty(arrays[0].shape, dtype)
    reduce_slowly([arrays[index] for index in weighting.selected], weighting, result)
    return result


# -- the oracle -----------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_whole_numbers_and_fractions_agree_on_every_adversary(name, count):
    """What the tests below expect is what Fractions rounded once give, kind by kind."""
    rng = rng_for("oracle", name, count)
    weights = some_weights(count, rng)
    columns = bank(name, weights, rng, 2)
    same_bits(quick_oracle.columns(columns, mean=True), mean_columns(columns))
    same_bits(quick_oracle.columns(columns, weights, mean=True), mean_columns(columns, weights))
    columns = fitting(columns)
    same_bits(quick_oracle.columns(columns), sum_columns(columns))


@dtypes
def test_whole_numbers_and_fractions_agree_on_the_older_columns(name):
    """Likewise for the columns of ``columns.py``, for which test_dense.py asks whole numbers."""
    for kind, count in itertools.product(FLOAT_KINDS if name in FORMATS else INTEGER_KINDS, (1, 7)):
        weights = some_weights(count, rng_for(name, kind, count))
        arrays = hard_arrays(name, kind, weights, 6, SEED)
        same_bits(quick_oracle.mean_columns(arrays), mean_columns(arrays))
        same_bits(quick_oracle.mean_columns(arrays, weights), mean_columns(arrays, weights))
        arrays = list(fitting(np.stack(arrays)))
        same_bits(quick_oracle.sum_columns(arrays), sum_columns(arrays))


@floats
def test_the_adversaries_are_what_they_say(name):
    """Ties are ties, sums at the end overflow, those in the middle do not, and a seed is a seed."""
    form, rng = FORMATS[name], rng_for("kinds", name)
    for kind in kinds_of(name):
        one, two = (bank(name, [1] * 5, Random(kind), 3, [kind]) for _ in range(2))
        identical(one, two, kind)
    for _ in range(20):
        tie = adversaries.FLOATS["ties"](form, [1] * 6, rng)
        total = abs(sum(adversaries.units_of_bits(form, bits) for bits in tie))
        digits = len(bin(total).rstrip("0")) - 2
        assert digits in (form.precision, form.precision + 1)
    middle = bank(name, [1] * 9, rng, 10, ["overflow_in_the_middle"])
    assert np.isfinite(onefold.sum_dense(list(middle)).astype(np.float64)).any()
    ends = bank(name, [1] * 9, rng, 10, ["overflow_at_the_end"])
    finite = np.isfinite(onefold.sum_dense(list(ends)).astype(np.float64))
    assert finite.any()
    assert not finite.all()


# -- dense ----------------------------------------------------------------------------------------


def layouts(width, size, rng):
    """Which column stands at which element: all mixed, few among easy ones, in runs of one kind."""
    mixed = rng.integers(0, width, size)
    rare = np.where(rng.random(size) < 4 / 1024, mixed, rng.integers(0, width))
    return [mixed, rare, np.sort(mixed)] if size > 1024 else [mixed]


def check_dense(columns, weights, size, threads, about):
    """Sum, mean and weighted mean of an array of so many elements, each one of ``columns``."""
    generator = np.random.default_rng([SEED, size, columns.shape[0]])
    for title, given_weights, chosen in (
        ("sum", None, fitting(columns)),
        ("mean", None, columns),
        ("weighted mean", weights, columns),
    ):
        is_mean = title != "sum"
        if chosen.shape[1] == 0:
            continue
        expected = quick_oracle.columns(chosen, given_weights, mean=is_mean)
        few = slice(None, 1 if columns.shape[0] > 20 else None)
        for number, which in enumerate(layouts(chosen.shape[1], size, generator)[few]):
            arrays = list(chosen[:, which])
            note = f"in the {title} of {about}, {size} elements, layout {number}"
            for count in threads if number == 0 else threads[-1:]:
                if is_mean:
                    result = onefold.mean_dense(arrays, given_weights, threads=count)
                else:
                    result = onefold.sum_dense(arrays, threads=count)
                identical(result, expected[which], f"{note}, {count} threads")


@dtypes
@pytest.mark.parametrize("count", WORKERS)
def test_every_adversary_at_once(name, count):
    """Every number of workers and of elements, mixed or in runs, on 1, 2 and 5 threads."""
    rng = rng_for("dense", name, count)
    weights = some_weights(count, rng)
    columns = bank(name, weights, rng, 3 if count < 20 else 1)
    identical(
        onefold.mean_dense(list(columns), weights),
        quick_oracle.columns(columns, weights, mean=True),
        f"of {name} with weights {weights}",
    )
    sizes = SIZES if count < 20 else (0, 1025 if name in FORMATS else 100)
    for size in sizes:
        threads = (1, 2, 5) if size == 1025 else (1,)
        check_dense(columns, weights, size, threads, f"{count} {name}")


@pytest.mark.parametrize(
    ("name", "count", "size"),
    [
        *zip(FORMATS, (2, 8, 9, 7), (LARGE * 2)[:4], strict=True),
        *zip(INTEGERS, (2, 3, 7, 8, 9, 2, 3, 7), (LARGE * 3)[:8], strict=True),
    ],
)
def test_every_adversary_about_the_end_of_a_piece(name, count, size):
    """65535 to 65537 elements and more: each one has the oracle's bits and the slow way's."""
    rng = rng_for("large", name, count)
    weights = some_weights(count, rng)
    columns = bank(name, weights, rng, 3)
    check_dense(columns, weights, size, (1, 5), f"{count} {name}")
    chosen = fitting(columns)
    which = np.random.default_rng(SEED).integers(0, chosen.shape[1], size)
    arrays = list(chosen[:, which])
    for weighting, result in (
        (Weighting.sum(count), onefold.sum_dense(arrays)),
        (Weighting.mean(count, weights), onefold.mean_dense(arrays, weights)),
    ):
        same_bits(result, slowly(arrays, weighting, result.dtype))


@dtypes
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_every_order_of_few_addends(name, count):
    """All permutations of up to five workers have the same bits, weights with their arrays."""
    rng = rng_for("orders", name, count)
    weights = some_weights(count, rng)
    columns = bank(name, weights, rng, 3)
    sums = fitting(columns)
    expected = quick_oracle.columns(sums), quick_oracle.columns(columns, weights, mean=True)
    for order in itertools.permutations(range(count)):
        identical(onefold.sum_dense([sums[at] for at in order]), expected[0], f"as {order}")
        mean = onefold.mean_dense([columns[at] for at in order], [weights[at] for at in order])
        identical(mean, expected[1], f"as {order} with {weights}")


@dtypes
def test_adversaries_in_any_memory(name, tmp_path):
    """Strided, read-only, memory-mapped, byte-swapped and unaligned inputs; ``out`` likewise."""
    rng = rng_for("memory", name)
    weights = [3, 0, 2**53, 1, 2**29 + 1]
    columns = bank(name, weights, rng, 9)
    columns = fitting(columns)
    dtype, size = columns.dtype, columns.shape[1]
    wide = np.zeros((2, 3 * size), dtype)
    wide[1, ::3] = columns[0]
    frozen = columns[1].copy()
    frozen.flags.writeable = False
    (tmp_path / "mapped").write_bytes(columns[2].tobytes())
    mapped = np.memmap(tmp_path / "mapped", dtype, "r", shape=(size,))
    swapped = columns[3] if name == "bfloat16" else columns[3].astype(dtype.newbyteorder())
    packed = np.zeros(columns[4].nbytes + 1, np.uint8)
    packed[1:] = np.frombuffer(columns[4].tobytes(), np.uint8)
    arrays = [wide[1, ::3], frozen, mapped, swapped, packed[1:].view(dtype)]
    expected = quick_oracle.columns(columns), quick_oracle.columns(columns, weights, mean=True)
    for backwards in (slice(None), slice(None, None, -1)):
        given_arrays = [array[backwards] for array in arrays]
        total, mean = (each[backwards] for each in expected)
        identical(onefold.sum_dense(given_arrays), total, name)
        identical(onefold.mean_dense(given_arrays, weights), mean, name)
        for step in (1, 2, -1, -3):
            out = np.zeros(abs(step) * size, total.dtype)[::step]
            assert onefold.sum_dense(given_arrays, out) is out
            identical(out, total, f"{name} into steps of {step}")
            out = np.zeros(abs(step) * size, mean.dtype)[::step]
            assert onefold.mean_dense(given_arrays, weights, out) is out
            identical(out, mean, f"{name} into steps of {step}")
    square = [np.asfortranarray(np.stack([array, array])) for array in arrays]
    identical(onefold.sum_dense(square), np.stack([expected[0]] * 2), f"{name} in Fortran order")


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("count", [2, 3, 8, 9, 64])
def test_integers_that_do_not_fit_are_named_first_to_last(name, count):
    """Among all that fit, each that does not is named while it is the first."""
    rng = rng_for("overflow", name, count)
    columns = bank(name, [1] * count, rng, 12)
    info = np.iinfo(name)
    sums = columns.astype(object).sum(axis=0)
    bad = [at for at, total in enumerate(sums) if not info.min <= total <= info.max]
    assert bad
    for number, at in enumerate(bad):
        left = columns.copy()
        left[:, bad[:number]] = 0
        with pytest.raises(SumOverflow) as caught:
            onefold.sum_dense(list(left))
        assert caught.value.coordinate == at, f"{name} {count}"


@dtypes
@STEADY
@given(data=st.data())
def test_any_mixture_of_adversaries(name, data):
    """Whatever workers take part, with whatever weights, threads, order and addends of any kind."""
    seed = data.draw(st.integers(0, 2**32), label="seed")
    count = data.draw(st.integers(1, 12), label="workers")
    rng = Random(seed)
    weights = some_weights(count, rng)
    columns = bank(name, weights, rng, 2)
    order = data.draw(st.permutations(range(count)), label="order")
    threads = data.draw(st.sampled_from([1, 2, 5]), label="threads")
    arrays = [columns[at] for at in order]
    ordered = [weights[at] for at in order]
    identical(
        onefold.mean_dense(arrays, ordered, threads=threads),
        quick_oracle.columns(columns, weights, mean=True),
    )
    identical(onefold.mean_dense(arrays), quick_oracle.columns(columns, mean=True))
    sums = fitting(columns)
    identical(
        onefold.sum_dense([sums[at] for at in order], threads=threads), quick_oracle.columns(sums)
    )


# -- sparse ---------------------------------------------------------------------------------------


def sparse_parts(name, keys, size, row, parts, seed):
    """Adversaries by coordinate, cut into parts at random; and the entries in one piece."""
    generator, rng = np.random.default_rng([SEED, seed, size]), rng_for(name, keys, size, seed)
    coordinates = np.sort(KEYS[keys](generator, size).astype(np.int64))
    groups = np.unique(coordinates, return_counts=True)[1]
    values = values_for(name, groups, row or 1, rng)
    values = values.reshape(size, *((row,) if row else ()))
    order = generator.permutation(size)
    cuts = np.sort(generator.integers(0, size + 1, parts - 1))
    pieces = np.split(order, cuts)
    return [Sparse(coordinates[piece], values[piece]) for piece in pieces]


def expected_sparse(parts, weights=None, *, mean=False):
    """The coordinates and values that the sum or mean of parts must have."""
    each = [1] * len(parts) if weights is None else weights
    selected = [(part, weight) for part, weight in zip(parts, each, strict=True) if weight]
    where = np.concatenate([part.coordinates for part, _ in selected])
    values = np.concatenate([part.values for part, _ in selected])
    by_entry = np.concatenate([np.full(len(part), weight, object) for part, weight in selected])
    order = np.argsort(where, kind="stable")
    coordinates, starts, sizes = np.unique(where[order], return_index=True, return_counts=True)
    row = int(np.prod(values.shape[1:]))
    flat = values[order].reshape(where.size, row).T.reshape(-1)
    begin = (np.arange(row)[:, None] * where.size + starts).reshape(-1)
    entry_weights = None if weights is None else np.tile(by_entry[order], row)
    divisor = sum(each) if mean else None
    result = quick_oracle.grouped(flat, begin, entry_weights, divisor)
    assert sizes.sum() == where.size
    return coordinates, result.reshape(row, coordinates.size).T.reshape(-1, *values.shape[1:])


def check_sparse(parts, weights, threads, about):
    expected = expected_sparse(parts)
    for count in threads:
        got = onefold.sum_sparse(parts, threads=count)
        note = f"in the sum of {about}, {count} threads"
        assert np.array_equal(got.coordinates, expected[0]), note
        identical(got.values, expected[1], note)
    for title, given_weights in (("mean", None), (f"mean by {weights}", weights)):
        expected = expected_sparse(parts, given_weights, mean=True)
        got = onefold.mean_sparse(parts, given_weights, threads=threads[-1])
        assert np.array_equal(got.coordinates, expected[0]), f"{title} of {about}"
        identical(got.values, expected[1], f"in the {title} of {about}")


SHAPES = {0: (0, 1, 300), 1: (30,), 3: (40,), 17: (20,)}
"""Numbers of entries by width of the rows; 0 stands for numbers."""


@dtypes
@pytest.mark.parametrize("keys", KEYS)
def test_every_adversary_by_coordinate(name, keys):
    """Whatever the coordinates, numbers or rows, duplicates in parts and empty parts."""
    for row, sizes in SHAPES.items():
        for size in sizes:
            parts = sparse_parts(name, keys, size, row, 5, row)
            parts.insert(2, Sparse(np.zeros(0, np.int64), parts[0].values[:0]))
            weights = some_weights(len(parts), rng_for(name, keys, size, row))
            threads = (1, 2, 5) if size == 300 else (1,)
            check_sparse(parts, weights, threads, f"{size} {keys} {name} in rows of {row}")


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", ["float32", "float64", "int64"])
def test_many_adversaries_by_coordinate(name, keys):
    """So many entries that they are dealt into buckets: still the oracle's bits, and the slow."""
    size = 9000 if name == "float32" else 3000
    parts = sparse_parts(name, keys, size, 0, 3, 7)
    check_sparse(parts, [2**53, 1, 3], (1, 5), f"{size} {keys} {name}")
    slow = reduce_sparse_slowly(parts, Weighting.sum(3), dtype_of(name))
    got = onefold.sum_sparse(parts)
    assert np.array_equal(got.coordinates, slow.coordinates)
    same_bits(got.values, slow.values)


@dtypes
def test_one_entry_of_each_worker_is_the_dense_sum(name):
    """The same adversaries as dense arrays and as parts, at coordinates of both ends of int64."""
    rng = rng_for("agree", name)
    weights = some_weights(9, rng)
    columns = fitting(bank(name, weights, rng, 4))
    half = columns.shape[1] // 2
    where = np.array([HIGH - at if at < half else LOW + at for at in range(columns.shape[1])])
    parts = [Sparse(where, array) for array in columns]
    order = np.argsort(where)
    for ours, theirs in (
        (onefold.sum_sparse(parts), onefold.sum_dense(list(columns))),
        (onefold.mean_sparse(parts), onefold.mean_dense(list(columns))),
        (onefold.mean_sparse(parts, weights), onefold.mean_dense(list(columns), weights)),
    ):
        assert np.array_equal(ours.coordinates, where[order])
        identical(ours.values, theirs[order], name)


@pytest.mark.parametrize("name", INTEGERS)
def test_the_least_coordinate_that_does_not_fit_is_named(name):
    """At both ends of int64 and between, in whatever part the last straw lies."""
    high = int(np.iinfo(name).max)
    where = np.array([-(2**63), -1, 0, 2**53 + 1, 2**63 - 1])
    for count, at in itertools.product((2, 9), range(5)):
        parts = [Sparse(where[::-1], np.full(5, high // count, name)) for _ in range(count)]
        rest = Sparse(where, np.full(5, high - high // count * count, name))
        assert onefold.sum_sparse([*parts, rest]).values.tolist() == [high] * 5
        straws = Sparse(where[at:], np.ones(5 - at, name))
        with pytest.raises(SumOverflow) as caught:
            onefold.sum_sparse([*parts, straws, rest])
        assert caught.value.coordinate == where[at]


# -- partial sums ---------------------------------------------------------------------------------


def in_a_tree(leaves, make, rng):
    """Some leaves in each of a few partial sums, and those merged, at times by way of bytes."""
    partials = [make() for _ in range(rng.randint(1, 4))]
    for leaf, weight in leaves:
        rng.choice(partials).add(leaf, weight)
    total = partials.pop(rng.randrange(len(partials)))
    for other in partials:
        again = ExactPartial.from_bytes(other.to_bytes()) if rng.random() < 0.5 else other
        total.merge(again)
    return total


@dtypes
@pytest.mark.parametrize("count", [1, 5, 17])
def test_any_tree_of_partial_sums_of_adversaries(name, count):
    """Sum and mean by weight are those of all at once, dense and sparse."""
    rng = rng_for("tree", name, count)
    weights = some_weights(count, rng)
    columns = bank(name, weights, rng, 4)
    expected = quick_oracle.columns(columns, weights, mean=True)
    leaves = list(zip(columns, weights, strict=True))
    total = in_a_tree(leaves, lambda: ExactPartial.dense(columns.shape[1:], name), rng)
    identical(total.mean(), expected, name)
    if name in FORMATS:
        identical(total.sum(), quick_oracle.columns(columns, weights), name)
    sums = fitting(columns)
    ones = [(array, 1) for array in sums]
    total = in_a_tree(ones, lambda: ExactPartial.dense(sums.shape[1:], name), rng)
    identical(total.sum(), quick_oracle.columns(sums), name)
    parts = sparse_parts(name, "ends", 60, 3, count, 3)
    total = in_a_tree(zip(parts, weights, strict=True), lambda: ExactPartial.sparse(name), rng)
    where, values = expected_sparse(parts, weights, mean=True)
    got = total.mean()
    assert np.array_equal(got.coordinates, where)
    identical(got.values, values, name)


# -- found by the above ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "weights"), [("bfloat16", None), ("bfloat16", [1, 3]), ("float16", [1, 3])]
)
def test_a_signalling_nan_by_coordinate_is_no_warning(name, weights):
    """NaNs propagate in silence, signalling ones too, as they do in dense arrays."""
    form = FORMATS[name]
    values = np.array([form.infinity + 1], form.unsigned).view(form.dtype)
    parts = [Sparse(np.array([1]), values)] * 2
    got = onefold.mean_sparse(parts, weights) if weights else onefold.sum_sparse(parts)
    identical(got.values, np.array([form.nan], form.unsigned).view(form.dtype))
