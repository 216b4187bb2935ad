"""A case as JSON: what its digest covers, and the schema of what is published."""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

from failuremap.digests import commitment, document_digest, source_digest
from failuremap.documents import (
    case_digest,
    case_document,
    case_schema,
    digest_of_document,
    digested,
    open_roles,
    validate_document,
)
from failuremap.errors import ImportFailure
from failuremap.fixtures import fixtures_digest
from failuremap.programs.render import program_digest, render
from failuremap.runner.limits import Limits
from failuremap.runner.process import Load
from failuremap.runner.running import run_fixtures
from failuremap.verify.observations import observation_document, record_digest

FOLDER = "families/shifted-sum"


@pytest.fixture
def observed(small, interpreter):
    """A case with a record of what its programs did."""
    case = small.one()
    runs = {
        role: run_fixtures(
            Load.source(case.implementation(role), parameters=case.parameters),
            case.fixtures(),
            interpreter,
            Limits(call_seconds=5),
        )
        for role in case.family.roles
    }

    def record(started_at="2026-01-31T12:00:00+00:00", duration_seconds=1.5):
        return observation_document(
            case,
            case.fixtures(),
            runs,
            interpreter,
            started_at=started_at,
            duration_seconds=duration_seconds,
        )

    return case, record


def test_the_digest_covers_this_document(small):
    """Written out by hand: all that the case is, and no times."""
    case = small.one()
    document = digested(case)
    assert document == {
        "schema": 1,
        "id": "FA-00001",
        "family": "shifted-sum",
        "variant": 1,
        "params": {"N": ["i", "1"]},
        "groups": ["sums"],
        "sources": {
            role: program_digest(case, role) for role in ("failure", "attempt-1", "repair")
        },
        "fixtures": fixtures_digest(case.fixtures()),
        "contract": source_digest(case.family.contract),
        "held": None,
    }
    assert case_digest(case) == document_digest(document)
    assert case_digest(small.one()) == case_digest(case)


def edited(name, old, new):
    """A change to one file of the family."""

    def change(tree):
        file = tree.root / FOLDER / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return change


CHANGES = {
    "variant and parameter": lambda tree: tree.case(variant=2),
    "parameter alone": lambda tree: (tree.family(params={"N": [4, 2]}), tree.case(params={"N": 4})),
    "type of the parameter": lambda tree: (
        tree.family(params={"N": [1.0, 2]}),
        tree.case(params={"N": 1.0}),
    ),
    "groups": lambda tree: tree.family(evaluation_groups=["sums", "shifts"]),
    "title": lambda tree: tree.family(title="Another title"),
    "prose of the failure": lambda tree: tree.family(failure="Forgets it."),
    "prose of the attempt": lambda tree: tree.family(attempt="Shifts some."),
    "prose of the contract": lambda tree: tree.family(contract="Sum and N."),
    "failure": edited("impl/failure.py", "sum(values)", "sum(values) + 0"),
    "a comment of the failure": edited("impl/failure.py", "    return", "    # !\n    return"),
    "attempt": edited("impl/attempt-1.py", "else 0", "else 1 - 1"),
    "repair": edited("impl/repair.py", "+ N", "+ N + 0"),
    "another attempt": lambda tree: tree.write(
        f"{FOLDER}/impl/attempt-2.py", "def solve(values):\n    return 0\n"
    ),
    "label": edited("fixtures.py", "no values", "nothing"),
    "expected value": edited("fixtures.py", "2 * N - 5", "2 * N - 6"),
    "type of an expected value": edited("fixtures.py", "solve([]), N", "solve([]), 1.0"),
    "input": edited("fixtures.py", "[-5, N]", "[N, -5]"),
    "contract": edited("contract.py", "-9, 9", "-8, 8"),
}
LEFT_OUT = {
    "wrong implementations": lambda tree: tree.write(f"{FOLDER}/wrong/other.py", "x = 1\n"),
    "domain": lambda tree: tree.family(domain="other"),
    "sources": lambda tree: tree.family(sources=[]),
    "why": lambda tree: tree.family(why="Because."),
    "a final newline": edited(
        "impl/failure.py", "return sum(values)\n", "return sum(values)\n\n\n"
    ),
    "withdrawal": lambda tree: tree.case(withdrawn={"at": "2026-01-31", "reason": "Wrong."}),
    "another case": lambda tree: tree.case(2, variant=2),
    "the docstring of an implementation": edited("impl/repair.py", "Shifts.", "Shifts!"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_digest_changes_with_each_ingredient(small, name):
    """Whatever the digest says that it covers cannot change under it."""
    before = case_digest(small.one())
    CHANGES[name](small)
    assert case_digest(small.one()) != before


@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_digest_does_not_change_with_what_it_leaves_out(small, name):
    """Times, withdrawal, citations and what verification needs are about the case, not in it."""
    before = case_digest(small.one())
    LEFT_OUT[name](small)
    assert case_digest(small.one()) == before


def test_the_digest_covers_id_family_and_groups_as_a_set(tree):
    """The same files under another id or slug are another case; groups have no order."""
    tree.family(evaluation_groups=["b", "a"])
    tree.family("copy", evaluation_groups=["a", "b"])
    tree.case(1)
    tree.case(2, "copy")
    tree.case(3, variant=2)
    digests = {case_digest(tree.one(number)) for number in (1, 2, 3)}
    assert len(digests) == 3
    first = tree.one(1)
    tree.family(evaluation_groups=["a", "b"])
    assert case_digest(tree.one(1)) == case_digest(first)
    (tree.root / "cases/FA-00002.toml").unlink()
    (tree.root / "cases/FA-00001.toml").unlink()
    tree.case(4)
    assert case_digest(tree.one(4)) != case_digest(first)


def test_the_digest_covers_the_commitment_and_not_what_it_hides(tree, held):
    """The private root does not matter to a held case's digest; another commitment does."""
    tree.family(held="repair")
    tree.case(tier="held-repair", commitment=held)
    digest = case_digest(tree.one())
    assert digest == case_digest(tree.one(private=True))
    other = commitment("def solve(values): ...", bytes(32))
    tree.case(tier="held-repair", commitment=other)
    assert case_digest(tree.one()) != digest
    assert digested(tree.one())["held"] == other


def test_open_roles_are_those_of_the_tier(tree, held):
    """Everything; everything but the repair; nothing."""
    tree.family()
    tree.case()
    assert open_roles(tree.one()) == ["failure", "attempt-1", "repair"]
    tree.family(held="repair")
    (tree.root / FOLDER / "impl/repair.py").unlink()
    tree.case(tier="held-repair", commitment=held)
    assert open_roles(tree.one(private=True)) == ["failure", "attempt-1"]
    tree.case(tier="held-group", commitment=held)
    assert open_roles(tree.one()) == []


def test_a_document_is_valid_and_has_its_digest(small, observed):
    """With a record and without; through JSON text; all that a reader needs is in it."""
    case, record = observed
    for document in (case_document(case), case_document(case, record())):
        validate_document(json.loads(json.dumps(document)))
        assert digest_of_document(document) == document["digest"] == case_digest(case)
    program = case_document(case)["programs"]["failure"]
    assert program == {"source": render(case, "failure"), "sha256": program_digest(case, "failure")}
    document = case_document(case, record())
    assert document["observed"]["started_at"] == "2026-01-31T12:00:00+00:00"
    assert document["programs"]["failure"]["exit_code"] == 1
    assert document["programs"]["repair"]["exit_code"] == 0
    assert document["programs"]["failure"]["observations"][1] == {
        "check": "no values give the shift",
        "actual": 0,
        "expected": 1,
        "passed": False,
    }
    assert [check["label"] for check in document["checks"]] == [f.label for f in case.fixtures()]
    assert document["contract_source"] == case.family.contract
    assert document["withdrawn"] is None


def test_times_change_neither_the_case_nor_the_record(observed):
    """A record's digest leaves its times out, a case's has none."""
    case, record = observed
    one, other = record(), record("2027-01-01T00:00:00+00:00", 99.0)
    assert one != other
    assert one["digest"] == other["digest"] == record_digest(one)
    assert case_document(case, one)["digest"] == case_document(case, other)["digest"]
    changed = copy.deepcopy(one)
    changed["roles"]["failure"]["exit_code"] = 0
    assert record_digest(changed) != one["digest"]


def test_a_withdrawn_case_says_when_and_why(small):
    """And is valid."""
    small.case(withdrawn={"at": "2026-01-31", "reason": "Wrong."}, supersedes=["FA-00001"])
    document = case_document(small.one())
    assert document["withdrawn"] == {"at": "2026-01-31", "reason": "Wrong."}
    assert document["supersedes"] == ["FA-00001"]
    validate_document(document)


@pytest.mark.parametrize("private", [False, True])
def test_a_held_repair_is_in_no_document(tree, held, private, interpreter):
    """Even where the private root is at hand: neither its text nor its digest, nor what it did."""
    marker = "a_name_of_the_repair"
    tree.family(held="repair")
    source = f"def solve(values):\n    {marker} = sum(values)\n    return {marker} + N\n"
    tree.write(f"{FOLDER}/impl/repair.py", source, private=True)
    tree.case(tier="held-repair", commitment=held)
    case = tree.one(private=private)
    text = json.dumps(case_document(case))
    assert marker not in text
    assert list(case_document(case)["programs"]) == ["failure", "attempt-1"]
    if private:
        assert program_digest(case, "repair") not in text
    validate_document(json.loads(text))


def test_the_schema_is_one_of_the_dialect_it_says():
    """JSON Schema 2020-12, valid by its own meta-schema, closed at the top."""
    schema = case_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema"], 2),
        (["id"], "FA-1"),
        (["digest"], "x"),
        (["digest"], "AB" * 32),
        (["family"], "Upper Case"),
        (["variant"], 0),
        (["variant"], 1.5),
        (["params", "N"], 1),
        (["params", "N"], ["x"]),
        (["groups"], [""]),
        (["sources", "failure"], "no digest"),
        (["sources", "other"], "ab" * 32),
        (["held"], "no digest"),
        (["tier"], "closed"),
        (["title"], ""),
        (["prose", "why"], ""),
        (["prose", "More"], "x"),
        (["compare"], "close"),
        (["withdrawn"], {"at": "2026"}),
        (["programs", "other"], {"source": "", "sha256": "ab" * 32}),
        (["programs", "failure", "exit_code"], 2),
        (["programs", "failure", "more"], 1),
        (["checks"], []),
        (["checks", 0, "label"], ""),
        (["checks", 0, "question", "template"], ["exec", []]),
        (["checks", 0, "expected"], 1),
        (["observed"], {}),
        (["more"], 1),
    ],
)
def test_a_document_that_is_wrong_is_refused_with_its_place(small, path, value):
    """The field is in the message."""
    document = json.loads(json.dumps(case_document(small.one())))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(ImportFailure, match=r"^page: \$") as caught:
        validate_document(document, name="page")
    assert path[0] in str(caught.value)


def test_of_several_problems_the_first_by_place_is_named(small):
    """The same one every time."""
    document = {**case_document(small.one()), "compare": "close", "checks": []}
    with pytest.raises(ImportFailure, match=r"\$\.checks"):
        validate_document(document)


@pytest.mark.parametrize("field", [*case_schema()["required"]])
def test_no_field_of_a_document_may_be_missing(small, field):
    """Each is named."""
    document = case_document(small.one())
    del document[field]
    with pytest.raises(ImportFailure, match=field):
        validate_document(document)
