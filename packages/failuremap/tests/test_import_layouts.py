"""Any case in any layout reads back to what it was; any other text is refused, never worse."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_pages import Program, doubled, page, without_indentation

from failuremap.errors import FailureMapError, ImportFailure
from failuremap.importing import DigestStatus, read_document, read_page, restore

WORDS = st.text("abcdefgh xyz", min_size=3, max_size=30).map(
    lambda text: "A " + " ".join(text.split()) + " z."
)
LABELS = st.text("abc XYZ'|`-_(){}é·", min_size=1, max_size=20).map(
    lambda text: "l " + " ".join(text.split()) + " l"
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.just(math.inf)
    | st.text("ab|'\"é\\\t", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=6,
)


@dataclass(frozen=True)
class Layout:
    """The choices of whoever saved the page."""

    heading: str
    blank: str
    separator: str
    ticks: bool
    glued_exit: bool
    upper_section: bool
    ending: str
    held: bool

    def row(self, cells):
        if self.separator == "\t":
            return "\t".join(cells)
        cells = [cell.replace("|", "\\|") for cell in cells]
        return f"| {' | '.join(cells)} |" if self.separator == "| |" else " | ".join(cells)

    def titled(self, words, text):
        return {
            "own line": f"{words}\n{self.blank}{text}",
            "capitals, own line": f"{words.upper()}\n{self.blank}{text}",
            "capitals, glued": f"{words.upper()}{text}",
            "glued": f"{words}{text}",
            "marked": f"### {words}\n{self.blank}{text}",
            "colon": f"{words}: {text}",
        }[self.heading]

    def section(self, number, words, one):
        words = words.upper() if self.upper_section else words
        exits = f"Exit {one.exit_code}"
        lines = [
            f"{number} / {words}",
            exits + one.source.rstrip("\n") if self.glued_exit else exits + "\n" + one.source,
            self.row(["Boundary fixture", "Actual", "Expected", "Outcome"]),
        ]
        if self.separator != "\t":
            lines.append("|---|---|---|---|")
        for label, actual, expected, passed in one.observations:
            cells = [repr(actual), repr(expected)]
            cells = [f"`{cell}`" for cell in cells] if self.ticks else cells
            lines.append(self.row([label, *cells, "Pass" if passed else "Fail"]))
        return [*lines, f"SHA-256 / {one.digest}"]

    def page(self, model):
        texts = [self.titled(words, text) for words, text in model["texts"].items()]
        parts = [
            f"{model['id']} / {model['domain']} / open",
            f"{model['title']} · case {model['variant']:02d}",
            *texts,
            *self.section(1, "The failure", model["failure"]),
            *self.section(2, "The unsuccessful fix", model["attempt"]),
            *(["3 / The repair"] if self.held else []),
            f"Case digest / {'ab' * 32}",
            "Observations recorded using Python 3.12.0 at 2026-01-01T00:00:00+00:00",
        ]
        return ("\n" + self.blank).join(parts).replace("\n", self.ending)


LAYOUTS = st.builds(
    Layout,
    st.sampled_from(
        ["own line", "capitals, own line", "capitals, glued", "glued", "marked", "colon"]
    ),
    st.sampled_from(["", "\n", "\n\n"]),
    st.sampled_from(["\t", "|", "| |"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", " \n"]),
    st.booleans(),
)


@st.composite
def models(draw):
    def made(role):
        labels = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True))
        rows = tuple((label, draw(VALUES), draw(VALUES), draw(st.booleans())) for label in labels)
        source = f'"""{role}"""\n\nN = {draw(st.integers(0, 99))}\n\n\nraise SystemExit(1)\n'
        return Program(source, draw(st.integers(0, 3)), rows)

    names = ("Root cause", "The failure", "Unsuccessful approach", "Case contract")
    return {
        "id": f"FA-{draw(st.integers(0, 99999)):05d}",
        "domain": draw(WORDS),
        "title": draw(WORDS),
        "variant": draw(st.integers(1, 99)),
        "texts": {name: draw(WORDS) for name in (*names, "Why this case matters")},
        "failure": made("The failure."),
        "attempt": made("An attempt."),
    }


@settings(deadline=None, derandomize=True, max_examples=120)
@given(models(), LAYOUTS)
def test_any_case_in_any_layout_reads_back(model, layout):
    """Whatever a page holds, and however it is laid out, the same case comes out of it."""
    case = read_page(layout.page(model))
    assert (case.id, case.title, case.variant) == (model["id"], model["title"], model["variant"])
    assert case.domain == model["domain"]
    assert [text for _, text in case.texts] == list(model["texts"].values())
    assert case.held == (("repair",) if layout.held else ())
    for role, name in (("failure", "failure"), ("attempt-1", "attempt")):
        found, made = case.program(role), model[name]
        rows = tuple((o.label, o.actual, o.expected, o.passed) for o in found.observations)
        assert repr(rows) == repr(made.observations)
        assert (found.exit_code, found.digest) == (made.exit_code, made.digest)
        assert found.status is DigestStatus.MATCHES
        assert found.source == made.source


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.data())
def test_a_page_with_lines_lost_or_moved_never_matches_more(data):
    """Lines dropped, repeated or swapped: the page is refused, or no changed program matches."""
    lines = page("replica", data.draw(st.sampled_from(["roomy", "dense"]))).split("\n")
    digests = {one.digest: one.source for one in read_page("\n".join(lines)).programs}
    for _ in range(data.draw(st.integers(1, 4))):
        i, j = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        what = data.draw(st.sampled_from(["drop", "repeat", "swap"]))
        if what == "drop":
            del lines[i]
        elif what == "repeat":
            lines.insert(j, lines[i])
        else:
            lines[i], lines[j] = lines[j], lines[i]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restore, "CANDIDATES_MAX", 500)
        patch.setattr(restore, "CANDIDATES_MAX_WHOLE", 500)
        with contextlib.suppress(ImportFailure):
            for one in read_page("\n".join(lines)).programs:
                assert one.observations
                if one.status is DigestStatus.MATCHES:
                    assert one.source == digests[one.digest]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "FA-99296 / a / b",
                    "t · case 01",
                    "1 / The failure",
                    "Exit 1",
                    '"""d."""',
                    "N=1",
                ),
                *("2 / The unsuccessful fix", "raise SystemExit(1)", "a\t1\t1\tPass", "```", ""),
                *("Boundary fixture\tActual\tExpected\tOutcome", "SHA-256 / " + "0" * 64, "| a |"),
                *(
                    "Case digest / " + "0" * 64,
                    "ROOT CAUSE",
                    "3 / The repair",
                    "| a | 1 | 1 | Fail |",
                ),
                "Observations recorded using Python 3.1 at 2026-01-01T00:00:00Z",
            ]
        ),
        max_size=30,
    )
)
def test_the_parts_of_a_page_in_any_order(lines):
    """A heap of a page's own parts is a case or the package's own error, nothing else."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(FailureMapError):
        patch.setattr(restore, "CANDIDATES_MAX", 50)
        patch.setattr(restore, "CANDIDATES_MAX_WHOLE", 50)
        for one in read_document(
            "\n".join(["FA-99296 / a / b", "t · case 1", *lines]), "x"
        ).programs:
            assert one.observations
            assert one.status is not DigestStatus.MATCHES


HEAD = "FA-99296 / a / b\nt · case 01\n"
SECTION = HEAD + "1 / The failure\nExit 1\n"
TABLE = 'x"""d."""\nraise SystemExit(1)\nBoundary fixture\tActual\tExpected\tOutcome\n'
HOSTILE = {
    "nothing": "",
    "spaces": " " * 90_000,
    "many lines": "\n" * 60_000,
    "a long line": HEAD + "a" * 200_000,
    "long": "x" * 5_000_000,
    "slashes": "FA-99296 " + "/ " * 40_000,
    "spaced title": "FA-99296 / a / b\n" + "t" + " " * 90_000 + "t",
    "headings": HEAD + "ROOT CAUSE" * 5_000,
    "stops": HEAD + "." * 50_000 + "ROOT CAUSE",
    "sections": HEAD + "1 / The failure " * 2_000,
    "exits": SECTION + "Exit 1 " * 10_000,
    "imports": SECTION + "import x\n" * 20_000,
    "quotes": SECTION + '"\n' * 20_000,
    "program without end": SECTION + '"""d."""\n' * 20_000,
    "long program": SECTION + '"""d."""\n' + "x = 1\n" * 40_000 + "raise SystemExit(1)\n" + TABLE,
    "parentheses": SECTION + '"""d."""\nraise SystemExit' + "(" * 50_000,
    "closed parentheses": SECTION + '"""d."""\nraise SystemExit' + "()" * 40_000,
    "pipes": SECTION + TABLE[1:] + "|" * 24_000,
    "pipes and ticks": SECTION + TABLE[1:] + "|`" * 12_000,
    "rules": SECTION + TABLE[1:] + "-" * 90_000 + "x",
    "pieces": SECTION + TABLE[1:] + "a\n" * 20_000,
    "rows": SECTION + TABLE[1:] + "".join(f"a{i}\t1\t1\tPass\n" for i in range(2_000)),
    "brackets": SECTION + TABLE[1:] + "a\t" + "[" * 9_000 + "\t1\tPass\n",
    "digest": SECTION + TABLE[1:] + "a\t1\t1\tPass\nSHA-256 /\n" + "0\n" * 500,
    "nulls": "\0" * 1000,
    "surrogates": HEAD + "\ud800" * 100,
    "twice": page("replica", "dense") * 2,
    "doubled": HEAD + doubled(without_indentation("if x:\n  y\n" * 100)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.timeout(60)
def test_hostile_pages_are_refused(text):
    """Huge, endless, nested and contradictory pages are refused with a line, and soon."""
    with pytest.raises(FailureMapError):
        read_page(text)
