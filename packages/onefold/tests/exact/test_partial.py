"""Partial sums: any tree of them gives the bits of the flat sum, and bytes are not trusted."""

from __future__ import annotations

import functools
import json
import math
import tracemalloc
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from columns import FLOAT_KINDS, hard_arrays
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import (
    DTYPES,
    FORMATS,
    array_of,
    column_sums,
    mean_columns,
    quotient,
    same_bits,
    sum_columns,
)
from sparse_oracle import by_coordinate, check, one_each

from onefold import ExactPartial, Sparse
from onefold.errors import InvalidInput, InvalidUpdate, Mismatch, NoContributions, SumOverflow
from onefold.exact import partial as partial_module
from onefold.exact import running


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a few numbers make several blocks."""
    monkeypatch.setattr(running, "SUMS_BLOCK", 7)
    monkeypatch.setattr(partial_module, "_ENTRIES_BLOCK", 5)


def tree(leaves, make, rng):
    """The leaves in random partial sums, merged in random order, through bytes now and then."""
    partials = [make() for _ in range(3)]
    for leaf, weight in leaves:
        rng.choice(partials).add(leaf, weight)
    while len(partials) > 1:
        rng.shuffle(partials)
        other = partials.pop()
        if rng.random() < 0.5:
            other = ExactPartial.from_bytes(other.to_bytes())
        partials[0].merge(other)
    return partials[0]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_a_tree_of_dense_sums_is_the_flat_sum(name, kind):
    """Sum, mean and weighted mean have the oracle's bits, whatever was merged with what."""
    rng = Random(f"{name} {kind}")
    for count in (1, 2, 7):
        arrays = hard_arrays(name, kind, count, 20, seed=5)
        weights = [rng.choice([1, 2, 3, 2**29 - 1, 2**53]) for _ in arrays]
        plain = tree([(array, 1) for array in arrays], lambda: ExactPartial.dense((20,), name), rng)
        same_bits(plain.sum(), sum_columns(arrays))
        same_bits(plain.mean(), mean_columns(arrays))
        leaves = list(zip(arrays, weights, strict=True))
        weighted = tree(leaves, lambda: ExactPartial.dense((20,), name), rng)
        same_bits(weighted.mean(), mean_columns(arrays, weights))


@pytest.mark.parametrize("name", DTYPES)
def test_a_tree_of_sparse_sums_is_the_flat_sum(name):
    """Rows and numbers alike, duplicates within a part included."""
    rng = Random(name)
    kind = "ties" if name in FORMATS else "small"
    rows: tuple[tuple[int, ...], ...] = ((), (2,))
    for row in rows:
        parts = one_each(hard_arrays(name, kind, 5, 6, seed=3), rng)
        parts += [Sparse(p.coordinates[[0, 0, 1]], p.values[[1, 1, 0]]) for p in parts[:2]]
        if row:
            parts = [Sparse(p.coordinates, np.stack([p.values] * 2, axis=1)) for p in parts]
        got = tree([(part, 1) for part in parts], functools.partial(ExactPartial.sparse, name), rng)
        check(got.sum(), by_coordinate(parts), name, parts[0])


def test_integer_sums_are_exact_and_overflow_only_in_the_end():
    """A sum may leave the type on the way; what does not fit in the end is named."""
    partial = ExactPartial.dense((2,), "int64")
    for value in (2**63 - 1, 2**63 - 1, -(2**63)):
        partial.add(np.array([value, 1]))
    assert partial.sum().tolist() == [2**63 - 2, 3]
    partial.add(np.array([2**63 - 1, 0]))
    with pytest.raises(SumOverflow, match="coordinate 0"):
        partial.sum()
    assert partial.mean().dtype == np.float64


def test_memory_is_one_float64_for_each_coordinate_in_the_usual_case():
    """Gradients of float32 need no second half, and what is exceptional costs only its own."""
    rng = np.random.default_rng(0)
    partial = ExactPartial.dense((10_000,), np.float32)
    for _ in range(16):
        partial.add(rng.standard_normal(10_000).astype(np.float32))
    assert partial.nbytes == 8 * 10_000
    partial.add(np.where(np.arange(10_000) == 7, np.inf, 1).astype(np.float32))
    assert partial.nbytes < 8 * 10_000 + 1000
    assert partial.sum()[7] == np.inf


def test_strided_arrays_and_weight_zero():
    """The layout does not matter, and what has weight 0 is not there, NaN included."""
    partial = ExactPartial.dense((3, 2), np.float64)
    partial.add(np.arange(6.0).reshape(2, 3).T)
    partial.add(np.full((3, 2), np.nan), weight=0)
    assert partial.sum().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert (partial.count, partial.weight) == (1, 1)


def test_what_does_not_belong_is_refused():
    """Nothing broadcasts, nothing is converted, and there is no sum of nothing."""
    partial = ExactPartial.dense((2,), np.float32)
    for wrong in (np.zeros(3, np.float32), np.zeros(2)):
        with pytest.raises(Mismatch):
            partial.add(wrong)
    with pytest.raises(Mismatch):
        partial.merge(ExactPartial.sparse(np.float32))
    with pytest.raises(NoContributions):
        partial.sum()
    with pytest.raises(InvalidUpdate):
        ExactPartial.sparse(np.float32).add(np.zeros(2, np.float32))
    with pytest.raises(InvalidUpdate):
        ExactPartial.dense((2,), np.complex64)


@pytest.mark.parametrize("seed", range(30))
def test_any_weights_layout_and_type_give_the_bits_of_the_fraction(seed):
    """Weights from 0 to 2**53, any order of bytes and axes, every type: sum and mean are exact."""
    rng = Random(seed)
    name = rng.choice(DTYPES)
    kind = rng.choice(sorted(FLOAT_KINDS)) if name in FORMATS else "full"
    arrays = [array.reshape(4, 5) for array in hard_arrays(name, kind, 6, 20, seed=seed)]
    weights = [rng.choice([0, 1, 3, 2**20, 2**53 - 1, 2**53]) for _ in arrays] + [1]
    arrays.append(arrays[0])
    leaves = [(laid_out(array, rng), weight) for array, weight in zip(arrays, weights, strict=True)]
    got = tree(leaves, lambda: ExactPartial.dense((4, 5), name), rng)
    sums = column_sums(arrays, weights)
    means = [quotient(number, sum(weights)) for number in sums]
    same_bits(got.mean(), array_of(means, name if name in FORMATS else "float64"))
    if name in FORMATS:
        same_bits(got.sum(), array_of(sums, name))


def laid_out(array, rng):
    """The same numbers, in another layout or order of bytes."""
    if rng.random() < 0.3 and array.dtype.name != "bfloat16":
        array = array.astype(array.dtype.newbyteorder(">"))
    layout = rng.randrange(3)
    if layout == 0:
        return np.asfortranarray(array)
    if layout == 1:
        return np.repeat(array, 2, axis=1)[:, ::2]
    return array


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_integers_of_full_range_are_exact(name):
    """Sums that need all of 64 bits, of weights too, are those of Python's integers."""
    limits = np.iinfo(name)
    for numbers in ([limits.max - 7, 3, 4], [limits.max, 0, 0], [limits.min, 1, 2**53 + 1]):
        partial = ExactPartial.dense((2,), name)
        for number in numbers:
            partial.add(np.array([number, 1], name))
        assert partial.sum().tolist() == [sum(numbers), 3]
        assert partial.mean()[0] == float(Fraction(sum(numbers), 3))
    partial = ExactPartial.dense((), name)
    partial.add(np.array(2**10 - 1, name), weight=2**53)
    assert partial.sum().tolist() == (2**10 - 1) * 2**53


@pytest.mark.parametrize("addends", [[1.5], [1e300, 1.0, 1e-300], [1.0, np.inf], [-0.0]])
@pytest.mark.parametrize("make", ["dense", "sparse"])
def test_merging_with_itself_counts_all_twice(addends, make):
    """Also what is kept beside the pair, and what goes there by this very merge."""
    partial = ExactPartial.dense((1,), "float64") if make == "dense" else ExactPartial.sparse(float)
    for addend in addends:
        values = np.array([addend])
        partial.add(values if make == "dense" else Sparse(np.array([4]), values))
    for _ in range(3):
        partial.merge(partial)
    partial.add(values if make == "dense" else Sparse(np.array([4]), values))
    got = partial.sum() if make == "dense" else partial.sum().values
    same_bits(got, sum_columns([np.array([addend]) for addend in [*addends * 8, addends[-1]]]))
    assert partial.count == partial.weight == 8 * len(addends) + 1


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1)])
def test_shapes_without_axes_or_elements(shape):
    """A number is an array too, and an empty sum keeps its shape, through bytes as well."""
    partial = ExactPartial.dense(shape, np.float16)
    partial.add(np.ones(shape, np.float16), weight=3)
    partial = ExactPartial.from_bytes(partial.to_bytes())
    assert partial.sum().shape == partial.mean().shape == shape
    assert (partial.sum() == 3).all()


def test_a_sparse_sum_learns_its_shape_from_what_is_added_or_merged():
    """Nothing says it before, all that follows must have it, and the sum declares it."""
    rows = Sparse(np.array([1, 0]), np.ones((2, 3), np.float32), (4, 3))
    empty = ExactPartial.from_bytes(ExactPartial.sparse(np.float32).to_bytes())
    assert (empty.shape, empty.count) == (None, 0)
    partial = ExactPartial.sparse(np.float32)
    partial.add(rows)
    empty.merge(partial)
    empty.merge(ExactPartial.sparse(np.float32))
    for one in (partial, empty, ExactPartial.from_bytes(empty.to_bytes())):
        assert one.sum().shape == (4, 3)
        for other in (
            Sparse(np.array([1]), np.ones(1, np.float32)),
            Sparse(np.array([1]), np.ones((1, 3), np.float32)),
        ):
            with pytest.raises(Mismatch, match=r"float32\[4, 3\]"):
                one.add(other)
        with pytest.raises(Mismatch):
            one.merge(ExactPartial.sparse(np.float64))
        assert one.count == 1


def test_a_part_without_entries_counts():
    """A mean is divided by its weight as well; of nothing else there is an empty sum."""
    nothing = Sparse(np.array([], int), np.ones((0, 2)))
    partial = ExactPartial.sparse(np.float64)
    partial.add(nothing, weight=3)
    assert partial.sum().values.shape == (0, 2)
    partial.add(Sparse(np.array([7]), np.array([[4.0, 8.0]])))
    assert partial.mean().values.tolist() == [[1, 2]]


def test_an_overflow_of_rows_names_the_coordinate():
    """The explicit one, not its place."""
    partial = ExactPartial.sparse("int8")
    for _ in range(2):
        partial.add(Sparse(np.array([-5, 9]), np.array([[1, 1], [1, 100]], "int8")))
    with pytest.raises(SumOverflow, match="coordinate 9: the exact sum is 200"):
        partial.sum()


@pytest.mark.parametrize(
    "shape", [3, (-1,), (1.5,), (True,), "ab", (2**62,), (2**30, 2**30), (1,) * 65]
)
def test_what_is_no_shape_is_refused(shape):
    """Before any memory is taken."""
    with pytest.raises(InvalidUpdate, match="shape"):
        ExactPartial.dense(shape, np.float32)


def test_what_is_no_dtype_or_partial_sum_is_refused():
    """With an error of ours."""
    for dtype in (None, "float99", object, np.bool_):
        with pytest.raises(InvalidUpdate, match="the dtypes are"):
            ExactPartial.sparse(dtype)
    with pytest.raises(InvalidUpdate, match="only an ExactPartial"):
        ExactPartial.sparse("int8").merge(np.zeros(2))
    with pytest.raises(InvalidUpdate, match="not a Sparse"):
        ExactPartial.dense((2,), "int8").add(Sparse(np.zeros(1, np.int64), np.zeros(1, np.int8)))
    with pytest.raises(TypeError, match=r"ExactPartial\.dense\(shape, dtype\)"):
        ExactPartial()
    assert ExactPartial.dense((2,), "bfloat16").dtype.name == "bfloat16"


@pytest.mark.parametrize(
    ("name", "values"), [("float32", [3e38] * 3), ("float64", [1e308, 1e308]), ("int8", [-128] * 9)]
)
def test_what_repeats_a_coordinate_travels_too(name, values):
    """A sum may be larger than its weight times the largest value."""
    partial = ExactPartial.sparse(name)
    partial.add(Sparse(np.zeros(len(values), np.int64), np.array(values, name)))
    back = ExactPartial.from_bytes(partial.to_bytes())
    assert back.to_bytes() == partial.to_bytes()
    back.add(Sparse(np.zeros(1, np.int64), np.zeros(1, name)), weight=len(values) - 1)
    assert back.mean().values.tolist() == [np.array(values[0], name)]


def test_so_many_contributions_that_no_number_holds_them_are_refused():
    """Long before that, and nothing is lost; a partial sum can be doubled 511 times."""
    for partial, one in (
        (ExactPartial.dense((1,), "float32"), np.ones(1, np.float32)),
        (ExactPartial.sparse("float64"), Sparse(np.zeros(1, np.int64), np.full(1, 1e308))),
    ):
        partial.add(one, weight=2**53)
        for _ in range(511):
            partial.merge(partial)
        with pytest.raises(InvalidUpdate, match=r"2\^512"):
            partial.merge(partial)
        assert partial.count == 2**511
        back = ExactPartial.from_bytes(partial.to_bytes())
        assert np.array_equal(_values(back.mean()), _values(one))
        assert _values(back.sum()).tolist() == [math.inf]


def _values(result):
    return result.values if isinstance(result, Sparse) else result


def test_rows_that_no_memory_holds_are_refused_also_where_there_is_none():
    """What is added can be sent on, and has a mean."""
    none = np.empty(0, np.int64)
    partial = ExactPartial.sparse("int8")
    with pytest.raises(InvalidUpdate, match="rows of shape"):
        partial.add(Sparse(none, np.zeros((0, 2**40, 2**20), np.int8)))
    assert partial.count == 0
    partial.add(Sparse(none, np.zeros((0, 2**40, 2**19), np.int8)))
    back = ExactPartial.from_bytes(partial.to_bytes())
    assert back.mean().values.shape == (0, 2**40, 2**19)


def some_bytes():
    partial = ExactPartial.sparse(np.float32)
    values = np.array([1, np.inf, 1e30], np.float32)
    partial.add(Sparse(np.array([5, 9, -3]), values), weight=2**53)
    partial.add(Sparse(np.array([-3]), np.array([1e-40], np.float32)))
    return partial.to_bytes()


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_hostile_bytes_are_refused_or_are_a_sum(data):
    """Whatever is changed, cut or put in, the only error is InvalidInput."""
    good = some_bytes()
    at = data.draw(st.integers(0, len(good)))
    piece = data.draw(st.binary(max_size=12))
    drop = data.draw(st.integers(0, 12))
    try:
        partial = ExactPartial.from_bytes(good[:at] + piece + good[at + drop :])
    except InvalidInput:
        return
    if partial.count:
        partial.mean()


def test_bytes_that_were_not_changed_are_the_same_sum():
    """The header says all there is, and nothing may follow."""
    good = some_bytes()
    assert ExactPartial.from_bytes(good).to_bytes() == good
    for bad in (b"", good[:-1], good + b"\0", good.replace(b"float32", b"float99")):
        with pytest.raises(InvalidInput):
            ExactPartial.from_bytes(bad)


def with_header(**changes):
    """Good bytes of a sum of one float32, with other fields in the header."""
    partial = ExactPartial.dense((1,), np.float32)
    partial.add(np.ones(1, np.float32))
    magic, rest = partial.to_bytes().split(b"\n", 1)
    size = int.from_bytes(rest[:8], "little")
    header = json.dumps(json.loads(rest[8 : 8 + size]) | changes).encode()
    return magic + b"\n" + len(header).to_bytes(8, "little") + header + rest[8 + size :]


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [2**59]},
        {"shape": [0, 2**61]},
        {"shape": [1] * 65},
        {"shape": [-1, -1]},
        {"shape": [True]},
        {"shape": None},
        {"shape": []} | {"entries": 1},
        {"entries": 2**59},
        {"entries": 0},
        {"longs": 2**59},
        {"longs": -1},
        {"pairs": 1},
        {"count": 0},
        {"count": 2, "weight": 1},
        {"weight": 2**53 + 1},
        {"count": 2**600, "weight": 2**600},
        {"weight": 1.0},
        {"dtype": ["float32"]},
        {"more": 1},
    ],
)
def test_headers_that_lie_are_refused_at_once(changes):
    """No size is believed before the bytes are there, and no count that cannot be."""
    assert ExactPartial.from_bytes(with_header()).sum().tolist() == [1]
    tracemalloc.start()
    with pytest.raises(InvalidInput):
        ExactPartial.from_bytes(with_header(**changes))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("data", [10**9, "text", None, [1, 2]])
def test_what_is_no_bytes_is_refused(data):
    """An int least of all is taken for a number of bytes."""
    with pytest.raises(InvalidInput, match="is read from bytes"):
        ExactPartial.from_bytes(data)


@pytest.mark.parametrize("half", [1e300, np.inf, np.nan, -1e300])
def test_halves_that_cannot_be_are_refused(half):
    """What so many float32 never add up to would break the rounding later."""
    good = with_header()
    with pytest.raises(InvalidInput, match="half"):
        ExactPartial.from_bytes(good[:-8] + np.array(half, "<f8").tobytes())


def test_fractions_in_a_sum_of_integers_are_refused():
    """They would be cut off later."""
    good = with_header(dtype="int32")
    assert ExactPartial.from_bytes(good).sum().tolist() == [1]
    with pytest.raises(InvalidInput, match="fraction"):
        ExactPartial.from_bytes(good[:-8] + np.array(0.5, "<f8").tobytes())


@settings(deadline=None, max_examples=300)
@given(
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 7)), min_size=1, max_size=4),
    drop=st.integers(0, 20),
)
def test_flipped_bits_are_refused_or_are_a_sum(flips, drop):
    """Nothing but InvalidInput, now or when it is finished."""
    data = bytearray(some_bytes())
    for at, bit in flips:
        data[at % len(data)] ^= 1 << bit
    try:
        partial = ExactPartial.from_bytes(data[: len(data) - drop])
    except InvalidInput:
        return
    partial.merge(partial)
    if partial.count:
        partial.sum()
        partial.mean()
        ExactPartial.from_bytes(partial.to_bytes())
