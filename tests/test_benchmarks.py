"""The benchmarks run and tell of every target. No figure is looked at: the machine makes those."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

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


def bench(*arguments: str) -> None:
    command = [sys.executable, "-m", "benchmarks.kernels", *arguments]
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
