"""JSON objects, read strictly: what a peer sends is checked before anything is made of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

from onefold.errors import ProtocolError

__all__ = ["PROTOCOL", "Fields", "from_bytes", "to_bytes"]

PROTOCOL = 1
"""The version of everything in this package; a peer of another version is refused."""

_INTEGER_MAX = 2**63 - 1

_T = TypeVar("_T")


def to_bytes(kind: str, value: str, fields: Mapping[str, object]) -> bytes:
    """A message: its protocol, ``kind: value``, and its fields."""
    return json.dumps(
        {"protocol": PROTOCOL, kind: value, **fields},
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    ).encode()


def from_bytes(data: bytes, kind: str, size_max: int) -> tuple[str, Fields]:
    """What :func:`to_bytes` was given: the value of ``kind``, and the other fields.

    Raises:
        ProtocolError: It is too long, no JSON object, or of another protocol.
    """
    if len(data) > size_max:
        raise ProtocolError(f"a message has at most {size_max} bytes; this one has {len(data)}")
    try:
        values = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"expected a JSON object, not {_short(data)}: {error}") from None
    if not isinstance(values, dict):
        raise ProtocolError(f"expected a JSON object, not {_short(data)}")
    protocol = values.pop("protocol", None)
    if type(protocol) is not int or protocol != PROTOCOL:  # True and 1.0 are equal to 1
        raise ProtocolError(
            f"expected protocol {PROTOCOL}, not {_short(data)}; "
            "client and server must be versions of onefold that speak the same"
        )
    value = values.pop(kind, None)
    if not isinstance(value, str):
        raise ProtocolError(f"expected a message with {kind!r} as a string, not {_short(data)}")
    return value, Fields(f"{kind} {value!r}", values)


class Fields:
    """The fields of one JSON object, taken one by one; :meth:`end` refuses what is left.

    Args:
        what: What the object is, for messages.
        values: What was read.
    """

    def __init__(self, what: str, values: object) -> None:
        self._what = what
        if not isinstance(values, dict):
            raise ProtocolError(f"{what} must be an object, not {_short(values)}")
        self._values = dict(values)

    def end(self) -> None:
        """All has been taken.

        Raises:
            ProtocolError: There are fields that nobody asked for.
        """
        if self._values:
            raise ProtocolError(f"{self._what} has unknown fields {sorted(map(str, self._values))}")

    def text(self, name: str) -> str:
        """A string that can be written as UTF-8."""
        value = self._take(name)
        if not isinstance(value, str):
            self._refuse(name, "a string", value)
        try:
            value.encode()
        except UnicodeEncodeError:
            self._refuse(name, "a string of whole characters", value)
        return value

    def integer(self, name: str, least: int = 0) -> int:
        """An integer from ``least`` up that fits 64 bits; true and false are none."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(name, "an integer", value)
        if not least <= value <= _INTEGER_MAX:
            self._refuse(name, f"an integer from {least} to {_INTEGER_MAX}", value)
        return value

    def seconds(self, name: str) -> float:
        """A finite number."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, "a number", value)
        try:
            number = float(value)
        except OverflowError:
            self._refuse(name, "a number of seconds", value)
        if not math.isfinite(number):
            self._refuse(name, "a number of seconds", value)
        return number

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            self._refuse(name, "true or false", value)
        return value

    def optional(self, name: str, read: Callable[[str], _T]) -> _T | None:
        """None for null, else what ``read(name)`` gives."""
        if name in self._values and self._values[name] is None:
            del self._values[name]
            return None
        return read(name)

    def items(self, name: str, read: Callable[[object], _T]) -> tuple[_T, ...]:
        """A list, each of its items given to ``read``."""
        value = self._take(name)
        if not isinstance(value, list):
            self._refuse(name, "a list", value)
        return tuple(read(item) for item in value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        return self.items(name, lambda item: Fields(name, {"item": item}).text("item"))

    def inner(self, name: str) -> Fields:
        """An object within this one."""
        return Fields(f"{name} of {self._what}", self._take(name))

    def raw(self, name: str) -> object:
        """Any JSON value, to be checked by whoever reads it."""
        return self._take(name)

    def names(self) -> tuple[str, ...]:
        """The names that have not been taken."""
        return tuple(self._values)

    def _take(self, name: str) -> object:
        if name not in self._values:
            raise ProtocolError(f"{self._what} lacks the field {name!r}")
        return self._values.pop(name)

    def _refuse(self, name: str, expected: str, value: object) -> NoReturn:
        raise ProtocolError(f"{name!r} of {self._what} must be {expected}, not {_short(value)}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _short(value: object) -> str:
    try:
        text = repr(value)
    except RecursionError:  # it was read where a few calls more were left
        text = f"a {type(value).__name__} nested very deep"
    return text if len(text) <= 80 else f"{text[:77]}..."
