"""Valid inputs changed in one or a few places, so that what reads them gets past its first check.

Everything is a function of its arguments and of a ``Random``, so that a seed gives an input again.
Two inputs in one are *framed*: the length of the first (four bytes, little endian), it, the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

__all__ = [
    "NASTY_JSON",
    "Mutator",
    "framed",
    "mutated_bytes",
    "mutated_json",
    "mutated_text",
    "mutating_framed",
    "unframed",
]

Mutator: TypeAlias = Callable[[bytes, Random], bytes]

NASTY_JSON = (
    *(
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "1",
        "2",
        "1.0",
        "0.5",
        "1e999",
        "-1e999",
        "1e-999",
    ),
    *("NaN", "Infinity", "-Infinity", "1e16", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "4611686018427387904", "9007199254740993", "9" * 4300, "9" * 4301),
    *("[]", "[0]", "[null]", "[4611686018427387904]", "[0,4611686018427387904]", "[-1]", "[1.0]"),
    *("[9223372036854775807,9223372036854775807]", f"[{','.join(['1'] * 65)}]", '["a","a"]'),
    *(
        "{}",
        '{"a":1,"a":2}',
        '{"":null}',
        '""',
        '"0"',
        '"\\u0000"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
    ),
    *('"w"', '"../../etc/passwd"', '"%s%n"', '"\\"', f'"{"x" * 5000}"', '"\\ufeff"', '"1e999"'),
    *(f"{'[' * 90}{']' * 90}", f"{'[' * 950}{']' * 950}", f"{'[' * 100_000}{']' * 100_000}"),
    *('{"a":' * 500 + "0" + "}" * 500, "[" * 5000, "tru", "1 2", "/**/"),
)
"""JSON, nearly JSON, and what Python's reader takes for JSON, that readers may trip over."""

NASTY_INTEGERS = (
    *(0, 1, -1, 2, 7, 8, 64, 127, 128, 255, 256, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1),
    *(2**32, 2**40, 2**53, 2**62, 2**63 - 1, -(2**31), -(2**63), -2, -8, 2**60, 2**33),
)
NASTY_TEXT = (
    *(
        "",
        "\x00",
        "\ud800",
        "\ufeff",
        "\u202e",
        "９",
        "٣",
        "²",
        " ",
        "\n",
        "\r\n",
        "\t",
        ",",
        "=",
        ":",
    ),
    *("1e999", "nan", "inf", "-inf", "1e-999", "9" * 5000, "1" + "0" * 400, "1/0", "1e9999999999"),
    *(
        "0x10",
        f"0x{'f' * 6000}",
        "1_0",
        "--",
        "::",
        "[::1]",
        "://",
        "\\",
        '"""',
        "'",
        "#",
        "(" * 300,
        "[" * 1200,
    ),
)
_SLOT = "\x01slot\x01"


def framed(first: bytes, second: bytes) -> bytes:
    """Two inputs as one."""
    return len(first).to_bytes(4, "little") + first + second


def unframed(data: bytes) -> tuple[bytes, bytes]:
    """What :func:`framed` was given; of anything else, some two pieces."""
    size = int.from_bytes(data[:4], "little")
    return data[4 : 4 + size], data[4 + size :]


def mutating_framed(first: Mutator, second: Mutator) -> Mutator:
    """Changes the one, the other or both of two inputs."""

    def mutate(data: bytes, rng: Random) -> bytes:
        one, other = unframed(data)
        which = rng.choice((1, 1, 2, 2, 3))
        return framed(
            first(one, rng) if which & 1 else one, second(other, rng) if which & 2 else other
        )

    return mutate


def mutated_bytes(data: bytes, rng: Random) -> bytes:
    """Bits flipped, numbers overwritten, pieces cut, doubled, moved or made up."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
        _change_bytes(changed, rng)
    return bytes(changed)


def _change_bytes(changed: bytearray, rng: Random) -> None:
    size = len(changed)
    at = rng.randrange(size) if size else 0
    span = rng.choice((1, 2, 4, 8, 16, 64, max(1, size // 3)))
    match rng.randrange(8):
        case 0 if size:
            changed[at] ^= 1 << rng.randrange(8)
        case 1 if size:
            changed[at] = rng.randrange(256)
        case 2 | 3 if size:
            width = rng.choice((2, 4, 4, 8, 8))
            at -= at % width if rng.random() < 0.8 else 0
            number = rng.choice(NASTY_INTEGERS) % (1 << 8 * width)
            changed[at : at + width] = number.to_bytes(width, "little")
        case 4:
            del changed[at : at + span]
        case 5:
            changed[at:at] = changed[rng.randrange(size + 1) :][:span]
        case 6:
            changed[at:at] = rng.randbytes(min(span, 64))
        case _:
            del changed[at:]


def mutated_text(data: bytes, rng: Random) -> bytes:
    """As :func:`mutated_bytes`, and with troublesome words put in, or in the place of others."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    text = data.decode(errors="surrogateescape")
    for _ in range(rng.choice((1, 1, 2, 3))):
        start = rng.randrange(len(text) + 1)
        stop = start + rng.choice((0, 0, 1, 2, 5, 20))
        piece = rng.choice(NASTY_TEXT)
        if rng.random() < 0.4:
            other = rng.randrange(len(text) + 1)
            piece = text[other : other + rng.choice((1, 3, 10, 40, 200))] * rng.choice(
                (1, 1, 2, 50)
            )
        text = text[:start] + piece + text[stop:]
    return text.encode(errors="surrogatepass" if rng.random() < 0.5 else "replace")


def mutated_json(data: bytes, rng: Random) -> bytes:
    """A document with a value, a name or a part of its tree changed; seldom its bytes."""
    if rng.random() < 0.1:
        return mutated_bytes(data, rng)
    try:
        document = json.loads(data)
        raw: list[str] = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            document = _change_document(document, rng, raw)
        text = json.dumps(document)
    except (ValueError, RecursionError):
        return mutated_bytes(data, rng)
    for value in raw:
        text = text.replace(json.dumps(_SLOT), value, 1)
    return text.encode(errors="surrogatepass")


def _change_document(document: object, rng: Random, raw: list[str]) -> object:
    places = list(_places(document))
    if not places or rng.random() < 0.02:
        raw.append(rng.choice(NASTY_JSON))
        return _SLOT
    holder, key = rng.choice(places)
    value = holder[key]  # type: ignore[index]
    match rng.randrange(10):
        case 0:
            del holder[key]  # type: ignore[attr-defined]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(("", "\ud800", f"{key}x", "protocol", "part"))] = value
        case 2 if isinstance(holder, list):
            holder[key:key] = [value] * rng.choice((1, 2, 70, 1000))
        case 3:
            other_holder, other = rng.choice(places)
            holder[key] = json.loads(json.dumps(other_holder[other]))  # type: ignore[index]
        case 4:
            holder[key] = [value]  # type: ignore[index]
        case 5 if isinstance(value, int):
            holder[key] = value + rng.choice((-1, 1, *NASTY_INTEGERS))  # type: ignore[index]
        case 6 if isinstance(value, str):
            words = [value[: len(value) // 2], value * 2, *NASTY_TEXT]
            holder[key] = rng.choice(words)  # type: ignore[index]
        case _:
            holder[key] = _SLOT  # type: ignore[index]
            raw.append(rng.choice(NASTY_JSON))
    return document


def _places(value: object) -> Sequence[tuple[object, object]]:
    """Each value within a document, as the object or list that holds it and its key there."""
    found: list[tuple[object, object]] = []
    pending = [value]
    while pending and len(found) < 2000:
        holder = pending.pop()
        if isinstance(holder, dict | list):
            items = holder.items() if isinstance(holder, dict) else enumerate(holder)
            for key, inner in list(items):
                found.append((holder, key))
                pending.append(inner)
    return found
