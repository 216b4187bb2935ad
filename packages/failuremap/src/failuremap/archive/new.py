"""The first files of a new family."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from pathlib import Path

from failuremap.archive.model import Archive
from failuremap.archive.read import PROSE, SCHEMA
from failuremap.errors import UsageError

__all__ = ["UNFILLED", "create_family"]

UNFILLED = "REPLACE"
"""What stands where the author has yet to write something; no verified case may say it."""

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_PROSE = {
    "root_cause": "what is wrong in the design, in one or two sentences",
    "failure": "what the failing implementation does and what comes of it",
    "attempt": "what the tempting fix does, and which boundary still breaks it",
    "contract": "what solve is given and what it must give, in a form that can be checked",
    "why": "who is hurt by it, and how they would notice",
    "scope": "what this controlled model leaves out; it is no incident",
}

_CONTRACT = '''"""REPLACE: the contract in words."""


def valid({arguments}):
    """Whether the arguments are in the domain of the contract."""
    raise NotImplementedError("REPLACE")


def generate(rng):
    """A tuple of arguments in the domain: small, varied, and hostile."""
    raise NotImplementedError("REPLACE")


def oracle({arguments}):
    """What must come out: slow and obviously right, and not written like the repair."""
    raise NotImplementedError("REPLACE")
'''

_SOLVE = '''"""REPLACE: {about}"""


def solve({arguments}):
    raise NotImplementedError("REPLACE")
'''

_FIXTURES = '''"""REPLACE: boundary fixtures. N is the case's parameter."""

check("REPLACE: the property in a few words", solve({nones}), N)
'''


def create_family(
    archive: Archive, slug: str, *, arguments: Sequence[str], variants: int
) -> list[Path]:
    """Write a family's files and its cases, and return them; nothing that exists is touched."""
    folder = archive.root / "families" / slug
    _check(folder, slug, arguments)
    joined = ", ".join(arguments)
    texts = {
        folder / "family.toml": _family(slug, arguments, variants),
        folder / "contract.py": _CONTRACT.format(arguments=joined),
        folder / "fixtures.py": _FIXTURES.format(nones=", ".join("None" for _ in arguments)),
    }
    abouts = {
        "impl/failure.py": "the implementation that fails, and why somebody writes it",
        "impl/attempt-1.py": "the tempting fix that still fails",
        "impl/repair.py": "the repair: short",
        "wrong/first-mistake.py": "another mistake, and why somebody makes it; add many",
    }
    for name, about in abouts.items():
        texts[folder / name] = _SOLVE.format(about=about, arguments=joined)
    for variant, identifier in enumerate(_free_ids(archive, variants), 1):
        texts[archive.root / "cases" / f"{identifier}.toml"] = (
            f'id = "{identifier}"\nfamily = "{slug}"\nvariant = {variant}\ntier = "open"\n\n'
            f"[params]\nN = {variant}\n"
        )
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error}") from None
    return list(texts)


def _check(folder: Path, slug: str, arguments: Sequence[str]) -> None:
    if not _SLUG.fullmatch(slug):
        raise UsageError(f"{slug!r}: expected lower-case words joined by hyphens")
    if folder.exists():
        raise UsageError(f"{folder} is there already")
    for name in arguments:
        if not name.isidentifier() or keyword.iskeyword(name) or name == "N":
            raise UsageError(f"--arguments: {name!r} cannot be the name of an argument")


def _free_ids(archive: Archive, count: int) -> list[str]:
    """The next ids: after the highest that was ever given, withdrawn and held ones included."""
    taken = [int(identifier.rpartition("-")[2]) for identifier in (*archive.cases, *archive.held)]
    first = max(taken, default=0) + 1
    return [f"{archive.id_prefix}-{number:05d}" for number in range(first, first + count)]


def _family(slug: str, arguments: Sequence[str], variants: int) -> str:
    title = slug.replace("-", " ").capitalize()
    quoted = ", ".join(f'"{name}"' for name in arguments)
    lines = [
        f"schema = {SCHEMA}",
        f'title = "{title}"',
        'domain = "distributed training"',
        f'evaluation_groups = ["{slug}"]',
        *(f'{name} = "{UNFILLED}: {_PROSE[name]}."' for name in PROSE),
        'compare = "exact"',
        f"arguments = [{quoted}]",
        "sources = []",
        "",
        "[params]",
        f"N = [{', '.join(str(number) for number in range(1, variants + 1))}]",
    ]
    return "\n".join(lines) + "\n"
