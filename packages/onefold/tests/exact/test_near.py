"""Blocks whose values are close together have the bits of whole numbers, and so do those just not.

Other adversaries lie side by side in one array, whose blocks are then never close. Here a block has
values of one range: as narrow or as wide as what the first way can and cannot add, anywhere in the
format, with its edges and zeros of both signs mixed in.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracle import FORMATS, bits_of
from quick_oracle import mean_columns, sum_columns

import onefold
from onefold.errors import SumOverflow

SEED = 20261202
WIDTH = 67
"""Elements of an array: some vectors and a rest."""

floats = pytest.mark.parametrize("name", FORMATS)


def between(rng, form, shape, low, high):
    """Values of random signs and fractions whose exponents lie between two biased ones."""
    exponents = rng.integers(low, high + 1, shape).astype(np.uint64)
    fractions = rng.integers(0, 1 << (form.precision - 1), shape).astype(np.uint64)
    fractions[rng.random(shape) < 0.2] = 0
    fractions[rng.random(shape) < 0.2] = (1 << (form.precision - 1)) - 1
    signs = rng.integers(0, 2, shape).astype(np.uint64) * np.uint64(form.sign)
    bits = exponents << np.uint64(form.precision - 1) | fractions | signs
    return bits.astype(form.unsigned).view(form.dtype)


def sprinkled(rng, form, values):
    """With zeros, columns of nothing else, and columns that cancel."""
    bits = values.view(form.unsigned)
    bits[rng.random(bits.shape) < 0.05] = 0
    bits[rng.random(bits.shape) < 0.05] = form.sign
    bits[:, 3], bits[:, 4] = form.sign, 0
    bits[:, 5] = [form.sign, 0] * (len(bits) // 2) + [form.sign] * (len(bits) % 2)
    for number in range(1, len(bits), 2):
        bits[number, 6:12] = bits[number - 1, 6:12] ^ form.sign
    return bits.view(values.dtype)


def ranges(rng, form):
    """Biased exponents, low and high: at both ends of the format, and anywhere between."""
    top = (form.infinity >> (form.precision - 1)) - 1
    for width in (0, 1, 3, 8, 12, 13, 20, 25, 26, 27, 28, 40, 45, 46, 47, 48, 49, 50, 51, 60):
        if width <= top:
            yield 0, width
            yield top - width, top
            low = int(rng.integers(0, top - width + 1))
            yield low, low + width


def check(got, expected, about):
    ours, theirs = bits_of(got), bits_of(expected)
    where = np.flatnonzero(ours != theirs)
    assert not where.size, f"{about}: at {where[0]} {ours[where[0]]:x}, not {theirs[where[0]]:x}"


@floats
@pytest.mark.parametrize("count", [1, 2, 4, 7, 8, 9])
def test_every_range_of_exponents(name, count):
    """Sums, means and weighted means, by divisors that are powers of two and by others."""
    form = FORMATS[name]
    rng = np.random.default_rng((SEED, count, form.bits, form.precision))
    weights = [int(each) for each in rng.integers(1, 9, count)]
    for low, high in ranges(rng, form):
        arrays = list(sprinkled(rng, form, between(rng, form, (count, WIDTH), low, high)))
        about = f"{name} from {low} to {high}"
        check(onefold.sum_dense(arrays), sum_columns(arrays), about)
        check(onefold.mean_dense(arrays), mean_columns(arrays), about)
        expected = mean_columns(arrays, weights)
        check(onefold.mean_dense(arrays, weights), expected, f"{about}, weights {weights}")


@pytest.mark.parametrize("count", [9, 12, 16, 17, 32, 33, 70, 300])
def test_many_arrays_of_float64(count):
    """The more they are, the closer together they have to be: ranges about where that ends."""
    form = FORMATS["float64"]
    rng = np.random.default_rng((SEED, count))
    largest = (1 << 52) - 1
    below_half = (1 << (count - 1).bit_length() - 1) - 1  # the unit, in last places of the largest
    for width in (0, 5, *range(34, 52)):
        for low in (0, int(rng.integers(1, 1990)), 2046 - width):
            values = sprinkled(rng, form, between(rng, form, (count, WIDTH), low, low + width))
            bits = values.view(np.uint64)
            bits[:, 12:16] = (low + width) << 52 | largest
            bits[rng.integers(count), 13] = low << 52 | 1
            bits[:-1, 14] = low << 52 | largest
            bits[1::2, 15] ^= form.sign
            bits[0, 15] = low << 52 | largest
            bits[0::2, 16] = (low + width) << 52 | below_half  # what is left of these is large ...
            bits[1::2, 16] = (low + width) << 52 | (below_half + 2) | form.sign
            bits[0, 16] = low << 52 | 1  # ... beside this, and the rest of them cancels
            bits[1, 16] *= count % 2
            if low:  # a power of two counts as if it were below its exponent
                bits[bits & np.uint64(form.sign - 1) == low << 52] |= np.uint64(1)
            arrays = list(values)
            about = f"{count} from {low} to {low + width}"
            check(onefold.sum_dense(arrays), sum_columns(arrays), about)
            check(onefold.mean_dense(arrays), mean_columns(arrays), about)


@floats
@pytest.mark.parametrize("divisor", [2, 3, 6, 7, 12, 4096, 10007])
def test_ties(name, divisor):
    """Quotients halfway between two numbers, and those of one unit more and one less."""
    form = FORMATS[name]
    rng = np.random.default_rng((SEED, divisor, form.bits, form.precision))
    count = min(divisor, 7)
    columns = []
    for half in rng.integers(1 << form.precision, 2 << form.precision, 100).tolist():
        for total in ((half | 1) * divisor + unit for unit in (-1, 0, 1)):
            column = parts(total, form.precision, count)
            if column is not None:
                columns.append(column)
    assert len(columns) > 100
    scale = 2.0 ** -(10 if name == "float16" else 40)
    arrays = [(np.array(each) * scale).astype(form.dtype) for each in zip(*columns, strict=True)]
    weights = [1] * count
    if divisor > count:  # an eighth array counts in the divisor alone
        arrays.append(np.full_like(arrays[0], -0.0))
        weights.append(divisor - count)
    check(onefold.mean_dense(arrays, weights), mean_columns(arrays, weights), f"{name} / {divisor}")


def parts(total, precision, count):
    """A whole number as the sum of some with few bits: each the upper bits of what is left."""
    found = []
    for _ in range(count):
        shift = max(0, total.bit_length() - precision)
        found.append(float(total >> shift << shift))
        total -= total >> shift << shift
    return found if total == 0 else None


@pytest.mark.parametrize("divisor", [2, 3, 5, 6, 7, 11, 13])
def test_a_hair_beside_a_tie(divisor):
    """A total of more than a hundred bits, of which the last tells how its quotient rounds."""
    rng = np.random.default_rng((SEED, divisor))
    columns = []
    for half in rng.integers(1 << 53, 1 << 54, 60).tolist():
        for shift in range(30, 46):
            for hair in (-1, 1):
                total = (((half | 1) * divisor) << shift) + hair
                low = 1 << (total.bit_length() - 49)
                second = total % low + low * 8  # not far below the first, and down to the last bit
                if (
                    second.bit_length() <= 53
                    and (total - second) % (1 << total.bit_length() - 53) == 0
                ):
                    columns.append([float(total - second), float(second)])
    assert len(columns) > 100
    arrays = [np.array(each) for each in zip(*columns, strict=True)]
    arrays += [np.full_like(arrays[0], -0.0)] * (divisor - 2)
    check(onefold.mean_dense(arrays), mean_columns(arrays), f"/ {divisor}")


@floats
@pytest.mark.parametrize("count", [4, 6, 8])
def test_what_is_left_of_two_large_values(name, count):
    """Two that nearly cancel, and between them small ones at every distance below."""
    form = FORMATS[name]
    rng = np.random.default_rng((SEED, count, form.bits, form.precision))
    exponents = form.infinity >> (form.precision - 1)
    top = exponents * 2 // 3
    for distance in range(min(top, 60)):
        values = between(
            rng, form, (count, WIDTH), max(0, top - distance), top - max(0, distance - 3)
        )
        bits = values.view(form.unsigned)
        bits[0] = between(rng, form, WIDTH, top, top).view(form.unsigned)
        cleared = (
            np.uint64(1) << rng.integers(0, form.precision, WIDTH).astype(np.uint64)
        ) - np.uint64(1)
        bits[-1] = (bits[0] & ~cleared.astype(form.unsigned)) ^ form.unsigned.type(form.sign)
        arrays = list(bits.view(form.dtype))
        about = f"{name}, {distance} below"
        check(onefold.sum_dense(arrays), sum_columns(arrays), about)
        check(onefold.mean_dense(arrays), mean_columns(arrays), about)


@floats
@pytest.mark.parametrize("kind", ["inf", "both", "nan", "signalling", "least", "most"])
def test_one_stranger_in_a_block(name, kind):
    """A single value that is not like the others is found, wherever it is."""
    form = FORMATS[name]
    quiet = 1 << (form.precision - 2)
    stranger = {
        "inf": form.infinity,
        "both": form.infinity,
        "nan": form.nan,
        "signalling": (form.nan ^ quiet) | 1,
        "least": 1,
        "most": form.infinity - 1,
    }[kind]
    rng = np.random.default_rng((SEED, form.bits, form.precision))
    for size, counts in ((1, (2, 5)), (17, (2, 4, 5, 8, 20)), (2049, (4, 8))):
        for count in counts:
            values = rng.standard_normal((count, size)).astype(form.dtype)
            bits = values.view(form.unsigned)
            column, row = int(rng.integers(size)), int(rng.integers(count))
            bits[row, column] = stranger
            if kind == "both":
                bits[row - 1, column] = stranger | form.sign
            arrays = list(bits.view(form.dtype))
            about = f"{name} {count} x {size}, {kind} at {row}, {column}"
            check(onefold.sum_dense(arrays), sum_columns(arrays), about)
            check(onefold.mean_dense(arrays), mean_columns(arrays), about)


def test_blocks_of_other_sizes_one_after_the_other():
    """The constant of the block before is too large or too small for the next."""
    rng = np.random.default_rng(SEED)
    scales = np.repeat(2.0 ** rng.integers(-1000, 1000, 24), 1024)
    arrays = [rng.standard_normal(scales.size) * scales for _ in range(8)]
    check(onefold.sum_dense(arrays, threads=1), sum_columns(arrays), "float64")
    check(onefold.mean_dense(arrays[:7], threads=1), mean_columns(arrays[:7]), "float64")
    arrays *= 3
    check(onefold.sum_dense(arrays, threads=1), sum_columns(arrays), "float64, 24 arrays")


@pytest.mark.parametrize(
    "name", [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
def test_integers_at_the_edge_of_their_room(name):
    """Values up to, at and beyond an eighth of the range, whose sums fit or do not."""
    limits = np.iinfo(name)
    eighth = int(limits.max) // 8
    edges = [eighth - 1, eighth, eighth + 1, eighth // 2, int(limits.max), 1, 0]
    edges += [-each for each in edges if limits.min] + [int(limits.min)]
    rng = np.random.default_rng(SEED)
    for count in range(1, 10):
        for _ in range(40):
            chosen = rng.choice(len(edges), int(rng.integers(1, 4)))
            arrays = [
                np.array([edges[at] for at in rng.choice(chosen, 19)], name) for _ in range(count)
            ]
            totals = sum(array.astype(object) for array in arrays)
            if all(limits.min <= total <= limits.max for total in totals):
                assert onefold.sum_dense(arrays).tolist() == totals.tolist()
            else:
                with pytest.raises(SumOverflow):
                    onefold.sum_dense(arrays)
