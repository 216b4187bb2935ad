"""The benchmarks run and tell of every target. No figure is looked at: the machine makes those."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import onefold

REPOSITORY = Path(__file__).resolve().parents[1]
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
"""Plots are drawn where it is, as it is once `make bench` has installed it."""
sys.path.insert(0, str(REPOSITORY))

from benchmarks.load.contents import Contents, Workload  # noqa: E402
from benchmarks.load.memory import growth  # noqa: E402
from benchmarks.processes import MIB, Reading  # noqa: E402

TARGETS = [
    *("float32 sum and mean", "read bandwidth", "float64", "bfloat16", "float16"),
    *(
        "weighted mean",
        "int32, int64",
        "adversarial",
        "uniform in 10M",
        "hashed",
        "any distribution",
    ),
    *("dim 64 / 128 / 256", "dim 8", "extra memory", "tiny call", "import onefold", "warm-cache"),
]


def bench(*arguments: str, what: str = "kernels") -> None:
    command = [sys.executable, "-m", f"benchmarks.{what}", *arguments]
    subprocess.run(command, cwd=REPOSITORY, check=True)


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """One section at its smallest, written to a directory of its own."""
    directory = tmp_path_factory.mktemp("bench")
    bench("--quick", "--only", "tiny", "--output", str(directory))
    return directory


def table(page: str, heading: str) -> list[list[str]]:
    """The first table under a heading, without its head."""
    lines = page.split(f"## {heading}\n", 1)[1].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    return rows[2:]


def test_every_target_has_a_row(output):
    """Each row of the targets is there, also where its section did not run."""
    rows = table((output / "README.md").read_text(), "Targets")
    for words in TARGETS:
        assert any(words in " ".join(row[:2]) for row in rows), words


def test_what_ran_is_told(output):
    """The tiny call has its figure, and a dash for *met*, since a quick look decides nothing."""
    rows = table((output / "README.md").read_text(), "Targets")
    (row,) = [row for row in rows if "tiny" in row[0]]
    assert "µs" in row[2]
    assert row[3] == "–"


def test_results_are_machine_readable(output):
    """results.json has each contestant with its seconds, and how many bits are not ours."""
    document = json.loads((output / "results.json").read_text())
    (section,) = document["sections"]
    assert section["exit_status"] == 0
    for case in section["cases"]:
        assert case["outcomes"]["onefold"]["seconds"] > 0
        assert case["outcomes"]["math.fsum"]["error"] is None
        assert case["outcomes"]["onefold, 1 thread"]["differs"] == 0


def test_a_page_is_rendered_again_from_results(output):
    """--render measures nothing and writes the page that was there."""
    before = (output / "README.md").read_text()
    (output / "README.md").unlink()
    bench("--render", "--output", str(output))
    assert (output / "README.md").read_text() == before


def test_the_page_names_no_host_and_no_path(output):
    """What is published says nothing about where it was made but the kind of machine."""
    for name in ("README.md", "results.json"):
        text = (output / name).read_text()
        assert not re.search(r"/(home|root|tmp|work)\b", text)
        assert str(output) not in text


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """A few workers, a second of each workload, under a deadline that some of them miss."""
    directory = tmp_path_factory.mktemp("load")
    options = ("--late", "0.4", "--deadline", "0.3", "--minimum", "2")
    bench("--quick", *options, "--output", str(directory), what="load")
    return directory


def test_a_load_run_tells_what_was_compared(load):
    """Each workload compares aggregates, finds nothing wrong, and has its line and its plot."""
    document = json.loads((load / "load.json").read_text())
    rows = table((load / "load.md").read_text(), "Verdicts")
    assert [row[0] for row in rows[:2]] == ["small", "large"]
    for measured in document["workloads"]:
        assert measured["counts"]["aggregates"] > 0
        assert measured["counts"]["wrong"] == 0
        plot = load / "plots" / f"load-{measured['workload']['name']}.svg"
        assert plot.exists() == HAS_MATPLOTLIB


def test_a_load_page_is_rendered_again(load):
    """--render loads nothing, writes the page that was there, and names no path."""
    before = (load / "load.md").read_text()
    bench("--render", "--output", str(load), what="load")
    assert (load / "load.md").read_text() == before
    assert not re.search(r"/(home|root|tmp|work)\b", before + (load / "load.json").read_text())


@pytest.fixture
def contents():
    return Contents(Workload("tiny", elements=50, entries=20, entries_max=80), 5, seed=3)


def exact_sum(contents, step, attempts):
    """An aggregate by Fractions, of the updates themselves."""
    dense = [Fraction(0)] * 50
    sparse: dict[int, Fraction] = {}
    for index, attempt in enumerate(attempts):
        update = contents.update(index, step, attempt)
        dense = [a + Fraction(float(b)) for a, b in zip(dense, update["dense"], strict=True)]
        part = update["sparse"]
        for key, value in zip(part.coordinates.tolist(), part.values.tolist(), strict=True):
            sparse[key] = sparse.get(key, Fraction(0)) + Fraction(value)
    keys = sorted(sparse)
    return {
        "dense": np.array([float(each) for each in dense], np.float32),
        "sparse": onefold.Sparse(
            np.array(keys), np.array([float(sparse[key]) for key in keys], np.float32)
        ),
    }


def test_load_knows_the_exact_sum(contents):
    """The sum in closed form is that of Fractions, which float64 holds, rounded once."""
    for step in range(20):
        attempts = [contents.plan(index, step).attempts for index in range(5)]
        listed = dict(zip(contents.names, attempts, strict=True))
        assert contents.wrong(step, listed, exact_sum(contents, step, attempts)) is None


def test_load_notices_what_is_wrong(contents):
    """A worker that is missing, a sending that was replaced, a bit: each is told."""
    step = next(s for s in range(100) if contents.plan(0, s).replaces)
    attempts = [contents.plan(index, step).attempts for index in range(5)]
    listed = dict(zip(contents.names, attempts, strict=True))
    tensors = exact_sum(contents, step, attempts)
    assert contents.wrong(step, listed, exact_sum(contents, step, attempts[:-1])) is not None
    assert contents.wrong(step, listed, exact_sum(contents, step, [1, *attempts[1:]])) is not None
    tensors["dense"].view(np.uint32)[7] ^= 1
    assert contents.wrong(step, listed, tensors) is not None


def readings(anonymous):
    return [Reading(float(at), int(bytes_), 0, 0, 0, 0.0) for at, bytes_ in enumerate(anonymous)]


def test_memory_that_grows_is_told_from_noise():
    """A slope beyond the bound counts only where the noise does not explain it."""
    rng = np.random.default_rng(1)
    noise = rng.normal(200 * MIB, MIB, 600)
    assert growth(readings(noise), most=64).verdict == "flat"
    assert growth(readings(noise + np.arange(600) * MIB / 10), most=64).verdict == "grows"
    assert growth(readings(noise[:30]), most=64).verdict == "too short to tell"


def test_memory_that_rises_only_at_first_is_flat():
    """What allocators and caches take in the first half is no growth."""
    filling = np.minimum(np.arange(600), 200) * MIB
    assert growth(readings(filling), most=64).verdict == "flat"


def test_every_target_of_the_server_has_a_row(tmp_path):
    """One section is measured beside its yardsticks; the others say that they were not."""
    bench("--quick", "--only", "small", "--output", str(tmp_path), what="server")
    page = (tmp_path / "server.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 6
    measured = [row for row in rows[2:] if row[2] != "not measured"]
    assert len(measured) == 1
    assert "raw Flight" in measured[0][2]
    assert all(row[3] == "–" for row in rows[2:])
