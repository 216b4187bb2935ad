"""The commands: what they print, and the exit status that each outcome has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from failuremap.archive import read_archive
from failuremap.digests import source_digest
from failuremap.programs.render import render

REPOSITORY = Path(__file__).resolve().parents[3]
ARCHIVE = REPOSITORY / "archive"


@pytest.fixture
def failuremap(tmp_path):
    """Run a command in an empty folder, with a cache of its own."""

    def run(*arguments, archive=ARCHIVE, columns="200"):
        environment = {
            **os.environ,
            "FAILUREMAP_ARCHIVE": str(archive),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "COLUMNS": columns,
        }
        return subprocess.run(
            [sys.executable, "-m", "failuremap", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
        )

    return run


def text(finished):
    return (finished.stdout + finished.stderr).decode()


def test_list_and_show(failuremap):
    """Every case is listed; a case shows its prose, digests and observations, also as JSON."""
    listed = text(failuremap("list"))
    for identifier in read_archive(ARCHIVE).cases:
        assert identifier in listed
    rows = json.loads(failuremap("list", "--json").stdout)
    assert [row["id"] for row in rows] == sorted(read_archive(ARCHIVE).cases)
    shown = text(failuremap("show", "fa-99296"))
    assert "rows [step, worker, value] (lists or tuples)" in " ".join(shown.split())
    for heading in ("Root cause", "The unsuccessful fix", "Case digest /", "SHA-256 /", "Exit 1"):
        assert heading in shown
    document = json.loads(failuremap("show", "FA-99296", "--json").stdout)
    assert document["programs"]["failure"]["exit_code"] == 1


def test_render_gives_the_bytes_that_the_digest_covers(failuremap):
    """What is printed is the program, byte for byte."""
    case = read_archive(ARCHIVE).case("FA-99291")
    printed = failuremap("render", "FA-99291", "attempt-1").stdout
    assert printed == render(case, "attempt-1").encode()
    document = json.loads(failuremap("show", "FA-99291", "--json").stdout)
    assert document["sources"]["attempt-1"] == source_digest(printed.decode())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "FA-1"), "there is no case 'FA-1'; the archive has FA-99291 to FA-99300"),
        (("render", "FA-99296", "attempt-2"), "it has failure, attempt-1, repair"),
        (("verify",), "name cases, such as FA-99296, or pass --all"),
        (("verify", "FA-99296", "--all"), "name cases, such as FA-99296, or pass --all"),
        (("try", "math:fsum"), "say what to try it on with one of"),
        (("try", "fsum", "--all"), "expected MODULE:FUNCTION"),
        (("try", "math:fsum", "--family", "nothing"), "there is no family 'nothing'"),
        (("try", "no_such_module:f", "--case", "FA-99296"), "cannot be loaded"),
        (("import", "no-such-file"), "no-such-file cannot be read: No such file or directory"),
        (("export", "FA-99296", "-o", "no/such/folder.zip"), "cannot be written"),
        (("new", "Not A Slug"), "expected lower-case words joined by hyphens"),
        (("new", "fine", "--arguments", "a,def"), "'def' cannot be the name of an argument"),
        (("try", "math:fsum", "--case", "FA-99296", "--timeout", "0"), "seconds above 0"),
        (("try", "math:fsum", "--case", "FA-99296", "--timeout", "nan"), "seconds above 0"),
        (("show", "retransmitted-replica-updates"), "is a family; its cases are FA-99296,"),
        (("list", "--archive", "/"), "expected the folder of an archive"),
    ],
)
def test_a_wrong_request_is_one_line_and_status_2(failuremap, arguments, words):
    """What was asked for wrongly is said in one line, and nothing else happens."""
    finished = failuremap(*arguments)
    assert finished.returncode == 2, text(finished)
    lines = [line for line in finished.stderr.decode().splitlines() if line.strip()]
    assert len(lines) == 1
    assert words in lines[0]


def test_try_says_pass_and_fail_by_its_status(failuremap, tmp_path):
    """0 and nothing to see, or 1 and the smallest failing input, with reports where asked for."""
    (tmp_path / "mine.py").write_text(
        "def right(rows, step):\n"
        "    return sum({w: v for s, w, v in rows if s == step}.values())\n\n\n"
        "def wrong(rows, step):\n    return sum(v for s, _, v in rows if s == step)\n"
    )
    finished = failuremap("try", "mine:right", "--case", "FA-99296")
    assert finished.returncode == 0, text(finished)
    assert "mine:right passes" in text(finished)
    files = ("--junit", "out.xml", "--pytest-file", "test_out.py")
    finished = failuremap("try", "mine:wrong", "--case", "FA-99296", *files)
    assert finished.returncode == 1
    assert "The smallest input found that mine:wrong gets wrong:" in text(finished)
    assert "<testsuites" in (tmp_path / "out.xml").read_text()
    assert "def test_fa_99296" in (tmp_path / "test_out.py").read_text()


def test_export_and_import_agree(failuremap, tmp_path):
    """A bundle checks and reproduces; one changed character in it does not."""
    assert failuremap("export", "FA-99291", "-o", "case.zip").returncode == 0
    good = failuremap("import", "case.zip")
    assert good.returncode == 0, text(good)
    assert "3 of 3 programs check and reproduce" in text(good)
    data = (tmp_path / "case.zip").read_bytes()
    (tmp_path / "bad.zip").write_bytes(data.replace(b"Sparse", b"Spurse", 1))
    bad = failuremap("import", "bad.zip")
    assert bad.returncode == 1
    assert "bad.zip" in text(bad)


def test_import_of_a_document(failuremap, tmp_path):
    """The published JSON reproduces; a table that says something else does not, row by row."""
    document = json.loads(failuremap("show", "FA-99296", "--json").stdout)
    (tmp_path / "case.json").write_text(json.dumps(document))
    assert failuremap("import", "case.json").returncode == 0
    row = document["programs"]["failure"]["observations"][0]
    row["actual"] += 1
    (tmp_path / "case.json").write_text(json.dumps(document))
    finished = failuremap("import", "case.json")
    assert finished.returncode == 1
    assert f"recorded {row['actual']}, now {row['actual'] - 1}" in text(finished)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda d: d.update(contract_source="# nothing\n"),
        lambda d: d["checks"].pop(),
        lambda d: d.update(contract="0" * 64),
        lambda d: d.update(digest="0" * 64),
        lambda d: d.update(params={"N": ["i", "9"]}),
        lambda d: d["programs"].pop("attempt-1"),
        lambda d: d["programs"]["failure"].update(source=d["programs"]["repair"]["source"]),
        lambda d: d.update(title=7),
    ],
)
def test_a_document_of_ours_is_held_to_all_it_says(failuremap, tmp_path, tamper):
    """Whatever it states about itself must be so, or nothing of it passes."""
    document = json.loads(failuremap("show", "FA-99296", "--json").stdout)
    tamper(document)
    (tmp_path / "case.json").write_text(json.dumps(document))
    finished = failuremap("import", "case.json")
    assert finished.returncode == 1
    assert "case.json" in text(finished)


def test_a_program_that_says_otherwise_by_itself_does_not_reproduce(failuremap, tmp_path):
    """Its fixtures reproduce, but run whole its own check says the opposite of its table."""
    source = (
        '"""A program."""\n\nimport json\n\nN = 1\n\n\ndef solve(values):\n'
        "    return sum(values)\n\n\nobservations = []\n\n\n"
        "def check(label, actual, expected):\n"
        '    observations.append({"check": label, "actual": actual, "expected": expected,'
        ' "passed": actual != expected})\n\n\n'
        'check("one", solve([N]), N)\n\npassed = all(o["passed"] for o in observations)\n'
        'print(json.dumps({"observations": observations, "passed": passed}, ensure_ascii=False))\n'
        "raise SystemExit(0 if passed else 1)\n"
    )
    row = {"check": "one", "actual": 1, "expected": 1, "passed": True}
    program = {"source": source, "sha256": source_digest(source), "exit_code": 0}
    document = {"id": "FA-00001", "failure": {**program, "observations": [row]}}
    (tmp_path / "case.json").write_text(json.dumps(document))
    finished = failuremap("import", "case.json")
    assert finished.returncode == 1, text(finished)
    assert "run whole, it exits 1, not 0" in text(finished)


@pytest.mark.parametrize("option", ["--junit", "--pytest-file"])
def test_a_report_that_cannot_be_written_is_said_before_the_work(failuremap, option):
    """A folder that is not there costs no results."""
    finished = failuremap("try", "math:fsum", "--case", "FA-99296", option, "no/such/file")
    assert finished.returncode == 2
    assert "cannot be written" in text(finished)


def test_split_needs_what_could_make_relatives(failuremap, tree, held):
    """Held repairs that are not at hand could be equal: no split is made without them."""
    tree.family(held="repair")
    tree.case(tier="held-repair", commitment=held)
    finished = failuremap("split", "--ratios", "0.5,0.5", "--salt", "x", archive=tree.root)
    assert finished.returncode == 1
    assert "repairs of FA-00001 are held" in text(finished)


def test_ending_import_by_a_signal_leaves_nothing(tmp_path):
    """SIGTERM ends the children and removes their folders, as Ctrl-C does."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    (tmp_path / "mine.py").write_text("import time\n\ndef f(rows, step):\n    time.sleep(60)\n")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "failuremap", "try", "mine:f", "--case", "FA-99296"),
            *("--archive", str(ARCHIVE), "--timeout", "50"),
        ],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    deadline = time.monotonic() + 60
    while not list(folder.iterdir()):
        assert time.monotonic() < deadline
        os.sched_yield()
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("step", ["pathlib.Path.mkdir", "shutil.rmtree"])
def test_a_signal_while_a_folder_is_made_or_removed(tmp_path, step):
    """SIGTERM within the very call that makes or removes a child's folder leaves none, either."""
    owner, name = step.rsplit(".", 1)
    ours = f"""
import os, pathlib, shutil, signal, sys
from failuremap.cli import main
done = {step}
def ended(folder, *options, **more):
    if not pathlib.Path(folder).name.startswith("failuremap-"):
        return done(folder, *options, **more)
    {owner}.{name} = done
    if {name == "mkdir"}:
        done(folder, *options, **more)
    os.kill(os.getpid(), signal.SIGTERM)
    if {name == "rmtree"}:
        done(folder, *options, **more)
{owner}.{name} = ended
sys.argv = ["failuremap", "try", "os:getcwd", "--case", "FA-99296", "--archive", {str(ARCHIVE)!r}]
main()
"""
    folder = tmp_path / "temporary"
    folder.mkdir()
    process = subprocess.run(
        [sys.executable, "-c", ours],
        env={**os.environ, "TMPDIR": str(folder)},
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert process.returncode == 128 + signal.SIGTERM
    assert list(folder.iterdir()) == []


def test_split_and_verify_split(failuremap, tmp_path):
    """A lock is written, keeps its promises, and is told apart from one that was changed."""
    options = ("--ratios", "train=0.5,test=0.5", "--salt", "x", "--lock", "a.lock.json")
    assert "effective n: 2 components" in text(failuremap("split", *options))
    assert failuremap("verify-split", "a.lock.json").returncode == 0
    again = (tmp_path / "a.lock.json").read_bytes()
    assert failuremap("split", *options).returncode == 0
    assert (tmp_path / "a.lock.json").read_bytes() == again
    (tmp_path / "a.lock.json").write_bytes(again.replace(b'"test"', b'"tset"', 1))
    assert failuremap("verify-split", "a.lock.json").returncode == 1


def test_split_refuses_more_splits_than_components(failuremap):
    """Two families cannot be three splits: relatives stay together."""
    finished = failuremap("split", "--ratios", "0.8,0.1,0.1", "--salt", "x")
    assert finished.returncode == 1
    assert "at least 3 components" in text(finished)


def test_new_starts_a_family_that_is_not_verified_yet(failuremap, small, tmp_path):
    """The skeleton reads, takes the next free ids, and says what is to be filled in."""
    finished = failuremap("new", "my-family", "--arguments", "a,b", archive=small.root)
    assert finished.returncode == 0, text(finished)
    assert sorted(small.read().cases) == [f"FA-{n:05d}" for n in range(1, 7)]
    verified = failuremap("verify", "FA-00002", archive=small.root)
    assert verified.returncode == 1
    assert "still says REPLACE" in text(verified)
    again = failuremap("new", "my-family", archive=small.root)
    assert again.returncode == 2
    assert "is there already" in text(again)


def test_verify_writes_its_kill_matrix(failuremap, small, tmp_path):
    """``--report`` has, for every suspect, the fixtures that noticed it."""
    failuremap("verify", "FA-00001", "--report", "report.json", archive=small.root)
    (report,) = json.loads((tmp_path / "report.json").read_text())
    kinds = {row["kind"] for row in report["kill_matrix"]}
    assert kinds == {"wrong", "mutant of repair", "mutant of attempt-1", "control"}
    labels = {fixture.label for fixture in small.one().fixtures()}
    assert all(set(row["killed_by"]) <= labels for row in report["kill_matrix"])


def test_doctor_is_green(failuremap):
    """On this machine the runner gives every control the verdict that it must have."""
    finished = failuremap("doctor")
    assert finished.returncode == 0, text(finished)
    assert "the runner is in order" in text(finished)


@pytest.mark.parametrize(
    "command",
    [
        *("list", "show", "render", "try", "verify", "export", "import", "split"),
        *("verify-split", "new", "doctor"),
    ],
)
def test_every_command_teaches_by_example(failuremap, command):
    """``--help`` ends with an example that begins with the command itself."""
    shown = text(failuremap(command, "--help"))
    assert f"Example:  failuremap {command}" in shown
