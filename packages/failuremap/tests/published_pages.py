"""Pages for the tests of importing: programs of our own, run here, and two layouts to fill.

Digests and observations are made when a page is made, so the pages cannot go stale.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGES = Path(__file__).parent / "pages"

HEADS = {
    "sparse": {
        "id": "FA-99292",
        "domain": "Distributed training",
        "tier": "Open tier",
        "title": "Sparse coordinates combined by position",
        "variant": "02",
        "root_cause": "The place of an entry in its list is taken for its coordinate.",
        "failure": "Lists in another order are added crosswise.",
        "attempt": "Entries by coordinate, where the failure appears to be gone.",
        "contract": "Values are summed by coordinate; the result is sorted.",
        "why": "Embedding tables are updated like this.",
        "scope": "A model of one mechanism, not an incident.",
        "case_digest": "0123456789abcdef" * 4,
    },
    "replica": {
        "id": "FA-99296",
        "domain": "Distributed training / retries",
        "tier": "Open tier",
        "title": "Retransmitted replica updates",
        "variant": "01",
        "root_cause": "A row that was sent again is a row like any other.",
        "failure": "Both copies are added.",
        "attempt": "One row for each worker, of whatever step.",
        "contract": "Each worker's last row at the step counts.",
        "why": "Networks repeat what they are not sure of.",
        "scope": "A model of one mechanism, not an incident.",
        "case_digest": "fedcba9876543210" * 4,
    },
}


@dataclass(frozen=True)
class Program:
    source: str
    exit_code: int
    observations: tuple[tuple[str, object, object, bool], ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()


@cache
def program(family: str, role: str) -> Program:
    """A program of ours, with what it really printed and how it exited."""
    source = (PAGES / f"{family}-{role}.txt").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60
    )
    rows = json.loads(done.stdout)["observations"]
    observed = tuple((r["check"], r["actual"], r["expected"], r["passed"]) for r in rows)
    return Program(source, done.returncode, observed)


def without_indentation(source: str) -> str:
    return "\n".join(line.strip() for line in source.split("\n"))


def without_blank_lines(source: str) -> str:
    return "\n".join(line for line in source.split("\n") if line.strip())


def doubled(source: str) -> str:
    return source.rstrip("\n").replace("\n", "\n\n")


def bent(source: str) -> str:
    return re.sub(r'(?<!\w)"', "“", source).replace('"', "”").replace("'", "’")


def dense_table(rows) -> str:
    return "\n".join(
        f"{label}\t{actual!r}\t{expected!r}\t{'Pass' if passed else 'Fail'}"
        for label, actual, expected, passed in rows
    )


def roomy_table(rows) -> str:
    return "\n".join(
        "| "
        + " | ".join(
            [
                label.replace("|", "\\|"),
                f"`{actual!r}`",
                f"`{expected!r}`",
                "Pass" if passed else "**Fail**",
            ]
        )
        + " |"
        for label, actual, expected, passed in rows
    )


def filled(layout: str, head, programs, damage=lambda source: source) -> str:
    """A page in a layout (``roomy`` or ``dense``), its programs damaged as saving would."""
    text = (PAGES / f"{layout}.txt").read_text(encoding="utf-8")
    table = dense_table if layout == "dense" else roomy_table
    values = dict(head)
    for role, one in programs.items():
        values[f"{role}.exit"] = str(one.exit_code)
        values[f"{role}.program"] = damage(one.source).rstrip("\n")
        values[f"{role}.table"] = table(one.observations)
        values[f"{role}.sha"] = one.digest
    return re.sub(r"\{([a-z_.]+)\}", lambda match: values.get(match[1], match[0]), text)


def programs(family: str):
    return {"failure": program(family, "failure"), "attempt": program(family, "attempt")}


def page(family: str, layout: str, damage=lambda source: source) -> str:
    return filled(layout, HEADS[family], programs(family), damage)
