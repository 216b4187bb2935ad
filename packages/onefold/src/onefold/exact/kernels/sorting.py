"""Entries brought together by coordinate: dealt out to buckets, and sorted within a bucket.

A *key* is what a coordinate is above the least one, without sign. Equal keys share a bucket, and
buckets are in the order of their keys, so each can be finished by itself, on any thread. Buckets
are equal ranges of keys, but for the first and the last, which take all that lies outside of where
most keys are; so a few far outliers do not push all others into one bucket.

Within a bucket entries are sorted by counting: dealt out again by the leading bits of their keys,
which leaves one or two to a place if keys are spread evenly; where more are left that is done
again, and few are sorted by insertion. Neither depends on how keys are distributed for more than
its speed. The slow oracle is :class:`onefold.exact.groups.Groups`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner

__all__ = ["begin_sorting", "count_keys", "scatter", "sort_bucket", "sort_buckets"]

_FEW = 24
"""At most so many entries are sorted by insertion."""

_PLACE_BITS_MAX = 12


@inner
def _bucket(key: Any, low: Any, shift: Any, last: Any) -> Any:
    """Which bucket a key goes to: one for all below ``low``, equal ranges, one for the others."""
    above = ((key - low) >> shift) + np.uint64(1)
    return np.uint64(0) if key < low else min(above, last)


@entry
def count_keys(coordinates: Any, base: int, low: int, shift: int, counts: Any) -> None:
    """Count the keys of each bucket; ``counts`` has one place for each and starts as zeros."""
    origin, bottom, step = np.uint64(base), np.uint64(low), np.uint64(shift)
    last = np.uint64(counts.shape[0] - 1)
    for index in range(coordinates.shape[0]):
        key = np.uint64(coordinates[index]) - origin
        counts[_bucket(key, bottom, step, last)] += 1


@entry
def scatter(
    coordinates: Any, values: Any, base: int, low: int, shift: int, places: Any, keys: Any, out: Any
) -> None:
    """Put each key and value into its bucket; ``places`` says where the next one goes."""
    origin, bottom, step = np.uint64(base), np.uint64(low), np.uint64(shift)
    last = np.uint64(places.shape[0] - 1)
    for index in range(coordinates.shape[0]):
        key = np.uint64(coordinates[index]) - origin
        bucket = _bucket(key, bottom, step, last)
        place = np.uint64(places[bucket])
        places[bucket] += 1
        keys[place] = key
        out[place] = values[index]


@inner
def begin_sorting(keys: Any, values: Any, largest: int) -> Any:
    """What :func:`sort_bucket` works in: room for a bucket, ranges yet to be sorted, and counts."""
    return (
        np.empty(largest, keys.dtype),
        np.empty(largest, values.dtype),
        np.empty((largest // _FEW + 2, 2), np.int64),
        np.empty((1 << _PLACE_BITS_MAX) + 1, np.int64),
    )


@entry
def sort_buckets(keys: Any, values: Any, starts: Any, first: int, last: int, counts: Any) -> None:
    """Sort buckets ``first`` to before ``last``, and count the different keys of each."""
    largest = 0
    for bucket in range(first, last):
        largest = max(largest, starts[bucket + 1] - starts[bucket])
    room = begin_sorting(keys, values, largest)
    for bucket in range(first, last):
        start, stop = starts[bucket], starts[bucket + 1]
        sort_bucket(keys, values, start, stop, room)
        counts[bucket] = 0
        for index in range(stop - start):
            keys[start + index] = room[0][index]
            values[start + index] = room[1][index]
            counts[bucket] += index == 0 or room[0][index] != room[0][index - 1]


@inner
def sort_bucket(keys: Any, values: Any, start: int, stop: int, room: Any) -> None:
    """Put ``keys[start:stop]`` and their values into the room, sorted; the arrays are scratch.

    A range on the stack is unsorted and in the arrays; one that is not is sorted and in the room.
    """
    sorted_keys, sorted_values, stack, counts = room
    stack[0, 0], stack[0, 1] = start, stop
    waiting = 1
    while waiting:
        waiting -= 1
        first, last = stack[waiting, 0], stack[waiting, 1]
        shift = -1
        if last - first > _FEW:
            least, most = _range(keys, first, last)
            shift = _shift(most - least, last - first)
        if shift < 0:
            for index in range(first, last):
                sorted_keys[index - start] = keys[index]
                sorted_values[index - start] = values[index]
            if last - first <= _FEW:
                _insert(sorted_keys, sorted_values, first - start, last - start)
            continue
        places = np.int64((most - least) >> np.uint64(shift)) + 1
        _deal(keys, values, first, last, start, least, shift, places, room)
        if shift == 0:
            continue
        begin = first
        for place in range(places):
            end = first + counts[place]
            if end - begin > _FEW:
                for index in range(begin, end):
                    keys[index] = sorted_keys[index - start]
                    values[index] = sorted_values[index - start]
                stack[waiting, 0], stack[waiting, 1] = begin, end
                waiting += 1
            elif end - begin > 1:
                _insert(sorted_keys, sorted_values, begin - start, end - start)
            begin = end


@inner
def _range(keys: Any, first: int, last: int) -> Any:
    least = most = keys[first]
    for index in range(first, last):
        least, most = min(least, keys[index]), max(most, keys[index])
    return np.uint64(least), np.uint64(most)


@inner
def _shift(span: Any, size: int) -> int:
    """How many bits of a key to leave for later; -1 if all keys are the same."""
    if span == 0:
        return -1
    bits = 0
    while span:
        span >>= np.uint64(1)
        bits += 1
    place_bits = 2
    while place_bits < _PLACE_BITS_MAX and (2 << place_bits) < size:
        place_bits += 1
    return max(bits - place_bits, 0)


@inner
def _deal(
    keys: Any,
    values: Any,
    first: int,
    last: int,
    start: int,
    least: Any,
    shift: int,
    places: int,
    room: Any,
) -> None:
    """Deal entries out by the leading bits; ``counts`` then has where each place ends."""
    sorted_keys, sorted_values, _, counts = room
    step = np.uint64(shift)
    for place in range(places):
        counts[place] = 0
    for index in range(first, last):
        counts[np.int64((keys[index] - least) >> step)] += 1
    total = 0
    for place in range(places):
        count = counts[place]
        counts[place] = total
        total += count
    offset = first - start
    for index in range(first, last):
        place = np.int64((keys[index] - least) >> step)
        target = counts[place]
        counts[place] = target + 1
        sorted_keys[offset + target] = keys[index]
        sorted_values[offset + target] = values[index]


@inner
def _insert(keys: Any, values: Any, first: int, last: int) -> None:
    for index in range(first + 1, last):
        key, value = keys[index], values[index]
        place = index - 1
        while place >= first and keys[place] > key:
            keys[place + 1], values[place + 1] = keys[place], values[place]
            place -= 1
        keys[place + 1], values[place + 1] = key, value
