"""A program's lines without trust in its whitespace: which begin a statement, which continue one.

``tokenize`` and ``ast`` give up on text whose indentation is gone. Strings, comments and brackets
do not depend on indentation, and they suffice to tell where each statement begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

__all__ = ["Place", "Scanned", "scan", "unwrapped"]

_TOKEN = re.compile(
    r"""(?P<comment>\#.*)|(?P<triple>\"{3}|'{3})|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<broken>["'].*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<code>[^#"'()\[\]{}]+)"""
)
_CLOSERS = {
    '"""': re.compile(r'(?:[^"\\]|\\.|\\$|"(?!""))*?"""'),
    "'''": re.compile(r"(?:[^'\\]|\\.|\\$|'(?!''))*?'''"),
}
_WAITING = re.compile(r"(?:(?:^|[^\w.])(?:and|or|not|in|is|if|else|for|return|lambda)|[=+\-*/,%])$")
_COMPOUND = re.compile(r"(?:def|class|if|elif|for|while|with|async|except|match)\b")


class Place(Enum):
    """What a line is to the statement that it stands in."""

    STATEMENT = auto()
    COMMENT = auto()
    BRACKET = auto()
    STRING = auto()
    BLANK = auto()


@dataclass(frozen=True, slots=True)
class Scanned:
    """A line, stripped unless it lies in a string.

    Attributes:
        text: The line; as it was where it lies in a string.
        place: What it is to its statement.
        opener: For a line in brackets, the line and column of the innermost open bracket.
        closes: Whether the line begins with a closing bracket.
        code: The text without comments and with strings emptied, for a look at its words.
        open: Whether the statement goes on after this line.
        broken: Whether a string of one line does not end on it.
    """

    text: str
    place: Place
    opener: tuple[int, int] | None
    closes: bool
    code: str
    open: bool
    broken: bool


@dataclass(slots=True)
class _State:
    brackets: list[tuple[int, int]] = field(default_factory=list)
    triple: str = ""
    continued: bool = False


def scan(lines: Sequence[str]) -> list[Scanned]:
    """The lines with their places; text that is no Python gets places too, by the same rules."""
    state = _State()
    return [_scanned(line, index, state) for index, line in enumerate(lines)]


def _scanned(line: str, index: int, state: _State) -> Scanned:
    in_string = bool(state.triple)
    text = line if in_string else line.strip()
    opener = state.brackets[-1] if state.brackets else None
    if in_string:
        place = Place.STRING
    elif opener is not None or state.continued:
        place = Place.BRACKET
    elif not text:
        place = Place.BLANK
    else:
        place = Place.COMMENT if text.startswith("#") else Place.STATEMENT
    code, broken = _consumed(text, index, state)
    state.continued = text.endswith("\\") and not state.triple and not broken
    is_open = bool(state.triple or state.brackets or state.continued)
    return Scanned(text, place, opener, text[:1] in tuple(")]}"), code, is_open, broken)


def _consumed(text: str, index: int, state: _State) -> tuple[str, bool]:
    """The line's code, and whether a string breaks off; the state moves to the line's end."""
    at = 0
    code: list[str] = []
    while at < len(text):
        if state.triple:
            closer = _CLOSERS[state.triple].match(text, at)
            if closer is None:
                return "".join(code), False
            at, state.triple = closer.end(), ""
            continue
        token = _TOKEN.match(text, at)
        assert token is not None  # the alternatives cover every character
        if token["triple"]:
            state.triple = token["triple"]
        elif token["open"]:
            state.brackets.append((index, at))
        elif token["close"] and state.brackets:
            state.brackets.pop()
        elif token["broken"]:
            return "".join(code), True
        if not token["comment"]:
            code.append('""' if token["string"] or token["triple"] else token[0])
        at = token.end()
    return "".join(code), False


def unwrapped(lines: Sequence[str], *, full_only: bool) -> list[str]:
    """The lines with those joined again that a saver broke within a statement.

    Args:
        lines: The lines of a program.
        full_only: Join only after lines that had no room for the next word, as a saver that
            fills lines leaves them; otherwise join every statement into one line.
    """
    width = max(map(len, lines), default=0)
    joined: list[str] = []
    before = _State()  # at the beginning of the last joined line
    physical = ""
    for line in lines:
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        full = full_only and len(physical) + 1 + len(word) >= width
        physical = line
        last = joined[-1] if joined else ""
        after = replace(before, brackets=list(before.brackets))
        seen = _scanned(last, len(joined) - 1, after)
        if last and word and (full or not full_only) and _unfinished(seen, full=full):
            glue = "" if not full and last[-1] in "([{" else " "
            joined[-1] = f"{last.rstrip()}{glue}{line.strip()}"
        else:
            before = after
            joined.append(line)
    return joined


def _unfinished(seen: Scanned, *, full: bool) -> bool:
    """Whether a line cannot be the last of its statement; in a string only a full one is broken."""
    if seen.place is Place.STRING or (seen.open and seen.code.endswith('""')):
        return full and seen.open
    code = seen.code.rstrip()
    if seen.open or seen.broken or _WAITING.search(code):
        return True
    return bool(_COMPOUND.match(code)) and ":" not in code
