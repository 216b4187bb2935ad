"""Runs that need not be made again.

A run is a function of the program, its parameters, the fixtures, the interpreter, the limits and
the runner; the key is the digest of them all. The runner's part is the digest of its own code, so
an edit there forgets everything. Runs in which the machine failed, or in which time ran out, are
made again: they say something about the day.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from failuremap.digests import document_digest

__all__ = ["RUNNER", "Cache", "default_folder"]

_PACKAGE = Path(__file__).resolve().parents[1]
_RUNNING = ("child", "fixtures", "runner", "values.py", "verify/contract.py")
"""The code that a run's outcome depends on."""


def _code_digest() -> str:
    digest = hashlib.sha256()
    for name in _RUNNING:
        path = _PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(_PACKAGE).as_posix().encode() + b"\0")
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


RUNNER = _code_digest()
"""The version of the runner: the digest of its code."""


def default_folder() -> Path | None:
    """The user's cache directory; None for a user without a home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "failuremap"
    except RuntimeError:
        return None


class Cache:
    """Documents by key, in a folder; None as the folder means no cache."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(
        self,
        key: Mapping[str, object],
        make: Callable[[], dict[str, object]],
        *,
        keep: Callable[[dict[str, object]], bool],
    ) -> dict[str, object]:
        """The document of a key: the kept one, or a new one, which is kept if it is worth it."""
        if self._folder is None:
            return make()
        name = document_digest({**key, "runner": RUNNER})
        file = self._folder / name[:2] / f"{name}.json"
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(found, dict) and found.get("key") == name:
                return dict(found["document"])
        document = make()
        if keep(document):
            self._put(file, {"key": name, "document": document})
        return document

    @staticmethod
    def _put(file: Path, document: dict[str, object]) -> None:
        """Best effort: a cache that cannot be written costs time, nothing else."""
        beside = file.with_suffix(f".{os.getpid()}-{id(document)}.tmp")
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(document), encoding="utf-8")
            beside.replace(file)
