"""Sparse entries dealt out to buckets of neighbouring coordinates, on several threads.

Two passes over the coordinates: one finds the bucket of each entry and counts how many of each
piece of the input go to each bucket, which tells where each piece has to put its own, and one puts
them there. So threads write to places of their own and need no locks, and the entries of a bucket
stand in the order of the input.

A sample of the keys tells how they are distributed. Where they spread evenly, but for a few far
away, a bucket is a range of keys, all equally wide. Otherwise the sample is cut into equal shares,
and a key that would be the end of more than one of them has a bucket of its own; finding a bucket
then takes a binary search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from onefold.exact import kernels
from onefold.exact.buffers import plain
from onefold.exact.pool import in_pieces
from onefold.update import Array

__all__ = ["Buckets", "Values", "in_buckets", "in_one_bucket"]

_BUCKET_ENTRIES = 4096
_BUCKETS_MAX = 4096
_SPLIT_BUCKETS_MAX = 1024
_FEWEST_BITS = 7
"""Of the number of buckets, if they are as wide as they may be."""
_PIECE_ENTRIES_MIN = 1 << 15
_SAMPLE = 1 << 13
_FAR = 4
"""Keys spread over more than this times the range of nearly all of a sample have outliers."""
_UNEVEN = 6
"""Ranges are not even if one has so many times its share of the sample, and more than by chance."""
_CACHED = 1 << 15
"""Entries that fit a second level cache."""

_APART = 8
"""What separate threads write is so many numbers apart, so that they do not share a cache line."""

Values: TypeAlias = Callable[[int, slice], Array]
"""The values of some entries of a part: uint32, the words of a value in each row."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Entries bucket after bucket, each some words; a key is a coordinate less ``base``."""

    base: int
    key_words: int
    words: npt.NDArray[np.uint32]
    width: int
    starts: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """The number of buckets."""
        return int(self.starts.size) - 1

    def for_each(self, work: Callable[[int, int], None], threads: int) -> None:
        """Call ``work`` with ranges of buckets, of about equal numbers of entries."""
        entries = int(self.starts[-1])
        pieces = max(1, min(self.count, 8 * threads, entries // _PIECE_ENTRIES_MIN))
        if pieces == 1:
            work(0, self.count)
            return
        wanted = np.linspace(0, entries, pieces + 1).astype(np.int64)
        bounds = np.searchsorted(self.starts, wanted[1:-1])
        edges = [0, *bounds.tolist(), self.count]

        def piece(number: int) -> None:
            if edges[number] < edges[number + 1]:
                work(edges[number], edges[number + 1])

        in_pieces(piece, pieces, threads)


@dataclass(frozen=True, slots=True)
class _Layout:
    """See :func:`onefold.exact.kernels.sorting.classify`."""

    numbers: npt.NDArray[np.uint64]
    splitters: npt.NDArray[np.uint64]
    count: int


def in_buckets(
    coordinates: Sequence[Array],
    values: Values,
    value_words: int,
    threads: int,
    *,
    range_bits: int = 0,
) -> Buckets:
    """Deal out entries.

    Args:
        coordinates: int64, those of each part; not all are empty.
        values: Gives the values of a part's entries.
        value_words: How many words a value has.
        threads: How many to use.
        range_bits: How many bits of a key may well lie within a bucket.
    """
    coordinates = [plain(each) for each in coordinates]
    entries = sum(each.size for each in coordinates)
    pieces = _pieces(coordinates, max(_PIECE_ENTRIES_MIN, -(-entries // (8 * threads))))
    base, most = _range([coordinates[part][chosen] for part, chosen in pieces], threads)
    layout = _layout(coordinates, base, most, range_bits)
    numbers = [
        np.empty(chosen.stop - chosen.start if layout.splitters.size else 0, np.uint16)
        for _, chosen in pieces
    ]
    counts = np.zeros((len(pieces), layout.count + _APART), np.int64)

    def classify(number: int) -> None:
        part, chosen = pieces[number]
        kernels.classify(
            coordinates[part][chosen],
            layout.numbers,
            layout.splitters,
            numbers[number],
            counts[number, : layout.count],
        )

    in_pieces(classify, len(pieces), threads)
    starts = np.append(0, np.cumsum(counts.sum(axis=0)))[: layout.count + 1]
    places = np.cumsum(counts, axis=0, dtype=np.uint64)
    places -= counts.view(np.uint64)
    places[:, : layout.count] += starts[:-1].view(np.uint64)
    key_words = 1 if most - base < 2**32 else 2
    words = np.empty(entries * (key_words + value_words), np.uint32)

    def scatter(number: int) -> None:
        part, chosen = pieces[number]
        kernels.scatter(
            coordinates[part][chosen],
            values(part, chosen),
            layout.numbers,
            numbers[number],
            places[number, : layout.count],
            key_words,
            words,
        )

    in_pieces(scatter, len(pieces), threads)
    return Buckets(base, key_words, words, key_words + value_words, starts)


def in_one_bucket(coordinates: Array, values: Array) -> Buckets:
    """The same for entries so few that they are not worth dealing out.

    Args:
        coordinates: int64, not empty.
        values: As :data:`Values` gives them.
    """
    base = int(coordinates.min())
    key_words = 1 if int(coordinates.max()) - base < 2**32 else 2
    keys = coordinates.view(np.uint64) - np.uint64(base % 2**64)
    words = np.empty((keys.size, key_words + values.shape[1]), np.uint32)
    words[:, :key_words] = keys.view(np.uint32).reshape(-1, 2)[:, :key_words]
    words[:, key_words:] = values
    return Buckets(base, key_words, words.reshape(-1), words.shape[1], np.array([0, keys.size]))


def _pieces(coordinates: Sequence[Array], size: int) -> list[tuple[int, slice]]:
    return [
        (part, slice(first, min(first + size, each.size)))
        for part, each in enumerate(coordinates)
        for first in range(0, each.size, size)
    ]


def _range(pieces: Sequence[Array], threads: int) -> tuple[int, int]:
    """The least and the greatest coordinate."""
    extremes = np.empty((2, len(pieces)), np.int64)

    def work(number: int) -> None:
        piece = pieces[number]
        cached = [piece[first : first + _CACHED] for first in range(0, piece.size, _CACHED)]
        bounds = [(each.min(), each.max()) for each in cached]
        extremes[:, number] = min(least for least, _ in bounds), max(most for _, most in bounds)

    in_pieces(work, len(pieces), threads)
    return int(extremes[0].min()), int(extremes[1].max())


def _layout(coordinates: Sequence[Array], base: int, most: int, range_bits: int) -> _Layout:
    none = np.empty(0, np.uint64)
    entries = sum(each.size for each in coordinates)
    wanted = min(_BUCKETS_MAX, entries // _BUCKET_ENTRIES)
    origin = np.uint64(base % 2**64)
    if wanted <= 1:
        return _Layout(np.array([origin, 0, 63], np.uint64), none, 3)
    step = max(1, entries // _SAMPLE)
    sampled = np.concatenate([each[::step] for each in coordinates])
    sample = np.sort(sampled.view(np.uint64) - origin)
    low, shift, count = _even(sample, most - base, wanted, range_bits)
    shares = np.bincount(np.clip((sample - low) >> np.uint64(shift), 0, count) * (sample >= low))
    if shares.max() <= _UNEVEN * sample.size / count + 64:
        return _Layout(np.array([origin, low, shift], np.uint64), none, count)
    splitters = _splitters(sample, min(wanted, _SPLIT_BUCKETS_MAX))
    return _Layout(np.array([origin, 0, 0], np.uint64), splitters, splitters.size + 1)


def _even(
    sample: npt.NDArray[np.uint64], span: int, wanted: int, range_bits: int
) -> tuple[np.uint64, int, int]:
    """Where equal ranges begin, the bits of one, and how many there are with both ends."""
    cut = sample.size // 256
    near, far = int(sample[cut]), int(sample[-1 - cut])
    margin = (far - near) // 64
    near, far = max(0, near - margin), min(span, far + margin)
    if (far - near) * _FAR > span:
        near, far = 0, span
    bits = (far - near).bit_length()
    fewest = ((far - near) // wanted).bit_length()
    shift = max(fewest, min(range_bits, bits - _FEWEST_BITS))
    return np.uint64(near), shift, ((far - near) >> shift) + 3


def _splitters(sample: npt.NDArray[np.uint64], wanted: int) -> npt.NDArray[np.uint64]:
    """The ends of equal shares, halved; a half that is the end of two has a bucket to itself."""
    sample = sample >> np.uint64(1)
    size = 1 << (wanted.bit_length() - 1)
    ends = sample[np.linspace(0, sample.size - 1, size // 2 + 1).astype(np.int64)[1:-1]]
    heavy = ends[1:][ends[1:] == ends[:-1]]
    chosen = np.unique(np.concatenate([ends, heavy[heavy > 0] - np.uint64(1)]))
    padding = (1 << int(chosen.size).bit_length()) - 1 - chosen.size
    return np.append(chosen, np.full(padding, 2**63 - 1, np.uint64))
