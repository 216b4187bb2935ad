"""Plain values as tagged JSON, so that types stay distinct and floats keep their bits.

``1``, ``1.0`` and ``True`` are equal in Python and different here; so are ``[1]`` and ``(1,)``,
and ``0.0`` and ``-0.0``. Only exact built-in types are values: an instance of a subclass could
compare equal to anything. This module is standard library only: the child process runs it alone.

======================  =======================================
``None``                ``["n"]``
``True``                ``["b", true]``
``12``                  ``["i", "12"]``
``1.0``                 ``["f", "3ff0000000000000"]`` (IEEE 754 bits, every NaN as one)
``"x"``                 ``["s", "x"]``
``[1]``, ``(1,)``       ``["l", [...]]``, ``["t", [...]]``
``{"k": 1}``            ``["d", [[key, value], ...]]``, sorted by the key's tagged text
======================  =======================================
"""

from __future__ import annotations

import json
import math
import struct

DEPTH_MAX = 100
DIGITS_MAX = 4300
"""Python's own default bound on the digits of an integer in text."""
BITS_MAX = 3 * DIGITS_MAX
"""Of an integer: what surely has no more digits than that."""

_NAN = "7ff8000000000000"


class NotAValue(ValueError):
    """Something that is no plain value, or not the tagged form of one."""


def tag(value: object, depth: int = 0) -> list[object]:
    """The tagged form of a plain value; ``NotAValue`` names what cannot be one."""
    if depth > DEPTH_MAX:
        raise NotAValue(f"a value nested more than {DEPTH_MAX} deep")
    kind = type(value)
    if value is None:
        return ["n"]
    if kind is bool:
        return ["b", value]
    if kind is int:
        return ["i", _digits(value)]  # type: ignore[arg-type]
    if kind is float:
        return ["f", _bits(value)]  # type: ignore[arg-type]
    if kind is str:
        return ["s", _text(value)]  # type: ignore[arg-type]
    if kind is list or kind is tuple:
        items = [tag(item, depth + 1) for item in value]  # type: ignore[attr-defined]
        return ["l" if kind is list else "t", items]
    if kind is dict:
        pairs = [[tag(k, depth + 1), tag(v, depth + 1)] for k, v in value.items()]  # type: ignore[attr-defined]
        return ["d", sorted(pairs, key=lambda pair: json.dumps(pair[0]))]
    raise NotAValue(f"{_type_name(kind)} is not a plain value")


def untag(tagged: object, depth: int = 0) -> object:
    """The value of a tagged form; ``NotAValue`` where it is not one."""
    if depth > DEPTH_MAX:
        raise NotAValue(f"a value nested more than {DEPTH_MAX} deep")
    match tagged:
        case ["n"]:
            return None
        case ["b", bool(value)]:
            return value
        case ["i", str(digits)]:
            return _number(digits)
        case ["f", str(bits)]:
            return _from_bits(bits)
        case ["s", str(text)]:
            return _text(text)
        case ["l", list(items)]:
            return [untag(item, depth + 1) for item in items]
        case ["t", list(items)]:
            return tuple(untag(item, depth + 1) for item in items)
        case ["d", list(pairs)]:
            return _from_pairs(pairs, depth)
    raise NotAValue("not the tagged form of a value")


def _digits(value: int) -> str:
    if value.bit_length() > BITS_MAX:
        raise NotAValue(f"an integer of more than {BITS_MAX} bits")
    return str(value)


def _number(digits: str) -> int:
    body = digits[1:] if digits[:1] == "-" else digits
    canonical = body.isascii() and body.isdigit() and (body == "0" or body[0] != "0")
    if not canonical or digits == "-0" or len(body) > DIGITS_MAX:
        raise NotAValue("not the decimal digits of an integer")
    value = int(digits)
    if value.bit_length() > BITS_MAX:
        raise NotAValue(f"an integer of more than {BITS_MAX} bits")
    return value


def _bits(value: float) -> str:
    return _NAN if math.isnan(value) else struct.pack(">d", value).hex()


def _from_bits(bits: str) -> float:
    try:
        value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    except (ValueError, struct.error):
        raise NotAValue("not the 16 hexadecimal digits of a float") from None
    if _bits(value) != bits:
        raise NotAValue("not the canonical bits of a float")
    return value


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotAValue("a string with half of a surrogate pair") from None
    return value


def _from_pairs(pairs: list[object], depth: int) -> dict[object, object]:
    found: dict[object, object] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise NotAValue("not the key and value of a dict")
        key, value = (untag(item, depth + 1) for item in pair)
        try:
            found[key] = value
        except TypeError:
            raise NotAValue("a dict key that cannot be one") from None
    if len(found) != len(pairs):
        raise NotAValue("a dict that states a key twice")
    return found


def _type_name(kind: type) -> str:
    """A type's name, read without running anything that the type may have redefined."""
    name = type.__dict__["__name__"].__get__(kind)
    module = type.__dict__["__module__"].__get__(kind)
    return name if module == "builtins" else f"{module}.{name}"
