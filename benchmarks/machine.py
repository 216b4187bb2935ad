"""What figures depend on, without names of hosts or paths; and progress, apart from results."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from onefold.exact.pool import thread_count

__all__ = ["about", "facts", "say", "table"]


def say(text: str) -> None:
    """Progress, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)


def facts(command: str, distributions: Iterable[str], *, is_quick: bool) -> dict[str, Any]:
    """The machine, the day, and the versions of the distributions that are installed."""
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "is_quick": is_quick,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "threads": thread_count(),
        "python": platform.python_version(),
        "versions": {
            name: importlib.metadata.version(name) for name in distributions if _is_installed(name)
        },
    }


def about(run: dict[str, Any]) -> str:
    """The same as a sentence, for the head of a page."""
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return (
        f"`{run['command']}` on {run['date']}: {run['processor']}, {run['cores']} cores, "
        f"{run['memory_gib']} GiB; {run['threads']} threads. Python {run['python']}, {versions}."
    )


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _processor() -> str:
    """The model, and the widest vectors it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    told = dict(line.split("\t: ", 1) for line in lines if "\t: " in line)
    model = told.get("model name", platform.machine())
    flags = told.get("flags", "").split()
    widest = next((flag for flag in ("avx512f", "avx2", "avx") if flag in flags), None)
    return f"{model} ({widest})" if widest else model
