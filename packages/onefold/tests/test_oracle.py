"""The oracle itself, against values worked out by hand, NumPy's casts and ``math.fsum``."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from columns import COUNTS, FLOAT_KINDS, hard_arrays, near_midpoint
from oracle import (
    FORMATS,
    array_of,
    bits_of,
    decode,
    encode,
    exact_sum,
    mean_columns,
    numbers_of,
    python_sum,
    same_bits,
    same_number,
    sum_columns,
)

F16, BF16, F32, F64 = (FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64"))
HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("form", "number", "bits"),
    [
        (F16, Fraction(1), 0x3C00),
        (F16, Fraction(-2), 0xC000),
        (F16, Fraction(65504), 0x7BFF),
        (F16, Fraction(65519), 0x7BFF),
        (F16, Fraction(65520), 0x7C00),  # the tie beyond the largest goes to infinity
        (F16, -Fraction(65520), 0xFC00),
        (F16, Fraction(2049), 0x6800),  # tie between 2048 and 2050, to even
        (F16, Fraction(2051), 0x6802),
        (F16, HALF**24, 0x0001),
        (F16, HALF**25, 0x0000),  # the tie between zero and the least subnormal
        (F16, HALF**25 + HALF**90, 0x0001),
        (F16, -(HALF**26), 0x8000),  # a negative number that underflows keeps its sign
        (F16, HALF**14 - HALF**25, 0x0400),  # a carry from subnormal to normal
        (F16, Fraction(0), 0x0000),
        (F16, -0.0, 0x8000),
        (F16, math.inf, 0x7C00),
        (F16, math.nan, 0x7E00),
        (BF16, Fraction(264), 0x4384),
        (BF16, Fraction(257), 0x4380),
        (BF16, Fraction(259), 0x4382),
        (BF16, -math.inf, 0xFF80),
        (F32, 1 + HALF**24, 0x3F800000),
        (F32, 1 + HALF**24 + HALF**200, 0x3F800001),
        (F32, 1 + 3 * HALF**24, 0x3F800002),
        (F32, 2 - HALF**25, 0x40000000),  # a carry into the exponent
        (F32, Fraction(2**24 + 1), 0x4B800000),
        (F32, HALF**149, 0x00000001),
        (F64, Fraction(1, 3), 0x3FD5555555555555),
        (F64, Fraction(2**53 + 1), 0x4340000000000000),
        (F64, Fraction(2**53 + 1) + HALF**999, 0x4340000000000001),
        (F64, Fraction(2**1024 - 2**970), 0x7FF0000000000000),
        (F64, Fraction(2**1024 - 2**970 - 1), 0x7FEFFFFFFFFFFFFF),
    ],
)
def test_encode_gives_the_bits_worked_out_by_hand(form, number, bits):
    """One rounding to nearest, ties to even, subnormals, overflow and zeros are as in IEEE 754."""
    assert encode(number, form) == bits


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_decode_and_encode_are_inverse_over_all_16_bit_patterns(name):
    """Every number decodes to what NumPy says it is, and encodes to the bits it came from."""
    form = FORMATS[name]
    every = np.arange(2**16, dtype=np.uint16).view(form.dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = every.astype(np.float64).tolist()
    for bits, value in enumerate(values):
        number = decode(bits, form)
        if math.isnan(value):
            assert math.isnan(number)
        else:
            assert number == value
            assert encode(number, form) == bits


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_encode_agrees_with_numpys_cast(name):
    """Rounding a float64 once is what the processor's conversion does, at every magnitude."""
    form, rng = FORMATS[name], Random(1)
    low, high = form.emin - form.precision - 3, form.emax + 3
    values = [
        rng.choice([-1, 1]) * rng.random() * 2.0 ** rng.randint(low, high) for _ in range(999)
    ]
    values += [float(n) for a in hard_arrays(name, "ties", 2, 200, 1) for n in numbers_of(a)]
    with np.errstate(over="ignore", under="ignore"):
        cast = np.array(values).astype(form.dtype)
    same_bits(array_of(map(Fraction, values), name), cast)


def test_float64_decodes_and_encodes_as_python_does():
    """Fraction and float of the standard library say the same about random bits."""
    rng = Random(2)
    for _ in range(2000):
        bits = rng.randrange(F64.infinity) + rng.choice([0, F64.sign])
        value = struct.unpack("<d", struct.pack("<Q", bits))[0]
        assert decode(bits, F64) == Fraction(value)
        assert encode(Fraction(value), F64) == bits
        third = Fraction(value) / rng.randint(1, 10**9)
        assert encode(third, F64) == struct.unpack("<Q", struct.pack("<d", float(third)))[0]


@pytest.mark.parametrize("kind", ["gauss", "exponents", "cancellation", "ties", "subnormals"])
@pytest.mark.parametrize("count", COUNTS)
def test_sums_agree_with_fsum(kind, count):
    """Where the sum is finite and not zero, ``math.fsum`` rounds it correctly too."""
    arrays = hard_arrays("float64", kind, count, 50, "fsum")
    for column, ours in zip(zip(*arrays, strict=True), sum_columns(arrays), strict=True):
        try:
            theirs = math.fsum(column)
        except OverflowError:  # fsum gives up on sums that are or pass through infinity
            continue
        if theirs:
            same_number(float(ours), theirs)


@pytest.mark.parametrize(
    ("numbers", "weights", "expected"),
    [
        ([], None, Fraction(0)),
        ([-0.0], None, -0.0),
        ([-0.0, -0.0], None, -0.0),
        ([-0.0, Fraction(0)], None, Fraction(0)),
        ([-0.0, Fraction(0)], [1, 0], -0.0),
        ([Fraction(1), Fraction(-1)], None, Fraction(0)),
        ([math.inf, Fraction(1)], None, math.inf),
        ([math.inf, -math.inf], None, math.nan),
        ([math.inf, -math.inf], [3, 0], math.inf),
        ([math.nan, Fraction(4)], [0, 2], Fraction(8)),
        ([math.nan, math.inf], None, math.nan),
    ],
)
def test_the_rules_for_what_is_no_fraction(numbers, weights, expected):
    """Zeros, infinities, NaN and deselection are as DESIGN.md states them."""
    total = exact_sum(numbers, weights)
    assert type(total) is type(expected)
    assert encode(total, F64) == encode(expected, F64)


def test_python_sum_gives_the_type_that_the_rules_state():
    """Ints stay int, Fractions stay Fraction, one float makes a float that was rounded once."""
    same_number(python_sum([]), 0)
    same_number(python_sum([2**70, -1]), 2**70 - 1)
    same_number(python_sum([1, HALF, HALF]), Fraction(2))
    same_number(python_sum([0, -0.0]), 0.0)
    same_number(python_sum([10**400, -(10**400), 0.5]), 0.5)
    same_number(python_sum([10**400, 0.5]), math.inf)
    same_number(python_sum([2**53, 1.0, Fraction(1, 10**30)]), 2.0**53 + 2)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_columns_have_the_shape_asked_for(name, kind):
    """Each kind gives one array for each worker, of the dtype, and the same from the same seed."""
    for count in COUNTS:
        arrays = hard_arrays(name, kind, count, 3, 5)
        assert [(a.shape, a.dtype) for a in arrays] == [((3,), FORMATS[name].dtype)] * count
        for one, other in zip(arrays, hard_arrays(name, kind, count, 3, 5), strict=True):
            same_bits(one, other)


@pytest.mark.parametrize(
    "weights", [[1] * 7, [2**53, 1, 1, 1, 1, 1, 1, 1, 1], [2**29 - 1, 3, 1, 1]]
)
def test_midpoints_are_where_dividing_in_float64_and_casting_fails(weights):
    """The columns made for it do tell one rounding from two."""
    rng = Random(3)
    wrong = 0
    for _ in range(300):
        column = near_midpoint(F32, weights, rng)
        exact = exact_sum(column, weights) / sum(weights)
        twice = np.float32(float(exact))
        wrong += encode(exact, F32) != int(bits_of(np.array([twice]))[0])
    assert wrong >= 10


def test_the_comparison_tells_bits_apart_but_not_nans():
    """-0.0 is not 0.0, a neighbour is not equal, a dtype is not another, and a NaN is a NaN."""
    one = np.array([1, 0, np.nan], dtype=np.float32)
    same_bits(one, (one.view(np.uint32) + np.array([0, 0, 1], np.uint32)).view(np.float32))
    for other in (
        [1, -0.0, np.nan],
        [np.nextafter(np.float32(1), 2), 0, np.nan],
        [1, 0, 0],
        [1, 0],
    ):
        with pytest.raises(AssertionError):
            same_bits(np.array(other, dtype=np.float32), one)
    with pytest.raises(AssertionError):
        same_bits(one.astype(np.float64), one)
    with pytest.raises(AssertionError):
        same_bits(one.tolist(), one)


def test_integer_means_are_rounded_once():
    """An integer mean is a float64 by the same rounding; 2**53 + 1.5 goes up, 2**53 + 1 to even."""
    arrays = [np.array([2**53 + 1, 1, -3], np.int64), np.array([2**53 + 2, 2, -4], np.int64)]
    assert mean_columns(arrays).tolist() == [2.0**53 + 2, 1.5, -3.5]
    assert mean_columns([arrays[0]]).tolist() == [2.0**53, 1.0, -3.0]
