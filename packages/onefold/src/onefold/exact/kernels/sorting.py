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

**Four at a time.** A processor may be told never to read ahead of a store whose address it does not
know yet (it is, against Spectre 4, in many containers and virtual machines). A loop that reads a
key and writes where the key says then takes as long as the two take one after the other. So such
loops read what four entries need first, and then write four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.sizes import FEW, PLACE_BITS_MAX, ROW, SINGLE

__all__ = ["FOUR", "classify", "load", "scatter", "sort_buckets", "sort_loaded"]

FOUR = np.uint64(4)
EIGHT = np.uint64(8)


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
        buckets: uint16, gets the bucket of each if there are splitters. Else it is empty:
            to find a range again takes no longer than to read it.
        counts: int64, one for each bucket, to which is added.
    """
    base, low, shift = layout[0], layout[1], layout[2]
    if splitters.shape[0]:
        _classify_by_search(coordinates, base, splitters, buckets, counts)
        return
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    end, last = np.uint64(coordinates.shape[0]), np.uint64(counts.shape[0] - 1)
    for index in range(np.uint64(0), end - end % FOUR, FOUR):
        a = _range_of(np.uint64(coordinates[index]) - base, low, shift, last)
        b = _range_of(np.uint64(coordinates[index + one]) - base, low, shift, last)
        c = _range_of(np.uint64(coordinates[index + two]) - base, low, shift, last)
        d = _range_of(np.uint64(coordinates[index + three]) - base, low, shift, last)
        counts[a] += 1
        counts[b] += 1
        counts[c] += 1
        counts[d] += 1
    for index in range(end - end % FOUR, end):
        bucket = _range_of(np.uint64(coordinates[index]) - base, low, shift, last)
        counts[bucket] += 1


@inner
def _range_of(key: Any, low: Any, shift: Any, last: Any) -> Any:
    one = np.uint64(1)
    above = min((key - low) >> shift, last - one) + one
    return np.uint64(0) if key < low else above


@inner
def _classify_by_search(
    coordinates: Any, base: Any, splitters: Any, buckets: Any, counts: Any
) -> None:
    """Eight keys at a time, since each step of a search waits for the one before it."""
    levels, end = np.uint64(0), np.uint64(coordinates.shape[0])
    while np.uint64(splitters.shape[0]) >> levels:
        levels += np.uint64(1)
    for index in range(np.uint64(0), end - end % EIGHT, EIGHT):
        key_a = _half(coordinates[index], base)
        key_b = _half(coordinates[index + np.uint64(1)], base)
        key_c = _half(coordinates[index + np.uint64(2)], base)
        key_d = _half(coordinates[index + np.uint64(3)], base)
        key_e = _half(coordinates[index + np.uint64(4)], base)
        key_f = _half(coordinates[index + np.uint64(5)], base)
        key_g = _half(coordinates[index + np.uint64(6)], base)
        key_h = _half(coordinates[index + np.uint64(7)], base)
        a = b = c = d = e = f = g = h = np.uint64(0)
        level = levels
        while level:
            level -= np.uint64(1)
            a = _step(splitters, a, key_a, level)
            b = _step(splitters, b, key_b, level)
            c = _step(splitters, c, key_c, level)
            d = _step(splitters, d, key_d, level)
            e = _step(splitters, e, key_e, level)
            f = _step(splitters, f, key_f, level)
            g = _step(splitters, g, key_g, level)
            h = _step(splitters, h, key_h, level)
        for place, bucket in enumerate((a, b, c, d, e, f, g, h)):
            buckets[index + np.uint64(place)] = bucket
            counts[bucket] += 1
    for index in range(end - end % EIGHT, end):
        bucket, level = np.uint64(0), levels
        while level:
            level -= np.uint64(1)
            bucket = _step(splitters, bucket, _half(coordinates[index], base), level)
        buckets[index] = bucket
        counts[bucket] += 1


@inner
def _half(coordinate: Any, base: Any) -> Any:
    return (np.uint64(coordinate) - base) >> np.uint64(1)


@inner
def _step(splitters: Any, place: Any, key: Any, level: Any) -> Any:
    """One step of a search.

    Which half to go on with is a sign bit that is added: a branch would be mispredicted every
    other time. That is why the last bit of a key is left out, so that a difference has a sign.
    """
    middle = splitters[place + (np.uint64(1) << level) - np.uint64(1)]
    return place + (((middle - key) >> np.uint64(63)) << level)


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
        buckets: As :func:`classify` left it.
        places: uint64, for each bucket the entry that is put next.
        key_words: How many words a key needs, 1 or 2.
        words: uint32, gets the entries.
    """
    base, low, shift, last = layout[0], layout[1], layout[2], np.uint64(places.shape[0] - 1)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    end = np.uint64(coordinates.shape[0])
    is_short = key_words == 1 and values.shape[1] == 1
    for index in range(np.uint64(0), end - end % FOUR, FOUR):
        if buckets.shape[0]:
            a, b = np.uint64(buckets[index]), np.uint64(buckets[index + one])
            c, d = np.uint64(buckets[index + two]), np.uint64(buckets[index + three])
        else:
            a = _range_of(np.uint64(coordinates[index]) - base, low, shift, last)
            b = _range_of(np.uint64(coordinates[index + one]) - base, low, shift, last)
            c = _range_of(np.uint64(coordinates[index + two]) - base, low, shift, last)
            d = _range_of(np.uint64(coordinates[index + three]) - base, low, shift, last)
        a, b = _take_place(places, a), _take_place(places, b)
        c, d = _take_place(places, c), _take_place(places, d)
        if is_short:
            _put_short(words, a, coordinates, base, values, index)
            _put_short(words, b, coordinates, base, values, index + one)
            _put_short(words, c, coordinates, base, values, index + two)
            _put_short(words, d, coordinates, base, values, index + three)
        else:
            _put(words, a, coordinates, base, values, index, key_words)
            _put(words, b, coordinates, base, values, index + one, key_words)
            _put(words, c, coordinates, base, values, index + two, key_words)
            _put(words, d, coordinates, base, values, index + three, key_words)
    for index in range(end - end % FOUR, end):
        a = _range_of(np.uint64(coordinates[index]) - base, low, shift, last)
        place = _take_place(places, np.uint64(buckets[index]) if buckets.shape[0] else a)
        _put(words, place, coordinates, base, values, index, key_words)


@inner
def _put_short(
    words: Any, place: Any, coordinates: Any, base: Any, values: Any, index: Any
) -> None:
    """Put an entry of two words, the commonest."""
    at = place * np.uint64(2)
    words[at] = np.uint64(coordinates[index]) - base
    words[at + np.uint64(1)] = values[index, np.uint64(0)]


@inner
def _take_place(places: Any, bucket: Any) -> Any:
    place = places[bucket]
    places[bucket] = place + np.uint64(1)
    return place


@inner
def _put(
    words: Any, place: Any, coordinates: Any, base: Any, values: Any, index: Any, key_words: int
) -> None:
    size, key = np.uint64(values.shape[1]), np.uint64(coordinates[index]) - base
    start, one = place * (np.uint64(key_words) + size), np.uint64(1)
    first = start + np.uint64(key_words)
    words[start] = key
    words[start + one] = key >> np.uint64(32)  # of a short key, the value will be written over it
    words[first] = values[index, np.uint64(0)]
    for word in range(one, size):
        words[first + word] = values[index, word]


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
        begin = first
        for place in range(places):
            end = counts[place]
            if end - begin > np.uint64(FEW):
                for index in range(begin, end):
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
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    whole = last - (last - first) % FOUR
    for index in range(first, whole, FOUR):
        a, b = (keys[index] - least) >> shift, (keys[index + one] - least) >> shift
        c, d = (keys[index + two] - least) >> shift, (keys[index + three] - least) >> shift
        counts[a] += one
        counts[b] += one
        counts[c] += one
        counts[d] += one
    for index in range(whole, last):
        counts[(keys[index] - least) >> shift] += one
    total = first
    for place in range(places):
        count = counts[place]
        counts[place] = total
        total += count
    for index in range(first, whole, FOUR):
        key_a, key_b, key_c, key_d = (
            keys[index],
            keys[index + one],
            keys[index + two],
            keys[index + three],
        )
        a = _take_place(counts, (key_a - least) >> shift)
        b = _take_place(counts, (key_b - least) >> shift)
        c = _take_place(counts, (key_c - least) >> shift)
        d = _take_place(counts, (key_d - least) >> shift)
        sorted_keys[a], sorted_values[a] = key_a, values[index]
        sorted_keys[b], sorted_values[b] = key_b, values[index + one]
        sorted_keys[c], sorted_values[c] = key_c, values[index + two]
        sorted_keys[d], sorted_values[d] = key_d, values[index + three]
    for index in range(whole, last):
        key = keys[index]
        target = _take_place(counts, (key - least) >> shift)
        sorted_keys[target], sorted_values[target] = key, values[index]


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
