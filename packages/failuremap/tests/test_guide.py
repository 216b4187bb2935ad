"""docs/failuremap.md is true: its files are written, its commands are run, its output is shown."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = REPOSITORY / "docs/failuremap.md"


def blocks(text):
    """The fenced blocks: their kind and their text."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(block):
    """The commands of a console block with the output that is shown for each."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """Shown output as a pattern: ``...`` stands for anything, also over several lines."""
    text = "\n".join(lines)
    return r"\s*" + ".*".join(re.escape(part.strip()) for part in text.split("...")) + r"\s*"


def run(command, folder, environment):
    """The output of a command, standard error included, and the variables that it exports."""
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        environment[name] = value
        return ""
    finished = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    return finished.stdout


def test_the_page_runs(tmp_path):
    """From nothing to ``try``, and to a verified family of one's own, as the page says."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "200",
    }
    environment.pop("FAILUREMAP_ARCHIVE", None)
    shutil.copytree(REPOSITORY / "archive", tmp_path / "archive")
    for kind, text in blocks(PAGE.read_text()):
        if kind == "console":
            for command, shown in commands(text):
                output = run(command, tmp_path, environment)
                assert re.fullmatch(pattern(shown), output, re.DOTALL), (
                    f"{command}\n--- the page shows\n" + "\n".join(shown) + f"\n--- came\n{output}"
                )
        else:
            name = re.match(r"# (\S+)\n", text)
            assert name is not None, text
            file = tmp_path / name[1]
            assert file.parent.is_dir(), f"{file.parent}: nothing has made this folder"
            file.write_text(text.removeprefix(name[0]))
            shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)


def test_the_index_of_the_page_is_right():
    """Each heading is listed at the top, and each entry leads to a heading."""
    text = PAGE.read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    entries = re.findall(r"^- \[(.+)\]\(#(.+)\)$", text, re.MULTILINE)
    assert [title for title, _ in entries] == headings
    for title, anchor in entries:
        assert anchor == re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-")


def test_the_readme_shows_what_try_prints(tmp_path):
    """The README's one command of failuremap runs as it is shown."""
    readme = (REPOSITORY / "README.md").read_text()
    shown = re.search(r"^```\n\$ (failuremap .*)\n((?:.*\n)*?)```", readme, re.MULTILINE)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FAILUREMAP_ARCHIVE": str(REPOSITORY / "archive"),
    }
    output = run(shown[1], tmp_path, environment)
    assert re.fullmatch(pattern(shown[2].splitlines()), output, re.DOTALL), output
