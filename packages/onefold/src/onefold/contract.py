"""The two rules of aggregation in plain Python: the specification that can be run.

1. **Replicas.** Of the rows ``(step, worker, value)``, each worker's *last* row at the step asked
   for wins, and the winners are summed. Rows of other steps neither contribute nor replace.
2. **Coordinates.** Of the rows ``(worker, [(coordinate, value), ...])``, values are summed by
   explicit coordinate, within a worker's list too. A coordinate that nobody sent is absent; one
   that cancels to zero is present.

Everything faster in onefold is tested against these functions, so they are written to be read.

**Why not simply** ``sum``, or ``math.fsum``? A running sum of floats depends on their order, and
so would the result of a retry that arrives late. ``math.fsum`` does not, but it raises an error
where an intermediate sum overflows, loses the sign of ``-0.0`` and knows no ``Fraction``. Here the
sum is exact and a result that had a float in it is rounded once, at the end: to nearest, ties to
even, to infinity beyond the range of float. A NaN among the addends gives NaN, so do opposite
infinities, and otherwise an infinity wins. An exact sum of zero is ``+0.0`` unless every addend is
``-0.0``; a sum too small for a float keeps its sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from onefold.checks import as_integer, show
from onefold.errors import InvalidInput, RowError

__all__ = ["Number", "Worker", "reduce_coordinates", "reduce_replicas"]

Number: TypeAlias = int | float | Fraction
Worker: TypeAlias = str | int


def reduce_replicas(rows: Iterable[object], step: int) -> Number:
    """The sum over workers of each worker's last value at ``step``; 0 without any.

    Args:
        rows: Lists or tuples ``(step, worker, value)`` in the order of their arrival. A worker is
            a str or an int (``1`` and ``"1"`` are two workers), a value an int, float or Fraction.
        step: The step to reduce.

    Returns:
        An int if all the winning values are ints, a Fraction if some are Fractions and none is a
        float, else a float.

    Raises:
        RowError: A row is malformed, of whatever step; ``position`` says which.
        InvalidInput: ``step`` is no integer, or ``rows`` cannot be iterated over.
    """
    wanted = as_integer(step)
    if wanted is None:
        raise InvalidInput(f"a step is an integer, not {show(step)}")
    last: dict[Worker, Number] = {}
    for position, row in enumerate(_rows(rows, "(step, worker, value)")):
        row_step, worker, value = _replica(position, row)
        if row_step == wanted:
            last[worker] = value
    return _exact_sum(list(last.values()))


def reduce_coordinates(rows: Iterable[object]) -> list[list[Number]]:
    """The sum of all values at each coordinate, as ``[[coordinate, sum], ...]`` in order.

    Every row contributes: which row of a worker counts is the matter of the other rule.

    Args:
        rows: Lists or tuples ``(worker, entries)``, where ``entries`` is an iterable of lists or
            tuples ``(coordinate, value)``. Coordinates are ints of any size and sign.

    Raises:
        RowError: A row or one of its entries is malformed; ``position`` says which row.
        InvalidInput: ``rows`` cannot be iterated over.
    """
    addends: dict[int, list[Number]] = {}
    for position, row in enumerate(_rows(rows, "(worker, entries)")):
        for coordinate, value in _entries(position, row):
            addends.setdefault(coordinate, []).append(value)
    return [[coordinate, _exact_sum(addends[coordinate])] for coordinate in sorted(addends)]


def _rows(rows: Iterable[object], form: str) -> Iterator[object]:
    try:
        return iter(rows)
    except TypeError:
        raise InvalidInput(f"expected an iterable of rows {form}, not {show(rows)}") from None


def _exact_sum(values: list[Number]) -> Number:
    floats = [float(value) for value in values if isinstance(value, float)]
    if not floats:
        return sum(values)
    infinite = {value for value in floats if math.isinf(value)}
    if any(map(math.isnan, floats)) or len(infinite) == 2:
        return math.nan
    if infinite:
        return infinite.pop()
    if len(floats) == len(values) and all(map(_is_negative_zero, floats)):
        return -0.0
    return _nearest_float(sum((Fraction(value) for value in values), start=Fraction(0)))


def _nearest_float(exact: Fraction) -> float:
    try:
        return float(exact)  # Python divides two integers with one rounding
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _is_negative_zero(value: float) -> bool:
    return value == 0 and math.copysign(1.0, value) < 0


def _replica(position: int, row: object) -> tuple[int, Worker, Number]:
    if not isinstance(row, list | tuple) or len(row) != 3:
        raise RowError(position, f"expected (step, worker, value), came {show(row)}")
    step = as_integer(row[0])
    if step is None:
        raise RowError(position, f"expected an integer as step, came {show(row[0])}")
    return step, _worker(position, row[1]), _value(position, row[2])


def _entries(position: int, row: object) -> Iterator[tuple[int, Number]]:
    if not isinstance(row, list | tuple) or len(row) != 2:
        raise RowError(position, f"expected (worker, entries), came {show(row)}")
    worker, entries = row
    _worker(position, worker)
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):
        raise RowError(position, f"expected (coordinate, value) pairs, came {show(entries)}")
    for entry in entries:
        yield _entry(position, entry)


def _entry(position: int, entry: object) -> tuple[int, Number]:
    if not isinstance(entry, list | tuple) or len(entry) != 2:
        raise RowError(position, f"expected (coordinate, value), came {show(entry)}")
    coordinate = as_integer(entry[0])
    if coordinate is None:
        raise RowError(position, f"expected an integer as coordinate, came {show(entry[0])}")
    return coordinate, _value(position, entry[1])


def _worker(position: int, worker: object) -> Worker:
    name = worker if isinstance(worker, str) else as_integer(worker)
    if name is None:
        raise RowError(position, f"expected a str or int as worker, came {show(worker)}")
    return name


def _value(position: int, value: object) -> Number:
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return value
    raise RowError(position, f"expected an int, float or Fraction as value, came {show(value)}")
