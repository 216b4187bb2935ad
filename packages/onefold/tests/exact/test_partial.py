"""Partial sums: any tree of them gives the bits of the flat sum, and bytes are not trusted."""

from __future__ import annotations

import functools
from random import Random

import numpy as np
import pytest
from columns import FLOAT_KINDS, hard_arrays
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import DTYPES, FORMATS, mean_columns, same_bits, sum_columns
from sparse_oracle import by_coordinate, check, one_each

from onefold import ExactPartial, Sparse
from onefold.errors import InvalidInput, InvalidUpdate, Mismatch, NoContributions, SumOverflow


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
        got = tree(
            [(part, 1) for part in parts], functools.partial(ExactPartial.sparse, name, row), rng
        )
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
