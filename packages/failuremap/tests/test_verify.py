"""Verification: each thing that *verified* promises is missed when it does not hold."""

from __future__ import annotations

import json

import pytest
from small_family import FILES

from failuremap.digests import commitment
from failuremap.errors import ArchiveError
from failuremap.mutation import mutants
from failuremap.runner import process
from failuremap.runner.interpreters import interpreters_at_hand
from failuremap.runner.limits import Limits
from failuremap.verify.cache import Cache
from failuremap.verify.case import Verification
from failuremap.verify.gate import controls, suspects
from failuremap.verify.observations import read_observations, record_digest
from failuremap.verify.work import Settings, Work

SHIFT = "\n\ndef solve(values):\n    return sum(values) + N\n"


def rewrite(tree, **changes):
    """The family anew, with an attempt of which no mutant is right."""
    tree.family(**changes)
    tree.write(
        "families/shifted-sum/impl/attempt-1.py",
        '"""Takes the largest."""\n\n\ndef solve(values):\n    return max(values, default=0) + N\n',
    )


@pytest.fixture
def small(small):
    rewrite(small)
    return small


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    """Verify one case of a tree; the tests share a cache, for most programs are the same."""
    shared = tmp_path_factory.mktemp("cache")

    def verify(tree, *, write=False, folder=shared, private=False, pythons=1):
        archive = tree.read(private=private)
        interpreters = interpreters_at_hand()[:pythons]
        settings = Settings(Cache(folder), Limits(call_seconds=2.0), interpreters, 2)
        with Work(settings) as work:
            return Verification(work, archive.case("FA-00001")).finish(write=write)

    return verify


def words(report):
    return "\n".join(report.shortfalls)


needs_another_python = pytest.mark.skipif(
    len(interpreters_at_hand()) < 2,
    reason="needs a second Python on the path; runs wherever there is one",
)


@needs_another_python
def test_a_sound_case_is_verified(verified, small):
    """A case that is what it claims to be is adequate, and its records are kept."""
    report = verified(small, write=True, pythons=2)
    assert report.shortfalls == ()
    assert report.verified
    killed, total = report.gate.counted
    assert killed == total > 10
    assert [o.environment for o in read_observations(small.one())] == sorted(
        interpreter.environment for interpreter in interpreters_at_hand()[:2]
    )


def test_without_a_record_a_case_is_only_executed(verified, small):
    """Adequacy needs observations on record."""
    report = verified(small)
    assert report.level == "executed"
    assert "--record" in words(report)


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("impl/failure.py", f'"""Right."""{SHIFT}', "the failure passes every fixture"),
        ("impl/attempt-1.py", f'"""Right."""{SHIFT}', "attempt-1 passes every fixture"),
        (
            "impl/attempt-1.py",
            '"""No better."""\n\n\ndef solve(values):\n    return sum(values)\n',
            "attempt-1 fixes nothing",
        ),
        (
            "impl/repair.py",
            '"""Off by one."""\n\n\ndef solve(values):\n    return sum(values) + N + 1\n',
            "the repair fails",
        ),
        (
            "impl/failure.py",
            '"""Raises."""\n\n\ndef solve(values):\n    return values[0]\n',
            "failure: the stand-alone program: it did not end by itself: error: IndexError",
        ),
        ("wrong/right.py", f'"""Not wrong."""{SHIFT}', "no fixture notices the wrong 'right'"),
        (
            "impl/repair.py",
            '"""For short lists."""\n\n\ndef solve(values):\n    return sum(values[:4]) + N\n',
            "the repair gives",
        ),
        (
            "impl/failure.py",
            (
                '"""By hash."""\n\n\ndef solve(values):\n'
                "    return list({'a', 'b', 'c', 'd', 'e'})\n"
            ),
            "flaky",
        ),
        (
            "fixtures.py",
            (
                'check("values are summed and shifted", solve([N, 2]), 2 * N + 2)\n'
                'check("no values give the shift", solve([]), N)\n'
                'check("a wish", solve([1]), N)\n'
            ),
            "the oracle gives",
        ),
        (
            "fixtures.py",
            (
                'check("values are summed and shifted", solve([N, 2]), 2 * N + 2)\n'
                'check("no values give the shift", solve([]), N)\n'
                'check("outside the domain", solve([0.5, N]), 2 * N + 0.5)\n'
            ),
            "valid says False",
        ),
        (
            "contract.py",
            (
                '"""Broken."""\n\n\ndef valid(values):\n    return True\n\n\n'
                "def generate(rng):\n    return [1]\n\n\n"
                "def oracle(values):\n    return sum(values) + N\n"
            ),
            "generate must give a tuple of 1 arguments",
        ),
        ("impl/failure.py", '"""REPLACE"""\n\n\ndef solve(values):\n    return 0\n', "REPLACE"),
    ],
)
def test_each_shortfall_is_found(verified, small, file, text, complaint):
    """A case that falls short in one way is not verified, and is told in which."""
    small.write(f"families/shifted-sum/{file}", text)
    report = verified(small, write=True)
    assert not report.verified
    assert complaint in words(report)


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("wrong/broken.py", "def solve(values)\n", "the wrong 'broken' passes no fixture"),
        (
            "contract.py",
            (
                '"""Always the same."""\n\n\ndef valid(values):\n    return True\n\n\n'
                "def generate(rng):\n    return ([1],)\n\n\n"
                "def oracle(values):\n    return sum(values) + N\n"
            ),
            "generate made 1 different inputs in 200",
        ),
    ],
)
def test_what_shows_nothing_is_found(verified, small, file, text, complaint):
    """A wrong implementation that does not even load, a generator that repeats itself."""
    small.write(f"families/shifted-sum/{file}", text)
    assert complaint in words(verified(small))


def test_an_excuse_is_tried_on_generated_inputs(verified, small):
    """A mutant that is said to be equivalent must answer as the oracle does."""
    source = '"""Shifts."""\n\n\ndef solve(values):\n    return sum(values[0:]) + N\n'
    weak = 'check("nothing", solve([]), N)\ncheck("a zero", solve([0]), N)\n'
    (mutant,) = (m for m in mutants(source) if m.name.endswith("`0` is 1"))
    excuse = {"mutant": mutant.name, "digest": mutant.digest, "reason": "so I say"}
    rewrite(small, equivalent=[{"source": "repair", **excuse}])
    small.write("families/shifted-sum/impl/repair.py", source)
    small.write("families/shifted-sum/fixtures.py", weak)
    assert "is not equivalent: generated input" in words(verified(small))


def test_archive_programs_run_confined(verified, small, tmp_path):
    """A repair that writes a file when it loads leaves none, run whole as well."""
    mark = tmp_path / "mark"
    small.write(
        "families/shifted-sum/impl/repair.py",
        f'"""Writes."""\n\ntry:\n    open({str(mark)!r}, "w").close()\nexcept OSError:\n'
        f"    pass\n{SHIFT}",
    )
    verified(small)
    assert not mark.exists()


def test_a_flaky_run_is_not_recorded(verified, small):
    """What runs disagree on is no observation."""
    small.write(
        "families/shifted-sum/impl/failure.py",
        '"""By hash."""\n\n\ndef solve(values):\n    return hash("x")\n',
    )
    verified(small, write=True)
    assert read_observations(small.one()) == []


def test_a_record_under_another_name_is_refused(verified, small):
    """A copy of one environment's record does not make a second environment."""
    verified(small, write=True)
    file = next((small.root / "observations").rglob("*.json"))
    file.with_name("cpython-9.9.9-linux-x86_64.json").write_bytes(file.read_bytes())
    with pytest.raises(ArchiveError, match="expected the name of its environment"):
        verified(small)


def test_a_commitment_must_be_that_of_the_held_files(verified, tree, held):
    """With the private root, the repair must come to what was published about it."""
    nonce = bytes(range(32))
    tree.family(held="repair")
    tree.write("families/shifted-sum/nonce", nonce.hex(), private=True)
    tree.case(tier="held-repair", commitment=held)
    right = commitment(FILES["impl/repair.py"], nonce)
    assert f"the held files come to the commitment {right}" in words(verified(tree, private=True))
    tree.case(tier="held-repair", commitment=right)
    assert "commitment" not in words(verified(tree, private=True))


def test_weak_fixtures_are_found(verified, small):
    """Fixtures that pin nothing down let a mistake live, and a program that knows nothing."""
    small.write(
        "families/shifted-sum/fixtures.py",
        'check("one value", solve([0]), N)\ncheck("nothing", solve([]), N)\n',
    )
    report = verified(small)
    assert "no fixture notices the wrong 'magnitudes'" in words(report)
    assert "the control 'gives the commonest expected value'" in words(report)


def test_an_equivalent_entry_must_be_true(verified, small):
    """An excuse for a mutant that a fixture notices, or that is none, is a shortfall."""
    case = small.one()
    mutant = next(s for s in suspects(case.family, case.fixtures()) if s.kind.startswith("mutant"))
    digest = mutants(case.family.implementations["repair"])[0].digest
    entries = [
        {"source": "repair", "mutant": "x", "digest": digest, "reason": "no"},
        {"source": "repair", "mutant": "gone", "digest": "0" * 64, "reason": "no"},
    ]
    rewrite(small, equivalent=entries)
    report = verified(small)
    assert mutant.kind.startswith("mutant")
    assert "is said to be equivalent, and a fixture notices it" in words(report)
    assert "excuses a mutant that there is not: gone" in words(report)


def test_an_equivalent_entry_excuses_a_survivor(verified, small):
    """A mutant that is equivalent and said to be so is no shortfall."""
    source = '"""Shifts."""\n\n\ndef solve(values):\n    return sum(values) + N * 1**2\n'
    small.write("families/shifted-sum/impl/repair.py", source)
    report = verified(small)
    survivors = [s.name for s in report.gate.survivors]
    assert survivors
    digests = {m.name: m.digest for m in mutants(source)}
    entries = [
        {"source": "repair", "mutant": name, "digest": digests[name], "reason": "1 ** n is 1"}
        for name in survivors
    ]
    rewrite(small, equivalent=entries)
    small.write("families/shifted-sum/impl/repair.py", source)
    assert "notices" not in words(verified(small))


def test_controls_never_pass(verified, small):
    """The programs that know nothing are among the suspects of every family."""
    case = small.one()
    names = {suspect.name for suspect in controls(case.fixtures())}
    assert {"does nothing", "equals everything", "exits with status 0"} <= names
    report = verified(small)
    killed = {s.name for s, labels in report.gate.kills.items() if labels}
    assert names <= killed


def test_a_record_that_no_longer_holds_is_found(verified, small):
    """A record with other observations than today's is a difference; a doctored one is refused."""
    verified(small, write=True)
    record = read_observations(small.one())[0]
    file = next((small.root / "observations").rglob(f"{record.environment}.json"))
    document = json.loads(file.read_text())
    document["roles"]["failure"]["observations"][0]["status"] = "pass"
    file.write_text(json.dumps(document))
    with pytest.raises(ArchiveError, match="changed since it was recorded"):
        verified(small)
    file.write_text(json.dumps({**document, "digest": record_digest(document)}))
    report = verified(small)
    assert report.level == "executed"
    assert f"failure differs from the record of {record.environment}" in words(report)


def test_records_are_never_rewritten(verified, small):
    """A second verification with ``write`` leaves the records of the first as they are."""
    verified(small, write=True)
    before = {f: f.read_bytes() for f in (small.root / "observations").rglob("*.json")}
    verified(small, write=True)
    assert before
    assert {f: f.read_bytes() for f in (small.root / "observations").rglob("*.json")} == before


def test_runs_are_remembered(verified, small, tmp_path, monkeypatch):
    """With a warm cache no child is started; a changed source is run again."""
    folder = tmp_path / "cache"
    first = verified(small, folder=folder)
    started = []
    real = process.Child.__enter__

    def counted(self):
        started.append(self)
        return real(self)

    monkeypatch.setattr(process.Child, "__enter__", counted)
    second = verified(small, folder=folder)
    assert started == []
    assert second.shortfalls == first.shortfalls
    assert second.gate.matrix() == first.gate.matrix()
    small.write(
        "families/shifted-sum/wrong/none.py", '"""No."""\n\n\ndef solve(values):\n    pass\n'
    )
    verified(small, folder=folder)
    assert len(started) == 1


def test_a_held_repair_is_verified_only_with_its_root(verified, tree, held):
    """Without the private root the case says what is missing; with it, the repair is run."""
    tree.family(held="repair")
    tree.case(tier="held-repair", commitment=held)
    without = verified(tree)
    assert not without.verified
    assert "the repair is held" in words(without)
    assert "the repair is held" not in words(verified(tree, private=True))
