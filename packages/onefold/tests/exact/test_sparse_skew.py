"""Heavy keys, which are condensed before they are added up, have the slow bits all the same."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import FORMATS, dtype_of, same_bits

import onefold
from onefold import Sparse
from onefold.errors import SumOverflow
from onefold.exact import sparse_numbers
from onefold.exact.slow_sparse import reduce_slowly
from onefold.exact.weighting import Weighting

SEED = 20250103
ENTRIES = 20_000
NAMES = [*FORMATS, "int64", "uint64", "int8"]
KINDS = ("gauss", "wide", "cancelling", "overflowing", "tiny", "special", "zeros")


@pytest.fixture(autouse=True)
def _condense_small_buckets(monkeypatch):
    """Every bucket of more than ten entries is heavy, and cut into many pieces."""
    monkeypatch.setattr(sparse_numbers, "_HEAVY_MIN", 10)
    monkeypatch.setattr(sparse_numbers, "_HEAVY_SHARE", 2**40)
    monkeypatch.setattr(sparse_numbers, "_CONDENSED_MIN", 100)
    monkeypatch.setattr(sparse_numbers, "_CONDENSED_PIECE", 1000)


def floats(rng, kind, name):
    """Values of which sums are exact in one float64, in a pair, or in neither."""
    form, size = FORMATS[name], ENTRIES
    values = rng.standard_normal(size)
    if kind == "wide":
        values = np.ldexp(values, rng.integers(-140, 100, size))
    if kind == "cancelling":
        values = np.ldexp(values, rng.integers(-60, 60, size))
        values[size // 2 :] = -values[: size - size // 2]
        values[::7] = np.abs(values[::7]) * 2.0**-100
    if kind == "overflowing":
        values = np.where(rng.random(size) < 0.5, 1.0, -1.0) * float(form.largest)
    if kind == "tiny":
        values = float(form.tiny) * rng.integers(-3, 4, size)
    if kind == "special":
        values[rng.integers(0, size, 3)] = rng.choice([np.inf, -np.inf, np.nan], 3)
    if kind == "zeros":
        values = rng.choice([0.0, -0.0, -0.0, -0.0], size)
        values[: ENTRIES // 2] = -0.0
    with np.errstate(over="ignore"):
        return values.astype(dtype_of(name))


def keys(rng, kind):
    """A few keys have nearly all entries, near and far."""
    few = {
        "equal": [2**63 - 1],
        "ends": [-(2**63), 2**63 - 1],
        "neighbours": [-1, 0, 1],
        "far": [-(2**62), 5, 6, 2**62],
    }[kind]
    chosen = rng.choice(np.array(few, np.int64), ENTRIES)
    others = rng.random(ENTRIES) < 0.05
    if kind != "equal":
        chosen[others] = rng.integers(-1000, 1000, others.sum())
    return chosen


def check(parts, weights=None):
    dtype = parts[0].values.dtype
    expected = reduce_slowly(parts, Weighting.sum(len(parts)), dtype)
    for threads in range(1, 9):
        got = onefold.sum_sparse(parts, threads=threads)
        assert got.coordinates.tolist() == expected.coordinates.tolist()
        same_bits(got.values, expected.values)
    if dtype.kind not in "iu":
        weighting = Weighting.mean(len(parts), weights)
        expected = reduce_slowly(parts, weighting, dtype)
        got = onefold.mean_sparse(parts, weights, threads=3)
        assert got.coordinates.tolist() == expected.coordinates.tolist()
        same_bits(got.values, expected.values)


@pytest.mark.parametrize("where", ["equal", "ends", "neighbours", "far"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMATS)
def test_heavy_keys_of_floats(name, kind, where):
    """Sums and means, weighted or not, on 1 to 8 threads, in several parts, one of them empty."""
    rng = np.random.default_rng(SEED)
    coordinates, values = keys(rng, where), floats(rng, kind, name)
    cuts = [0, 0, ENTRIES // 3]
    parts = list(map(Sparse, np.split(coordinates, cuts), np.split(values, cuts)))
    check(parts)
    check(parts, [3, 5, 7, 2**20 + 1])


@pytest.mark.parametrize("name", ["int64", "uint64", "int8"])
def test_heavy_keys_of_integers(name):
    """What cancels to fit does, whatever the sums of pieces; what does not fit is named."""
    rng = np.random.default_rng(SEED)
    limits = np.iinfo(name)
    coordinates = np.repeat(np.array([-(2**63), 4, 2**63 - 1]), ENTRIES)
    values = np.zeros(coordinates.size, name)
    if limits.min < 0:
        values[ENTRIES : ENTRIES + 5000] = limits.max
        values[-ENTRIES - 5000 : -ENTRIES] = -limits.max
    order = rng.permutation(values.size)
    check([Sparse(coordinates[order], values[order])])
    values[2 * ENTRIES :] = limits.max
    for threads in (1, 2, 8):
        with pytest.raises(SumOverflow) as caught:
            onefold.sum_sparse([Sparse(coordinates[order], values[order])], threads=threads)
        assert caught.value.coordinate == 2**63 - 1
        assert str(ENTRIES * int(limits.max)) in str(caught.value)


def test_a_sample_that_misleads_changes_no_result():
    """All that is sampled is one key, but there are many, evenly spread or not."""
    rng = np.random.default_rng(SEED)
    for others in (rng.integers(-(2**63), 2**63 - 1, 50_000), rng.integers(0, 2**20, 50_000)):
        coordinates = others.copy()
        coordinates[:: coordinates.size // 2**13] = 77
        values = rng.standard_normal(coordinates.size).astype(np.float32)
        check([Sparse(coordinates, values)])


@pytest.mark.parametrize("span", [2**32 - 1, 2**32, 2**32 + 1, 2**33 - 1])
@pytest.mark.parametrize("size", [3, 5000])
def test_keys_that_just_fit_32_bits_or_do_not(span, size):
    """Least and greatest differ in what a short key would leave out, dealt out or in one bucket."""
    for base in (-(2**63), -7, 2**63 - 1 - span):
        coordinates = base + np.arange(size, dtype=np.int64)
        coordinates[-2:] = base + span - 2**32 if span >= 2**32 else base, base + span
        check([Sparse(coordinates, np.arange(1.0, size + 1))])


def test_both_ends_of_int64_and_little_else():
    """Buckets of one key each, and the very last key there is."""
    least, most = -(2**63), 2**63 - 1
    for near in (1, 60):
        coordinates = np.append(least + np.arange(300_000) % near, most)
        result = onefold.sum_sparse([Sparse(coordinates, np.ones(coordinates.size))])
        expected, counts = np.unique(coordinates, return_counts=True)
        assert result.coordinates.tolist() == expected.tolist()
        assert result.values.tolist() == counts.tolist()
