"""The data that is measured on, from one seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from onefold import Sparse

__all__ = ["DISTRIBUTIONS", "PARTS", "Distribution", "dense_values", "dtype_named", "parts_of"]

SEED = 7
PARTS = 16


def dtype_named(name: str) -> np.dtype:
    """A dtype, bfloat16 too."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def dense_values(
    rng: np.random.Generator, size: int, dtype: np.dtype, exponents: int = 0
) -> np.ndarray:
    """Normally distributed, times 2 to a random power of up to ± ``exponents``; or integers."""
    if dtype.kind in "iu":
        return rng.integers(-(2**20), 2**20, size).astype(dtype)
    values = rng.standard_normal(size, np.float32 if dtype.itemsize < 8 else np.float64)
    if exponents:
        values = np.ldexp(values.astype(np.float64), rng.integers(-exponents, exponents + 1, size))
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype)


def hashed(keys: np.ndarray) -> np.ndarray:
    """Spread over all of 0 to 2**63 - 1 (splitmix64): peers take no negative coordinates."""
    with np.errstate(over="ignore"):
        words = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    return (words >> np.uint64(1)).astype(np.int64)


def zipf(rng: np.random.Generator, size: int, ranks: int) -> np.ndarray:
    """Ranks below ``ranks``, rank k with a probability in proportion to (k + 1) ** -1.1."""
    # The distribution function of the continuous law, inverted: exact enough, and no table.
    top = float(ranks + 1) ** -0.1
    return ((1 - rng.random(size) * (1 - top)) ** -10.0).astype(np.int64) - 1


@dataclass(frozen=True, slots=True)
class Distribution:
    """How keys lie: ``make(rng, entries, part)`` gives those of one part."""

    name: str
    make: Callable[[np.random.Generator, int, int], np.ndarray]
    span: int = 0
    """Where keys are small: what they are below, as a multiple of ``entries``."""
    all_peers: bool = False
    """Whether all peers race, and not just the first: most take seconds a call."""


def _outliers(rng: np.random.Generator, entries: int, part: int) -> np.ndarray:
    keys = rng.integers(0, 10 * entries, entries)
    if part == 0:
        keys[:2] = 2**62, -(2**62)
    return keys


DISTRIBUTIONS = (
    Distribution("uniform in 10M", lambda r, n, _: r.integers(0, 10 * n, n), 10, all_peers=True),
    Distribution("uniform in 1M", lambda r, n, _: r.integers(0, n, n), 1),
    Distribution("sorted lists", lambda r, n, _: np.sort(r.integers(0, 10 * n, n)), 10),
    Distribution(
        "hashed 64-bit, unique",
        lambda r, n, part: hashed(r.permutation(n) + n * part),
        all_peers=True,
    ),
    Distribution("hashed 64-bit, 2M distinct", lambda r, n, _: hashed(r.integers(0, 2 * n, n))),
    Distribution("uniform in 100M", lambda r, n, _: r.integers(0, 100 * n, n)),
    Distribution("zipf 1.1 in 10M", lambda r, n, _: zipf(r, n, 10 * n), 10, all_peers=True),
    Distribution("zipf 1.1, unbounded", lambda r, n, _: np.minimum(r.zipf(1.1, n), 2**60)),
    Distribution("hashed zipf 1.1", lambda r, n, _: hashed(zipf(r, n, 10 * n))),
    Distribution(
        "1000 far clusters",
        lambda r, n, _: (r.integers(0, 1000, n) << 50) + r.integers(0, 1000, n),
    ),
    Distribution("2 outliers at ±2^62", _outliers),
    Distribution("all keys equal", lambda _, n, __: np.full(n, 7), 10),
)


def parts_of(distribution: Distribution, entries: int, exponents: int = 0) -> list[Sparse]:
    """The 16 parts, of float32."""
    rng = np.random.default_rng(SEED)
    single = np.dtype(np.float32)
    return [
        Sparse(distribution.make(rng, entries, part), dense_values(rng, entries, single, exponents))
        for part in range(PARTS)
    ]
