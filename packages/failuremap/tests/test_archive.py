"""Reading an archive: what is there is read, what is wrong is named by file and field."""

from __future__ import annotations

import pytest

from failuremap.archive import Withdrawal, find_root
from failuremap.archive.model import role_order
from failuremap.archive.new import UNFILLED, create_family
from failuremap.errors import ArchiveError, FixtureError, UsageError

FAMILY_FILE = "families/shifted-sum/family.toml"
CASE_FILE = "cases/FA-00001.toml"
EQUIVALENT = {"source": "repair", "mutant": "line 5: x", "digest": "00", "reason": "Same."}


def refused(tree, *parts, private=False):
    """Reading must fail, and the message must have these parts, in their order."""
    with pytest.raises(ArchiveError) as caught:
        tree.read(private=private)
    message = str(caught.value)
    place = -1
    for part in parts:
        found = message.find(part, place + 1)
        assert found >= 0, f"{part!r} is not in {message!r}"
        place = found
    return message


def test_an_archive_is_read_as_it_is_written(small):
    """Head, family, files, parameters and cases, and the same again at the next reading."""
    small.case(2, variant=2)
    archive = small.read()
    assert (archive.root, archive.id_prefix) == (small.root, "FA")
    assert archive.canary == "canary 00000000"
    assert archive.licences == {"code": "Apache-2.0", "text": "CC-BY-4.0"}
    assert list(archive.cases) == ["FA-00001", "FA-00002"]
    family = archive.family("shifted-sum")
    assert (family.title, family.domain) == ("A sum that is shifted", "arithmetic")
    assert (family.arguments, family.evaluation_groups) == (("values",), ("sums",))
    assert family.parameters == {"N": (1, 2, 3)}
    assert family.prose["why"] == "Somebody bills by it."
    assert family.sources == ("https://example.org/thread : shifts are forgotten",)
    assert family.roles == ("failure", "attempt-1", "repair")
    assert family.attempts == ("attempt-1",)
    assert list(family.wrong) == ["magnitudes"]
    assert family.contract.startswith('"""Sums."""')
    case = archive.case("fa-00002")
    assert (case.id, case.variant, case.tier, case.parameters) == ("FA-00002", 2, "open", {"N": 2})
    assert (case.supersedes, case.withdrawn, case.commitment) == ((), None, None)
    assert [fixture.expected for fixture in case.fixtures()] == [[6, [2, 2]], 2, -1]
    assert archive == small.read()


def test_reading_writes_nothing(small):
    """The tree is the same afterwards: no caches, no compiled files."""
    before = sorted(small.root.rglob("*"))
    small.read()
    assert sorted(small.root.rglob("*")) == before


def test_roles_stand_in_their_order():
    """Attempts by number, not by text."""
    roles = ["repair", "attempt-10", "attempt-2", "failure", "attempt-1"]
    assert sorted(roles, key=role_order) == [
        "failure",
        "attempt-1",
        "attempt-2",
        "attempt-10",
        "repair",
    ]


def test_what_is_not_there_is_said_with_what_is(small):
    """Cases, families and roles that there are not."""
    archive = small.read()
    with pytest.raises(UsageError, match=r"no case 'FA-7'; the archive has FA-00001 to FA-00001"):
        archive.case("FA-7")
    with pytest.raises(UsageError, match=r"no family 'other'; the archive has shifted-sum"):
        archive.family("other")
    with pytest.raises(UsageError, match=r"no 'attempt-2'; it has failure, attempt-1, repair"):
        archive.case("FA-00001").implementation("attempt-2")


def test_an_empty_archive_is_one(tree):
    """Nothing in it yet."""
    archive = tree.read()
    assert (archive.families, archive.cases) == ({}, {})
    with pytest.raises(UsageError, match="no cases"):
        archive.case("FA-00001")
    with pytest.raises(UsageError, match="none"):
        archive.family("any")


def test_the_root_is_found_from_within_and_beside(small, tmp_path):
    """At or above a folder, or as ``archive`` beside it; the next step is named otherwise."""
    for start in (small.root, small.root / "families/shifted-sum", tmp_path, tmp_path / "a/b"):
        assert find_root(start) == small.root
    (small.root / "archive.toml").unlink()
    with pytest.raises(UsageError, match="--archive"):
        find_root(tmp_path)


def test_each_role_and_case_may_be_many(small):
    """Further attempts, a family without parameters, one without sources."""
    small.write("families/shifted-sum/impl/attempt-2.py", "def solve(values):\n    return 0\n")
    small.write("families/shifted-sum/impl/attempt-10.py", "def solve(values):\n    return 1\n")
    small.family("fixed", params={}, sources=None)
    small.write("families/fixed/fixtures.py", 'check("a", solve([]), 0)\n')
    small.case(3, "fixed", params={})
    archive = small.read()
    assert archive.family("shifted-sum").attempts == ("attempt-1", "attempt-2", "attempt-10")
    assert archive.family("fixed").sources == ()
    assert archive.case("FA-00003").parameters == {}
    assert len(archive.case("FA-00003").fixtures()) == 1


# Every strict error.


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "schema = 2", ("schema: expected 1", "found 2")),
        ("schema = 1", 'schema = "1"', ("schema: expected an integer", "'1'")),
        ("schema = 1", "schema = true", ("schema: expected an integer", "True")),
        ("schema = 1\n", "", ("schema: expected an integer", "nothing")),
        ('id_prefix = "FA"', "id_prefix = 7", ("id_prefix: expected a string", "7")),
        ('id_prefix = "FA"', "", ("id_prefix: expected a string", "nothing")),
        ('canary = "canary 00000000"', 'canary = " "', ("canary: expected text",)),
        ("licences", "licenses", ("licences: expected a table", "nothing")),
        ("schema = 1", "schema = 1\nmore = 2", ("more: expected no such field",)),
        ("schema = 1", "schema = = 1", ("not TOML",)),
    ],
)
def test_a_head_that_is_wrong_names_the_field(small, old, new, words):
    """``archive.toml``: missing, of another type, unknown."""
    text = (small.root / "archive.toml").read_text()
    assert old in text
    small.write("archive.toml", text.replace(old, new))
    refused(small, str(small.root / "archive.toml"), *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *(
            ({name: None}, (f"{name}: expected", "found nothing"))
            for name in ("schema", "title", "domain", "evaluation_groups", "root_cause", "failure",
                         "attempt", "contract", "why", "scope", "compare", "arguments", "params")
        ),
        *(
            ({name: 7}, (f"{name}: expected a string, found 7",))
            for name in ("title", "domain", "root_cause", "failure", "attempt", "contract", "why",
                         "scope", "compare")
        ),
        *(
            ({name: "x"}, (f"{name}: expected a list, found 'x'",))
            for name in ("evaluation_groups", "arguments", "sources", "equivalent")
        ),
        ({"schema": 2}, ("schema: expected 1", "found 2")),
        ({"title": "  "}, ("title: expected text",)),
        ({"title": 'a """ b'}, ("title: expected text without",)),
        ({"why": "a \\ b"}, ("why: expected text without",)),
        ({"evaluation_groups": [1]}, ("evaluation_groups: expected a list of strings",)),
        ({"arguments": ["a", ""]}, ("arguments: expected a list of strings",)),
        ({"compare": "close"}, ('compare: expected "exact"', "'close'")),
        ({"params": 7}, ("params: expected a table",)),
        ({"params": {"N": 7}}, ("params.N: expected a list",)),
        ({"params": {"N": []}}, ("params.N: expected a list",)),
        ({"params": {"N": [1, 2, 3], "M": [1]}}, ("params: expected as many values of each",)),
        ({"unknown": 1}, ("unknown: expected no such field",)),
        ({"equivalent": [{**EQUIVALENT, "reason": 1}]}, ("equivalent[0].reason: expected a str",)),
        ({"equivalent": [EQUIVALENT, {"source": "repair"}]}, ("equivalent[1].mutant: expected",)),
        ({"equivalent": [{**EQUIVALENT, "more": 1}]}, ("equivalent[0].more: expected no such",)),
    ],
)  # fmt: skip
def test_a_family_that_is_wrong_names_the_field(small, change, words):
    """``family.toml``: every field is known, present, and of its type."""
    small.family(**change)
    refused(small, str(small.root / FAMILY_FILE), *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *(
            ({name: None}, (f"{name}: expected", "found nothing"))
            for name in ("id", "family", "tier", "params")
        ),
        ({"variant": None, "params": {}}, ("variant: expected an integer, found nothing",)),
        ({"id": "FA-00002"}, ("id: expected the file's name, FA-00001",)),
        ({"id": 1}, ("id: expected a string, found 1",)),
        ({"family": "other"}, ("family: expected one of shifted-sum, found 'other'",)),
        ({"tier": "closed"}, ("tier: expected open or held-repair or held-group", "'closed'")),
        ({"variant": "1"}, ("variant: expected an integer",)),
        ({"variant": 1.0}, ("variant: expected an integer",)),
        ({"variant": 0}, ("variant: expected 1 to 3, found 0",)),
        ({"variant": 4}, ("variant: expected 1 to 3, found 4",)),
        ({"params": {"N": 2}}, ("params: expected {'N': 1}, found {'N': 2}",)),
        ({"params": {}}, ("params: expected {'N': 1}, found {}",)),
        ({"params": {"N": 1, "M": 1}}, ("params: expected {'N': 1}",)),
        ({"supersedes": "FA-00002"}, ("supersedes: expected a list",)),
        ({"supersedes": ["FA-00002"]}, ("supersedes FA-00002: no case",)),
        ({"withdrawn": True}, ("withdrawn: expected a table",)),
        ({"withdrawn": {"at": "2026-01-31"}}, ("withdrawn.reason: expected a string",)),
        ({"withdrawn": {"reason": "Wrong."}}, ("withdrawn.at: expected a string",)),
        (
            {"withdrawn": {"at": "2026", "reason": "x", "by": "me"}},
            ("withdrawn.by: expected no such field",),
        ),
        ({"commitment": "ab" * 32}, ("commitment: expected none in the open tier",)),
        ({"unknown": 1}, ("unknown: expected no such field",)),
    ],
)
def test_a_case_that_is_wrong_names_the_field(small, change, words):
    """``cases/FA-NNNNN.toml``: fields, and what its family says of the variant."""
    small.case(**change)
    refused(small, str(small.root / CASE_FILE), *words)


@pytest.mark.parametrize("value", [1.0, True])
def test_the_parameter_of_a_case_is_the_familys_type_by_type(small, value):
    """``N = 1.0`` renders another program than ``N = 1``."""
    small.case(params={"N": value})
    refused(small, str(small.root / CASE_FILE), "params")


@pytest.mark.parametrize(
    "name", ["FA-1.toml", "FA-000001.toml", "XX-00001.toml", "fa-00001.toml", "notes.toml"]
)
def test_a_case_file_of_another_name_is_named(small, name):
    """Ids have a prefix and five digits."""
    small.write(f"cases/{name}", "")
    refused(small, name, "expected a name such as FA-00001.toml")


@pytest.mark.parametrize(
    "name", ["contract.py", "fixtures.py", "impl/failure.py", "impl/attempt-1.py"]
)
def test_a_file_that_is_missing_is_named(small, name):
    """Of a family's files these cannot be left out."""
    (small.root / "families/shifted-sum" / name).unlink()
    refused(small, "shifted-sum", *name.split("/")[:1], "expected")


def test_a_file_that_is_no_text_is_named(small):
    """UTF-8, or an error with the file's name."""
    (small.root / "families/shifted-sum/contract.py").write_bytes(b"\xff\xfe")
    refused(small, "contract.py: cannot be read")
    small.family("other")
    (small.root / FAMILY_FILE).write_bytes(b"\xff")
    refused(small, FAMILY_FILE, "cannot be read")


@pytest.mark.parametrize("name", ["attempt", "attempt-0", "attempt-01", "Failure", "fix"])
def test_an_implementation_of_an_unknown_role_is_named(small, name):
    """A misspelled role would otherwise be left out silently."""
    small.write(f"families/shifted-sum/impl/{name}.py", "def solve(values): pass\n")
    refused(small, "impl: expected failure, attempt-N, repair", f"{name}.py")


@pytest.mark.parametrize("slug", ["Upper", "two_words", "-x", "x--y", "x.y"])
def test_a_family_of_an_unfit_name_is_named(small, slug):
    """Slugs are lower-case words joined by hyphens: they are part of addresses."""
    small.family(slug)
    refused(small, slug, "expected a name of lower-case words")


def test_a_fixture_that_is_wrong_is_found_when_it_is_asked_for(small):
    """Reading parses no fixtures; the error names the file and the line."""
    small.write("families/shifted-sum/fixtures.py", "\nimport os\n")
    case = small.one()
    with pytest.raises(FixtureError, match=r"shifted-sum/fixtures\.py, line 2"):
        case.fixtures()


# Variants, withdrawal, tiers.


def test_two_cases_are_not_the_same_variant(small):
    """Both are named, and the family."""
    small.case(2, variant=1)
    refused(small, "FA-00001", "FA-00002", "both variant 1 of shifted-sum")


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_a_withdrawn_case_keeps_its_id_and_leaves_its_variant_to_another(tree, numbers):
    """Whichever id is the older one: one of the two is withdrawn, so there is no conflict."""
    withdrawn, current = numbers
    tree.family()
    tree.case(withdrawn, withdrawn={"at": "2026-01-31", "reason": "Its contract was wrong."})
    tree.case(current, supersedes=[f"FA-{withdrawn:05d}"])
    archive = tree.read()
    old, new = (archive.case(f"FA-{number:05d}") for number in numbers)
    assert old.withdrawn == Withdrawal("2026-01-31", "Its contract was wrong.")
    assert new.supersedes == (old.id,)
    assert [case.id for case in archive.cases_of("shifted-sum")] == ["FA-00001", "FA-00002"]


def test_a_withdrawn_case_between_two_current_ones_hides_no_conflict(small):
    """The third is the same variant as the first."""
    small.case(2, withdrawn={"at": "2026-01-31", "reason": "Twice."})
    small.read()
    small.case(3)
    refused(small, "FA-00003", "both variant 1 of shifted-sum")


def test_cases_of_a_family_stand_by_variant(small):
    """Not by id."""
    small.case(3, variant=2)
    small.case(2, variant=3)
    assert [c.variant for c in small.read().cases_of("shifted-sum")] == [1, 2, 3]
    assert small.read().cases_of("other") == []


def test_a_held_repair_is_read_from_the_private_root_only(tree, held):
    """Without it the case has no repair, and says why; with it, it has."""
    tree.family(held="repair")
    tree.case(tier="held-repair", commitment=held)
    case = tree.one()
    assert (case.tier, case.commitment) == ("held-repair", held)
    assert case.family.roles == ("failure", "attempt-1")
    with pytest.raises(UsageError, match="the repair of this case is held for members"):
        case.implementation("repair")
    assert tree.one(private=True).implementation("repair").startswith('"""Shifts."""')


def test_a_held_group_is_nothing_but_an_id_without_the_private_root(tree, held):
    """Its prose and fixtures are held as well."""
    tree.family(held="all")
    tree.family("open-one")
    tree.case(1, tier="held-group", commitment=held)
    tree.case(2, "open-one")
    archive = tree.read()
    assert archive.held == ("FA-00001",)
    assert list(archive.cases) == ["FA-00002"]
    assert list(archive.families) == ["open-one"]
    with pytest.raises(UsageError, match=r"FA-00001 is held for members: .* --private"):
        archive.case("fa-00001".upper())
    whole = tree.read(private=True)
    assert whole.held == ()
    assert whole.case("FA-00001").family.roles == ("failure", "attempt-1", "repair")
    assert list(whole.families) == ["open-one", "shifted-sum"]


def test_a_repair_that_is_held_and_open_is_refused(tree, held):
    """Which of the two would be published is not left to chance."""
    tree.family()
    tree.family(held="repair")
    tree.case(tier="held-repair", commitment=held)
    refused(tree, "impl/repair.py: held, and open as well", private=True)


def test_a_family_that_is_open_and_held_as_a_whole_is_refused(tree):
    """The open one is read, and what both have is named."""
    tree.family()
    tree.family(held="all")
    tree.case()
    refused(tree, str(tree.root), ".py: held, and open as well", private=True)


@pytest.mark.parametrize("commitment", [None, "", "ab" * 31, "AB" * 32, "zz" * 32])
@pytest.mark.parametrize("tier", ["held-repair", "held-group"])
def test_what_is_held_is_committed_to(tree, tier, commitment):
    """64 hexadecimal digits, or an error that says so."""
    tree.family()
    tree.case(tier=tier, commitment=commitment)
    refused(tree, CASE_FILE, "commitment: expected the HMAC (64 hex digits)")


def test_a_held_repair_does_not_lie_in_the_open_tree(tree, held):
    """Read without the private root, too: it would be on everybody's disk."""
    tree.family()
    tree.case(tier="held-repair", commitment=held)
    refused(tree, "repair.py")


def test_an_open_case_has_its_repair(tree):
    """The open tier shows it."""
    tree.family(held="repair")
    tree.case()
    refused(tree, "repair")


# New families.


def test_a_new_family_is_read_and_says_what_to_replace(small):
    """Its files are there, its ids follow the highest, its gaps are marked."""
    small.case(7, variant=2, withdrawn={"at": "2026", "reason": "x"})
    files = create_family(small.read(), "new-one", arguments=["a", "b"], variants=2)
    assert all(file.is_file() for file in files)
    archive = small.read()
    assert [case.id for case in archive.cases_of("new-one")] == ["FA-00008", "FA-00009"]
    family = archive.family("new-one")
    assert family.arguments == ("a", "b")
    assert all(text.startswith(UNFILLED) for text in family.prose.values())
    assert len(archive.case("FA-00008").fixtures()) == 1


@pytest.mark.parametrize(
    ("slug", "arguments"),
    [("Bad", ["a"]), ("ok", ["1a"]), ("ok", ["class"]), ("ok", ["N"]), ("shifted-sum", ["a"])],
)
def test_a_new_family_that_cannot_be_is_refused_and_leaves_nothing(small, slug, arguments):
    """Nothing is written, nothing that exists is touched."""
    before = {file: file.read_bytes() for file in small.root.rglob("*") if file.is_file()}
    with pytest.raises(UsageError):
        create_family(small.read(), slug, arguments=arguments, variants=1)
    assert {file: file.read_bytes() for file in small.root.rglob("*") if file.is_file()} == before
