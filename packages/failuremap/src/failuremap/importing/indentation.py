"""The levels that a program's statements can stand at, likeliest first, from its words alone.

After a line that ends in a colon the level rises; at every other line it stays or falls, and the
text does not say how far. The grammar rules most of it out (``else`` needs its ``if``, nothing
follows ``return`` in its block), habit orders the rest: a function ends in ``return`` at its first
level, functions and the report stand at none. Each departure from habit costs one; the levels are
listed cost by cost, and both the listing and the work of it are bounded.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["COST_MAX", "Statement", "levels", "statement"]

COST_MAX = 6
WORK_MAX = 2_500_000
"""Partial assignments looked at, over all costs, times the number of statements in them."""

LISTED_MAX = 5_000
LEVEL_MAX = 12
"""Nobody publishes a case that is nested deeper."""

_WORD = re.compile(r"[@\w]+")
_OPENERS = {
    *("def", "class", "if", "elif", "else", "for", "while", "try", "except", "finally", "with"),
    *("async", "match", "case"),
}
_FOLLOWS = {
    "else": {"if", "elif", "for", "while", "except", "async"},
    "elif": {"if", "elif"},
    "except": {"try", "except"},
    "finally": {"try", "except", "else"},
    "case": {"case"},
}
_LEAVES = {"return", "raise", "continue", "break"}
_REPORT = re.compile(
    r"(?:check\(|N\s*=|passed\s*=\s*(?:all|not|bool)\b|observations\s*(?::.*)?=|"
    r"raise SystemExit\b|sys\.exit\(|print\(json|def main\b|if __name__)"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement's first word, and what its words say about where it can stand."""

    word: str
    opens: bool
    report: bool
    method: bool


def statement(code: str) -> Statement:
    """What matters of a statement, from its code without strings and comments."""
    code = code.strip()
    found = _WORD.match(code)
    word = found[0] if found else ""
    if word.startswith("@"):
        word = "@"
    opens = word in _OPENERS and code.endswith(":")
    method = word == "def" and re.match(r"def \w+\((?:self|cls)\b", code) is not None
    return Statement(word, opens, bool(_REPORT.match(code)), method)


@lru_cache(maxsize=4)
def levels(statements: tuple[Statement, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Pairs of a cost and the level of each statement, by rising cost; bounded in number."""
    search = _Search(statements)
    found = ((cost, one) for cost in range(COST_MAX + 1) for one in search.at(cost))
    return tuple(itertools.islice(found, LISTED_MAX))


class _Search:
    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._visits_left = WORK_MAX // max(1, len(statements))
        mains = [i for i, one in enumerate(statements) if one.word == "def" and one.report]
        self._main = mains[0] if mains else len(statements)

    def at(self, budget: int) -> Iterator[tuple[int, ...]]:
        """The assignments that cost exactly this much, depth first on a stack of our own."""
        pending: list[tuple[int, tuple[str, ...], int, tuple[int, ...]]] = [(0, (), budget, ())]
        while pending:
            index, blocks, left, chosen = pending.pop()
            if index == len(self._statements):
                if left == 0:
                    yield chosen
                continue
            self._visits_left -= 1
            if self._visits_left < 0:
                return
            for level, cost in reversed(self._options(index, blocks)):
                if cost <= left:
                    inside = (*blocks[:level], self._statements[index].word)
                    opened = inside if self._statements[index].opens else blocks[:level]
                    pending.append((index + 1, opened, left - cost, (*chosen, level)))

    def _options(self, index: int, blocks: tuple[str, ...]) -> list[tuple[int, int]]:
        """The levels that a statement can stand at, with their costs, cheapest first.

        ``blocks`` holds the first words of the blocks that are open; it still holds those that
        the statement closes by standing further out.
        """
        this = self._statements[index]
        before = self._statements[index - 1] if index else None
        deepest = len(blocks)
        if before is None:
            return [(0, 0)]
        if before.opens or before.word == "@":
            return [(deepest, 0)] if self._may(this, blocks, deepest, first=True) else []
        top = deepest - 1 if before.word in _LEAVES else deepest
        if this.word in _FOLLOWS:
            top = deepest - 1
        found = [
            (level, self._cost(index, blocks, level, top))
            for level in range(top, -1, -1)
            if self._may(this, blocks, level, first=False)
        ]
        return sorted(found, key=lambda option: option[1])

    @staticmethod
    def _may(this: Statement, blocks: tuple[str, ...], level: int, *, first: bool) -> bool:
        if level > LEVEL_MAX:
            return False
        if this.word == "case" and this.opens and first:
            return blocks[-1:] == ("match",)
        if this.word in _FOLLOWS and (this.word != "case" or this.opens):
            return not first and level < len(blocks) and blocks[level] in _FOLLOWS[this.word]
        around = blocks[:level]
        if this.word == "return":
            return "def" in around
        if this.word in ("continue", "break"):
            return "for" in around or "while" in around
        return not (around and around[-1] == "match")

    def _cost(self, index: int, blocks: tuple[str, ...], level: int, top: int) -> int:
        this = self._statements[index]
        around = blocks[:level]
        if this.word in ("def", "class", "import", "from", "@") and not this.method:
            return 0 if level == 0 else 2
        if this.method:
            return 0 if around[-1:] == ("class",) else 2
        if this.report:
            return 0 if level == 0 or (level == 1 and index > self._main) else 3
        after = self._statements[index + 1] if index + 1 < len(self._statements) else None
        if this.word == "return" and (after is None or after.report or after.word in ("def", "@")):
            return 0 if around[-1:] == ("def",) else 1
        return min(top - level, 2)
