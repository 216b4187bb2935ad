"""What sums and means of arrays take, return and refuse: layouts, ``out``, weights, mismatches."""

from __future__ import annotations

import re

import numpy as np
import pytest
from columns import hard_arrays
from oracle import DTYPES, FORMATS, dtype_of, same_bits
from quick_oracle import mean_columns, sum_columns

import onefold
from onefold.errors import (
    InvalidInput,
    InvalidUpdate,
    Mismatch,
    NoContributions,
    SumOverflow,
    ZeroWeight,
)

FLOATS = tuple(FORMATS)
dtypes = pytest.mark.parametrize("name", DTYPES)
WEIGHTS = [3, 0, 2**53]


def three_arrays(name, shape, seed=1):
    """Three arrays of a shape: hard ones of a float dtype, small ones of an integer dtype."""
    size = int(np.prod(shape))
    kind = "ties" if name in FORMATS else "small"
    arrays = hard_arrays(name, kind, 3, size, seed) if size else [np.zeros(0, dtype_of(name))] * 3
    return [array.reshape(shape) for array in arrays]


def check(given, plain=None):
    """Assert sum, mean and weighted mean of ``given``, and that it comes out untouched."""
    plain = given if plain is None else plain
    before = [array.tobytes() for array in given]
    shape, weights = plain[0].shape, WEIGHTS[: len(given)]
    for result, expected in [
        (onefold.sum_dense(given), sum_columns(plain)),
        (onefold.mean_dense(given), mean_columns(plain)),
        (onefold.mean_dense(given, weights), mean_columns(plain, weights)),
    ]:
        same_bits(result, expected)
        assert result.shape == shape
        assert result.flags.writeable
        assert not any(np.shares_memory(result, array) for array in given)
    assert [array.tobytes() for array in given] == before


# -- layouts --------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (3, 1, 5), (1, 1, 1, 1)])
def test_shape_and_dtype_are_kept_and_inputs_left_alone(name, shape):
    """The result is a new array with the shape of the inputs, none of whose bytes change."""
    check(three_arrays(name, shape))


@dtypes
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)])
def test_arrays_without_elements_have_a_sum_and_a_mean_without_elements(name, shape):
    """Zero-length arrays are arrays: the result has their shape and the dtype of any other."""
    check(three_arrays(name, shape))


@dtypes
def test_strided_reversed_transposed_and_fortran_inputs(name):
    """How the elements lie in memory does not matter, nor that each input lies otherwise."""
    plain = three_arrays(name, (4, 6))
    wide = np.zeros((8, 18), dtype=dtype_of(name))
    wide[::2, ::3] = plain[0]
    given = [wide[::2, ::3], plain[1][::-1, ::-1].copy()[::-1, ::-1], np.asfortranarray(plain[2])]
    check(given, plain)
    check([array.T for array in given], [array.T for array in plain])
    check([array[:, 1] for array in given], [array[:, 1] for array in plain])


@dtypes
def test_large_strided_inputs(name):
    """More elements than a block holds, in rows that are not contiguous."""
    small = three_arrays(name, (7, 11))
    plain = [np.tile(array, (40, 60)) for array in small]
    given = [np.asfortranarray(plain[0]), np.repeat(plain[1], 2, axis=1)[:, ::2], plain[2]]
    expected = np.tile(sum_columns(small).reshape(7, 11), (40, 60))
    same_bits(onefold.sum_dense(given), expected)
    means = np.tile(mean_columns(small).reshape(7, 11), (40, 60))
    same_bits(onefold.mean_dense(given), means)


@dtypes
def test_one_value_stretched_over_a_shape(name):
    """An input of stride 0, which is read-only, is summed as what it looks like."""
    one = np.array(3, dtype=dtype_of(name))
    check([np.broadcast_to(one, (2, 5))] * 2, [np.full((2, 5), one)] * 2)


@dtypes
def test_read_only_inputs(name):
    """Nothing is written to an input, so it may be read-only."""
    arrays = three_arrays(name, (9,))
    for array in arrays:
        array.flags.writeable = False
    check(arrays)


@dtypes
def test_the_same_array_given_twice_counts_twice(name):
    """Arrays are contributions by their place in the list, not by identity."""
    one = three_arrays(name, (5,), seed=2)[0]
    check([one, one, one])


@dtypes
def test_memory_mapped_inputs(name, tmp_path):
    """Contributions can stay on disk, opened for reading only."""
    plain = three_arrays(name, (3, 8))
    given = []
    for index, array in enumerate(plain):
        path = tmp_path / str(index)
        path.write_bytes(array.tobytes())
        given.append(np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape))
    check(given, plain)


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bfloat16"])
def test_byte_swapped_inputs(name):
    """Elements in the other byte order are read as what they mean; the result is in this one's."""
    plain = three_arrays(name, (6,))
    swapped = [array.astype(array.dtype.newbyteorder()) for array in plain]
    check(swapped, plain)
    check([plain[0], *swapped[1:]], plain)


@dtypes
def test_unaligned_inputs(name):
    """Elements that do not lie on a multiple of their size, as in a packed message."""
    plain = three_arrays(name, (6,))
    size = plain[0].nbytes
    given = []
    for array in plain:
        raw = np.zeros(size + 1, dtype=np.uint8)
        raw[1:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
        given.append(raw[1:].view(array.dtype))
    check(given, plain)


def test_lists_tuples_and_array_weights():
    """Arrays and weights come in any sequence; NumPy's integers are integers."""
    arrays = three_arrays("float32", (4,))
    expected = mean_columns(arrays, WEIGHTS)
    for weights in (
        WEIGHTS,
        tuple(WEIGHTS),
        [np.int64(w) for w in WEIGHTS],
        [np.uint64(3), 0, 2**53],
    ):
        same_bits(onefold.mean_dense(tuple(arrays), weights), expected)
    same_bits(onefold.sum_dense(tuple(arrays)), sum_columns(arrays))


# -- out ------------------------------------------------------------------------------------------


@dtypes
def test_out_is_filled_and_returned(name):
    """With ``out`` the result is that very array, with the same bits as without."""
    arrays = three_arrays(name, (3, 4))
    out = np.ones((3, 4), dtype=dtype_of(name))
    assert onefold.sum_dense(arrays, out=out) is out
    same_bits(out, sum_columns(arrays))
    out = np.ones((3, 4), dtype=mean_columns(arrays).dtype)
    assert onefold.mean_dense(arrays, out=out) is out
    same_bits(out, mean_columns(arrays))
    assert onefold.mean_dense(arrays, WEIGHTS, out=out) is out
    same_bits(out, mean_columns(arrays, WEIGHTS))


@dtypes
@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_out_of_no_dimension_or_no_element(name, shape):
    """0-d and zero-length arrays can be ``out`` as well."""
    arrays = three_arrays(name, shape)
    out = np.ones(shape, dtype=dtype_of(name))
    assert onefold.sum_dense(arrays, out=out) is out
    same_bits(out, sum_columns(arrays))


@dtypes
def test_out_may_be_strided(name):
    """Only the elements of ``out`` are written, however far apart they lie."""
    arrays = three_arrays(name, (3, 5))
    for shape, view in [
        ((6, 10), lambda wide: wide[::2, 1::2]),
        ((3, 10), lambda wide: wide[::-1, ::-2]),
        ((5, 6), lambda wide: wide[:, ::2].T),
    ]:
        wide = np.full(shape, 7, dtype=dtype_of(name))
        out = view(wide)
        assert onefold.sum_dense(arrays, out=out) is out
        same_bits(out, sum_columns(arrays))
        out[...] = 7
        assert (wide == 7).all()


@dtypes
@pytest.mark.parametrize("which", [0, 1, 2])
def test_out_may_be_an_input(name, which):
    """The result can take the place of any one of the inputs, also one that is given twice."""
    arrays = three_arrays(name, (300,))
    arrays.append(arrays[which])
    expected = sum_columns(arrays)
    assert onefold.sum_dense(arrays, out=arrays[which]) is arrays[which]
    same_bits(arrays[which], expected)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("weights", [None, [2, 3, 2**53]])
def test_the_out_of_a_mean_may_be_an_input(name, weights):
    """As for sums, weighted or not."""
    for which in range(3):
        arrays = three_arrays(name, (300,))
        expected = mean_columns(arrays, weights)
        onefold.mean_dense(arrays, weights, out=arrays[which])
        same_bits(arrays[which], expected)


@dtypes
def test_out_may_overlap_an_input_shifted_or_reversed(name):
    """Memory that ``out`` shares with an input, in whatever way, is read before it is written."""
    bank = three_arrays(name, (101,))
    plain = [np.resize(array, 100_001) for array in bank]
    expected = np.resize(sum_columns(bank), 100_001)
    for view, into in [
        (slice(0, -1), slice(1, None)),
        (slice(1, None), slice(0, -1)),
        (slice(0, -1), slice(-2, None, -1)),
    ]:
        buffer = np.zeros(100_002, dtype=dtype_of(name))
        buffer[view] = plain[1]
        out = buffer[into]
        onefold.sum_dense([plain[0], buffer[view], plain[2]], out=out)
        same_bits(out, expected)


@pytest.mark.parametrize(
    "out",
    [
        np.full(4, 9, dtype=np.float64),
        np.full(4, 9, dtype=np.int32),
        np.full(5, 9, dtype=np.float32),
        np.full((1, 4), 9, dtype=np.float32),
        np.full((4, 1), 9, dtype=np.float32),
        np.full((2, 2), 9, dtype=np.float32),
        np.full((), 9, dtype=np.float32),
    ],
)
def test_an_out_of_another_shape_or_dtype_is_refused_and_left_alone(out):
    """Nothing is cast or broadcast into ``out``."""
    arrays = three_arrays("float32", (4,))
    for call in (onefold.sum_dense, onefold.mean_dense):
        with pytest.raises(Mismatch):
            call(arrays, out=out)
        assert (out == 9).all()


def test_the_out_of_an_integer_mean_is_float64():
    """The mean of integers is float64, so an integer ``out`` is refused."""
    arrays = three_arrays("int32", (4,))
    with pytest.raises(Mismatch):
        onefold.mean_dense(arrays, out=np.zeros(4, dtype=np.int32))
    with pytest.raises(Mismatch):
        onefold.mean_dense(arrays, out=np.zeros(4, dtype=np.float32))
    with pytest.raises(Mismatch):
        onefold.sum_dense(arrays, out=np.zeros(4, dtype=np.int64))


def test_an_overflow_leaves_the_inputs_alone():
    """A refused integer sum has changed nothing that went in."""
    arrays = [np.array([1, 127], np.int8), np.array([1, 1], np.int8)]
    with pytest.raises(SumOverflow):
        onefold.sum_dense(arrays)
    assert [array.tolist() for array in arrays] == [[1, 127], [1, 1]]


# -- refusals -------------------------------------------------------------------------------------


def test_a_sum_or_mean_of_nothing_is_refused():
    """No contribution is not the same as zero."""
    for call in (onefold.sum_dense, onefold.mean_dense):
        with pytest.raises(NoContributions):
            call([])
    with pytest.raises(NoContributions):
        onefold.mean_dense([], [])


@pytest.mark.parametrize("weights", [[0], [0, 0], [0, 0, 0]])
def test_a_total_weight_of_zero_is_refused(weights):
    """A mean over nothing selected is neither NaN nor zero."""
    arrays = three_arrays("float32", (4,))[: len(weights)]
    with pytest.raises(ZeroWeight):
        onefold.mean_dense(arrays, weights)


@pytest.mark.parametrize(
    "weight", [None, -1, 1.0, 0.5, np.float64(2), True, np.True_, "1", 2**53 + 1, float("nan"), 1j]
)
@pytest.mark.parametrize("place", [0, 2])
def test_a_weight_that_is_no_count_is_refused(weight, place):
    """Missing, negative, fractional, boolean or too large weights do not become another number."""
    weights = [1, 1, 1]
    weights[place] = weight
    arrays = three_arrays("float64", (4,))
    with pytest.raises(InvalidUpdate, match=rf"^weights\[{place}\]: a weight is an integer"):
        onefold.mean_dense(arrays, weights)


@pytest.mark.parametrize("weights", [[], [1], [1, 1], [1, 1, 1, 1]])
def test_a_wrong_number_of_weights_is_refused(weights):
    """There is one weight for each array: none is dropped, repeated or assumed."""
    with pytest.raises(InvalidInput):
        onefold.mean_dense(three_arrays("float64", (4,)), weights)


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((17,), (23,)),
        ((17,), (1,)),
        ((17,), ()),
        ((17, 23), (23, 17)),
        ((17, 23), (391,)),
        ((17, 1), (17,)),
        ((1,), ()),
        ((0,), (17,)),
        ((0, 17), (0, 23)),
    ],
)
@pytest.mark.parametrize("name", ["float32", "int64"])
def test_shapes_that_differ_are_refused_with_both_named(shape, other, name):
    """Nothing broadcasts and equal element counts do not suffice, wherever the odd one stands."""
    for first, second in ((shape, other), (other, shape)):
        arrays = [np.ones(first, name), np.ones(first, name), np.ones(second, name)]
        for call in (onefold.sum_dense, onefold.mean_dense):
            with pytest.raises(Mismatch) as caught:
                call(arrays)
            numbers = set(re.findall(r"\d+", str(caught.value)))
            assert {str(size) for size in (*shape, *other)} <= numbers


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("float32", "int32"),
        ("float16", "bfloat16"),
        ("int64", "uint64"),
        ("float32", "float64"),
        ("int8", "int16"),
        ("uint16", "bfloat16"),
    ],
)
def test_dtypes_that_differ_are_refused_with_both_named(name, other):
    """Equal item sizes do not make equal dtypes, and nothing is promoted."""
    for first, second in ((name, other), (other, name)):
        arrays = [np.ones(3, dtype_of(first)), np.ones(3, dtype_of(second))]
        for call in (onefold.sum_dense, onefold.mean_dense):
            with pytest.raises(Mismatch) as caught:
                call(arrays)
            assert re.search(rf"\b{name}\b", str(caught.value))
            assert re.search(rf"\b{other}\b", str(caught.value))


@pytest.mark.parametrize("dtype", ["bool", "complex64", "longdouble", "object", "U3", "M8[s]"])
def test_dtypes_that_cannot_be_contributed_are_refused(dtype):
    """What is no float or integer of at most 64 bits is not summed by accident."""
    array = np.zeros(3, dtype=dtype)
    for call in (onefold.sum_dense, onefold.mean_dense):
        with pytest.raises(InvalidUpdate):
            call([array, array])


def test_what_is_no_array_is_refused():
    """Lists, numbers and None are no contributions."""
    for thing in ([1.0, 2.0], 1.0, None, "12"):
        with pytest.raises(InvalidUpdate, match=r"np\.asarray\(\.\.\.\) makes one"):
            onefold.sum_dense([thing])
