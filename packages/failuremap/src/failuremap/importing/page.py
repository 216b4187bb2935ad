"""A published case page, saved as text, read back.

The page in the order of its parts, each found by its own words whatever stands between::

    FA-NNNNN / <domain> / <tier>
    <title> · case NN
    <headings with their texts: root cause, the failure, unsuccessful approach, ...>
    1 / The failure                     a section for each program
        Exit N
        <the program, from its docstring to its raise SystemExit(...)>
        Boundary fixture | Actual | Expected | Outcome
        <a row for each fixture>
        SHA-256 / <hex>
    2 / The unsuccessful fix            more of them are attempts too
    3 / The repair                      held: it may have no program
    <more headings>
    Case digest / <hex>
    Observations recorded using Python X.Y.Z at <ISO time>

A page is read whole or refused: without both programs, each with at least one observation, there
would be nothing to reproduce, and nothing must not look like a pass.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import dataclass, field

from failuremap.errors import ImportFailure
from failuremap.importing.assembly import FoundProgram, published
from failuremap.importing.lines import Line, numbered, plain, spaced
from failuremap.importing.markers import (
    EXIT,
    FIRST_LINE,
    PROGRAM,
    RAISE,
    RECORDED,
    TABLE,
    TITLE,
    Marker,
    ends_program,
    marker,
)
from failuremap.importing.model import PublishedCase, PublishedObservation
from failuremap.importing.tables import read_table

__all__ = ["read_page"]

_BARE_PROGRAM = re.compile(r"\s*(?:[\"'“”‘’]|#!|import \w|from \w+ import |def \w+\(|N\s*=\s*-?\d)")
_AHEAD_MAX = 200
_CUTS_MAX = 500
_PROGRAM_CHARACTERS_MAX = 400_000


def read_page(text: str) -> PublishedCase:
    """The case on a page; ``ImportFailure`` names the line, what was expected and what to do."""
    return _Page(numbered(text)).read()


@dataclass(slots=True)
class _Section:
    role: str
    number: int
    line: int
    program: str = ""
    program_line: int = 0
    exit_code: int | None = None
    observations: tuple[PublishedObservation, ...] = ()
    digest: str | None = None

    def found(self) -> FoundProgram:
        """What stands in the section."""
        where = f"line {self.program_line}"
        return FoundProgram(
            self.role, self.program, self.digest, self.exit_code, self.observations, where
        )


@dataclass(slots=True)
class _Found:
    texts: dict[str, list[str]] = field(default_factory=dict)
    sections: list[_Section] = field(default_factory=list)
    case_digest: str | None = None
    interpreter: str | None = None
    recorded_at: str | None = None


class _Page:
    def __init__(self, lines: list[Line]) -> None:
        self._lines = deque(lines)
        self._last = lines[-1].number
        self._found = _Found()
        self._cuts_left = _CUTS_MAX
        self._section: _Section | None = None
        self._heading: str | None = None

    def read(self) -> PublishedCase:
        first, match = self._first_line()
        title, variant = self._title(first.number)
        while self._lines:
            self._take(self._lines.popleft())
        found = self._found
        self._check_sections()
        programs = [section.found() for section in found.sections if section.program]
        return PublishedCase(
            id=match[1],
            domain=match[2],
            tier=match[3],
            title=title,
            variant=variant,
            texts=tuple((name, " ".join(parts)) for name, parts in found.texts.items()),
            programs=tuple(published(program, match[1]) for program in programs),
            held=tuple(section.role for section in found.sections if not section.program),
            case_digest=found.case_digest,
            interpreter=found.interpreter,
            recorded_at=found.recorded_at,
            form="page",
        )

    def _first_line(self) -> tuple[Line, re.Match[str]]:
        while self._lines and not plain(self._lines[0].text):
            self._lines.popleft()
        line = self._lines.popleft() if self._lines else Line(1, "")
        match = FIRST_LINE.fullmatch(_short(line.text))
        if match is None:
            raise ImportFailure(
                f"line {line.number}: expected `FA-NNNNN / <domain> / <tier>` as the first line of "
                f"a case page, came {line.text[:80]!r}; remove what stands before it, or give a "
                "JSON document or a bundle"
            )
        return line, match

    def _title(self, first: int) -> tuple[str, int]:
        parts: list[str] = []
        while self._lines and len(parts) < 6:
            line = self._lines.popleft()
            match = TITLE.fullmatch(_short(line.text))
            if match is not None:
                self._push(line.number, match[3])
                return " ".join([*parts, match[1]]).strip(), int(match[2])
            if plain(line.text):
                parts.append(plain(line.text))
        raise ImportFailure(
            f"line {first + 1}: expected a title that ends in `· case NN` after the first line; "
            "save the whole page"
        )

    def _push(self, number: int, text: str) -> None:
        if not text.strip():
            return
        self._cuts_left -= 1
        if self._cuts_left < 0:
            raise ImportFailure(
                f"line {number}: expected at most {_CUTS_MAX} headings that share a line with "
                "other text; save one page to one file"
            )
        self._lines.appendleft(Line(number, text))

    def _take(self, line: Line) -> None:
        text = plain(line.text)
        section = self._section
        if section is not None and not section.program and self._program_begins(line):
            self._take_program(section, line)
        elif TABLE.search(text):
            self._take_table(section, line)
        elif section is not None and section.exit_code is None and (exits := EXIT.fullmatch(text)):
            section.exit_code = int(exits[1])
            self._push(line.number, exits[2].lstrip())
        elif (found := marker(text)) is not None:
            self._add(found.before)
            self._take_marker(found, line)
        else:
            self._add(text)

    def _add(self, text: str) -> None:
        if text and self._heading is not None:
            self._found.texts.setdefault(self._heading, []).append(text)

    def _take_marker(self, found: Marker, line: Line) -> None:
        if found.kind == "section":
            self._open(found, line.number)
            self._push(line.number, found.after)
        elif found.kind == "heading":
            self._section, self._heading = None, found.name
            self._found.texts.setdefault(found.name, [])
            self._push(line.number, found.after)
        elif found.kind == "recorded":
            self._take_record(found, line)
        else:
            self._take_digest(found, line)

    def _open(self, found: Marker, number: int) -> None:
        for other in self._found.sections:
            if other.number == found.number:
                raise ImportFailure(
                    f"line {number}: expected each section once, and section {found.number} stands "
                    f"on line {other.line} too; save one page to one file"
                )
        name = found.name.casefold()
        role = "failure" if "fail" in name else "repair"
        if "unsuccessful" in name or "attempt" in name:
            attempts = sum(s.role.startswith("attempt") for s in self._found.sections)
            role = f"attempt-{attempts + 1}"
        if any(role == other.role for other in self._found.sections):
            raise ImportFailure(f"line {number}: expected one section for the {role}, came another")
        self._section, self._heading = _Section(role, found.number, number), None
        self._found.sections.append(self._section)

    def _program_begins(self, line: Line) -> bool:
        text = spaced(line.text)
        if PROGRAM.match(text):
            return True
        section = self._section
        if section is None or section.exit_code is None or not _BARE_PROGRAM.match(text):
            return False
        for later in itertools.islice(self._lines, _AHEAD_MAX):
            if PROGRAM.match(later.text):
                return False
            if ends_program(plain(later.text)):
                break
        return True

    def _take_program(self, section: _Section, line: Line) -> None:
        taken = [line]
        while self._lines and not ends_program(plain(self._lines[0].text)):
            following = self._lines.popleft()
            match = RAISE.fullmatch(following.text)
            if match is not None and match[2]:
                taken.append(Line(following.number, match[1]))
                self._push(following.number, match[2])
            else:
                taken.append(following)
        end = _end_of_program(taken)
        if end is None:
            raise ImportFailure(
                f"line {line.number}: the program of the {section.role} begins here, and its last "
                f"line `raise SystemExit(...)` was expected by line {taken[-1].number}; save the "
                "whole page"
            )
        self._lines.extendleft(reversed(taken[end:]))
        section.program = "\n".join(one.text for one in taken[:end]) + "\n"
        if len(section.program) > _PROGRAM_CHARACTERS_MAX:
            raise ImportFailure(
                f"line {line.number}: expected a program of at most {_PROGRAM_CHARACTERS_MAX} "
                f"characters, came {len(section.program)}"
            )
        section.program_line = line.number

    def _take_table(self, section: _Section | None, line: Line) -> None:
        if section is None or not section.program:
            raise ImportFailure(
                f"line {line.number}: expected a program before the table of its observations, "
                "in a section such as `1 / The failure`; save the whole page"
            )
        if section.observations:
            raise ImportFailure(
                f"line {line.number}: expected one table in section {section.number}, came another"
            )
        section.observations = read_table(self._lines, section.program)

    def _take_record(self, found: Marker, line: Line) -> None:
        text = found.after
        for _ in range(3):
            match = RECORDED.match(text)
            if match is not None:
                self._found.interpreter, self._found.recorded_at = match[1], match[2].strip(".")
                return
            text += " " + (plain(self._lines.popleft().text) if self._lines else "")
        raise ImportFailure(
            f"line {line.number}: expected `Observations recorded using Python X.Y.Z at <ISO time>`"
            f", came {found.after[:80]!r}"
        )

    def _take_digest(self, found: Marker, line: Line) -> None:
        section = self._section
        if found.kind == "source" and (section is None or (section.digest and found.before)):
            self._add(f"{found.name} / {found.after}")  # of something else, a bundle for instance
            return
        digest, rest = self._digest(found.after, line.number)
        self._push(line.number, rest)
        before = self._found.case_digest if section is None else section.digest
        if found.kind == "case":
            before = self._found.case_digest
        if before is not None:
            raise ImportFailure(
                f"line {line.number}: expected one {found.name} here, came another; save one page "
                "to one file"
            )
        if found.kind == "case":
            self._found.case_digest, self._section, self._heading = digest, None, None
        elif section is not None:
            section.digest = digest

    def _digest(self, text: str, number: int) -> tuple[str, str]:
        """A digest that may go on, or only begin, on the next lines; and what follows it."""
        digits = ""
        for _ in range(6):
            match = re.match(r"[\s`*]*([0-9a-fA-F]*)", text)
            piece = match[1][: 64 - len(digits)] if match else ""
            digits += piece
            rest = text[match.start(1) + len(piece) :] if match else text
            if len(digits) == 64:
                return digits.lower(), rest.lstrip("` *")
            if rest.strip("` *") or not self._lines:
                break
            text = self._lines.popleft().text
        raise ImportFailure(
            f"line {number}: expected a SHA-256 of 64 hexadecimal digits, came {len(digits)}; "
            "copy the digest from the published page"
        )

    def _check_sections(self) -> None:
        roles = [section.role for section in self._found.sections]
        for role, heading in (
            ("failure", "1 / The failure"),
            ("attempt-1", "2 / The unsuccessful fix"),
        ):
            if role not in roles:
                raise ImportFailure(
                    f"line {self._last}: the page ends without its section `{heading}`; save the "
                    "whole page"
                )
        for section in self._found.sections:
            if section.program and not section.observations:
                raise ImportFailure(
                    f"line {section.line}: expected a table (Boundary fixture, Actual, Expected, "
                    f"Outcome) with a row for each fixture of the {section.role}; save the whole "
                    "page"
                )
            if not section.program and section.role != "repair":
                raise ImportFailure(
                    f"line {section.line}: expected the program of the {section.role}, from its "
                    "docstring to `raise SystemExit(...)`; save the whole page"
                )


def _short(text: str) -> str:
    """A line of the page's head with single spaces; a line too long for one is cut."""
    return " ".join(plain(text[:1000]).split())


def _end_of_program(taken: list[Line]) -> int | None:
    """How many of the lines are the program: up to the last ``raise SystemExit(...)``, whole."""
    for index in range(len(taken) - 1, -1, -1):
        if taken[index].text.strip().startswith("raise SystemExit"):
            for end in range(index, min(index + 5, len(taken))):
                text = " ".join(line.text for line in taken[index : end + 1])
                if text.count("(") == text.count(")"):
                    return end + 1
            return index + 1
    return None
