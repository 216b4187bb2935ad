"""The two founding families are what the archive says: verified, and published under their ids."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from failuremap.archive import read_archive
from failuremap.programs.render import program_digest, render
from failuremap.values import json_view, untag
from failuremap.verify.observations import read_observations

REPOSITORY = Path(__file__).resolve().parents[3]
ARCHIVE = read_archive(REPOSITORY / "archive")
SPARSE = [f"FA-{number}" for number in range(99291, 99296)]
REPLICAS = [f"FA-{number}" for number in range(99296, 99301)]


def published(n):
    """The boundary fixtures of the published cases, as arguments and results."""
    replicas = [
        (([[n, "a", n], [n, "a", 3 * n], [n, "b", 2 * n]], n), 5 * n),
        (([], n), 0),
        (([[n + 1, "a", 9 * n]], n), 0),
        (([[n - 1, "a", 100], [n, "a", n]], n), n),
        (([[n, "a", 4]], n), 4),
        (([[n, "a", n], [n, "a", 0]], n), 0),
        (([[n, "a", n], [n - 1, "a", 50 * n]], n), n),
    ]
    sparse = [
        (([("a", [(2, n), (0, 1)]), ("b", [(0, 3), (2, 4)])],), [[0, 4], [2, n + 4]]),
        (([],), []),
        (([("a", [])],), []),
        (([("a", [(n, n)])],), [[n, n]]),
        (([("a", [(-1, n)]), ("b", [(-1, -n)])],), [[-1, 0]]),
        (([("a", [(1, 2)]), ("b", [(3, 4)])],), [[1, 2], [3, 4]]),
    ]
    return {"retransmitted-replica-updates": replicas, "sparse-coordinates-by-position": sparse}


def test_all_cases_are_verified():
    """``failuremap verify --all`` says so, of every case of the archive."""
    finished = subprocess.run(
        [sys.executable, "-m", "failuremap", "verify", "--all"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert f"{len(ARCHIVE.cases)} of {len(ARCHIVE.cases)} cases are verified" in finished.stdout


def test_the_published_ids():
    """Five variants each, sparse first, under the ids that were published."""
    assert [c.id for c in ARCHIVE.cases_of("sparse-coordinates-by-position")] == SPARSE
    assert [c.id for c in ARCHIVE.cases_of("retransmitted-replica-updates")] == REPLICAS


@pytest.mark.parametrize("identifier", SPARSE + REPLICAS)
def test_the_published_fixtures_are_among_ours(identifier):
    """Each boundary fixture of the published cases is a fixture here, with the same result."""
    case = ARCHIVE.case(identifier)
    ours = [
        (json_view([untag(t[1]) for t in f.question.template[1]]), json_view(f.expected))
        for f in case.fixtures()
        if f.question.template[0] == "call" and not f.question.names
    ]
    for arguments, expected in published(case.parameters["N"])[case.family.slug]:
        assert (json_view(list(arguments)), json_view(expected)) in ours


@pytest.mark.parametrize("slug", sorted(ARCHIVE.families))
def test_the_families_are_rich(slug):
    """At least fifteen wrong implementations each, every one with its reason."""
    wrong = ARCHIVE.family(slug).wrong
    assert len(wrong) >= 15
    for source in wrong.values():
        assert source.lstrip().startswith('"""')


@pytest.mark.parametrize("identifier", [SPARSE[0], SPARSE[-1], REPLICAS[0], REPLICAS[-1]])
def test_rendered_programs_do_what_is_on_record(identifier, tmp_path):
    """With plain python3: exit 1 and the recorded observations; the repair exits 0."""
    case = ARCHIVE.case(identifier)
    records = read_observations(case)
    assert records
    for role in case.family.roles:
        file = tmp_path / f"{role}.py"
        file.write_text(render(case, role))
        command = [sys.executable, "-I", "-S", str(file)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        assert finished.returncode == (0 if role == "repair" else 1)
        printed = json.loads(finished.stdout)["observations"]
        for record in records:
            recorded = record.document["roles"][role]
            assert recorded["source"] == program_digest(case, role)
            assert printed == [
                {
                    "check": row["check"],
                    "actual": json_view(untag(row["actual"])),
                    "expected": json_view(untag(row["expected"])),
                    "passed": row["status"] == "pass",
                }
                for row in recorded["observations"]
            ]
