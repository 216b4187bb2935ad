"""A builder of small archives, and what many tests of the runner share."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from small_family import FAMILY, FILES, HELD

from failuremap.archive import Archive, Case, read_archive
from failuremap.fixtures import parse_fixtures
from failuremap.runner.interpreters import this_interpreter
from failuremap.runner.limits import Limits


def toml(fields: dict[str, object]) -> str:
    """Plain fields as TOML: JSON's strings, numbers and lists are TOML's too."""
    lines = []
    for name, value in fields.items():
        if isinstance(value, dict):
            inner = ", ".join(f"{key} = {json.dumps(item)}" for key, item in value.items())
            lines.append(f"{name} = {{{inner}}}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            tables = [toml(item) for item in value]
            joined = ", ".join("{" + ", ".join(t.strip().splitlines()) + "}" for t in tables)
            lines.append(f"{name} = [{joined}]")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


class Tree:
    """An archive being written: ``root`` is open, ``private`` holds what is held."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "archive"
        self.private = folder / "private"
        self.write(
            "archive.toml",
            'schema = 1\nid_prefix = "FA"\ncanary = "canary 00000000"\n'
            'licences = {code = "Apache-2.0", text = "CC-BY-4.0"}\n',
        )

    def write(self, name: str, text: str, *, private: bool = False) -> Path:
        file = (self.private if private else self.root) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def family(self, slug: str = "shifted-sum", *, held: str = "", **changes: object) -> None:
        """Write a family; a change to None leaves the field out.

        ``held`` is ``repair`` (which then lies under the private root) or ``all``.
        """
        fields = {**copy.deepcopy(FAMILY), **changes}
        fields = {name: value for name, value in fields.items() if value is not None}
        files = {**FILES, "family.toml": toml(fields)}
        for name, text in files.items():
            private = held == "all" or (held == "repair" and name == "impl/repair.py")
            self.write(f"families/{slug}/{name}", text, private=private)

    def case(
        self, number: int = 1, slug: str = "shifted-sum", variant: int = 1, **changes: object
    ) -> Path:
        """Write a case; a change to None leaves the field out."""
        identifier = f"FA-{number:05d}"
        fields = {
            "id": identifier,
            "family": slug,
            "variant": variant,
            "tier": "open",
            "params": {"N": variant},
            **changes,
        }
        kept = {name: value for name, value in fields.items() if value is not None}
        return self.write(f"cases/{identifier}.toml", toml(kept))

    def read(self, *, private: bool = False) -> Archive:
        return read_archive(self.root, private=self.private if private else None)

    def one(self, number: int = 1, *, private: bool = False) -> Case:
        return self.read(private=private).case(f"FA-{number:05d}")


@pytest.fixture
def tree(tmp_path):
    """An archive with nothing in it yet."""
    return Tree(tmp_path)


@pytest.fixture
def small(tree):
    """An archive of one family with one case."""
    tree.family()
    tree.case()
    return tree


@pytest.fixture
def held():
    """A commitment as a case states it."""
    return HELD


@pytest.fixture(scope="session")
def interpreter():
    return this_interpreter()


@pytest.fixture(scope="session")
def quick():
    """Limits for programs that are meant to reach them; a second try takes four times as long."""
    return Limits(call_seconds=0.3, cpu_seconds=5, memory_bytes=192 * 2**20, answer_bytes=2**16)


@pytest.fixture(scope="session")
def sums():
    """Two fixtures for ``solve(values)``: the sum, and the values left alone."""
    source = (
        'values = [1, 2, 4]\ncheck("a list", solve(values), 7)\ncheck("nothing", solve([]), 0)\n'
    )
    return parse_fixtures(source, {})
