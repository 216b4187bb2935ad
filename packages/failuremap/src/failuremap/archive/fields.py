"""Reading TOML tables strictly: every field is known, present and of its type."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from failuremap.errors import ArchiveError

__all__ = ["Table", "read_text", "read_toml"]

BITS_MAX = 4096
"""Of an integer, as in fixtures."""

_WORDS = {str: "a string", int: "an integer", list: "a list", dict: "a table"}


class Table:
    """A table of a file; what is taken from it is checked, and what is left over is an error."""

    def __init__(self, content: Mapping[str, object], file: Path, name: str = "") -> None:
        self._left = dict(content)
        self._file = file
        self._name = f"{name}." if name else ""

    def error(self, field: str, expected: str, came: object) -> ArchiveError:
        """The error for a field that is not what was expected."""
        return ArchiveError(f"{self._file}: {self._name}{field}: expected {expected}, found {came}")

    def take(self, field: str, kind: type, default: object = ...) -> object:
        """A field's value; absent is an error unless there is a default."""
        if field not in self._left:
            if default is ...:
                raise self.error(field, _WORDS[kind], "nothing")
            return default
        value = self._left.pop(field)
        if type(value) is not kind:
            raise self.error(field, _WORDS[kind], repr(value))
        return value

    def text(self, field: str) -> str:
        """A string with something in it that can stand in a docstring."""
        value = str(self.take(field, str)).strip()
        if not value or '"""' in value or "\\" in value:
            raise self.error(field, 'text without """ and without backslashes', repr(value))
        return value

    def texts(self, field: str, default: object = ...) -> tuple[str, ...]:
        """A list of strings."""
        value = self.take(field, list, default)
        items: list[object] = list(value)  # type: ignore[call-overload]
        if not all(isinstance(item, str) and item.strip() for item in items):
            raise self.error(field, "a list of strings", repr(value))
        return tuple(str(item) for item in items)

    def table(self, field: str, default: object = ...) -> Mapping[str, object]:
        """A table within."""
        return self.take(field, dict, default)  # type: ignore[return-value]

    def finish(self) -> None:
        """Nothing may be left: a field that nobody reads is a misspelling."""
        for field in self._left:
            raise self.error(field, "no such field", "one")


def read_text(file: Path) -> str:
    """A file of UTF-8 text; ``ArchiveError`` says what is wrong with it."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ArchiveError(f"{file}: expected a file, found nothing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ArchiveError(f"{file}: cannot be read: {error}") from None


def read_toml(file: Path) -> Table:
    """A TOML file as a table."""
    try:
        content = tomllib.loads(read_text(file))
    except ArchiveError:
        raise
    except (ValueError, RecursionError) as error:  # of too many digits, nested too deep
        raise ArchiveError(f"{file}: not TOML: {error}") from None
    if _has_endless_integer(content):
        raise ArchiveError(f"{file}: expected integers of at most {BITS_MAX} bits, found a longer")
    return Table(content, file)


def _has_endless_integer(content: object) -> bool:
    """Whether there is an integer too long for Python to print; hexadecimal ones can be."""
    pending = [content]
    while pending:
        value = pending.pop()
        if isinstance(value, int) and value.bit_length() > BITS_MAX:
            return True
        pending += value.values() if isinstance(value, dict) else ()
        pending += value if isinstance(value, list) else ()
    return False
