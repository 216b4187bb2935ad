"""The Python interpreters at hand.

A case is verified on every one of them: what holds only where it was written is no finding. Two
paths to the same implementation, version and platform are one *environment*.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from failuremap.errors import InfraError

__all__ = ["Interpreter", "interpreters_at_hand", "this_interpreter"]

OLDEST = (3, 11)
_NAMES = ["python3", *(f"python3.{minor}" for minor in range(11, 20)), "pypy3"]
_ASK = (
    "import json, platform, sys; print(json.dumps([platform.python_implementation().lower(),"
    " platform.python_version(), platform.system().lower(), platform.machine().lower(),"
    " list(sys.version_info[:2])]))"
)
_ASK_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can run children, and what an observation says about it."""

    path: str
    implementation: str
    version: str
    system: str
    machine: str

    @property
    def environment(self) -> str:
        """What tells environments apart, as a file name: ``cpython-3.11.7-linux-x86_64``."""
        return f"{self.implementation}-{self.version}-{self.system}-{self.machine}"


def this_interpreter() -> Interpreter:
    """The interpreter that runs failuremap, without the virtual environment around it."""
    path = getattr(sys, "_base_executable", "") or sys.executable
    return Interpreter(
        path,
        platform.python_implementation().lower(),
        platform.python_version(),
        platform.system().lower(),
        platform.machine().lower(),
    )


@functools.cache
def interpreters_at_hand() -> tuple[Interpreter, ...]:
    """This interpreter first, then one of each other environment on the path, by name."""
    own = this_interpreter()
    found = {own.environment: own}
    for path in _candidates():
        interpreter = _examined(path)
        if interpreter is not None:
            found.setdefault(interpreter.environment, interpreter)
    others = sorted(set(found) - {own.environment})
    return (own, *(found[environment] for environment in others))


def _candidates() -> dict[Path, None]:
    """Executables by their real path: on the path, and where pyenv and uv keep theirs."""
    home = Path.home()
    folders = [
        *map(Path, [*os.get_exec_path(), "/usr/bin", "/usr/local/bin"]),
        *sorted(home.glob(".pyenv/versions/*/bin")),
        *sorted(home.glob(".local/share/uv/python/*/bin")),
    ]
    return {
        candidate.resolve(): None
        for folder in folders
        for name in _NAMES
        if os.access(candidate := folder / name, os.X_OK)
    }


def _examined(path: Path) -> Interpreter | None:
    """What an executable says it is; None where it is too old, or no Python that runs."""
    try:
        answer = subprocess.run(  # noqa: S603 - running programs is what this does
            [str(path), "-s", "-S", "-c", _ASK],
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        implementation, version, system, machine, release = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if tuple(release) < OLDEST:
        return None
    return Interpreter(str(path), implementation, version, system, machine)


def interpreter_at(path: str) -> Interpreter:
    """The interpreter at a path that the caller named; ``InfraError`` where it cannot be used."""
    found = _examined(Path(path))
    if found is None:
        raise InfraError(f"{path}: expected a Python {OLDEST[0]}.{OLDEST[1]} or newer that runs")
    return found
