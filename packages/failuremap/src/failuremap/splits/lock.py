"""The lock: which case is in which split, for good.

A split that is computed afresh for each release moves cases as the archive grows, and what a model
was trained on yesterday it is graded on today. So places are kept in a document that only grows::

    {
      "schema": 1,
      "digest": SHA-256 of the canonical JSON of all the rest,
      "archive": SHA-256 of the facts it was made from (facts.archive_digest),
      "salt": the text that settles ties,
      "ratios": {split: share as an exact fraction, "4/5"},
      "cases": {case id: split},
      "components": [{"cases": [case id], "split": split}],
      "quarantine": {case id: why it has no place}
    }

Keys are sorted, components by their first case, and there is one final newline: equal locks are
equal bytes. Nothing in it depends on a held file but which cases belong together.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from failuremap.digests import document_digest
from failuremap.errors import SplitError
from failuremap.splits.ratios import fraction_of

__all__ = ["SCHEMA", "Lock", "LockedComponent", "parse_lock", "read_lock", "write_lock"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class LockedComponent:
    """Cases that belong together, ascending, and the split that they are in."""

    cases: tuple[str, ...]
    split: str


@dataclass(frozen=True, slots=True)
class Lock:
    """What is decided; ``digest`` is the one that it came with, right or wrong."""

    archive: str
    salt: str
    ratios: Mapping[str, Fraction]
    cases: Mapping[str, str]
    components: tuple[LockedComponent, ...]
    quarantine: Mapping[str, str]
    digest: str = ""

    @property
    def right_digest(self) -> str:
        """The digest of what the lock says."""
        return document_digest(self._said())

    def sealed(self) -> Lock:
        """This lock with its right digest."""
        return replace(self, digest=self.right_digest)

    def to_text(self) -> str:
        """The document, byte for byte."""
        document = {**self._said(), "digest": self.digest}
        return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def _said(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "archive": self.archive,
            "salt": self.salt,
            "ratios": {name: str(share) for name, share in self.ratios.items()},
            "cases": dict(self.cases),
            "components": [
                {"cases": list(part.cases), "split": part.split}
                for part in sorted(self.components, key=lambda part: part.cases)
            ],
            "quarantine": dict(self.quarantine),
        }


def parse_lock(text: str, name: str = "the lock") -> Lock:
    """The lock that a document holds; ``name`` is what messages call it.

    Whether its digest is right is for ``verify`` and ``plan`` to say.

    Raises:
        SplitError: It is not a lock of this schema.
    """
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise SplitError(
                f"{name}: expected schema {SCHEMA}, got {document['schema']!r}; "
                "use the version of failuremap that wrote it"
            )
        return Lock(
            archive=_text(document["archive"]),
            salt=_text(document["salt"]),
            ratios={key: fraction_of(share) for key, share in _texts(document["ratios"]).items()},
            cases=_texts(document["cases"]),
            components=tuple(
                LockedComponent(tuple(map(_text, part["cases"])), _text(part["split"]))
                for part in document["components"]
            ),
            quarantine=_texts(document["quarantine"]),
            digest=_text(document["digest"]),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError) as error:
        if isinstance(error, SplitError):
            raise
        raise SplitError(
            f"{name}: expected a lock as failuremap split writes it, got something else "
            f"({type(error).__name__}: {error}); restore the file from version control"
        ) from None


def read_lock(path: Path) -> Lock:
    """The lock in a file.

    Raises:
        SplitError: The file cannot be read, or is no lock.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SplitError(f"{path}: expected a lock file, got {error}") from None
    return parse_lock(text, str(path))


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock: beside its place, then into it, so that a crash leaves the old one or the new.

    Raises:
        OSError: The directory cannot be written.
    """
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(lock.to_text())
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(0o644)  # it is published; mkstemp makes files for the owner alone
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r}")
    value.encode()  # half of a character, which JSON can write, could not be written again
    return value


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {value!r}")
    return {_text(key): _text(value[key]) for key in sorted(value)}
