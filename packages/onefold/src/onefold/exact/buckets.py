"""Sparse entries dealt out to buckets of neighbouring coordinates, on several threads.

Two passes over the coordinates: one counts how many entries of each piece of the input go to each
bucket, which tells where each piece has to put its own, and one puts them there. So threads write
to places of their own and need no locks, and the entries of a bucket stand in the order of the
input.

Most keys may lie close together and a few far away; a sample of the keys tells where most are, and
only that range is divided evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from onefold.exact.buffers import plain
from onefold.exact.pool import in_pieces
from onefold.update import Array

__all__ = ["Buckets", "in_buckets"]

_BUCKET_ENTRIES = 4096
_BUCKETS_MAX = 4096
_PIECE_ENTRIES_MIN = 1 << 15
_SAMPLE = 2048
_FAR = 4
"""Keys spread over more than this times the range of nearly all of a sample have outliers."""

Values: TypeAlias = Callable[[int, slice], Array]
"""The values of some entries of a part."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Keys and values bucket after bucket; a key is a coordinate less ``base``."""

    base: int
    keys: Array
    values: Array
    starts: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """The number of buckets."""
        return int(self.starts.size) - 1

    def for_each(self, work: Callable[[int, int], None], threads: int) -> None:
        """Call ``work`` with ranges of buckets, of about equal numbers of entries."""
        entries = int(self.starts[-1])
        pieces = max(1, min(self.count, 8 * threads, entries // _PIECE_ENTRIES_MIN))
        wanted = np.linspace(0, entries, pieces + 1).astype(np.int64)
        bounds = np.searchsorted(self.starts, wanted[1:-1])
        edges = [0, *bounds.tolist(), self.count]

        def piece(number: int) -> None:
            if edges[number] < edges[number + 1]:
                work(edges[number], edges[number + 1])

        in_pieces(piece, pieces, threads)


def in_buckets(
    coordinates: Sequence[Array],
    values: Values,
    dtype: np.dtype[np.generic],
    threads: int,
    *,
    key: np.dtype[np.generic] | None = None,
) -> Buckets:
    """Deal out entries.

    Args:
        coordinates: int64, those of each part; not all are empty.
        values: Gives the values of a part's entries, of ``dtype``.
        dtype: The type of the values.
        threads: How many to use.
        key: The type of keys; the default is the narrower one that fits.
    """
    from onefold.exact import kernels  # noqa: PLC0415  # Numba is loaded when it is needed

    coordinates = [plain(each) for each in coordinates]
    entries = sum(each.size for each in coordinates)
    pieces = _pieces(coordinates, max(_PIECE_ENTRIES_MIN, -(-entries // (8 * threads))))
    base, most = _range([coordinates[part][chosen] for part, chosen in pieces], threads)
    low, shift, count = _layout(coordinates, base, most, entries)
    places = np.zeros((len(pieces), count), np.int64)

    def count_piece(number: int) -> None:
        part, chosen = pieces[number]
        kernels.count_keys(coordinates[part][chosen], base, low, shift, places[number])

    if count > 1:
        in_pieces(count_piece, len(pieces), threads)
    else:
        places[:, 0] = [chosen.stop - chosen.start for _, chosen in pieces]
    starts = np.append(0, np.cumsum(places.sum(axis=0)))
    np.cumsum(places[:-1], axis=0, out=places[1:])
    places[0] = 0
    places += starts[:-1]
    if key is None:
        key = np.dtype(np.uint32 if most - base < 2**32 else np.uint64)
    keys, out = np.empty(entries, key), np.empty(entries, dtype)
    bits = np.dtype(f"u{dtype.itemsize}")

    def put_piece(number: int) -> None:
        part, chosen = pieces[number]
        own = coordinates[part][chosen]
        own_values = values(part, chosen).view(bits)
        kernels.scatter(own, own_values, base, low, shift, places[number], keys, out.view(bits))

    in_pieces(put_piece, len(pieces), threads)
    return Buckets(base, keys, out, starts)


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
        extremes[:, number] = np.min(pieces[number]), np.max(pieces[number])

    in_pieces(work, len(pieces), threads)
    return int(extremes[0].min()), int(extremes[1].max())


def _layout(
    coordinates: Sequence[Array], base: int, most: int, entries: int
) -> tuple[np.uint64, int, int]:
    """``(low, shift, count)``: see :func:`onefold.exact.kernels.sorting.count_keys`."""
    wanted = min(_BUCKETS_MAX, entries // _BUCKET_ENTRIES)
    if wanted <= 1:
        return np.uint64(0), 63, 1
    step = max(1, entries // _SAMPLE)
    sample = np.sort(np.concatenate([each[::step] for each in coordinates]))
    cut = sample.size // 256
    near, far = int(sample[cut]), int(sample[-1 - cut])
    margin = (far - near) // 64
    near, far = max(base, near - margin), min(most, far + margin)
    if (far - near) * _FAR > most - base:
        near, far = base, most
    shift = max(0, (far - near).bit_length() - wanted.bit_length() + 1)
    return np.uint64(near - base), shift, ((far - near) >> shift) + 3
