"""The oracle for sparse sums and means, and the means to make parts to try it on."""

from __future__ import annotations

import math

import numpy as np
from oracle import FORMATS, array_of, dtype_of, exact_sum, numbers_of, quotient, same_bits

import onefold
from onefold import Sparse

AWKWARD = (-(2**63), 2**63 - 1, 0, -1, 1, 2**53, 2**53 + 1, 2**24, 2**24 + 1, 40000, -25536)


def by_coordinate(parts, weights=None):
    """For each coordinate that a selected part has, the exact sum of each element of its row."""
    weights = [1] * len(parts) if weights is None else weights
    found: dict[int, list] = {}
    for part, weight in zip(parts, weights, strict=True):
        size = math.prod(part.values.shape[1:])
        numbers = numbers_of(part.values)
        for entry, coordinate in enumerate(part.coordinates.tolist() if weight else []):
            row = numbers[entry * size : (entry + 1) * size]
            found.setdefault(coordinate, []).append((row, weight))
    return {
        coordinate: [
            exact_sum(column, [weight for _, weight in rows])
            for column in zip(*(row for row, _ in rows), strict=True)
        ]
        for coordinate, rows in sorted(found.items())
    }


def check(result, sums, name, like):
    """Assert that ``result`` is the Sparse that has these sums, with the row and shape of like."""
    assert isinstance(result, Sparse)
    assert result.coordinates.dtype == np.int64
    assert result.coordinates.tolist() == list(sums)
    assert result.values.shape == (len(sums), *like.values.shape[1:])
    assert result.shape == like.shape
    same_bits(result.values, array_of([number for row in sums.values() for number in row], name))


def check_sum(parts):
    check(onefold.sum_sparse(parts), by_coordinate(parts), parts[0].values.dtype.name, parts[0])


def check_mean(parts, weights=None):
    total = len(parts) if weights is None else sum(weights)
    means = {
        coordinate: [quotient(number, total) for number in row]
        for coordinate, row in by_coordinate(parts, weights).items()
    }
    name = parts[0].values.dtype.name
    result = onefold.mean_sparse(parts) if weights is None else onefold.mean_sparse(parts, weights)
    check(result, means, name if name in FORMATS else "float64", parts[0])


def sparse(name, *entries, row=(), shape=None):
    """A Sparse from pairs of coordinate and value."""
    coordinates = np.array([coordinate for coordinate, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=dtype_of(name))
    return Sparse(coordinates, values.reshape(len(entries), *row), shape)


def pairs(result):
    """The entries of a Sparse of numbers as a list of pairs."""
    return list(zip(result.coordinates.tolist(), result.values.tolist(), strict=True))


def coordinates_for(width, rng):
    """Distinct coordinates, in no order: those that narrower types confuse, and any others."""
    found = list(AWKWARD[:width])
    while len(found) < width:
        found.append(rng.choice([rng.randint(-(2**63), 2**63 - 1), rng.randint(41000, 49000)]))
    found = list(dict.fromkeys(found))
    rng.shuffle(found)
    return found


def scattered(arrays, parts, rng):
    """The columns of ``arrays`` as entries in random order of random parts, duplicates and all."""
    coordinates = coordinates_for(arrays[0].size, rng)
    arrays = [array[: len(coordinates)] for array in arrays]
    entries = [pair for array in arrays for pair in zip(coordinates, array, strict=True)]
    rng.shuffle(entries)
    name = arrays[0].dtype.name
    share = [[] for _ in range(parts)]
    for entry in entries:
        rng.choice(share).append(entry)
    return [sparse(name, *part) for part in share]


def one_each(arrays, rng):
    """Each array as a part that has every coordinate once, each part in an order of its own."""
    coordinates = coordinates_for(arrays[0].size, rng)
    parts = []
    for array in arrays:
        order = rng.sample(range(len(coordinates)), len(coordinates))
        parts.append(Sparse(np.array([coordinates[at] for at in order]), array[order]))
    return parts
