"""Reading JSON: facts are found in whatever form, and contradictions are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_pages import HEADS, page, program

from failuremap.errors import FailureMapError, ImportFailure
from failuremap.importing import DigestStatus, read_document


def observations(one):
    return [
        {"check": label, "actual": actual, "expected": expected, "passed": passed}
        for label, actual, expected, passed in one.observations
    ]


def whole(one):
    return {
        "source": one.source,
        "sha256": one.digest,
        "exit_code": one.exit_code,
        "observations": observations(one),
    }


def nested(failure, attempt):
    return {"id": "FA-99296", "failure": whole(failure), "unsuccessful_fix": whole(attempt)}


def listed(failure, attempt):
    fields = [{"role": "failure", **whole(failure)}, {"role": "attempt-1", **whole(attempt)}]
    return {"case": {"id": "FA-99296", "title": "x"}, "programs": fields}


def parallel(failure, attempt):
    both = {"failure": failure, "attempt": attempt}
    return {
        "caseId": "FA-99296",
        "sources": {role: one.source for role, one in both.items()},
        "digests": {role: f"sha256:{one.digest}" for role, one in both.items()},
        "exitCodes": {role: {"exit": one.exit_code} for role, one in both.items()},
        "results": {role: {"observations": observations(one)} for role, one in both.items()},
    }


def flat(failure, attempt):
    return [
        {
            "id": "FA-99296",
            "failure_source": failure.source,
            "failure_source_sha256": failure.digest.upper(),
            "failure_fixtures_sha256": "0" * 64,
            "failure_exit": {"exit": failure.exit_code},
            "failure_observations": observations(failure),
            "attempts": [whole(attempt)],
        }
    ]


@pytest.mark.parametrize("form", [nested, listed, parallel, flat], ids=lambda f: f.__name__)
def test_programs_are_found_in_any_form(form):
    """Sources, digests, exit codes and observations are found and given to their roles."""
    failure, attempt = program("replica", "failure"), program("replica", "attempt")
    case = read_document(json.dumps(form(failure, attempt)), "case.json")
    assert (case.id, case.form) == ("FA-99296", "json")
    assert [one.role for one in case.programs] == ["failure", "attempt-1"]
    for found, made in zip(case.programs, (failure, attempt), strict=True):
        assert found.status is DigestStatus.MATCHES
        assert (found.source, found.digest, found.exit_code) == (made.source, made.digest, 1)
        rows = tuple((o.label, o.actual, o.expected, o.passed) for o in found.observations)
        assert rows == made.observations


def test_what_is_said_of_the_case_is_kept():
    """Head, prose, recording and a held repair are read by their usual names."""
    one = program("replica", "failure")
    document = {
        "id": "FA-99296",
        "domain": "Training",
        "access_tier": "held-repair",
        "title": "Repeats",
        "variant": 1,
        "rootCause": "why it fails",
        "case_digest": "a" * 64,
        "failure": whole(one),
        "repair": {"commitment_sha256": "b" * 64},
        "environment": {"python": "3.12.1", "recorded_at": "2026-01-31T12:00:00Z"},
    }
    case = read_document(json.dumps(document).encode(), "case.json")
    assert (case.domain, case.tier, case.title, case.variant) == (
        *("Training", "held-repair", "Repeats"),
        1,
    )
    assert case.text("root_cause") == "why it fails"
    assert (case.case_digest, case.held) == ("a" * 64, ("repair",))
    assert (case.interpreter, case.recorded_at) == ("3.12.1", "2026-01-31T12:00:00Z")


def test_a_changed_source_differs_and_one_without_digest_is_not_checked():
    """Neither counts as a match."""
    one = program("replica", "failure")
    document = {"id": "FA-99296", "failure": whole(one), "attempt": whole(one)}
    document["failure"]["source"] = one.source.replace("+=", "-=")
    del document["attempt"]["sha256"]
    failure, attempt = read_document(json.dumps(document), "x").programs
    assert failure.status is DigestStatus.DIFFERS
    assert attempt.status is DigestStatus.UNCHECKED


def changed(**fields):
    document = nested(program("replica", "failure"), program("replica", "attempt"))
    return json.dumps(document | fields)


def rows(*fields):
    return {**whole(program("replica", "failure")), "observations": list(fields)}


ROW = {"check": "x", "actual": 1, "expected": 1, "passed": True}

REFUSED = {
    "cut": (changed()[:-5], "expected a JSON document"),
    "deep": ("[" * 100_000, "expected a JSON document"),
    "wide": (json.dumps([0] * 300_000), "expected at most 200000 values"),
    "nested": ("[" * 80 + "]" * 80, "nested at most 60 deep"),
    "twice": ('{"id": "FA-99296", "id": "FA-99297"}', "names a field twice"),
    "no id": (changed(id="none"), "expected the id of one case"),
    "other id": (changed(id="FA-99297"), "says that it is of FA-99296"),
    "no program": ('{"id": "FA-99296"}', "expected programs with a function solve"),
    "no rows": (changed(failure=rows()), "expected observations of the failure"),
    "bad row": (changed(failure=rows({"actual": 1, "expected": 1})), "expected `check`"),
    "bad outcome": (changed(failure=rows(ROW | {"passed": 2})), "expected `check`"),
    "repeated": (changed(failure=rows(ROW, ROW)), "expected each label once"),
    "many": (changed(failure=rows(*[ROW] * 1001)), "at most 1000 observations"),
    "two sources": (
        changed(failing={"code": program("sparse", "failure").source}),
        "expected one source of the failure",
    ),
    "html": ("<!DOCTYPE html><p>", "save the page as plain text"),
    "zip": (b"PK\x03\x04rest", "import it as bundle"),
    "no text": (b"\xff\xfe\x00", "expected text in UTF-8"),
    "empty": (b"", "line 1: expected `FA-NNNNN"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(content, message):
    """A document that lacks something, or says it twice, is refused by its name and place."""
    with pytest.raises(ImportFailure, match=r"^some file: ") as caught:
        read_document(content, "some file")
    assert message in str(caught.value)


def test_a_page_is_told_from_json():
    """What does not begin as JSON is read as a page."""
    for family, head in HEADS.items():
        assert read_document(page(family, "dense"), "page").id == head["id"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["id", "failure", "source", "sha256", "observations", "actual", "expected", "check"]
            ),
            inner
            | st.sampled_from(["FA-99296", "0" * 64, "def solve(x):\n    return x\n", "\ud800"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(json_values)
def test_any_json_is_read_or_refused(value):
    """Nothing but the package's own error comes out of a document, whatever it holds."""
    try:
        case = read_document(json.dumps(value), "document")
    except FailureMapError:
        return
    assert not isinstance(value, str | int)
    for one in case.programs:
        assert one.status is not DigestStatus.MATCHES


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content):
    """The same for bytes that are no document at all."""
    with pytest.raises(FailureMapError):
        read_document(content, "bytes")
