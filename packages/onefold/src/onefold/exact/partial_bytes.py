r"""A partial sum as bytes, and back; whatever the bytes say is checked before it is used.

Layout: ``ONEFOLD-PARTIAL-1\\n``; the length of the header (8 bytes, little endian) and the header,
JSON; then, little endian and without gaps, as long as the header says: coordinates (int64; only if
sparse, whose shape has the declared size first, or null), first halves (float64), second halves
(float64; only if any), positions of long sums (int64), their kinds (one byte each), their sizes in
bytes (two bytes each), and the sums themselves (integers in two's complement, in units of
2**-1126). A reader must refuse anything else: other lengths, a coordinate that is not above the one
before it or outside the shape, a half that is not finite, a fraction in a sum of integers, and a
sum that is larger than so many contributions of so much weight can be.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from onefold.checks import WEIGHT_MAX
from onefold.errors import InvalidInput
from onefold.exact.certain import integers_of
from onefold.exact.running import MINUS, NAN, PLUS, Long, RunningSums
from onefold.update import DTYPES, Array

__all__ = ["COUNT_MAX", "Contents", "Shape", "is_possible", "read", "write"]

_MAGIC = b"ONEFOLD-PARTIAL-1\n"
_LONG_BYTES_MAX = 512
_FIELDS = {"dtype", "shape", "entries", "pairs", "longs", "count", "weight"}
_DIMENSIONS_MAX = 64  # NumPy's
_SIZE_MAX = 2**60  # in bytes, eight times that, NumPy counts in 64 bits
_REPEATS_MAX = _SIZE_MAX
"""A part with more entries at one coordinate would be beyond any memory."""

COUNT_MAX = 2**512
"""Fewer contributions than these: a float64 then holds the weight, and 512 bytes any sum."""

Shape: TypeAlias = tuple[int | None, ...]
"""As of :class:`onefold.update.TensorSpec`: of a sparse sum the first may be None."""


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a partial sum consists of."""

    dtype: np.dtype[np.generic]
    shape: Shape | None
    coordinates: npt.NDArray[np.int64] | None
    sums: RunningSums
    count: int = 0
    weight: int = 0


def write(partial: Contents) -> bytes:
    """The bytes of a partial sum."""
    sums, coordinates = partial.sums, partial.coordinates
    longs = sorted(sums.longs.items())
    totals = [
        long.total.to_bytes(long.total.bit_length() // 8 + 1, "little", signed=True)
        for _, long in longs
    ]
    header = {
        "dtype": partial.dtype.name,
        "shape": None if partial.shape is None else list(partial.shape),
        "entries": None if coordinates is None else int(coordinates.size),
        "pairs": sums.low is not None,
        "longs": len(longs),
        "count": partial.count,
        "weight": partial.weight,
    }
    text = json.dumps(header).encode()
    return b"".join(
        [
            _MAGIC,
            len(text).to_bytes(8, "little"),
            text,
            b"" if coordinates is None else coordinates.astype("<i8").tobytes(),
            sums.high.astype("<f8").tobytes(),
            b"" if sums.low is None else sums.low.astype("<f8").tobytes(),
            np.array([at for at, _ in longs], "<i8").tobytes(),
            bytes(long.kinds for _, long in longs),
            np.array([len(total) for total in totals], "<u2").tobytes(),
            *totals,
        ]
    )


def read(data: bytes) -> Contents:
    """The partial sum that the bytes are.

    Raises:
        InvalidInput: They are none.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidInput(f"a partial sum is read from bytes, not {type(data).__name__}")
    reader = _Reader(bytes(data))
    _require(reader.take(len(_MAGIC)) == _MAGIC, "it does not start as one")
    header = _header(reader.take(int.from_bytes(reader.take(8), "little")))
    size = math.prod(header.row) * (1 if header.entries is None else header.entries)
    coordinates = None if header.entries is None else _coordinates(reader, header)
    limit = _Limit(header)
    sums = RunningSums(
        limit.halves(reader, size), limit.halves(reader, size) if header.pairs else None
    )
    sums.longs = _longs(reader, header.longs, size)
    limit.check_longs(sums.longs.values())
    _require(reader.is_done(), "there are bytes left over")
    return Contents(header.dtype, header.shape, coordinates, sums, header.count, header.weight)


@dataclass(frozen=True, slots=True)
class _Header:
    """What a header says, checked for itself."""

    dtype: np.dtype[np.generic]
    shape: Shape | None
    entries: int | None
    pairs: bool
    longs: int
    count: int
    weight: int

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of what stands at a coordinate; of a dense sum its shape."""
        sizes = (self.shape or ()) if self.entries is None else (self.shape or (None,))[1:]
        return cast("tuple[int, ...]", sizes)


def _header(text: bytes) -> _Header:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("this is no partial sum: its header is no JSON") from None
    _require(isinstance(header, dict) and set(header) == _FIELDS, "its header has other fields")
    dtype, shape, entries, pairs = (header[key] for key in ("dtype", "shape", "entries", "pairs"))
    longs, count, weight = (header[key] for key in ("longs", "count", "weight"))
    _require(isinstance(dtype, str) and dtype in DTYPES, "its dtype is unknown")
    _require(type(pairs) is bool, "pairs must be true or false")
    _require(entries is None or _is_count(entries, _SIZE_MAX), "its number of entries is none")
    _require(_is_count(longs, _SIZE_MAX), "its number of long sums is none")
    _require(_is_count(count, COUNT_MAX), "its count is none")
    _require(_is_count(weight, COUNT_MAX * WEIGHT_MAX), "its weight is none")
    _require(count <= weight <= count * WEIGHT_MAX, "count and weight contradict each other")
    _require(count > 0 or not (longs or entries), "there are sums of nothing")
    if shape is None:
        _require(entries == 0 and count == 0, "its shape is missing")
    else:
        _check_shape(shape, entries)
        shape = tuple(shape)
    return _Header(DTYPES[dtype], shape, entries, pairs, longs, count, weight)


def _check_shape(shape: object, entries: int | None) -> None:
    _require(isinstance(shape, list) and len(shape) <= _DIMENSIONS_MAX, "its shape is none")
    sizes = cast("list[object]", shape)
    if entries is not None:
        _require(bool(sizes), "its shape is none")
        _require(sizes[0] is None or _is_count(sizes[0], 2**63 + 1), "its shape is none")
        sizes = [entries, *sizes[1:]]
    _require(all(_is_count(size, _SIZE_MAX) for size in sizes), "its shape is none")
    _require(is_possible(cast("list[int]", sizes)), "its shape is beyond any memory")


def is_possible(sizes: Sequence[int]) -> bool:
    """Whether an array may have this shape, as far as NumPy can count."""
    return len(sizes) <= _DIMENSIONS_MAX and math.prod(max(1, size) for size in sizes) < _SIZE_MAX


def _is_count(value: object, limit: int) -> bool:
    return type(value) is int and 0 <= value < limit


def _coordinates(reader: _Reader, header: _Header) -> npt.NDArray[np.int64]:
    assert header.entries is not None, "of a sparse sum"
    coordinates = cast("npt.NDArray[np.int64]", reader.array("<i8", header.entries))
    _require(bool((coordinates[1:] > coordinates[:-1]).all()), "coordinates do not ascend")
    size = None if header.shape is None else header.shape[0]
    if size is not None and coordinates.size:
        inside = coordinates[0] >= 0 and int(coordinates[-1]) < size
        _require(bool(inside), "a coordinate is outside its shape")
    return coordinates


class _Limit:
    """What sums of so much weight and of a dtype can be; whoever finishes them relies on it."""

    def __init__(self, header: _Header) -> None:
        self._is_integer = header.dtype.kind in "iu"
        values = header.weight * (1 if header.entries is None else _REPEATS_MAX)
        self._total = values * int(integers_of(np.array([_largest(header.dtype)]))[0])
        # A half may be more than the sum, by what rounding it adds; any float64 is a sum of many.
        is_any = header.weight > 0 and header.dtype == np.float64
        self._half = math.inf if is_any else values * 2.0**129

    def halves(self, reader: _Reader, size: int) -> npt.NDArray[np.float64]:
        """The halves that come next."""
        values = cast("npt.NDArray[np.float64]", reader.array("<f8", size))
        _require(bool(np.isfinite(values).all()), "a half is not finite")
        _require(
            bool((np.abs(values) <= self._half).all()), "a half is more than its weight allows"
        )
        if self._is_integer:
            _require(bool((np.trunc(values) == values).all()), "a sum of integers has a fraction")
        return values

    def check_longs(self, longs: Iterable[Long]) -> None:
        """Refuse a total that cannot be."""
        for long in longs:
            _require(abs(long.total) <= self._total, "a long sum is more than its weight allows")
            if self._is_integer:
                _require(long.kinds == 0, "a sum of integers is not finite")
                _require(long.total % _ONE == 0, "a sum of integers has a fraction")


_ONE = int(integers_of(np.array([1.0]))[0])


def _largest(dtype: np.dtype[np.generic]) -> float:
    """More than which no value of the type is; the narrower types share a bound."""
    return sys.float_info.max if dtype == np.float64 else 2.0**128


def _longs(reader: _Reader, count: int, size: int) -> dict[int, Long]:
    positions = [int(at) for at in reader.array("<i8", count)]
    kinds, sizes = reader.take(count), [int(each) for each in reader.array("<u2", count)]
    _require(positions == sorted(set(positions)), "positions do not ascend")
    _require(not positions or (positions[0] >= 0 and positions[-1] < size), "a position is outside")
    _require(all(kind <= NAN | PLUS | MINUS for kind in kinds), "a kind is unknown")
    _require(all(0 < each <= _LONG_BYTES_MAX for each in sizes), "a long sum has no such size")
    totals = [int.from_bytes(reader.take(each), "little", signed=True) for each in sizes]
    return {at: Long(total, kind) for at, total, kind in zip(positions, totals, kinds, strict=True)}


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidInput(f"this is no partial sum: {otherwise}")


class _Reader:
    """Bytes, taken from the front, and never more than there are."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, size: int) -> bytes:
        _require(0 <= size <= len(self._data) - self._place, "bytes are missing")
        self._place += size
        return self._data[self._place - size : self._place]

    def array(self, dtype: str, size: int) -> Array:
        """A copy of ``size`` numbers, in this machine's byte order."""
        kind = np.dtype(dtype)
        numbers = np.frombuffer(self.take(size * kind.itemsize), kind)
        return numbers.astype(kind.newbyteorder("="), copy=True)

    def is_done(self) -> bool:
        return self._place == len(self._data)
