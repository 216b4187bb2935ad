"""Restoring: what the digest confirms comes back to the byte, and nothing else ever matches."""

from __future__ import annotations

import ast
import hashlib
import re

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from published_pages import (
    HEADS,
    bent,
    doubled,
    page,
    program,
    without_blank_lines,
    without_indentation,
)

from failuremap.importing import DigestStatus, read_page
from failuremap.importing import restore as module
from failuremap.importing.restore import CANDIDATES_MAX, restore
from failuremap.importing.scan import scan


def both(source):
    return without_blank_lines(without_indentation(source))


def squeezed(source):
    return re.sub(r"\n\n+", "\n\n", source)


def tabbed(source):
    return source.replace("    ", "\t")


def unbreakable(source):
    return source.replace("  ", "\u00a0 ")


def margin(source):
    return "".join(f"    {line}\n" for line in source.split("\n"))


def wrapped(source):
    """As a saver that fills lines of 72 characters."""
    lines = []
    for line in source.split("\n"):
        rest = line
        while len(rest) > 72:
            cut = rest.rindex(" ", 0, 73)
            lines.append(rest[:cut])
            rest = rest[cut + 1 :]
        lines.append(rest)
    return "\n".join(lines)


DAMAGES = {
    "none": lambda source: source,
    "indentation": without_indentation,
    "blank lines": without_blank_lines,
    "both": both,
    "doubled": doubled,
    "doubled without indentation": lambda source: doubled(without_indentation(source)),
    "one space": lambda source: re.sub(r"(?m)^ +", " ", source),
    "squeezed": squeezed,
    "tabs": tabbed,
    "unbreakable": unbreakable,
    "margin": margin,
    "quotes": bent,
    "quotes and indentation": lambda source: without_indentation(bent(source)),
    "everything": lambda source: both(bent(source)),
    "spaces run together": lambda source: re.sub(" +", " ", without_indentation(source)),
    "trailing": lambda source: source.replace("\n", "  \n"),
    "wrapped": wrapped,
    "final newlines": lambda source: source + "\n\n",
}


def sha256(source):
    return hashlib.sha256(source.encode()).hexdigest()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("role", ["failure", "attempt"])
@pytest.mark.parametrize("family", HEADS)
def test_what_savers_do_is_undone(family, role, damage):
    """Every damage that saving does alone or with another is restored, confirmed by the digest."""
    made = program(family, role)
    outcome = restore(damage(made.source), made.digest)
    assert outcome.status is DigestStatus.MATCHES, outcome.note
    assert outcome.source == made.source
    assert bool(outcome.restored) == (damage(made.source).rstrip("\n") + "\n" != made.source)


@pytest.mark.parametrize("layout", ["roomy", "dense"])
@pytest.mark.parametrize("family", HEADS)
def test_a_page_without_its_whitespace_is_restored(family, layout):
    """Through the page's grammar too, in both layouts, and the table agrees with the program."""
    case = read_page(page(family, layout, both))
    for one in case.programs:
        assert one.status is DigestStatus.MATCHES
        assert one.restored == ("indentation", "blank lines")
        assert one.split().params == {"N": int(HEADS[family]["variant"])}


def test_labels_follow_the_restored_program():
    """Quotes that saving bent in a label are straight again once the program confirms them."""
    text = bent(page("sparse", "dense")).replace("’a’", "'a'")
    labels = [row.label for row in read_page(text).program("failure").observations]
    assert "a worker's empty list" in labels


def test_a_whole_text_that_hashes_otherwise_differs():
    """A changed character in an intact program is a digest that differs, and both are told."""
    made = program("replica", "failure")
    changed = made.source.replace("total += value", "total -= value")
    outcome = restore(changed, made.digest)
    assert outcome.status is DigestStatus.DIFFERS
    assert outcome.source == changed
    assert made.digest in outcome.note
    assert sha256(changed) in outcome.note


@pytest.mark.parametrize(
    "damage", [without_indentation, without_blank_lines, both, doubled], ids=lambda d: d.__name__
)
def test_a_damaged_text_that_hashes_otherwise_cannot_be_checked(damage, monkeypatch):
    """A changed character in a text that lost whitespace is neither a match nor a difference."""
    monkeypatch.setattr(module, "CANDIDATES_MAX", 3_000)
    made = program("replica", "failure")
    changed = made.source.replace("total += value", "total -= value")
    outcome = restore(damage(changed), made.digest)
    assert outcome.status is DigestStatus.UNCHECKED
    assert "save the page with its whitespace" in outcome.note
    assert outcome.restored == ()


def test_the_search_is_bounded_by_a_count(monkeypatch):
    """A program that cannot be confirmed costs the same number of guesses every time."""
    assert CANDIDATES_MAX == 100_000
    monkeypatch.setattr(module, "CANDIDATES_MAX", 20_000)
    text = both(program("sparse", "attempt").source)
    tried = {restore(text, "0" * 64).candidates for _ in range(2)}
    assert len(tried) == 1
    assert tried.pop() == 20_000


HOSTILE = {
    "nothing": "",
    "a newline": "\n",
    "deep blocks": "".join("if x:\n" for _ in range(390)) + "pass\n",
    "flat": "x = 1\n" * 400,
    "long": "x = 1\n" * 50_000,
    "brackets": "(" * 39_000,
    "open strings": "'" * 39_001,
    "triples": '"""' * 13_000,
    "backslashes": "\\\n" * 400,
    "else": "else:\n" * 300,
    "ifs and elses": "if x:\npass\nelse:\n" * 130,
    "loops": "for a in b:\nfor c in d:\nx = 1\ny = 2\n" * 90,
    "functions": "def f():\nx = 1\ny = 2\nreturn x\n" * 95,
    "many kinds": "\n".join(
        f"{a}\n{b}" for a in ("import a", "N = 1", "check()", "print(1)", "x = 1") for b in "xyz"
    ),
    "surrogate": "x = '\ud800'\n",
    "nulls": "x = 1\0\n" * 10,
    "minus": "x = " + "-" * 30_000 + "1\n",
    "plus": "x = " + "1+" * 15_000 + "1\n",
    "commas": "x = f(a,\n" * 300,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_programs_are_answered(text, monkeypatch):
    """Whatever a program's text is, the outcome is a status, after a bounded number of guesses."""
    monkeypatch.setattr(module, "CANDIDATES_MAX", 2_000)
    monkeypatch.setattr(module, "CANDIDATES_MAX_WHOLE", 2_000)
    outcome = restore(text, "0" * 64)
    assert outcome.status in (DigestStatus.DIFFERS, DigestStatus.UNCHECKED)
    assert outcome.candidates <= 2_000


NAMES = st.sampled_from(["rows", "step", "worker", "value", "latest", "seen", "total"])


@st.composite
def blocks(draw, depth, *, loop=False):
    """The lines of a block of code, by the grammar; the last one can be a return."""
    lines = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["plain", "plain", "if", "for", "else"])) if depth else "plain"
        name, other = draw(NAMES), draw(NAMES)
        if kind == "plain":
            lines.append(f"{name} = {other} + {draw(st.integers(0, 9))}")
            continue
        inner = draw(blocks(depth - 1, loop=loop or kind == "for"))
        header = f"for {name} in {other}:" if kind == "for" else f"if {name} == {other}:"
        if (loop or kind == "for") and draw(st.booleans()):
            inner.append("continue")
        lines += [header, *(f"    {line}" for line in inner)]
        if kind == "else":
            lines += ["else:", f"    {name} = {other}"]
    return lines


@st.composite
def sources(draw):
    """Programs in the published form, in the habits of different authors."""
    outer, inner = draw(st.sampled_from([(2, 1), (1, 1), (1, 0), (0, 0), (2, 0)]))
    around, between = "\n" * (outer + 1), "\n" * (inner + 1)
    body = [*draw(blocks(2)), "return total"]
    solve = "\n".join(["def solve(rows, step):", *(f"    {line}" for line in body)])
    helper = "def key(row):\n    return row[1]"
    filled = "observations.append({'check': label, 'actual': actual, 'expected': expected})"
    if draw(st.booleans()):
        filled = "observations.append(\n        {'check': label, 'actual': actual}\n    )"
    checks = [f"check('check {i}', solve([], {i}), {i})" for i in range(draw(st.integers(1, 4)))]
    if draw(st.booleans()):
        checks = [
            call.replace(", ", ",\n    ", 1).replace("solve([],", "solve([],") for call in checks
        ]
        checks = [call[:-1] + ",\n)" for call in checks]
    pieces = [
        '"""A program."""' + between + "import json" + between + f"N = {draw(st.integers(-9, 9))}",
        *([helper] if draw(st.booleans()) else []),
        solve,
        "observations = []",
        f"def check(label, actual, expected):\n    {filled}",
        "\n".join(checks)
        + draw(st.sampled_from(["\n", between]))
        + "passed = all(item['passed'] for item in observations)\n"
        + "report = {'observations': observations, 'passed': passed}\n"
        + "print(json.dumps(report, ensure_ascii=False))\n"
        + "raise SystemExit(0 if passed else 1)\n",
    ]
    return around.join(pieces)


LOSSES = {
    "indentation": without_indentation,
    "blank lines": without_blank_lines,
    "doubled": doubled,
    "quotes": bent,
    "tabs": tabbed,
}


@settings(deadline=None, derandomize=True, max_examples=80)
@given(sources(), st.sampled_from(sorted(LOSSES)))
def test_programs_of_a_case_size_survive_one_loss(source, loss):
    """Any one loss is undone for a solve of about a dozen lines; longer ones exceed the bound."""
    ast.parse(source)
    outcome = restore(LOSSES[loss](source), sha256(source))
    assert outcome.status is DigestStatus.MATCHES, (outcome.note, source)
    assert outcome.source == source


@settings(deadline=None, derandomize=True, max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_changed_character_never_matches(data):
    """Whatever is done to the whitespace beside it, a changed character is never a match."""
    made = program(data.draw(st.sampled_from(sorted(HEADS))), "failure")
    places = [i for i, c in enumerate(made.source) if c.isalnum()]
    place = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from("abcxyz019"))
    assume(other != made.source[place])
    changed = made.source[:place] + other + made.source[place + 1 :]
    damage = DAMAGES[data.draw(st.sampled_from(sorted(DAMAGES)))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CANDIDATES_MAX", 2_000)
        patch.setattr(module, "CANDIDATES_MAX_WHOLE", 2_000)
        outcome = restore(damage(changed), made.digest)
    assert outcome.status is not DigestStatus.MATCHES
    assert outcome.restored == ()
    assert outcome.note


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.text(alphabet="'\"\\#()[]{}: \nax", max_size=60))
@example('"""a\n"""')
def test_the_scanner_reads_anything(text):
    """Any text has a place for each of its lines, and where Python agrees, so do its statements."""
    lines = text.split("\n")
    assert len(scan(lines)) == len(lines)
