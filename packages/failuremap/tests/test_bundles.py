"""Bundles: the same bytes every time and everywhere, complete, and able to check themselves."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from failuremap.bundles.zips import bundle_bytes, bundle_files, write_bundle
from failuremap.documents import case_digest, validate_document
from failuremap.errors import UsageError
from failuremap.programs.render import program_digest, render
from failuremap.runner.interpreters import interpreters_at_hand
from failuremap.runner.running import Run
from failuremap.runner.verdicts import Verdict
from failuremap.verify.observations import observation_document, read_observations, record

NAMES = [
    "LICENSE",
    "README",
    "SHA256SUMS",
    "attempt-1.py",
    "case.json",
    "failure.py",
    "observations.json",
    "repair.py",
    "run.py",
]


@pytest.fixture
def unpacked(small, tmp_path):
    """A bundle's files in a folder."""
    archive = small.read()
    with zipfile.ZipFile(io.BytesIO(bundle_bytes(archive, archive.case("FA-00001")))) as bundle:
        bundle.extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked/FA-00001"


def run_bundle(folder, interpreter=None):
    path = interpreter.path if interpreter else sys.executable
    ran = subprocess.run(
        [path, "-B", str(folder / "run.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
        env={"PATH": os.defpath},
    )
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def test_a_bundle_is_the_same_bytes_every_time(small, tmp_path):
    """Built twice, and from a copy of the archive with other file times."""
    archive = small.read()
    data = bundle_bytes(archive, archive.case("FA-00001"))
    assert bundle_bytes(archive, archive.case("FA-00001")) == data
    shutil.copytree(small.root, tmp_path / "elsewhere")
    for file in (tmp_path / "elsewhere").rglob("*"):
        os.utime(file, (0, 0))
    from failuremap.archive import read_archive

    copied = read_archive(tmp_path / "elsewhere")
    assert bundle_bytes(copied, copied.case("FA-00001")) == data


BUILD = """
import sys, types
from pathlib import Path
sys.path[:0] = sys.argv[3:]
try:
    import jsonschema
except ImportError:  # compiled for one Python only, and not needed to build
    sys.modules["jsonschema"] = types.ModuleType("jsonschema")
from failuremap.archive import read_archive
from failuremap.bundles.zips import write_bundle
archive = read_archive(Path(sys.argv[1]))
write_bundle(archive, archive.case("FA-00001"), Path(sys.argv[2]))
"""


def test_a_bundle_is_the_same_bytes_under_every_python_at_hand(small, tmp_path):
    """Another process, another hash seed, and another interpreter where there is one."""
    archive = small.read()
    data = bundle_bytes(archive, archive.case("FA-00001"))
    pythons = [sys.executable, *(other.path for other in interpreters_at_hand()[1:])]
    roots = [entry for entry in sys.path if entry and Path(entry).is_dir()]
    for number, python in enumerate(pythons):
        file = tmp_path / f"{number}.zip"
        pure = [r for r in roots if "lib/python" not in r or "site-packages" in r]
        ran = subprocess.run(
            [python, "-c", BUILD, str(small.root), str(file), *pure],
            capture_output=True,
            env={"PATH": os.defpath, "PYTHONHASHSEED": str(number + 5), "TZ": "Asia/Tokyo"},
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert file.read_bytes() == data


def test_entries_are_plain_and_carry_nothing_of_the_machine(small):
    """Stored, in order, one folder, one time, one mode, no extra fields or comments."""
    archive = small.read()
    with zipfile.ZipFile(io.BytesIO(bundle_bytes(archive, archive.case("FA-00001")))) as bundle:
        entries = bundle.infolist()
        assert bundle.testzip() is None
        assert bundle.comment == b""
    assert [entry.filename for entry in entries] == [f"FA-00001/{name}" for name in NAMES]
    for entry in entries:
        assert entry.compress_type == zipfile.ZIP_STORED
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert entry.create_system == 3
        assert stat.S_IMODE(entry.external_attr >> 16) == 0o644
        assert (entry.extra, entry.comment) == (b"", b"")


def test_the_files_are_those_of_the_case(small):
    """Programs as rendered, a valid document with its digest, sums of every other file."""
    archive = small.read()
    case = archive.case("FA-00001")
    files = bundle_files(archive, case)
    assert sorted(files) == NAMES
    for role in ("failure", "attempt-1", "repair"):
        assert files[f"{role}.py"] == render(case, role)
        assert program_digest(case, role) in files["SHA256SUMS"]
    document = json.loads(files["case.json"])
    validate_document(document)
    assert document["digest"] == case_digest(case)
    sums = dict(line.split("  ")[::-1] for line in files["SHA256SUMS"].splitlines())
    assert sums == {
        name: hashlib.sha256(text.encode()).hexdigest()
        for name, text in files.items()
        if name != "SHA256SUMS"
    }
    assert case_digest(case) in files["README"]
    assert "A model of one mechanism." in files["README"]
    assert "Apache-2.0" in files["LICENSE"]
    assert "canary 00000000" in files["LICENSE"]
    assert json.loads(files["observations.json"]) == {}
    assert str(small.root) not in "".join(files.values())


def test_a_recorded_case_carries_its_observations(small, interpreter):
    """Each environment's record, and the first one's table in the document."""
    archive = small.read()
    case = archive.case("FA-00001")
    fixtures = case.fixtures()
    verdicts = tuple(Verdict(f.label, "fail", answered=True, actual=[-0.0]) for f in fixtures)
    runs = dict.fromkeys(case.family.roles, Run(verdicts, ("no network",)))
    document = observation_document(
        case,
        fixtures,
        runs,
        interpreter,
        started_at="2026-01-31T12:00:00+00:00",
        duration_seconds=1,
    )
    record(case, interpreter, document)
    files = bundle_files(archive, case)
    assert json.loads(files["observations.json"]) == {interpreter.environment: document}
    inside = json.loads(files["case.json"])
    validate_document(inside)
    assert inside["observed"]["digest"] == document["digest"]
    assert inside["programs"]["failure"]["observations"][0]["passed"] is False
    assert [o.environment for o in read_observations(case)] == [interpreter.environment]


@pytest.mark.parametrize("interpreter", interpreters_at_hand(), ids=lambda i: i.environment)
def test_the_bundles_own_check_passes_under_every_python(unpacked, interpreter):
    """From any folder, with nothing installed; it says how each program did."""
    code, printed = run_bundle(unpacked, interpreter)
    assert code == 0
    assert printed.splitlines() == [
        "attempt-1: 2 of 3 fixtures pass, exit 1",
        "failure: 0 of 3 fixtures pass, exit 1",
        "repair: 3 of 3 fixtures pass, exit 0",
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("SHA256SUMS", "run.py")])
def test_the_bundles_own_check_notices_one_changed_byte(unpacked, name):
    """In any file; the file is named and nothing is run."""
    file = unpacked / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    code, printed = run_bundle(unpacked)
    assert code == 1
    assert f"problem: {name} has another digest" in printed
    assert "fixtures pass" not in printed


def resum(folder, name):
    """Make SHA256SUMS agree with a changed file: a forger's next step."""
    sums = folder / "SHA256SUMS"
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    lines = [f"{digest}  {name}" if line.endswith(f"  {name}") else line
             for line in sums.read_text().splitlines()]  # fmt: skip
    sums.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            "failure.py",
            "return sum(values)",
            "return sum(values) + N",
            "failure.py has another digest",
        ),
        ("repair.py", "sum(values) + N", "sum(values)", "repair.py has another digest"),
        ("case.json", '"sha256": "', '"sha256": "0', "has another digest than case.json says"),
        ("case.json", "no values give the shift", "nothing", "reports other fixtures"),
    ],
)
def test_the_bundles_own_check_notices_sums_that_were_made_to_agree(
    unpacked, name, old, new, words
):
    """case.json covers the programs, and the programs' own reports case.json."""
    file = unpacked / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    resum(unpacked, name)
    code, printed = run_bundle(unpacked)
    assert code == 1
    assert words in printed


def test_a_missing_file_is_noticed(unpacked):
    """By its name."""
    (unpacked / "README").unlink()
    code, printed = run_bundle(unpacked)
    assert (code, printed) == (1, "problem: README is missing\n")


def test_a_file_that_is_not_in_the_sums_is_noticed(unpacked):
    """Emptied sums would otherwise vouch for everything but the programs."""
    sums = unpacked / "SHA256SUMS"
    sums.write_text(
        "".join(f"{line}\n" for line in sums.read_text().splitlines() if "README" not in line)
    )
    (unpacked / "README").write_text("anything")
    assert run_bundle(unpacked)[0] == 1


def test_nothing_held_is_in_a_bundle(tree, held):
    """Not a line of it, even where the private root is at hand, and the rest still checks."""
    marker = "name_of_what_is_held"
    tree.family(held="repair")
    source = f"def solve(values):\n    {marker} = N\n    return sum(values) + {marker}\n"
    tree.write("families/shifted-sum/impl/repair.py", source, private=True)
    tree.case(tier="held-repair", commitment=held)
    archive = tree.read(private=True)
    case = archive.case("FA-00001")
    data = bundle_bytes(archive, case)
    assert marker.encode() not in data
    assert program_digest(case, "repair").encode() not in data
    names = set(bundle_files(archive, case))
    assert "repair.py" not in names
    assert held.encode() in data
    assert bundle_bytes(tree.read(), tree.one()) == data


def test_a_held_group_is_not_published_at_all(tree, held):
    """All of the group is held: its title, contract and fixtures too."""
    tree.family(held="all")
    tree.case(tier="held-group", commitment=held)
    archive = tree.read(private=True)
    with pytest.raises(UsageError, match="all of its group is held"):
        bundle_bytes(archive, archive.case("FA-00001"))
    with pytest.raises(UsageError, match="is held for members"):
        tree.read().case("FA-00001")


def test_what_a_held_repair_did_is_not_in_a_bundle(tree, held, interpreter):
    """A member's record holds the digest of the repair's program, which confirms guesses."""
    tree.family(held="repair")
    tree.case(tier="held-repair", commitment=held)
    archive = tree.read(private=True)
    case = archive.case("FA-00001")
    verdicts = tuple(Verdict(f.label, "pass", answered=True, actual=0) for f in case.fixtures())
    document = observation_document(
        case,
        case.fixtures(),
        dict.fromkeys(case.family.roles, Run(verdicts, ())),
        interpreter,
        started_at="2026-01-31T12:00:00+00:00",
        duration_seconds=1,
    )
    record(case, interpreter, document)
    assert program_digest(case, "repair").encode() not in bundle_bytes(tree.read(), tree.one())


def test_a_bundle_is_written_whole_or_not_at_all(small, tmp_path, monkeypatch):
    """It replaces what was there; where writing fails, that stays and nothing lies beside it."""
    archive = small.read()
    case = archive.case("FA-00001")
    file = tmp_path / "out" / "case.zip"
    file.parent.mkdir()
    file.write_bytes(b"before")

    def fails(self, target):
        raise OSError("no")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        with pytest.raises(OSError, match="no"):
            write_bundle(archive, case, file)
    assert file.read_bytes() == b"before"
    assert list(file.parent.iterdir()) == [file]
    write_bundle(archive, case, file)
    assert file.read_bytes() == bundle_bytes(archive, case)
    assert list(file.parent.iterdir()) == [file]
