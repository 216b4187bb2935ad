"""A program's text against its published digest, with what saving took from it put back.

Saving a page as text can strip indentation, drop or double blank lines, wrap lines and bend quotes.
None of it can be put back for certain, but a guess can be *confirmed*: a text with the published
SHA-256 is the published text. So guesses are made, likeliest first, and the digest decides. Nothing
but whitespace and the characters that savers swap (quotes, spaces, hyphens) is ever guessed at.

The search is bounded by counts, so that the same page always gives the same answer: at most
``CANDIDATES_MAX`` texts are hashed for a program, of at most ``LINES_MAX`` lines and
``CHARACTERS_MAX`` characters; longer programs are compared as they are.

Where no guess is confirmed, the text as it came is judged. It *differs* if it seems whole: a Python
program with blank lines in it, as every published program has. Else its digest cannot be checked.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from failuremap.importing import blanks, indentation
from failuremap.importing.layout import Layout, layouts
from failuremap.importing.lines import spaced, straight
from failuremap.importing.literals import python_tree
from failuremap.importing.model import DigestStatus

__all__ = ["CANDIDATES_MAX", "Restored", "restore"]

CANDIDATES_MAX = 100_000
CANDIDATES_MAX_WHOLE = 20_000
"""For a text that seems whole: it may still have lost a blank line where there were two."""

WORK_MAX = 400_000
"""Layouts whose blank lines are searched, times the number of lines in them."""

LINES_MAX = 400
CHARACTERS_MAX = 40_000


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome: the text, what became of its digest, what was put back, and why it failed."""

    source: str
    status: DigestStatus
    restored: tuple[str, ...]
    note: str
    candidates: int


def restore(text: str, digest: str | None) -> Restored:
    """Compare a program's text with its published digest, restoring whitespace if need be."""
    source = _final(text)
    if digest is None:
        note = "no SHA-256 was published for this program; nothing confirms its text"
        return Restored(source, DigestStatus.UNCHECKED, (), note, 0)
    tried = 0
    most = CANDIDATES_MAX if _whitespace_lost(source) else CANDIDATES_MAX_WHOLE
    for candidate, restored in itertools.islice(_candidates(source), most):
        tried += 1
        if _sha256(candidate) == digest:
            return Restored(candidate.decode(), DigestStatus.MATCHES, restored, "", tried)
    status, note = _judged(source, digest, tried)
    return Restored(source, status, (), note, tried)


def _final(text: str) -> str:
    return text.rstrip("\n") + "\n"


def _sha256(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


def _encoded(text: str) -> bytes:
    """UTF-8; a lone surrogate, which no published text has, becomes a question mark."""
    return text.encode("utf-8", "replace")


def _judged(source: str, digest: str, tried: int) -> tuple[DigestStatus, str]:
    lost = _whitespace_lost(source)
    if lost is None:
        return DigestStatus.DIFFERS, (
            f"the text hashes to {_sha256(_encoded(source))}, published is {digest}: "
            "the program or its digest was changed; compare both with the published page"
        )
    return DigestStatus.UNCHECKED, (
        f"{lost}, and none of {tried} restorations of it hashes to {digest}; "
        "save the page with its whitespace, or import the JSON or bundle"
    )


def _whitespace_lost(source: str) -> str | None:
    """What the text seems to have lost in saving; None if it seems whole."""
    lines = source.rstrip("\n").split("\n")
    try:
        python_tree(source)
    except SyntaxError as error:
        return f"the text is not Python as it stands (its line {error.lineno}: {error.msg})"
    if len(lines) > 2 and "" not in lines:
        return "the text has no blank lines"
    blank = sum(not line.strip() for line in lines)
    if len(lines) > 4 and 2 * blank >= len(lines) - 1:
        return "the text has a blank line after every line"
    return None


def _candidates(source: str) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Texts that may be the published one, with what was put back to come to them."""
    cleaned = list(_cleaned(source))
    for text, restored in cleaned:
        yield _encoded(text), restored
    if len(source) > CHARACTERS_MAX or source.count("\n") > LINES_MAX:
        return
    found = [
        (layout, cost + extra, (*restored, *layout.restored))
        for cost, (text, restored) in enumerate(_bases(cleaned))
        for extra, layout in enumerate(layouts(text))
    ]
    yield from _as_on_the_page(found)
    yield from _searched(found)


def _bases(
    cleaned: Sequence[tuple[str, tuple[str, ...]]],
) -> list[tuple[str, tuple[str, ...]]]:
    """The cleaned texts to restore whitespace in: those that differ in more than that."""
    seen: set[str] = set()
    bases = []
    for text, restored in cleaned:
        essence = "\n".join(line.strip() for line in text.split("\n"))
        if essence not in seen:
            seen.add(essence)
            bases.append((text, restored))
    return bases


def _right_stripped(text: str) -> str:
    return _final("\n".join(line.rstrip() for line in text.split("\n")))


def _margin(text: str) -> str:
    """The text without the margin that its first line has, which no program begins with."""
    margin = text[: len(text) - len(text.lstrip(" \t"))]
    return "\n".join(line.removeprefix(margin) for line in text.split("\n"))


def _halved(text: str) -> str:
    """The text without every second line, where every second line is blank."""
    lines = text.rstrip("\n").split("\n")
    doubled = len(lines) > 4 and not any(line.strip() for line in lines[1::2])
    return _final("\n".join(lines[::2])) if doubled else text


_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("spaces", lambda text: _margin(_right_stripped(spaced(text)))),
    ("doubled line breaks", _halved),
    ("quotes", straight),
    ("spaces before comments", lambda text: re.sub(r"(?m)(\S) (# )", r"\1  \2", text)),
)


def _cleaned(source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The text as it came, then cleaned of what savers add, in every combination, each once."""
    seen: set[str] = set()
    for chosen in itertools.product((False, True), repeat=len(_STEPS)):
        text = source
        for (_, step), wanted in zip(_STEPS, chosen[::-1], strict=True):
            text = step(text) if wanted else text
        names = tuple(n for (n, _), wanted in zip(_STEPS, chosen[::-1], strict=True) if wanted)
        if text not in seen:
            seen.add(text)
            yield text, names


def _as_on_the_page(
    found: Sequence[tuple[Layout, int, tuple[str, ...]]],
) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Indentation restored, blank lines as they stand: the commonest loss, and few guesses."""
    for layout, _, restored in found:
        if any(layout.blanks):
            for _, levels in layout.levels():
                yield layout.text(levels, layout.blanks), restored


def _searched(
    found: Sequence[tuple[Layout, int, tuple[str, ...]]],
) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Indentation and blank lines restored together, by rising cost of both."""
    listed = [[*layout.levels()] for layout, _, _ in found]
    lines = max((len(layout.lines) for layout, _, _ in found), default=1)
    spreads_left = WORK_MAX // lines
    last = blanks.COST_MAX + indentation.COST_MAX + max((cost for _, cost, _ in found), default=0)
    for total in range(last + 1):
        for (layout, cost, restored), level_choices in zip(found, listed, strict=True):
            for level_cost, levels in level_choices:
                left = total - cost - level_cost
                if 0 <= left <= blanks.COST_MAX:
                    spreads_left -= 1
                    if spreads_left < 0:
                        return
                    yield from layout.spread(levels, left, (*restored, "blank lines"))
