"""Splitting a stand-alone program: every piece has its part, and what has none is refused."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_pages import HEADS, page, program

from failuremap.errors import FailureMapError, ImportFailure
from failuremap.importing import read_page
from failuremap.programs.render import without_docstring
from failuremap.programs.split import split_program

PIECES = {
    "imports": "import json\nfrom collections import defaultdict",
    "params": "N = 3",
    "constant": "START = 0",
    "helper": "# the value of a row\ndef value(row):\n    return row[2]",
    "solve": "def solve(rows, step):\n    total = defaultdict(int)\n    for row in rows:\n"
    "        total[row[1]] += value(row) + START\n    return sum(total.values())",
    "observations": "observations = []",
    "view": "def view(item):\n    return json.loads(json.dumps(item))",
    "check": "def check(label, actual, expected):\n    passed = actual == expected\n"
    '    observations.append({"check": label, "actual": view(actual), "passed": passed})',
    "checks": 'rows = [[N, "a", 1]]\ncheck("rows stay", [solve(rows, N), rows], [1, [[N, "a", 1]]])'
    '\n# none at all\ncheck(\n    "none",\n    solve([], N),\n    0,\n)',
    "passed": 'passed = all(item["passed"] for item in observations)',
    "print": 'print(json.dumps({"observations": observations, "passed": passed}))',
    "exit": "raise SystemExit(0 if passed else 1)",
}


def assembled(**changes):
    pieces = PIECES | changes
    return '"""What it is."""\n\n' + "\n\n\n".join(p for p in pieces.values() if p) + "\n"


def names(source, **given):
    scope = dict(given)
    exec(source, scope)
    return scope


def test_each_piece_goes_to_its_part():
    """Implementation and fixtures run apart from each other as they ran together."""
    parts = split_program(assembled())
    assert parts.docstring == "What it is."
    assert parts.params == {"N": 3}
    assert parts.implementation == (
        "from collections import defaultdict\nSTART = 0\n\n\n"
        "# the value of a row\ndef value(row):\n    return row[2]\n\n\n" + PIECES["solve"] + "\n"
    )
    assert parts.fixtures == PIECES["checks"] + "\n"
    asked = []
    solve = names(parts.implementation, N=3)["solve"]
    names(parts.fixtures, N=3, solve=solve, check=lambda *row: asked.append(row))
    assert asked == [("rows stay", [1, [[3, "a", 1]]], [1, [[3, "a", 1]]]), ("none", 0, 0)]


@pytest.mark.parametrize("role", ["failure", "attempt-1"])
@pytest.mark.parametrize("family", HEADS)
def test_published_programs_are_split(family, role):
    """The parts of the programs on our pages give the observations of the whole."""
    found = read_page(page(family, "roomy")).program(role)
    parts = found.split()
    solve = names(parts.implementation, **parts.params)["solve"]
    seen = []

    def check(*row):
        seen.append(row)

    names(parts.fixtures, **parts.params, solve=solve, check=check)
    assert seen == [(row.label, row.actual, row.expected) for row in found.observations]
    assert "json" not in parts.implementation
    assert "check" not in parts.implementation


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.permutations([name for name in PIECES if name not in ("imports", "exit")]))
def test_the_order_of_the_pieces_does_not_matter(order):
    """A piece belongs to a part by what it reaches, wherever it stands."""
    source = '"""What it is."""\n' + "\n\n".join(
        [PIECES["imports"], *(PIECES[name] for name in order), PIECES["exit"]]
    )
    parts, usual = split_program(source), split_program(assembled())
    assert (parts.docstring, parts.params, parts.fixtures) == (
        *(usual.docstring, usual.params),
        usual.fixtures,
    )
    lines = [line for line in parts.implementation.split("\n") if line]
    assert sorted(lines) == sorted(line for line in usual.implementation.split("\n") if line)


def test_main_is_opened():
    """Checks and report may stand in main(), as may the list that check fills."""
    body = "\n".join(PIECES[name] for name in ("checks", "passed", "print"))
    inside = "\n".join(f"    {line}" for line in [*body.split("\n"), "return 0 if passed else 1"])
    source = assembled(
        checks=f'def main():\n    """Run the checks."""\n{inside}',
        passed="",
        print="",
        exit='if __name__ == "__main__":\n    raise SystemExit(main())',
    )
    assert split_program(source) == split_program(assembled())


REPORTS = {
    "capitals": assembled().replace("observations", "OBSERVATIONS"),
    "tolerance": assembled(view="TOLERANCE = 0\n\n\n" + PIECES["view"]).replace(
        "actual == expected", "actual - expected <= TOLERANCE"
    ),
    "counter": assembled(passed="failures = 0\npassed = not failures").replace(
        "    passed = actual == expected",
        "    global failures\n    failures += 1\n    passed = actual == expected",
    ),
    "writing": assembled(
        print="report = json.dumps(observations)\nsys.stdout.write(report)",
        exit="sys.exit(0 if passed else 1)",
        imports="import sys\n" + PIECES["imports"],
    ),
    "class": assembled(
        view="class View:\n    def __new__(cls, item):\n        return item"
    ).replace("view(actual)", "View(actual)"),
}


@pytest.mark.parametrize("source", REPORTS.values(), ids=REPORTS)
def test_the_report_is_known_by_what_it_is_made_from(source):
    """However a program counts, prints and exits, none of it is implementation or fixture."""
    assert split_program(source) == split_program(assembled())


def test_a_constant_of_the_fixtures_is_theirs():
    """What only the checks read is fixture, what only solve reads is implementation, N neither."""
    source = assembled(params="N = 3\nSCALE = 2").replace("solve([], N)", "solve([], N * SCALE)")
    parts = split_program(source)
    assert parts.params == {"N": 3, "SCALE": 2}
    assert "START = 0" in parts.implementation
    assert "START" not in parts.fixtures


REFUSED = {
    "no python": ({"solve": "def solve(:"}, "line 18: expected a Python program"),
    "no solve": ({"solve": ""}, "expected one function `def solve(...)`"),
    "two solves": ({"helper": PIECES["solve"]}, "expected one function `def solve(...)`"),
    "no checks": ({"checks": ""}, 'expected calls check("label", actual, expected)'),
    "no check": ({"check": ""}, "expected a function `def check(label, actual, expected)`"),
    "loop": (
        {"checks": PIECES["checks"] + "\nfor i in range(3):\n    check(i, i, i)"},
        "came `for",
    ),
    "try": ({"passed": "try:\n    passed = True\nfinally:\n    pass"}, "came `try:`"),
    "two on a line": ({"params": "N = 3; M = 4"}, "line 7: expected one statement a line"),
    "main with arguments": ({"exit": "def main(x):\n    pass"}, "expected main() to take no"),
    "call": ({"passed": "solve([], 1)"}, "came `solve([], 1)`"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_refused_by_line(changes, message):
    """A program that is not wholly understood is not split, and the message says where and why."""
    with pytest.raises(ImportFailure, match=re.escape(message)):
        split_program(assembled(**changes))


@pytest.mark.parametrize(
    "source",
    ["", "\0", "x = " + "(" * 5000, "x = " + "-" * 50_000 + "1", "x = " + "1+" * 50_000 + "1"],
    ids=["empty", "null", "parentheses", "signs", "terms"],
)
def test_hostile_programs_are_refused(source):
    """Nothing but the package's own error comes out of a text that is no such program."""
    with pytest.raises(FailureMapError):
        split_program(source)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\f"], ids=["dos", "mac", "form feed"])
def test_lines_end_where_python_ends_them(end):
    """However a program was saved, it is split where the numbers of its lines lead."""
    usual, saved = split_program(assembled()), split_program(assembled().replace("\n", end))
    assert saved.params == usual.params
    for part in ("implementation", "fixtures"):
        kept = [line.strip("\f") for line in getattr(saved, part).split("\n")]
        assert kept == getattr(usual, part).split("\n")
    alone = without_docstring(assembled().replace("\n", end)).replace("\f", "")
    assert alone.strip("\n") == without_docstring(assembled())


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.data())
def test_a_program_cut_anywhere_is_split_or_refused(data):
    """Missing lines give other parts or the package's own error, never another."""
    lines = program("replica", "attempt").source.split("\n")
    kept = data.draw(st.lists(st.sampled_from(range(len(lines))), unique=True, max_size=60))
    with contextlib.suppress(FailureMapError):
        split_program("\n".join(lines[i] for i in sorted(kept)))
