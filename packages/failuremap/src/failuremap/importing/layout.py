"""One reading of a program's lines, and the texts that it can be laid out as."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from failuremap.importing.blanks import Gaps, gaps_of
from failuremap.importing.indentation import Statement, levels, statement
from failuremap.importing.literals import python_tree
from failuremap.importing.scan import Place, Scanned, scan, unwrapped

__all__ = ["Brackets", "Layout", "layouts"]

_BLANKS_MAX = 4
"""More blank lines than this in a row are no habit of anybody's."""


class Brackets(StrEnum):
    """How lines inside brackets are indented."""

    HANGING = "hanging"
    """One level deeper than the line that opened; the closing bracket level with that line."""
    HANGING_CLOSE = "hanging, closing bracket too"
    ALIGNED = "aligned with the bracket"
    DOUBLE = "two levels deeper"


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines that hold the program, without its blank lines, and how they are indented.

    Attributes:
        lines: The scanned lines; none is blank outside of strings.
        kept: The lines with the indentation that they came with; None if that is restored.
        starts: For each line, the index among the statements of the one it begins or stands
            above as a comment; None for a line that continues one.
        statements: What is known of each statement.
        blanks: How many blank lines stood on the page above each line but the first.
        brackets: How lines in brackets are indented.
        width: How many spaces make a level.
        restored: What this layout puts back.
    """

    lines: tuple[Scanned, ...]
    kept: tuple[str, ...] | None
    starts: tuple[int | None, ...]
    statements: tuple[Statement, ...]
    blanks: tuple[int, ...]
    brackets: Brackets
    width: int
    restored: tuple[str, ...]

    def levels(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The levels of the statements, likeliest first, with their costs."""
        if self.kept is None:
            yield from levels(self.statements)
        else:
            yield 0, self._kept_levels(self.kept)

    def text(self, chosen: Sequence[int], blanks: Sequence[int]) -> bytes:
        """The program with these levels and numbers of blank lines, ending in one newline."""
        return _spread(self._rows(chosen), [min(blank, _BLANKS_MAX) for blank in blanks])

    def spread(
        self, chosen: Sequence[int], cost: int, restored: tuple[str, ...]
    ) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """The program with these levels, and blank lines of exactly this cost."""
        rows = self._rows(chosen)
        for blanks in self._gaps(chosen).choices(cost):
            yield _spread(rows, blanks), restored

    def _rows(self, chosen: Sequence[int]) -> list[list[bytes]]:
        """Each line after each number of blank lines, so that a text is a mere choice of them."""
        lines = self.kept if self.kept is not None else self._indented(chosen)
        encoded = [line.encode("utf-8", "replace") for line in lines]
        return [[b"\n" * (n + 1) + line for n in range(_BLANKS_MAX + 1)] for line in encoded]

    def _kept_levels(self, kept: Sequence[str]) -> tuple[int, ...]:
        found = [0] * len(self.statements)
        for line, start in zip(kept, self.starts, strict=True):
            if start is not None:  # the statement itself comes after the comments above it
                found[start] = len(line) - len(line.lstrip())
        return tuple(found)

    def _indented(self, chosen: Sequence[int]) -> list[str]:
        columns: list[int] = []
        lines: list[str] = []
        level = 0
        for index, line in enumerate(self.lines):
            start = self.starts[index]
            if start is not None:
                level = chosen[start] * self.width
                column = level
            elif line.place is Place.STRING:
                column = level if self._in_docstring(index) and line.text.strip() else 0
                column = 0 if line.text[:1].isspace() else column
            else:
                column = self._bracket_column(line, columns, level)
            columns.append(column)
            lines.append(" " * column + line.text)
        return lines

    def _in_docstring(self, index: int) -> bool:
        while self.starts[index] is None:
            index -= 1
        return self.lines[index].text.lstrip("rRuU")[:3] in ('"""', "'''")

    def _bracket_column(self, line: Scanned, columns: Sequence[int], level: int) -> int:
        if line.opener is None:  # after a backslash
            return level + self.width
        row, column = line.opener
        opening, indent = self.lines[row], columns[row]
        if self.brackets is Brackets.ALIGNED and opening.text[column + 1 :].strip():
            return indent + column + 1
        if line.closes and self.brackets is not Brackets.HANGING_CLOSE:
            return indent
        return indent + self.width * (2 if self.brackets is Brackets.DOUBLE else 1)

    def _gaps(self, chosen: Sequence[int]) -> Gaps:
        starting = {i: start for i, start in enumerate(self.starts) if start is not None}
        above = {i: chosen[start] for i, start in starting.items()}
        words = {
            i: _word(self.statements[start], self.lines[i], index=start)
            for i, start in starting.items()
        }
        return gaps_of(self.lines, above, words)


def layouts(text: str) -> list[Layout]:
    """The ways to read a program's lines, likeliest first; indentation that serves is kept."""
    found: list[Layout] = []
    raw = text.rstrip("\n").split("\n")
    if not text.strip():
        return []
    readings = [(raw, ())]
    for full_only in (True, False):
        joined = unwrapped(raw, full_only=full_only)
        if all(joined != lines for lines, _ in readings):
            readings.append((joined, ("wrapped lines",)))  # type: ignore[arg-type]
    for lines, restored in readings:
        whole = _is_python("\n".join(lines))
        if whole:
            found.append(_layout(lines, restored, kept=True))
        bracketed = any(line.place is Place.BRACKET for line in scan(lines))
        for width in (4, 2):
            for brackets in Brackets if bracketed and width == 4 else [Brackets.HANGING]:
                put_back = (*restored, "indentation")
                found.append(_layout(lines, put_back, brackets=brackets, width=width))
    return found


def _is_python(text: str) -> bool:
    try:
        python_tree(text)
    except SyntaxError:
        return False
    return True


def _layout(
    lines: Sequence[str],
    restored: tuple[str, ...],
    *,
    kept: bool = False,
    brackets: Brackets = Brackets.HANGING,
    width: int = 4,
) -> Layout:
    scanned, originals, above, blank = [], [], [], 0
    for line, original in zip(scan(lines), lines, strict=True):
        if line.place is Place.BLANK or (not line.text and line.place is Place.BRACKET):
            blank += 1
            continue
        scanned.append(line)
        originals.append(original)
        above.append(blank)
        blank = 0
    # Brackets name lines by their index; without the blank ones the indices are others.
    scanned = scan([line.text for line in scanned])
    starts, statements = _statements(scanned)
    return Layout(
        tuple(scanned),
        tuple(originals) if kept else None,
        starts,
        statements,
        tuple(above[1:]),
        brackets,
        width,
        restored,
    )


def _statements(lines: Sequence[Scanned]) -> tuple[tuple[int | None, ...], tuple[Statement, ...]]:
    """Which statement each line begins, and the statements; comments go with what follows."""
    starts: list[int | None] = []
    codes: list[list[str]] = []
    waiting = False
    for line in lines:
        if line.place in (Place.STATEMENT, Place.COMMENT):
            if not waiting:
                codes.append([])
            starts.append(len(codes) - 1)
            waiting = line.place is Place.COMMENT
        else:
            starts.append(None)
        if codes and line.place is not Place.COMMENT:
            codes[-1].append(line.code)
    return tuple(starts), tuple(statement("".join(code)) for code in codes)


def _word(of: Statement, line: Scanned, *, index: int) -> str:
    """What kind of thing a statement is, as far as blank lines go."""
    if of.word == "" and (index == 0 or line.text[:3] in ('"""', "'''")):
        return "docstring"
    if of.word in ("import", "from"):
        return "future" if "__future__" in line.text else "import"
    if of.word in ("def", "class", "@", "async"):
        return of.word
    if of.word in ("N", "check", "passed", "observations", "print", "raise"):
        return of.word
    return "code" if re.match(r"\w", of.word or "x") else "other"


def _spread(rows: Sequence[Sequence[bytes]], blanks: Sequence[int]) -> bytes:
    after_first = [row[blank] for row, blank in zip(rows[1:], blanks, strict=True)]
    return b"".join((rows[0][0][1:], *after_first, b"\n"))
