"""The table of observations: rows of four cells, set off by pipes, tabs or two spaces."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from failuremap.errors import ImportFailure
from failuremap.importing.lines import Line, plain, spaced, straight
from failuremap.importing.literals import NotLiteral, literal
from failuremap.importing.markers import FENCE, TABLE, marker
from failuremap.importing.model import PublishedObservation

__all__ = ["OUTCOMES", "published_label", "read_table"]

ROWS_MAX = 1_000
ROW_LINES_MAX = 8
LINE_CHARACTERS_MAX = 25_000
PIPES_MAX = 60
OUTCOMES = {
    **dict.fromkeys(("pass", "passed", "passes", "ok", "match", "matches", "✓", "✔"), True),
    **dict.fromkeys(("fail", "failed", "fails", "mismatch", "differs", "✗", "✘", "✕"), False),
}
_RULE = frozenset(" \t|:+=-")


def read_table(lines: deque[Line], source: str) -> tuple[PublishedObservation, ...]:
    """Take a table's rows, and what else stands before the next marker, off the lines.

    Args:
        lines: The lines after the table's heading.
        source: The program, in which the labels of its checks can be found.
    """
    rows: dict[str, PublishedObservation] = {}
    begun: list[Line] = []
    while lines and not _ends(lines[0].text):
        line = lines.popleft()
        if _RULE.issuperset(spaced(line.text)):
            continue  # blank, or the rule under the heading
        if len(line.text) > LINE_CHARACTERS_MAX:
            _no_row([line])
        begun.append(line)
        cells = _whole_row(begun, source)
        if cells is None:
            if len(begun) > ROW_LINES_MAX:
                _no_row(begun)
            continue
        row = _row(cells, begun[0].number, source)
        if row.label in rows:
            raise ImportFailure(
                f"{row.where}: expected each fixture once, and {row.label!r} stands on "
                f"{rows[row.label].where} too; each label names one fixture"
            )
        rows[row.label] = row
        begun.clear()
        if len(rows) > ROWS_MAX:
            raise ImportFailure(f"{row.where}: a table has at most {ROWS_MAX} rows")
    if any(mark in line.text for line in begun for mark in "|\t"):
        _no_row(begun)
    return tuple(rows.values())


def _ends(text: str) -> bool:
    if TABLE.search(text) or FENCE.match(text):
        return True
    found = marker(plain(text)) if "|" not in text and "\t" not in text else None
    return found is not None and not found.before


def _no_row(begun: list[Line]) -> NoReturn:
    came = [cell for line in begun for cell in _cells(line.text[:LINE_CHARACTERS_MAX])]
    raise ImportFailure(
        f"line {begun[0].number}: expected a row of four cells (boundary fixture, actual, expected,"
        f" and Pass or Fail as outcome), set off by pipes or tabs, came {str(came)[:200]}"
    )


def _whole_row(begun: list[Line], source: str) -> list[str] | None:
    """The four cells of a row that may stand on several lines; None while it is incomplete."""
    alone = _cells(begun[-1].text)
    if _complete(alone):
        if any(len(_cells(line.text)) > 1 for line in begun[:-1]):
            _no_row(begun[:-1])  # what stands before a whole row is no beginning of it
        if len(begun) == 1 or published_label(alone[0], source) in source:
            return alone
    text = ""
    for line in begun:
        piece = spaced(line.text).strip(" ")
        glue = "" if not text or text.endswith("\t") or piece.startswith("\t") else " "
        text += glue + piece
    cells = _cells(text)
    if len(cells) > 4 and len(begun) == 1:
        _no_row(begun)
    return cells if _complete(cells) else None


def _complete(cells: list[str]) -> bool:
    return len(cells) == 4 and _outcome(cells[3]) is not None


def _cells(text: str) -> list[str]:
    text = spaced(text)
    if "\t" in text:
        return _filled(text.split("\t"))
    if "|" in text:
        for split in _SPLITS if text.count("|") <= PIPES_MAX else ():
            cells = _filled(split(text))
            if _complete(cells):
                return [cell.replace("\\|", "|") for cell in cells]
        return _filled(_SPLITS[0](text))
    return _filled(re.split(" {2,}", text))


def _filled(cells: list[str]) -> list[str]:
    return [cell.strip() for cell in cells if cell.strip()]


def _outside_strings(text: str) -> list[str]:
    """The text cut at the pipes that stand in no quotes."""
    kept = re.sub(
        r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", lambda m: m[0].replace("|", "\0"), text
    )
    return [cell.replace("\0", "|") for cell in kept.split("|")]


_SPLITS: tuple[Callable[[str], list[str]], ...] = (
    lambda text: re.split(r"(?<!\\)\|", text),
    lambda text: re.split(r"(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)", text),
    _outside_strings,
)


def _outcome(cell: str) -> bool | None:
    return OUTCOMES.get(re.sub(r"[^\w✓✔✗✘✕]", "", cell.split(" ", maxsplit=1)[0]).casefold())


def _row(cells: list[str], number: int, source: str) -> PublishedObservation:
    label = published_label(cells[0], source)
    values = []
    for column, cell in (("Actual", cells[1]), ("Expected", cells[2])):
        try:
            values.append(literal(cell))
        except NotLiteral as error:
            raise ImportFailure(
                f"line {number}, fixture {label!r}, column {column}: expected a Python literal, "
                f"came {cell[:80]!r}: {error}; correct the cell by the published page"
            ) from None
    return PublishedObservation(
        label, values[0], values[1], bool(_outcome(cells[3])), f"line {number}"
    )


def published_label(cell: str, source: str) -> str:
    """The label as the program has it, where saving bent its quotes or it stands in backticks."""
    bare = cell[1:-1].strip() if len(cell) > 2 and cell[0] == cell[-1] == "`" else cell
    straightened = straight(bare)
    return straightened if bare not in source and straightened in source else bare
