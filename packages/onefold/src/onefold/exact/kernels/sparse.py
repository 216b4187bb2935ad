"""Sums of sparse entries whose values are numbers, bucket by bucket.

A bucket of float32 whose keys lie close together is added up in a table with a place for every key
that there could be; keys need no sorting then. Any other is sorted, and runs of equal keys are
added up. What is kept of a sum is as in the dense kernels: one float64 that becomes NaN when it is
not exact (all that a table has), a pair of float64, or for integers the sum and the sum of the
upper halves. If any sum of a table is in doubt the bucket is sorted after all, so that all addends
of that key stand together; runs still in doubt are listed for :func:`settle_runs`.

**Heavy buckets.** A key may have half of all entries, and a bucket belongs to one thread. So large
buckets are first *condensed*, piece by piece on all threads: a run of equal keys within a piece is
replaced by fewer entries with the same exact sum. A pair of float64 is two entries; of float32,
each of the two is cut into at most three. A run for which that does not work out (an infinity, a
sum that a pair does not hold) stays as it is. So condensing changes no result, only how many
entries are left, and needs no certain path of its own.

A state that is not in use is -0.0, and +0.0 is added for an addend of -0.0, after which no sum can
be -0.0. Where there was such an addend a sum of zero is therefore in doubt.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefold.exact.kernels.compiled import entry, inner
from onefold.exact.kernels.limbs import run
from onefold.exact.kernels.numbers import (
    add_exactly,
    add_to_pair,
    encode,
    finish_pair,
    mean_of_exact,
)
from onefold.exact.kernels.sizes import PAIR, SIGNED, SINGLE, TABLE
from onefold.exact.kernels.sorting import FOUR, load, sort_loaded

__all__ = ["condense", "emit", "settle_runs", "sum_buckets"]

_SPARSITY = 16
"""A table is used if no more than so many places fall to one entry."""

_NEGATIVE_ZERO = 0x80000000
ADDENDS_MAX = 6
"""As many float32 may a pair be."""


@entry
def sum_buckets(
    words: Any,
    key_words: int,
    width: int,
    kind: int,
    starts: Any,
    stops: Any,
    first: int,
    last: int,
    divisor: int,
    narrow: int,
    counts: Any,
    table: Any,
    room: Any,
    ranges: Any,
    places: Any,
    doubts: Any,
) -> int:
    """Add up buckets from ``first`` to before ``last``, in place, until there are doubts.

    Args:
        words: uint32, the entries. Gets the results: a key and its sum.
        key_words: How many words of an entry are its key.
        width: How many words there are in all.
        kind: What the values are.
        starts: The first entry of each bucket.
        stops: The one after its last.
        first: The first bucket.
        last: The one after the last.
        divisor: From 1 to 2**53.
        narrow: Results are 0: 64 bits, 1: float32, or 2: float32 rounded to odd.
        counts: int64, gets the number of results of each bucket.
        table: float64, ``TABLE`` times -0.0; so it is left, too.
        room: uint64, four rows for the entries of the largest bucket.
        ranges: As for :func:`~onefold.exact.kernels.sorting.sort_loaded`.
        places: Likewise.
        doubts: int64, one row more than ``room`` has columns.

    Returns:
        The bucket with doubts, else ``last``. ``doubts[0, 0]`` is their number; each further row is
        one: where a run begins and ends in ``room[2]`` (keys) and ``room[3]`` (values, float64),
        and which result it is.
    """
    for bucket in range(first, last):
        start, stop = starts[bucket], stops[bucket]
        size = stop - start
        counts[bucket] = -1
        if kind == SINGLE and key_words == 1 and size > 1:
            counts[bucket] = _sum_in_table(words, start, stop, divisor, narrow, table)
        if counts[bucket] < 0:
            load(words, key_words, width, start, stop, kind, room)
            sort_loaded(room, size, ranges, places)
            counts[bucket], doubtful = _sum_runs(
                words, key_words, width, start, size, kind, divisor, narrow, room, doubts
            )
            if doubtful:
                return bucket
    return last


@inner
def _fits(least: Any, most: Any, size: int) -> bool:
    """Whether a table suits so many keys from ``least`` to ``most``."""
    return (most - least < np.uint64(TABLE)) & (most - least < np.uint64(_SPARSITY * size))


@inner
def _tabulate(words: Any, start: int, stop: int, table: Any) -> tuple[int, Any, bool]:
    """``(places in use, least key, whether any value is -0.0)``; -1 if a table does not suit."""
    two, begin, end = np.uint64(2), np.uint64(start), np.uint64(stop)
    least = most = words[two * begin]
    for index in range(begin, end):
        key = words[two * index]
        least, most = min(least, key), max(most, key)
    if not _fits(np.uint64(least), np.uint64(most), stop - start):
        return -1, np.uint64(0), False
    zeros, whole = False, end - (end - begin) % FOUR
    for index in range(begin, whole, FOUR):
        at = two * index
        a, b = np.uint64(words[at] - least), np.uint64(words[at + two] - least)
        at += FOUR
        c, d = np.uint64(words[at] - least), np.uint64(words[at + two] - least)
        at -= np.uint64(3)
        bits_a, bits_b = words[at], words[at + two]
        at += FOUR
        bits_c, bits_d = words[at], words[at + two]
        zeros |= _add_bits(table, a, bits_a) | _add_bits(table, b, bits_b)
        zeros |= _add_bits(table, c, bits_c) | _add_bits(table, d, bits_d)
    for index in range(whole, end):
        at = two * index
        zeros |= _add_bits(table, np.uint64(words[at] - least), words[at + np.uint64(1)])
    return np.int64(most) - np.int64(least) + 1, np.uint64(least), zeros


@inner
def _add_bits(table: Any, place: Any, bits: Any) -> bool:
    """Add a float32, given by its bits; returns whether it is -0.0."""
    value = np.float64(np.uint32(bits).view(np.float32)) + 0.0
    table[place] = add_exactly(table[place], value)
    return bits == _NEGATIVE_ZERO


@inner
def _sum_in_table(words: Any, start: int, stop: int, divisor: int, narrow: int, table: Any) -> int:
    """How many results there are; -1, with the entries unchanged, if a table does not do."""
    span, least, zeros = _tabulate(words, start, stop, table)
    if span < 0:
        return -1
    return _collect(words, start, stop, span, least, zeros, divisor, narrow, table)


@inner
def _collect(
    words: Any,
    start: int,
    stop: int,
    span: int,
    least: Any,
    zeros: bool,
    divisor: int,
    narrow: int,
    sums: Any,
) -> int:
    """Round the sums of a table, put them where the entries were, and clear the table.

    Returns how many there are, or -1, with the entries unchanged, if any is in doubt.
    """
    one, used = np.uint64(1), np.uint64(span)
    doubtful = 0
    for place in range(used):
        doubtful += not abs(sums[place]) < np.inf
        doubtful += zeros and np.float64(sums[place]).view(np.int64) == 0
    if doubtful:
        for place in range(used):
            sums[place] = -0.0
        return -1
    end, last = np.uint64(start), np.uint64(stop - 1)
    one, two, three, whole = np.uint64(1), np.uint64(2), np.uint64(3), used - used % FOUR
    for place in range(np.uint64(0), whole, FOUR):
        a, b, c, d = sums[place], sums[place + one], sums[place + two], sums[place + three]
        key = np.uint64(least) + place
        sums[place] = sums[place + one] = sums[place + two] = sums[place + three] = -0.0
        end = _put_total(words, end, last, key, a, divisor, narrow)
        end = _put_total(words, end, last, key + one, b, divisor, narrow)
        end = _put_total(words, end, last, key + two, c, divisor, narrow)
        end = _put_total(words, end, last, key + three, d, divisor, narrow)
    for place in range(whole, used):
        total = sums[place]
        sums[place] = -0.0
        end = _put_total(words, end, last, np.uint64(least) + place, total, divisor, narrow)
    return np.int64(end) - start


@inner
def _put_total(
    words: Any, end: Any, last: Any, key: Any, total: float, divisor: int, narrow: int
) -> Any:
    """Write a sum at ``end``, if that is not past ``last``; returns the end after it if it is used.

    What is written for a place that is not in use is written over, which is quicker than to ask.
    """
    at = end * np.uint64(2)
    if end <= last:
        odd = total if divisor == 1 else mean_of_exact(total, np.float64(divisor))
        bits = np.float32(odd).view(np.uint32) if narrow == 1 else encode(odd, words)
        words[at], words[at + np.uint64(1)] = key, bits
    return end + np.uint64(np.float64(total).view(np.int64) != -(2**63))


@inner
def _sum_runs(
    words: Any,
    key_words: int,
    width: int,
    start: int,
    size: int,
    kind: int,
    divisor: int,
    narrow: int,
    room: Any,
    doubts: Any,
) -> tuple[int, int]:
    """Add up runs of sorted entries; how many there are, and how many of them are in doubt."""
    keys, values = room[2], room[3]
    is_plain = (kind <= PAIR) & (narrow <= 1) & (divisor == 1)
    found, doubtful, first = 0, 0, np.int64(0)  # a literal would be compiled as another type
    while first < size:
        last = _end_of_run(keys, first, size)
        total = _single_sum(values, first, last) if is_plain else np.nan
        if abs(total) < np.inf:
            bits, sure = np.float64(total).view(np.uint64), True
            if narrow == 1:
                bits = np.uint64(np.float32(total).view(np.uint32))
        elif kind >= SIGNED:
            bits, sure = _integer_sum(values, first, last, kind)
        else:
            high, low = _pair_sum(values, first, last)
            value, sure = finish_pair(high, low, 0.0, np.float64(divisor), narrow)
            bits = _bits(value, narrow, words)
        if not sure:
            doubtful += 1
            doubts[doubtful, 0], doubts[doubtful, 1], doubts[doubtful, 2] = first, last, found
        _put(words, key_words, width, start + found, keys[first], bits)
        found += 1
        first = last
    doubts[0, 0] = doubtful
    return found, doubtful


@inner
def _end_of_run(keys: Any, first: int, size: int) -> int:
    last, key = np.uint64(first + 1), keys[np.uint64(first)]
    while last < np.uint64(size) and keys[last] == key:
        last += np.uint64(1)
    return np.int64(last)


@inner
def _put(words: Any, key_words: int, width: int, entry: int, key: Any, bits: Any) -> None:
    """Write an entry."""
    at = np.uint64(entry * width)
    words[at] = key
    if key_words == 2:
        words[at + np.uint64(1)] = key >> np.uint64(32)
    at += np.uint64(key_words)
    words[at] = bits
    if width - key_words >= 2:
        words[at + np.uint64(1)] = bits >> np.uint64(32)


@entry
def settle_runs(
    values: Any,
    doubts: Any,
    divisor: int,
    narrow: int,
    limbs: Any,
    words: Any,
    key_words: int,
    width: int,
    start: int,
) -> None:
    """Put the sums of runs that are in doubt right, with limbs, which stay zero.

    Args:
        values: float64, sorted.
        doubts: As of :func:`sum_buckets`; no more rows than there are doubts.
        divisor: As for :func:`sum_buckets`, like all others.
        narrow: In which form results are.
        limbs: As for :func:`~onefold.exact.kernels.limbs.reduce_columns`.
        words: The entries.
        key_words: How many words of an entry are its key.
        width: How many there are in all.
        start: The first entry of the bucket.
    """
    for index in range(1, doubts.shape[0]):
        value = run(limbs, values, doubts[index, 0], doubts[index, 1], divisor, narrow)
        bits = _bits(value, narrow, words)
        at = np.uint64((start + doubts[index, 2]) * width + key_words)
        words[at] = bits
        if width - key_words >= 2:
            words[at + np.uint64(1)] = bits >> np.uint64(32)


@entry
def emit(
    words: Any,
    key_words: int,
    width: int,
    starts: Any,
    places: Any,
    first: int,
    last: int,
    base: int,
    coordinates: Any,
    sums: Any,
) -> None:
    """Copy the results of buckets to where they belong, ``places``, in the whole.

    ``sums`` is uint32, the words of a sum in each row.
    """
    one, skipped = np.uint64(1), np.uint64(key_words)
    for bucket in range(first, last):
        at = np.uint64(starts[bucket] * width) - np.uint64(width)
        for place in range(np.uint64(places[bucket]), np.uint64(places[bucket + 1])):
            at += np.uint64(width)
            key = np.uint64(words[at])
            if key_words == 2:
                key |= np.uint64(words[at + one]) << np.uint64(32)
            coordinates[place] = np.int64(key) + base
            sums[place, 0] = words[at + skipped]
            if sums.shape[1] == 2:
                sums[place, 1] = words[at + skipped + one]


# -- sums --------------------------------------------------------------------------------------


@inner
def _single_sum(values: Any, first: int, last: int) -> float:
    """The sum of float64 given by their bits, NaN if one float64 does not hold it."""
    total = np.uint64(values[np.uint64(first)]).view(np.float64)
    for index in range(np.uint64(first + 1), np.uint64(last)):
        total = add_exactly(total, np.uint64(values[index]).view(np.float64))
    return total


@inner
def _pair_sum(values: Any, first: int, last: int) -> tuple[float, float]:
    """The sum of float64 given by their bits, as a pair."""
    high, low = np.uint64(values[np.uint64(first)]).view(np.float64), 0.0
    for index in range(np.uint64(first + 1), np.uint64(last)):
        high, low = add_to_pair(high, low, np.uint64(values[index]).view(np.float64))
    return high, low


@inner
def _integer_sum(values: Any, first: int, last: int, kind: int) -> tuple[Any, bool]:
    """The bits of a sum, and whether 64 bits hold it."""
    half = np.uint64(32)
    total, upper = np.uint64(0), np.int64(0)
    for index in range(first, last):
        value = np.uint64(values[index])
        total += value
        upper += np.int64(value) >> 32 if kind == SIGNED else np.int64(value >> half)
    upper += (np.int64(total) - (upper << 32)) >> 32
    if kind == SIGNED:
        return total, (upper >= -(2**31)) & (upper < 2**31)
    return total, (upper >= 0) & (upper < 2**32)


@inner
def _bits(value: float, narrow: int, words: Any) -> Any:
    """The bits of a sum in the form that ``narrow`` says: see :func:`sum_buckets`."""
    if narrow == 0:
        return np.float64(value).view(np.uint64)
    if narrow == 1:
        return np.uint64(np.float32(value).view(np.uint32))
    return np.uint64(encode(value, words))


# -- heavy buckets -----------------------------------------------------------------------------


@entry
def condense(
    words: Any,
    key_words: int,
    width: int,
    kind: int,
    start: int,
    stop: int,
    piece: int,
    room: Any,
    ranges: Any,
    places: Any,
) -> int:
    """Replace equal keys by fewer entries with the same sum, in place; returns the new ``stop``.

    Equal keys are looked for within every ``piece`` entries, for which ``room`` has its columns.
    """
    end = start
    for first in range(start, stop, piece):
        last = min(first + piece, stop)
        load(words, key_words, width, first, last, kind, room)
        sort_loaded(room, last - first, ranges, places)
        end = _condense_runs(words, key_words, width, kind, end, last - first, room)
    return end


@inner
def _condense_runs(
    words: Any, key_words: int, width: int, kind: int, end: int, size: int, room: Any
) -> int:
    """Write sorted entries, or fewer of the same sums, at ``end``; returns the new end."""
    addends, keys, values = room[0], room[2], room[3]
    first = np.int64(0)
    while first < size:
        last = _end_of_run(keys, first, size)
        count = _few_addends(values, first, last, kind, addends) if last - first > 1 else 0
        if count == 0 or count > last - first:
            count = last - first
            for index in range(count):
                addends[index] = values[first + index]
        for index in range(count):
            bits = addends[index]
            if kind == SINGLE:
                single = np.float32(np.uint64(bits).view(np.float64))
                bits = np.uint64(single.view(np.uint32))
            _put(words, key_words, width, end, keys[first], bits)
            end += 1
        first = last
    return end


@inner
def _few_addends(values: Any, first: int, last: int, kind: int, addends: Any) -> int:
    """Find a few addends with the sum of a run; how many they are, or 0 if that failed."""
    if kind >= SIGNED:
        addends[0], fits = _integer_sum(values, first, last, kind)
        return 1 if fits else 0
    high, low = _pair_sum(values, first, last)
    if not abs(high + low) < np.inf:
        return 0
    count = 0
    for rest in (high, low):
        if rest != 0 or count == 0:
            addend = rest
            while True:
                if kind == SINGLE:
                    addend = np.float64(np.float32(rest))
                addends[count] = np.float64(addend).view(np.uint64)
                count += 1
                rest -= addend  # noqa: PLW2901  # what is left of it
                if not abs(rest) < np.inf:
                    return 0
                if rest == 0:
                    break
    return count
