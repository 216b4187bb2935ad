"""The words that give a page its structure, found where saving may have glued them to others.

A heading stands on a line of its own, or its text follows on the same line, or the text before it
runs into it. Prose can contain the same words ("the failure appears when ..."), so a heading that
shares its line must show itself: by capitals throughout, by a colon, or by a capital letter that
follows where a space or a new line was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "EXIT",
    "FENCE",
    "FIRST_LINE",
    "PROGRAM",
    "RAISE",
    "RECORDED",
    "TABLE",
    "TITLE",
    "Marker",
    "ends_program",
    "marker",
]

HEADINGS = {
    "root cause": "root_cause",
    "the failure": "failure",
    "the unsuccessful approach": "attempt",
    "unsuccessful approach": "attempt",
    "the unsuccessful fix": "attempt",
    "unsuccessful fix": "attempt",
    "the case contract": "contract",
    "case contract": "contract",
    "contract": "contract",
    "why this case matters": "why",
    "why it matters": "why",
    "verification and scope": "scope",
    "verification & scope": "scope",
    "evaluation groups": "groups",
    "sources": "sources",
    "source bundle": "downloads",
    "downloads": "downloads",
}

_DOTS = "·•∙⋅‧・∘"
FIRST_LINE = re.compile(r"(FA-\d{5,9})\s*/\s*(\S.*?)\s*/\s*([^/]*[^/\s])\s*")
TITLE = re.compile(rf"(.*?)\s*Â?[{_DOTS}]\s*case\s+(\d{{1,6}})(.*)", re.IGNORECASE)
EXIT = re.compile(
    r"(?:\W*|.{1,60}\W(?=exit\s+-?\d+\W*$))exit(?:\s+(?:code|status))?\s*[:/=]?\s*(-?\d{1,5})"
    r"(?:\s*\*\*)?(.*)",
    re.IGNORECASE,
)
FENCE = re.compile(r"\s*(?:```|~~~)\s*[\w+-]*\s*$")
PROGRAM = re.compile(r"\s*[rRuU]?(?:\"{3}|'{3}|[“”„‟\"]{3}|[‘’']{3})")
RAISE = re.compile(r"(\s*raise SystemExit\s*\((?:[^()]|\([^()]*\))*\))(\s*(?![\s#]).+)?")
RECORDED = re.compile(
    r"Observations?\s+recorded\s+(?:using|with|on|by)\s+(?:C?Python)\s+(\d+\.\d+[\w.+]*)"
    r"\s+(?:at|on)\s+`?([0-9][0-9T:.Z+-]*(?:\s\d\d:\d\d[0-9:.Z+-]*)?(?:\s?UTC)?)`?\.?",
    re.IGNORECASE,
)
TABLE = re.compile(r"boundary\s+fixture\W*actual\W*expected\W*outcome", re.IGNORECASE)

_ANY = "|".join(re.escape(words).replace(r"\ ", r"\s+") for words in HEADINGS)
_UPPER = "|".join(
    re.escape(words.upper()).replace(r"\ ", r"\s+") for words in HEADINGS if " " in words
)
_TITLED = "|".join(
    re.escape(words.capitalize()).replace(r"\ ", r"\s+") for words in HEADINGS if " " in words
)
_ENDED = r"(?<=[.!?…)\]\"'`”’])"
_HEADING = (
    rf"^(?P<whole>(?i:{_ANY}))\s*[:.]?\s*$"
    rf"|(?:^|{_ENDED}\s*)(?P<upper>{_UPPER})(?![A-Z]\b)\s*[:—–]?\s*"
    rf"|(?:^|{_ENDED})(?P<glued>(?i:{_ANY}))(?:\s*[:—–]\s+|(?=[A-Z0-9\"'`“‘\[(])|\s*$)"
    rf"|^(?P<spaced>{_TITLED})\s+(?=[A-Z0-9`])"
)
_SECTION = (
    r"(?<![\d/])(?P<number>[1-9])\s*/\s*(?P<section>(?i:(?:the\s+)?"
    r"(?:(?:first|second|third|fourth|next|other)\s+)?"
    r"(?:failure|failing\s+(?:source|implementation|program)|repair"
    r"|(?:unsuccessful|attempted)\s+(?:fix|approach|attempt|repair)|attempt(?:\s+\d)?)))"
)
_DIGESTS = r"(?P<case>(?i:case\s+digest))\s*[/:]\s*|(?P<source>(?i:SHA[-‐‑– ]?256))\s*[/:]\s*"
_RECORD = r"(?P<recorded>(?i:observations?\s+recorded\s+(?:using|with|on|by)\b))"
_MARKER = re.compile("|".join((_SECTION, _DIGESTS, _RECORD, _HEADING)))


@dataclass(frozen=True, slots=True)
class Marker:
    """What was found in a line.

    Attributes:
        kind: ``section``, ``case`` or ``source`` (digests), ``recorded`` or ``heading``.
        name: For a heading the name of its text; else the words as they stand.
        number: The number of a section, else 0.
        before: The text before it.
        after: The text after it; for ``recorded`` from its own beginning.
    """

    kind: str
    name: str
    number: int
    before: str
    after: str


def marker(text: str) -> Marker | None:
    """The first marker in a line of prose."""
    found = _MARKER.search(text)
    if found is None:
        return None
    before, after = text[: found.start()].strip(), text[found.end() :].strip()
    if found["section"]:
        return Marker("section", found["section"], int(found["number"]), before, after)
    for kind in ("case", "source"):
        if found[kind]:
            return Marker(kind, found[kind], 0, before, after)
    if found["recorded"]:
        return Marker("recorded", "", 0, before, text[found.start() :].strip())
    words = found["whole"] or found["upper"] or found["glued"] or found["spaced"]
    return Marker("heading", HEADINGS[" ".join(words.casefold().split())], 0, before, after)


def ends_program(text: str) -> bool:
    """Whether a line can be no part of a program: a table's heading, a digest, a section."""
    if TABLE.search(text) or FENCE.match(text):
        return True
    found = marker(text)
    return found is not None and not found.before and found.kind != "heading"
