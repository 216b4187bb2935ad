"""Text as programs save it: decoded, cut into numbered lines, and cleaned of what saving adds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from failuremap.errors import ImportFailure

__all__ = ["Line", "decode", "numbered", "plain", "spaced", "straight"]

CHARACTERS_MAX = 4_000_000
LINES_MAX = 50_000
LINE_CHARACTERS_MAX = 30_000

_ENDINGS = re.compile("\r\r\n|\r\n|\r|\u2028|\u2029|\x0c|\x0b|\x85")
_WIDE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
_QUOTES = str.maketrans(
    {**dict.fromkeys("“”„‟″", '"'), **dict.fromkeys("‘’‚‛′", "'"), "‐": "-", "‑": "-", "−": "-"}
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its number in the file, from 1; a line that was cut keeps its number."""

    number: int
    text: str


def decode(content: bytes, name: str) -> str:
    """The text of a saved file: UTF-8, UTF-16 with its mark, else Windows' western code page."""
    marked = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    encodings = ["utf-16"] if marked else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ImportFailure(
        f"{name}: expected text in UTF-8, and these bytes are none; save the page again as UTF-8"
    )


def numbered(text: str) -> list[Line]:
    """The lines of a page, with whatever line endings; ``ImportFailure`` beyond the limits."""
    if len(text) > CHARACTERS_MAX:
        raise ImportFailure(
            f"the page has {len(text)} characters, and at most {CHARACTERS_MAX} are read; "
            "save a single case"
        )
    lines = _ENDINGS.sub("\n", text.removeprefix("\ufeff")).split("\n")
    if len(lines) > LINES_MAX:
        raise ImportFailure(
            f"the page has {len(lines)} lines, and at most {LINES_MAX} are read; save a single case"
        )
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_CHARACTERS_MAX:
            raise ImportFailure(
                f"line {number} has {len(line)} characters, and at most {LINE_CHARACTERS_MAX} are "
                "read; save the page with its line breaks"
            )
    return [Line(number, line) for number, line in enumerate(lines, 1)]


def spaced(text: str) -> str:
    """The text with ordinary spaces for all others, and without characters that show nothing."""
    return _INVISIBLE.sub("", _WIDE_SPACES.sub(" ", text))


def straight(text: str) -> str:
    """The text with the quotes and hyphens of a keyboard."""
    return text.translate(_QUOTES)


def plain(text: str) -> str:
    """A line of prose: ordinary spaces, none at its ends, and no marks of Markdown around it."""
    text = spaced(text).strip()
    text = re.sub(r"^(?:#{1,6}\s+|>\s+)+", "", text)
    for mark in ("**", "__"):
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
            text = text[2:-2].strip()
    return text
