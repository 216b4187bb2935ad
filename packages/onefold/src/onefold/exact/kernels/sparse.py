"""Sums of sparse entries whose values are numbers, bucket by bucket.

A bucket whose keys lie close together is added up in a table with a place for every key that there
could be; keys need no sorting then. Any other is sorted, and runs of equal keys are added up. What
is kept of a sum (its *state*, two numbers) depends on the type, as in the dense kernels: one
float64 that becomes NaN when it is not exact, a pair of float64, or for integers the sum and the
sum of the upper halves. If any sum of a table is in doubt the bucket is sorted after all, so that
all addends of that key stand together; the limbs take it from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from onefold.exact.kernels.compiled import by_type, entry, inner
from onefold.exact.kernels.dense import finish_pair
from onefold.exact.kernels.limbs import LIMBS, run
from onefold.exact.kernels.numbers import add_exactly, add_to_pair, encode, mean_of_exact
from onefold.exact.kernels.sorting import begin_sorting, sort_bucket

__all__ = ["emit", "sum_buckets"]

_TABLE = 1 << 15
"""Places in a table: two times 256 KiB, a second level cache."""

_SPARSITY = 16
"""A table is used if no more than so many places fall to one entry."""


@entry
def sum_buckets(
    keys: Any,
    values: Any,
    starts: Any,
    first: int,
    last: int,
    divisor: int,
    results: Any,
    counts: Any,
    misfits: Any,
) -> None:
    """Add up buckets ``first`` to before ``last``, in place.

    Args:
        keys: Unsigned; bucket after bucket.
        values: float32, float64 or int64.
        starts: Where each bucket starts, and at last the number of entries.
        first: The first bucket.
        last: The one after the last.
        divisor: From 1 to 2**53.
        results: ``values``, seen as the type of the results: float32, float64, int64, or uint32
            for float32 rounded to odd. Those of a bucket begin where the bucket does, and their
            keys are put where its keys were.
        counts: Gets the number of results of each bucket.
        misfits: Gets for each bucket the first result that its type does not hold, else -1.
    """
    largest = 1
    for bucket in range(first, last):
        largest = max(largest, starts[bucket + 1] - starts[bucket])
    room = begin_sorting(keys, values, largest)
    table = begin_table(values)
    limbs = np.zeros(LIMBS, np.int64)
    ratio = values.itemsize // results.itemsize
    for bucket in range(first, last):
        start, stop = starts[bucket], starts[bucket + 1]
        misfits[bucket] = -1
        count = -1
        target = results[ratio * start : ratio * stop]
        if stop - start > 1:
            count = _by_table(keys, values, start, stop, divisor, target, room, table)
        if count < 0:
            sort_bucket(keys, values, start, stop, room)
            count, misfit = _by_runs(keys, start, stop, divisor, target, room, limbs)
            misfits[bucket] = misfit
        counts[bucket] = count


@inner
def _by_table(
    keys: Any, values: Any, start: int, stop: int, divisor: int, results: Any, room: Any, table: Any
) -> int:
    """The number of results; -1 if a table does not suit the bucket, which is then unchanged."""
    least = most = keys[start]
    for index in range(start, stop):
        least, most = min(least, keys[index]), max(most, keys[index])
    span = np.uint64(most) - np.uint64(least)
    if span >= _TABLE or span > np.uint64(_SPARSITY * (stop - start)):
        return -1
    states, more_states, seen = table
    for index in range(start, stop):
        place = np.uint64(keys[index] - least)
        state = accumulate(states[place], more_states[place], values[index])
        states[place], more_states[place] = state
        seen[place] = 1
    return _collect(keys, start, np.int64(span) + 1, least, divisor, results, room, table)


@inner
def _collect(
    keys: Any,
    start: int,
    size: int,
    least: Any,
    divisor: int,
    results: Any,
    room: Any,
    table: Any,
) -> int:
    """Bring the results to the front, and clear the table."""
    states, more_states, seen = table
    found, all_sure = 0, True
    sums = room[1].view(results.dtype)
    for place in range(size):
        if seen[place]:
            result, sure = finish(states[place], more_states[place], divisor, results)
            room[0][found] = np.uint64(least) + np.uint64(place)
            sums[found] = result
            all_sure &= sure
            found += 1
            seen[place] = 0
            states[place], more_states[place] = nothing(states)
    if not all_sure:
        return -1
    for index in range(found):
        keys[start + index] = room[0][index]
        results[index] = sums[index]
    return found


@inner
def _by_runs(
    keys: Any, start: int, stop: int, divisor: int, results: Any, room: Any, limbs: Any
) -> tuple[int, int]:
    """The number of results, and the first that does not fit its type, or -1."""
    sorted_keys, sorted_values = room[0], room[1]
    size = stop - start
    found, misfit, first = 0, -1, 0
    while first < size:
        key = sorted_keys[first]
        state, more_state = nothing(state_like(sorted_values))
        last = first
        while last < size and sorted_keys[last] == key:
            state, more_state = accumulate(state, more_state, sorted_values[last])
            last += 1
        result, sure = finish(state, more_state, divisor, results)
        if not sure:
            result = settle(limbs, sorted_values, first, last, divisor, results)
            if misfit < 0:
                misfit = found
        keys[start + found], results[found] = key, result
        found += 1
        first = last
    return found, misfit


@entry
def emit(
    keys: Any,
    results: Any,
    starts: Any,
    places: Any,
    first: int,
    last: int,
    base: int,
    ratio: int,
    coordinates: Any,
    sums: Any,
) -> None:
    """Copy the results of buckets to where they belong, ``places``, in the whole."""
    for bucket in range(first, last):
        start, place = starts[bucket], places[bucket]
        for index in range(places[bucket + 1] - place):
            coordinates[place + index] = np.int64(keys[start + index]) + base
            sums[place + index] = results[ratio * start + index]


# -- the state of a sum, by type ---------------------------------------------------------------


@by_type
def state_like(values: Any) -> Any:
    """An array of the type that a state of these values has."""
    kind = np.int64 if values.dtype == types.int64 else np.float64
    return lambda values: np.empty(0, kind)


@by_type
def begin_table(values: Any) -> Any:
    """Empty states, in two arrays, and which of them are in use."""
    if values.dtype == types.int64:

        def integers(values: Any) -> Any:
            states = np.zeros(_TABLE, np.int64)
            return states, np.zeros(_TABLE, np.int64), np.zeros(_TABLE, np.uint8)

        return integers

    def floats(values: Any) -> Any:
        return np.full(_TABLE, -0.0), np.zeros(_TABLE), np.zeros(_TABLE, np.uint8)

    return floats


@by_type
def nothing(states: Any) -> Any:
    """The state of no addends."""
    if states.dtype == types.int64:
        return lambda states: (np.int64(0), np.int64(0))
    return lambda states: (-0.0, 0.0)


@by_type
def accumulate(state: Any, more_state: Any, value: Any) -> Any:
    """The state with one more addend."""
    if value == types.float32:
        return lambda state, more_state, value: (add_exactly(state, np.float64(value)), more_state)
    if value == types.float64:
        return lambda state, more_state, value: add_to_pair(state, more_state, value)
    return lambda state, more_state, value: (state + value, more_state + (value >> 32))


@by_type
def finish(state: Any, more_state: Any, divisor: Any, like: Any) -> Any:
    """The rounded quotient, and whether it is sure, or for integers whether it fits."""
    if state == types.float64:

        def of_pair(state: Any, more_state: Any, divisor: Any, like: Any) -> Any:
            if more_state == 0 and like.itemsize < 8:
                exact = state if divisor == 1 else mean_of_exact(state, np.float64(divisor))
                return encode(exact, like), abs(state) < np.inf
            return finish_pair(state, more_state, divisor, like)

        return of_pair

    def of_integers(state: Any, more_state: Any, divisor: Any, like: Any) -> Any:
        upper = more_state + ((state - (more_state << 32)) >> 32)
        return state, (upper >= -(2**31)) & (upper < 2**31)

    return of_integers


@by_type
def settle(limbs: Any, values: Any, first: Any, last: Any, divisor: Any, like: Any) -> Any:
    """The result by limbs; integers that do not fit have none."""
    if values.dtype == types.int64:
        return lambda limbs, values, first, last, divisor, like: np.int64(0)
    return lambda limbs, values, first, last, divisor, like: run(
        limbs, values, first, last, divisor, like
    )
