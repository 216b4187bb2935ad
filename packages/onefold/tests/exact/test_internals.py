"""The parts that the exact sums are made of, each against exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from onefold.exact import blocks, certain, mean_dense, mean_sparse, sum_dense, sum_sparse
from onefold.exact.blocks import boxes
from onefold.exact.certain import Addends, exact_quotients
from onefold.exact.entries import Entries
from onefold.exact.finish import finish
from onefold.exact.groups import reduce_pairs
from onefold.exact.integers import WideSum
from onefold.exact.pairs import Pair, merge, two_product, two_sum
from onefold.exact.rounding import narrow, round_pair, to_odd
from onefold.exact.stored import add_stored, terms
from onefold.exact.weighting import Weighting
from onefold.update import DTYPES, Sparse

FLOATS = [DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64")]
SEED = 20240607


def wide_floats(rng, size, spread=30):
    return rng.standard_normal(size) * 2.0 ** rng.integers(-spread, spread + 1, size)


def exact(pair):
    """The pair's sums as Fractions; there must be no error."""
    assert pair.error is None or not pair.error.any()
    low = np.zeros_like(pair.high) if pair.low is None else pair.low
    return [
        Fraction(high) + Fraction(rest)
        for high, rest in zip(pair.high.ravel().tolist(), low.ravel().tolist(), strict=True)
    ]


def quotients(indices, gather, divisor, dtype):
    """The certain way, without warnings about the infinities that it is meant to give."""
    with np.errstate(all="ignore"):
        return exact_quotients(indices, gather, divisor, dtype)


def bits(array):
    return array.tobytes(), array.shape, array.dtype


def test_two_sum_and_two_product_lose_nothing():
    """The result and its error add up to the exact sum or product."""
    rng = np.random.default_rng(SEED)
    left, right = wide_floats(rng, 500), wide_floats(rng, 500)
    weights = rng.integers(1, 2**53, 500, endpoint=True).astype(np.float64)
    for operands, (value, error), operate in (
        ((left, right), two_sum(left, right), Fraction.__add__),
        ((left, weights), two_product(left, weights), Fraction.__mul__),
    ):
        for a, b, v, e in zip(*operands, value, error, strict=True):
            assert Fraction(v) + Fraction(e) == operate(Fraction(a), Fraction(b))


def test_merging_pairs_adds_them_exactly():
    """While the errors fit two float64 none is reported, and the sum is exact."""
    rng = np.random.default_rng(SEED)
    left, right = Pair.zeros((300,)), Pair.zeros((300,))
    for _ in range(3):
        left.add(wide_floats(rng, 300, 5))
        right.add(wide_floats(rng, 300, 5))
    expected = [a + b for a, b in zip(exact(left), exact(right), strict=True)]
    assert exact(merge(left, right)) == expected


def test_what_a_pair_drops_is_bounded_by_its_error():
    """Where exponents are far apart the pair may be off by twice the error, which is rounded."""
    pair, total = Pair.zeros((1,)), Fraction(0)
    for value in (2.0**200, 2.0**100 + 2.0**48, 1.0 + 2.0**-52, 2.0**-150, -(2.0**200)):
        pair.add(np.array([value]))
        total += Fraction(value)
    assert pair.low is not None
    assert pair.error is not None
    off = total - Fraction(float(pair.high[0])) - Fraction(float(pair.low[0]))
    assert 0 < abs(off) <= 2 * Fraction(float(pair.error[0]))


def test_a_pair_of_negative_zeros_is_negative_zero():
    """Nothing is +0.0 before something is added, nor because the error terms are +0.0."""
    pair = Pair.zeros((3,))
    pair.add(np.array([-0.0, 0.0, 2.0**60 + 1]))
    pair.add(np.array([-0.0, -0.0, 2.0**-60]))
    high, _ = merge(pair, pair).normalised()
    assert np.signbit(high).tolist() == [True, False, False]


def test_round_to_odd_sets_the_last_bit_of_what_is_inexact():
    """The value is cut off towards zero and its last bit set; an exact value stays."""
    one, ulp = 1.0, 2.0**-52
    values = np.array([one, one, one, one + ulp, one + ulp, -one, -one])
    residual = np.array([0.0, 1e-30, -1e-30, 1e-30, -1e-30, -1e-30, 1e-30])
    below = one - ulp / 2
    expected = [one, one + ulp, below, one + ulp, one + ulp, -one - ulp, -below]
    assert to_odd(values, residual).tolist() == expected


def test_narrowing_rounds_once():
    """A value just off the middle of two narrow values goes to its own side."""
    for dtype, bits_kept in ((np.dtype("f2"), 11), (DTYPES["bfloat16"], 8), (np.dtype("f4"), 24)):
        middle, off = 1 + 2.0**-bits_kept, 2.0**-45
        values = np.array([middle - off, middle, middle + off, -middle - off])
        ulp = 2.0 ** (1 - bits_kept)
        expected = [1, 1, 1 + ulp, -1 - ulp]
        assert narrow(values, dtype).astype(np.float64).tolist() == expected


def test_narrowing_to_bfloat16_keeps_infinities_zeros_and_the_edge_of_overflow():
    """Neither an infinity nor a signed zero is touched by the detour through float32."""
    largest, step = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max), 2.0**120
    values = np.array([np.inf, -np.inf, -0.0, -1e-300, largest + step / 2, largest + step * 0.49])
    with np.errstate(all="ignore"):
        got = narrow(values, DTYPES["bfloat16"]).astype(np.float64)
    assert got.tolist() == [np.inf, -np.inf, 0, 0, np.inf, largest]
    assert np.signbit(got[2:4]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_tail_decides_ties_however_small_it_is(dtype):
    """``high + low`` is rounded once even where ``high`` alone is half way between two values."""
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    ulp = 2.0 ** (1 - digits)
    high = np.array([1.0 + ulp] * 3)
    low = np.array([ulp / 2, ulp / 2 * (1 - 2.0**-50), ulp / 2 * (1 + 2.0**-50)])
    got = round_pair(high, low, dtype).astype(np.float64)
    assert got.tolist() == [1 + 2 * ulp, 1 + ulp, 1 + 2 * ulp]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("divisor", [1, 2, 3, 10, 2**31 - 1, 2**53 - 1, 2**60 + 1, 2**64 - 3])
def test_finishing_agrees_with_the_certain_way(dtype, divisor):
    """What the fast quotient is sure of is what integer division gives, and it is mostly sure."""
    rng = np.random.default_rng(SEED)
    columns = [
        np.round(wide_floats(rng, 600, 3), 3),
        wide_floats(rng, 600, 9),
        rng.integers(-9, 9, 600),
    ]
    values = np.array([column.astype(dtype).astype(np.float64) for column in columns])
    pair = Pair.zeros((600,))
    for column in values:
        pair.add(column)

    def gather(indices):
        return (Addends(np.arange(indices.size), column[indices], 1) for column in values)

    with np.errstate(all="ignore"):
        got, doubt = finish(pair, divisor, dtype)
        certain_values = exact_quotients(np.arange(600), gather, divisor, dtype)
    sure = np.setdiff1d(np.arange(600), doubt)
    assert bits(got[sure]) == bits(certain_values[sure])
    assert sure.size > 590


def test_an_inexact_pair_is_settled_or_left_in_doubt():
    """A pair with an error is used where no value within the error rounds otherwise."""
    pair = Pair(np.array([1.0, 1.0]), np.array([2.0**-60, 2.0**-53]), np.array([2.0**-120] * 2))
    values, doubt = finish(pair, 1, np.dtype(np.float64))
    assert doubt.tolist() == [1]
    assert values[0] == 1.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_certain_way_rounds_fractions_to_nearest_even(dtype):
    """Thirds, halves between neighbours and subnormals, from plain integers."""
    info = ml_dtypes.finfo(dtype)
    tiny = float(info.smallest_subnormal)
    addends = np.array([1.0, tiny, 3 * tiny, -tiny, float(info.max)])

    def gather(indices):
        yield Addends(np.arange(indices.size), addends[indices], 1)

    halves = quotients(np.arange(5), gather, 2, dtype).astype(np.float64)
    assert halves.tolist() == [0.5, 0.0, 2 * tiny, -0.0, float(info.max) / 2]
    assert np.signbit(halves).tolist() == [False, False, False, True, False]
    third = quotients(np.arange(1), gather, 3, dtype)
    neighbours = third.astype(np.float64) + np.array([-1, 0, 1]) * float(info.eps) / 4
    errors = [abs(Fraction(float(each)) - Fraction(1, 3)) for each in neighbours]
    assert errors.index(min(errors)) == 1


def test_the_certain_way_multiplies_and_collects_by_owner(monkeypatch):
    """Addends of one coordinate may come in any number of pieces, with weights; batches too."""
    monkeypatch.setattr(certain, "_BATCH", 2)
    values = np.array([1e308, 1e308, -0.0])

    def gather(indices):
        owner = np.arange(indices.size)
        for weight in (2**53, -(2**53), 1):
            yield Addends(owner, values[indices], weight)

    got = quotients(np.arange(3), gather, 1, np.dtype(np.float64))
    assert got.tolist() == [1e308, 1e308, 0.0]
    assert np.signbit(got[2])


def test_terms_add_up_to_what_is_stored():
    """64-bit integers lose nothing on their way to float64, nor do bytes in another order."""
    for dtype in (np.dtype("i8"), np.dtype(">i8"), np.dtype("u8"), np.dtype(">u8")):
        limits = np.iinfo(dtype)
        values = np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
        parts = [[int(each) for each in term] for term in terms(values)]
        assert [sum(each) for each in zip(*parts, strict=True)] == values.tolist()


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8"), np.dtype("i4"), np.dtype("i8")])
@pytest.mark.parametrize("weight", [1, 3, 2**29 - 1, 2**29 + 1, 2**53 - 1, 2**53])
def test_weighted_terms_are_exact(dtype, weight):
    """The product of a value and a weight is held by a pair without an error."""
    rng = np.random.default_rng(SEED)
    values = (rng.standard_normal(200) * 1e8).astype(dtype)
    pair = Pair.zeros((200,))
    add_stored(pair, values, weight)
    assert exact(pair) == [Fraction(value) * weight for value in values.tolist()]


def test_equal_weights_are_an_ordinary_mean():
    """A common factor is divided out, and weight 0 deselects."""
    assert Weighting.mean(3, [2**53] * 3) == Weighting.mean(3, None)
    assert Weighting.mean(3, [6, 0, 9]) == Weighting((0, 2), (2, 3), 5)


def test_the_tree_sums_each_group_exactly_once():
    """Whatever the sizes of the groups, each gives the sum of its own rows."""
    rng = np.random.default_rng(SEED)
    for sizes in itertools.product([1, 2, 3, 5, 8], repeat=3):
        rows = rng.integers(-100, 100, (sum(sizes), 2)).astype(np.float64)
        starts = np.cumsum([0, *sizes[:-1]])
        got = reduce_pairs(Pair(rows), starts)
        assert got.high.tolist() == np.add.reduceat(rows, starts).tolist()


def test_the_tree_keeps_low_parts_and_negative_zeros():
    """A group without a neighbour is left as it is, its sign and its low part."""
    pair = Pair(np.array([-0.0, 1.0, 2.0**60, -(2.0**60), -0.0, -0.0, -0.0]))
    pair.add_low(np.array([0.0, 2.0**-70, 1.0, 0.5, 0.0, 0.0, 0.0]))
    high, low = reduce_pairs(pair, np.array([0, 1, 2, 4])).normalised()
    assert low is not None
    assert high.tolist() == [0.0, 1.0, 1.5, 0.0]
    assert low.tolist() == [0.0, 2.0**-70, 0.0, 0.0]
    assert np.signbit(high).tolist() == [True, False, False, True]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0), (2, 3), (4, 3, 5), (1, 1, 9), (5, 1, 2)])
@pytest.mark.parametrize("size", [1, 2, 4, 7, 100])
def test_boxes_cover_everything_once_in_order(shape, size):
    """Blocks are runs of row-major positions, no larger than asked for."""
    positions = np.arange(math.prod(shape)).reshape(shape)
    seen = []
    for start, box in boxes(shape, size):
        block = positions[box].reshape(-1).tolist()
        assert block == list(range(start, start + len(block)))
        assert 0 < len(block) <= size
        seen += block
    assert seen == list(range(positions.size))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 100])
def test_pieces_of_sparse_entries_are_bounded_and_complete(block):
    """Every entry and column comes once, with whole groups or pieces of one."""
    rng = np.random.default_rng(SEED)
    values = np.arange(40, dtype=np.float64).reshape(20, 2)
    entries = Entries.of([Sparse(rng.integers(0, 6, 20), values)], None, block)
    seen = []
    for span in entries.spans():
        pieces = list(entries.pieces(span))
        assert len(pieces) == 1 or span.groups.stop - span.groups.start == 1
        for piece in pieces:
            assert piece.values.size <= max(block, 1)
            seen += piece.values.ravel().tolist()
    assert sorted(seen) == values.ravel().tolist()


def test_wide_sums_hold_what_64_bits_do_not():
    """Partial sums may overflow, and what does not fit in the end is named."""
    for dtype in (np.dtype("i8"), np.dtype("u8"), np.dtype("i1"), np.dtype("u4")):
        limits = np.iinfo(dtype)
        rows = np.array([[limits.max, limits.max, limits.min], [1, 0, 0]], dtype)
        total = WideSum.of(rows[0])
        total.add(WideSum.of(rows[1]))
        sums, misfits = total.narrowed(dtype)
        assert misfits.tolist() == [0]
        assert total.total(0) == limits.max + 1
        assert sums[1:].tolist() == [limits.max, limits.min]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "uint8"])
def test_bits_do_not_depend_on_blocks(dtype, monkeypatch):
    """The smallest blocks and batches give the same bits as one block for all."""
    rng = np.random.default_rng(SEED)
    arrays = [(rng.standard_normal((6, 5)) * 9 + 9).astype(DTYPES[dtype]) for _ in range(5)]
    arrays = [array % 4 if dtype == "uint8" else array for array in arrays]
    parts = [Sparse(rng.integers(-2, 2, 6), array) for array in arrays]
    weights = [2**53, 1, 0, 7, 2**53 - 1]

    def results():
        sparses = [sum_sparse(parts), mean_sparse(parts), mean_sparse(parts, weights)]
        denses = [sum_dense(arrays), mean_dense(arrays), mean_dense(arrays, weights)]
        return [bits(each) for each in (*denses, *(each.values for each in sparses))]

    whole = results()
    for block in (1, 2, 4, 7):
        monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", block)

        monkeypatch.setattr(certain, "_BATCH", block)
        assert results() == whole


def test_an_out_that_overlaps_an_input_is_still_right(monkeypatch):
    """The same array, one element along, and backwards: no block reads what another wrote."""
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 2)
    expected = np.arange(9.0) + 1
    for make in (lambda b: (b[:9], b[:9]), lambda b: (b[:9], b[1:]), lambda b: (b[:9], b[8::-1])):
        array, out = make(np.arange(10.0))
        assert sum_dense([array, np.ones(9)], out) is out
        assert out.tolist() == expected.tolist()
