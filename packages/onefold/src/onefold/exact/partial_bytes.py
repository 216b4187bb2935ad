r"""A partial sum as bytes, and back; whatever the bytes say is checked before it is used.

Layout: ``ONEFOLD-PARTIAL-1\\n``; the length of the header (8 bytes, little endian) and the header,
JSON; then, little endian and without gaps, as long as the header says: coordinates (int64; only if
sparse), first halves (float64), second halves (float64; only if any), positions of long sums
(int64), their kinds (one byte each), their sizes in bytes (two bytes each), and the sums themselves
(integers in two's complement, in units of 2**-1126). A reader must refuse anything else: other
lengths, a coordinate that is not above the one before it, a half that is not finite.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from onefold.errors import InvalidInput
from onefold.exact.running import MINUS, NAN, PLUS, Long, RunningSums
from onefold.update import DTYPES, Array

__all__ = ["Contents", "read", "write"]

_MAGIC = b"ONEFOLD-PARTIAL-1\n"
_LONG_BYTES_MAX = 512
_FIELDS = {"dtype", "shape", "entries", "pairs", "longs", "count", "weight"}


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a partial sum consists of."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    coordinates: npt.NDArray[np.int64] | None
    sums: RunningSums
    count: int
    weight: int


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
        "shape": list(partial.shape),
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
    reader = _Reader(bytes(data))
    _require(reader.take(len(_MAGIC)) == _MAGIC, "it does not start as one")
    header = _header(reader.take(int.from_bytes(reader.take(8), "little")))
    shape, entries = (
        tuple(cast("list[int]", header["shape"])),
        cast("int | None", header["entries"]),
    )
    coordinates = None
    size = math.prod(shape) * (1 if entries is None else entries)
    if entries is not None:
        coordinates = cast(
            "np.ndarray[tuple[int], np.dtype[np.int64]]", reader.array("<i8", entries)
        )
        _require(bool((coordinates[1:] > coordinates[:-1]).all()), "coordinates do not ascend")
    sums = RunningSums(_finite(reader, size), _finite(reader, size) if header["pairs"] else None)
    sums.longs = _longs(reader, cast("int", header["longs"]), size)
    _require(reader.is_done(), "there are bytes left over")
    count, weight = cast("int", header["count"]), cast("int", header["weight"])
    return Contents(DTYPES[cast("str", header["dtype"])], shape, coordinates, sums, count, weight)


def _header(text: bytes) -> dict[str, object]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("this is no partial sum: its header is no JSON") from None
    _require(isinstance(header, dict) and set(header) == _FIELDS, "its header has other fields")
    _require(isinstance(header["dtype"], str) and header["dtype"] in DTYPES, "its dtype is unknown")
    _require(type(header["pairs"]) is bool, "pairs must be true or false")
    shape = header["shape"]
    _require(isinstance(shape, list) and len(shape) <= 64, "its shape is none")
    entries = [] if header["entries"] is None else [header["entries"]]
    counts = [*shape, *entries, header["longs"], header["count"], header["weight"]]
    _require(all(type(count) is int and count >= 0 for count in counts), "a count is none")
    _require(all(count < 2**62 for count in counts[:-2]), "a size is beyond any memory")
    _require(math.prod(max(1, size) for size in shape) < 2**62, "its shape is beyond any memory")
    _require((header["count"] == 0) == (header["weight"] == 0), "count and weight contradict")
    return cast("dict[str, object]", header)


def _finite(reader: _Reader, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = cast("np.ndarray[tuple[int], np.dtype[np.float64]]", reader.array("<f8", size))
    _require(bool(np.isfinite(values).all()), "a half is not finite")
    return values


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
