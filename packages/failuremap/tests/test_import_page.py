"""Reading a page: both layouts give the same case, and whatever is missing is named by its line."""

from __future__ import annotations

import math
import re

import pytest
from published_pages import HEADS, filled, page, program, programs

from failuremap.errors import ImportFailure
from failuremap.importing import DigestStatus, read_document, read_page

LAYOUTS = ("roomy", "dense")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", HEADS)
def test_a_page_gives_back_what_it_was_made_of(family, layout):
    """Head, prose, programs, tables and digests come back whole from either layout."""
    case = read_page(page(family, layout))
    head = HEADS[family]
    assert (case.id, case.domain, case.tier) == (head["id"], head["domain"], head["tier"])
    assert (case.title, case.variant) == (head["title"], int(head["variant"]))
    for name in ("root_cause", "failure", "attempt", "contract", "why", "scope"):
        assert case.text(name) == head[name]
    assert case.text("nothing of that name") == ""
    assert case.held == ("repair",)
    assert case.case_digest == head["case_digest"]
    assert (case.interpreter, case.recorded_at) == ("3.11.7", "2026-01-31T12:00:00Z")
    assert case.form == "page"
    for role, ours in (("failure", "failure"), ("attempt-1", "attempt")):
        found, made = case.program(role), program(family, ours)
        assert found.status is DigestStatus.MATCHES
        assert (found.source, found.digest, found.restored) == (made.source, made.digest, ())
        assert (found.exit_code, found.note) == (1, "")
        rows = tuple((o.label, o.actual, o.expected, o.passed) for o in found.observations)
        assert rows == made.observations
    assert case.program("repair") is None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ending", ["\r\n", "\r", "\r\r\n"])
def test_line_endings_and_marks_of_savers_do_not_matter(layout, ending):
    """A byte order mark, foreign line endings and trailing or unbreakable spaces change nothing."""
    text = page("replica", layout)
    saved = "\ufeff" + text.replace("\n", " " + ending)
    saved = saved.replace("ROOT CAUSE", "root\u00a0cause: ")
    assert_same(read_page(saved), read_page(text), "spaces")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_is_read_in_the_encodings_that_savers_use(encoding):
    """UTF-8, UTF-16 and the western code page give the same case."""
    text = page("sparse", "dense")
    assert read_document(text.encode(encoding), "page.txt") == read_page(text)


def assert_same(left, right, *restored):
    assert (left.texts, left.title, left.held) == (right.texts, right.title, right.held)
    for one, other in zip(left.programs, right.programs, strict=True):
        assert one.source == other.source
        assert one.status is DigestStatus.MATCHES
        assert one.restored == restored
        assert [o.actual for o in one.observations] == [o.actual for o in other.observations]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ROOT CAUSE", "Root cause\n"),
        ("ROOT CAUSE", "ROOT CAUSE "),
        ("ROOT CAUSE", "\n\n  root cause\n\n"),
        ("Case contract", "CASE CONTRACT"),
        ("Case contract", "CASE\u00a0CONTRACT: "),
        ("1 / The failureExit 1", "1 / The failure\n\nExit 1\n\n"),
        ("1 / The failureExit 1", "1 / THE FAILURE Exit 1 "),
        ("Exit 1\n", "attempt.py · exit 1\n"),
        ("SHA-256 / ", "SHA-256 /\n"),
        ("Case digest / ", "case digest /\n  "),
        ("Verification and scope\n", "VERIFICATION AND SCOPE"),
        ("Observations recorded using", "Observations recorded\nusing"),
        ("3 / The repair\n", "3 / The repair (held for members)\n\n"),
        ("Outcome\n", "Outcome\nThe values are those of the recorded run.\n"),
        ("Pass\n", "Passed\n\n"),
        ("\tFail\n", "\t✗ Fail\n"),
        ("\t", " | "),
        ("\t", "   "),
        ("a late row of an older step\t", "a late row\nof an older step\t"),
    ],
)
def test_headings_tables_and_sections_bend(before, after):
    """Letter case, gluing, blank lines and separators do not change what a page says."""
    text = page("replica", "dense")
    assert before in text
    assert_same(read_page(text.replace(before, after)), read_page(text))


def test_prose_may_use_the_words_of_headings():
    """A heading's words inside a sentence, or at the beginning of a wrapped line, are prose."""
    why = "Often\nthe failure appears late, and the case contract is silent.\nRoot cause analysis."
    head = {**HEADS["replica"], "why": why}
    case = read_page(filled("dense", head, programs("replica")))
    assert case.text("why") == why.replace("\n", " ")


def test_a_second_attempt_is_an_attempt():
    """More unsuccessful fixes become attempt-2 and so on, in the order of the page."""
    text = page("replica", "dense")
    section = re.search(r"(?s)2 / The unsuccessful fix.*?(?=3 / The repair)", text)[0]
    again = section.replace("2 / The unsuccessful fix", "3 / The second unsuccessful fix")
    case = read_page(text.replace("3 / The repair", again + "4 / The repair"))
    assert [one.role for one in case.programs] == ["failure", "attempt-1", "attempt-2"]


def test_values_are_python_literals_and_what_repr_prints():
    """Cells keep their types: tuples, floats that are no number, strings with pipes."""
    text = page("replica", "roomy")
    old = "| no rows | `0` | `0` | Pass |"
    assert old in text
    new = "| no rows | `(1, nan, '|')` | [-inf, {'k': “v”}, None, True] | Pass |"
    row = read_page(text.replace(old, new, 1)).program("failure").observations[1]
    assert isinstance(row.actual, tuple)
    assert math.isnan(row.actual[1])
    assert row.actual[2] == "|"
    assert row.expected == [-math.inf, {"k": "v"}, None, True]


ERRORS = [
    ("FA-99296 /", "Case FA-99296 /", "line 1: expected `FA-NNNNN / <domain> / <tier>`"),
    (" · case 01", "", "line 2: expected a title that ends in `· case NN`"),
    ("1 / The failure", "One / The failure", "expected a program before the table"),
    ("2 / The unsuccessful fix", "1 / The unsuccessful fix", "expected each section once"),
    ("2 / The unsuccessful fix", "2 / The failure", "expected one section for the failure"),
    ("raise SystemExit", "sys.exit", "its last line `raise SystemExit(...)` was expected"),
    ("Boundary fixture\tActual", "Fixture\tActual", "expected a table"),
    ("no rows\t0\t0\tPass", "no rows\t0\tPass", "expected a row of four cells"),
    ("no rows\t0\t0\tPass", "no rows\t0\t0\t0\tPass", "expected a row of four cells"),
    ("no rows\t0\t0\tPass", "no rows\t0\t0\tPerhaps", "expected a row of four cells"),
    ("no rows\t0\t0\tPass", "one row\t0\t0\tPass", "expected each fixture once, and 'one row'"),
    ("no rows\t0\t0\tPass", "no rows\tzero\t0\tPass", "fixture 'no rows', column Actual"),
    ("no rows\t0\t0\tPass", "no rows\t0\t0; 1\tPass", "fixture 'no rows', column Expected"),
    ("no rows\t0\t0\tPass", "no rows\t0\t{1, 2}\tPass", "column Expected: expected a Python"),
    ("no rows\t0\t0\tPass", f"no rows\t{'[' * 99}\t0\tPass", "nested more than 60 deep"),
    ("no rows\t0\t0\tPass", f"no rows\t{'9' * 5000}\t0\tPass", "column Actual"),
    ("no rows\t0\t0\tPass", f"no rows\t'{'x' * 20000}'\t0\tPass", "at most 10000 are read"),
    ("Case digest / ", "Case digest / g", "expected a SHA-256 of 64 hexadecimal digits, came 0"),
    (
        "Case digest / ",
        "Case digest / " + "0" * 64 + "\nCase digest / ",
        "expected one Case digest",
    ),
    ("using Python 3.11.7", "using Perl", "expected `Observations recorded using Python X.Y.Z"),
    ('"""FA-99296, a fix', '"""FA-99297, a fix', "says that it is of FA-99297"),
]


@pytest.mark.parametrize(("before", "after", "message"), ERRORS)
def test_what_cannot_be_read_is_named(before, after, message):
    """A page that lacks something is refused, with the line, what was expected and what came."""
    text = page("replica", "dense")
    assert before in text
    with pytest.raises(ImportFailure, match=re.escape(message)) as caught:
        read_page(text.replace(before, after))
    assert re.match(r"line \d+", str(caught.value))


def test_a_bad_cell_is_named_with_its_line():
    """The line of a bad cell is the one that an editor shows."""
    lines = page("sparse", "roomy").split("\n")
    number = next(i for i, line in enumerate(lines, 1) if line.startswith("| one entry"))
    lines[number - 1] = lines[number - 1].replace("[", "<", 1)
    with pytest.raises(ImportFailure, match=f"^line {number}, fixture 'one entry'"):
        read_page("\n".join(lines))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_page_cut_short_is_refused(layout):
    """Wherever a page ends before its last table, it is refused; it never reads as a whole one."""
    lines = page("replica", layout).split("\n")
    last = max(i for i, line in enumerate(lines) if "a late row of an older step" in line)
    for count in [*range(0, last, 7), last - 1]:
        text = "\n".join(lines[:count])
        try:
            case = read_page(text)
        except ImportFailure:
            continue
        attempt = case.program("attempt-1")
        assert len(attempt.observations) < 7 or attempt.digest is None


def test_without_a_published_digest_nothing_is_confirmed():
    """A section without its SHA-256 is read, and says that it cannot be checked."""
    text = re.sub(r"SHA-256 / [0-9a-f]{64}\n", "", page("replica", "dense"))
    for one in read_page(text).programs:
        assert one.status is DigestStatus.UNCHECKED
        assert "no SHA-256 was published" in one.note


def test_digests_of_other_things_are_not_the_sources():
    """A bundle's digest in the prose, also after a table, does not take the source's place."""
    text = page("replica", "dense")
    other = "Source bundle SHA-256 / " + "ab" * 32
    text = text.replace("3 / The repair\n", f"{other}\n3 / The repair\n")
    text = text.replace("Verification and scope\n", f"Verification and scope\n{other}\n")
    assert_same(read_page(text.replace(other, "")), read_page(page("replica", "dense")))
    assert [one.status for one in read_page(text).programs] == [DigestStatus.MATCHES] * 2
