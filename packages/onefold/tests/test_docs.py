"""What the README and the docs show is true: their code runs, their commands exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


def blocks(page):
    text = (REPOSITORY / page).read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_guide_runs():
    """The blocks of the guide run in order, in one namespace."""
    namespace = {}
    for block in blocks("docs/guide.md"):
        exec(compile(block, "docs/guide.md", "exec"), namespace)


def test_the_readme_runs_in_one_process():
    """The README's block that needs no server runs."""
    *_, in_one_process = blocks("README.md")
    exec(compile(in_one_process, "README.md", "exec"), {})


@pytest.mark.parametrize("faults", [[], ["--faults", "repeat=0.2,lose=0.1,delay=0.2"]])
def test_the_readmes_training_loop_runs(tmp_path, faults):
    """The README's training loop runs under ``onefold run``, and every worker ends alike."""
    (tmp_path / "train.py").write_text(blocks("README.md")[0])
    kill = ["--kill-server", "1"] if faults else []
    summary = tmp_path / "summary.json"
    command = [sys.executable, "-m", "onefold", "run", "--workers", "4", *faults, *kill]
    result = subprocess.run(
        [*command, "--summary", str(summary), "--", sys.executable, str(tmp_path / "train.py")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    endings = json.loads(summary.read_text())
    first, *others = [worker["result"] for worker in endings["workers"].values()]
    assert len(first) == 3
    assert others == [first] * 3


def started(command, address, worker):
    environment = os.environ | {"ONEFOLD_ADDRESS": address, "ONEFOLD_WORKER": worker}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_the_readmes_training_loop_runs_under_serve(tmp_path):
    """By the README's own command, with the weights that it ends with under ``onefold run``."""
    (tmp_path / "train.py").write_text(blocks("README.md")[0])
    train = [sys.executable, str(tmp_path / "train.py")]
    onefold = [sys.executable, "-m", "onefold"]
    run = [*onefold, "run", "--workers", "4", "--", *train]
    expected = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    readme = (REPOSITORY / "README.md").read_text()
    options = re.search(r"\$ onefold serve run-1/ (.*) --listen", readme)[1].split()
    serve = [*onefold, "serve", str(tmp_path / "run-1"), *options]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[-1]
            workers = [started(train, address, name) for name in "abcd"]
            endings = {worker.communicate(timeout=120)[0] for worker in workers}
        finally:
            server.kill()
    assert endings == set(expected.splitlines(keepends=True))


def test_every_link_leads_somewhere():
    """Relative links of the pages point to files that exist."""
    for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_make_target_that_the_docs_name_exists():
    """``make X`` in any page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert named <= targets, page.name


def test_the_command_reference_is_what_help_says():
    """docs/commands.md is what ``make docs`` writes."""
    generated = subprocess.run(
        [sys.executable, str(REPOSITORY / "docs/commands.py")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (REPOSITORY / "docs/commands.md").read_text() == generated
