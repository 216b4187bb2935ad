"""Entries brought together by coordinate: dealt out to buckets, and sorted within a bucket.

A *key* is what a coordinate is above the least one, without sign. Equal keys share a bucket, and
buckets are in the order of their keys, so each can be finished by itself, on any thread.

An entry travels as a few 32-bit *words*: one or two of its key, then those of its value, whatever
that is (float32, float64, an integer, the number of a row, or a short row itself). So there is one
scattering and one sorting for all types, and an entry is written to one place.

Within a bucket entries are sorted by counting: dealt out again by the leading bits of their keys,
which leaves one or two to a place if keys are spread evenly; where more are left that is done
again, and few are sorted by insertion. Neither depends on how keys are distributed for more than
its speed. The slow oracle is :class:`onefold.exact.groups.Groups`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.sizes import FEW, PLACE_BITS_MAX, ROW, SINGLE

__all__ = ["classify", "load", "scatter", "sort_buckets", "sort_loaded"]


@entry
def classify(coordinates: Any, layout: Any, splitters: Any, buckets: Any, counts: Any) -> None:
    """Find the bucket of each key, and count the keys of each bucket.

    Args:
        coordinates: int64.
        layout: uint64: the least coordinate, the key where equal ranges begin, and the number of
            bits of a key within a range. Bucket 0 has the keys below, the last all above.
        splitters: uint64. If there are any, bucket ``i`` instead has the keys of which the half
            is above splitter ``i - 1`` and up to splitter ``i``. Their number is a power of two,
            less one.
        buckets: uint16, gets the bucket of each.
        counts: int64, one for each bucket, to which is added.
    """
    base, low, shift = layout[0], layout[1], layout[2]
    if splitters.shape[0]:
        _classify_by_search(coordinates, base, splitters, buckets, counts)
        return
    last, one = np.uint64(counts.shape[0] - 1), np.uint64(1)
    for index in range(coordinates.shape[0]):
        key = np.uint64(coordinates[index]) - base
        above = min(((key - low) >> shift) + one, last)
        bucket = np.uint64(0) if key < low else above
        buckets[index] = bucket
        counts[bucket] += 1


@inner
def _classify_by_search(
    coordinates: Any, base: Any, splitters: Any, buckets: Any, counts: Any
) -> None:
    """Four keys at a time, since each step of a search waits for the one before it.

    Which half to go on with is a sign bit that is added: a branch would be mispredicted every
    other time. That is why the last bit of a key is left out, so that a difference has a sign.
    """
    one, sign, levels = np.uint64(1), np.uint64(63), np.uint64(0)
    while np.uint64(splitters.shape[0]) >> levels:
        levels += one
    last = coordinates.shape[0] - 1
    for index in range(0, last + 1, 4):
        second, third, fourth = min(index + 1, last), min(index + 2, last), min(index + 3, last)
        key_a = (np.uint64(coordinates[index]) - base) >> one
        key_b = (np.uint64(coordinates[second]) - base) >> one
        key_c = (np.uint64(coordinates[third]) - base) >> one
        key_d = (np.uint64(coordinates[fourth]) - base) >> one
        a = b = c = d = np.uint64(0)
        level = levels
        while level:
            level -= one
            a += ((splitters[a + (one << level) - one] - key_a) >> sign) << level
            b += ((splitters[b + (one << level) - one] - key_b) >> sign) << level
            c += ((splitters[c + (one << level) - one] - key_c) >> sign) << level
            d += ((splitters[d + (one << level) - one] - key_d) >> sign) << level
        buckets[index], buckets[second], buckets[third], buckets[fourth] = a, b, c, d
        counts[a] += 1
        counts[b] += index + 1 <= last
        counts[c] += index + 2 <= last
        counts[d] += index + 3 <= last


@entry
def scatter(
    coordinates: Any,
    values: Any,
    layout: Any,
    buckets: Any,
    places: Any,
    key_words: int,
    words: Any,
) -> None:
    """Put each entry where its bucket goes on.

    Args:
        coordinates: int64.
        values: uint32, the words of a value in each row.
        layout: As for :func:`classify`.
        buckets: The bucket of each entry.
        places: uint64, for each bucket the entry that is put next.
        key_words: How many words a key needs, 1 or 2.
        words: uint32, gets the entries.
    """
    base, size = layout[0], values.shape[1]
    width, skipped = np.uint64(key_words + size), np.uint64(key_words)
    one, half = np.uint64(1), np.uint64(32)
    if key_words == 1 and size == 1:
        for index in range(coordinates.shape[0]):
            bucket = buckets[index]
            place = places[bucket]
            places[bucket] = place + one
            words[place * np.uint64(2)] = np.uint64(coordinates[index]) - base
            words[place * np.uint64(2) + one] = values[index, 0]
        return
    for index in range(coordinates.shape[0]):
        key = np.uint64(coordinates[index]) - base
        bucket = buckets[index]
        start = places[bucket] * width
        places[bucket] += one
        words[start] = key
        if key_words == 2:
            words[start + one] = key >> half
        words[start + skipped] = values[index, 0]
        for word in range(1, size):
            words[start + skipped + np.uint64(word)] = values[index, word]


@inner
def load(
    words: Any, key_words: int, width: int, start: int, stop: int, kind: int, room: Any
) -> None:
    """Put the keys of some entries into ``room[0]``, and their values into ``room[1]``.

    Values are taken as they are, or if they are ``SINGLE`` are made float64, or if they are
    ``ROW`` are replaced by the numbers of their entries.
    """
    value_words = width - key_words
    keys, values, place = room[0], room[1], np.uint64(0)
    for index in range(start, stop):
        first = np.uint64(index * width)
        key = np.uint64(words[first])
        if key_words == 2:
            key |= np.uint64(words[first + np.uint64(1)]) << np.uint64(32)
        value = np.uint64(index)
        if kind != ROW:
            at = first + np.uint64(key_words)
            bits = words[at]
            value = np.uint64(bits)
            if kind == SINGLE:
                value = np.float64(np.uint32(bits).view(np.float32)).view(np.uint64)
            if value_words == 2:
                value |= np.uint64(words[at + np.uint64(1)]) << np.uint64(32)
        keys[place] = key
        values[place] = value
        place += np.uint64(1)


@entry
def sort_buckets(
    words: Any,
    key_words: int,
    width: int,
    kind: int,
    starts: Any,
    first: int,
    last: int,
    room: Any,
    ranges: Any,
    places: Any,
    keys: Any,
    numbers: Any,
    counts: Any,
) -> None:
    """Sort buckets ``first`` to before ``last``, and count the different keys of each.

    Args:
        words: The entries.
        key_words: How many words of an entry are its key.
        width: How many words there are in all.
        kind: As for :func:`load`.
        starts: Where each bucket starts, and at last the number of entries.
        first: The first bucket.
        last: The one after the last.
        room: As for :func:`sort_loaded`.
        ranges: As for :func:`sort_loaded`.
        places: As for :func:`sort_loaded`.
        keys: uint64, gets the sorted keys of all entries.
        numbers: uint64, gets the values in the same order, or of rows the numbers of entries.
        counts: Gets the number of different keys of each bucket.
    """
    for bucket in range(first, last):
        start, stop = starts[bucket], starts[bucket + 1]
        load(words, key_words, width, start, stop, kind, room)
        sort_loaded(room, stop - start, ranges, places)
        counts[bucket] = 0
        for index in range(stop - start):
            keys[start + index] = room[2, index]
            numbers[start + index] = room[3, index]
            counts[bucket] += index == 0 or room[2, index] != room[2, index - 1]


@inner
def sort_loaded(room: Any, size: int, ranges: Any, counts: Any) -> None:
    """Sort ``size`` keys and values, the rows 0 and 1 of ``room``, into its rows 2 and 3.

    A range on the stack ``ranges`` is in the former; one that is not is in the latter, and there
    every entry is less than ``FEW`` from its place. Insertion does the rest.
    """
    keys, values, sorted_keys, sorted_values = room[0], room[1], room[2], room[3]
    ranges[0, 0], ranges[0, 1] = 0, size
    waiting = 1
    while waiting:
        waiting -= 1
        first, last = np.uint64(ranges[waiting, 0]), np.uint64(ranges[waiting, 1])
        least = most = keys[first] if last > first else np.uint64(0)
        for index in range(first, last):
            least, most = min(least, keys[index]), max(most, keys[index])
        if least == most or last - first <= np.uint64(FEW):
            for index in range(first, last):
                sorted_keys[index] = keys[index]
                sorted_values[index] = values[index]
            continue
        shift = _shift(most - least, np.int64(last - first))
        places = np.int64((most - least) >> shift) + 1
        _deal(room, first, last, least, shift, places, counts)
        if shift == 0:
            continue
        begin = np.int64(first)
        for place in range(places):
            end = counts[place]
            if end - begin > FEW:
                for index in range(np.uint64(begin), np.uint64(end)):
                    keys[index] = sorted_keys[index]
                    values[index] = sorted_values[index]
                ranges[waiting, 0], ranges[waiting, 1] = begin, end
                waiting += 1
            begin = end
    _insert(sorted_keys, sorted_values, np.uint64(size))


@inner
def _shift(span: Any, size: int) -> Any:
    """How many bits of a key to leave for later."""
    shift, place_bits = 0, 2
    while place_bits < PLACE_BITS_MAX and (1 << place_bits) < size:
        place_bits += 1
    while span >> np.uint64(shift) >= np.uint64(1 << place_bits):
        shift += 1
    return np.uint64(shift)


@inner
def _deal(
    room: Any, first: Any, last: Any, least: Any, shift: Any, places: int, counts: Any
) -> None:
    """Deal entries out by the leading bits; ``counts`` then has where each place ends."""
    keys, values, sorted_keys, sorted_values = room[0], room[1], room[2], room[3]
    for place in range(places):
        counts[place] = 0
    for index in range(first, last):
        counts[(keys[index] - least) >> shift] += 1
    total = np.int64(first)
    for place in range(places):
        count = counts[place]
        counts[place] = total
        total += count
    for index in range(first, last):
        key = keys[index]
        place = (key - least) >> shift
        target = np.uint64(counts[place])
        counts[place] += 1
        sorted_keys[target] = key
        sorted_values[target] = values[index]


@inner
def _insert(keys: Any, values: Any, size: Any) -> None:
    one = np.uint64(1)
    for index in range(one, size):
        key = keys[index]
        if keys[index - one] > key:
            value, place = values[index], index
            while place and keys[place - one] > key:
                keys[place], values[place] = keys[place - one], values[place - one]
                place -= one
            keys[place], values[place] = key, value
