"""Which archive, and which of its cases: what commands and the pytest plugin share."""

from __future__ import annotations

import os
from pathlib import Path

from failuremap.archive import Archive, Case, find_root, read_archive
from failuremap.errors import UsageError

__all__ = ["chosen_cases", "open_archive"]

VARIABLE = "FAILUREMAP_ARCHIVE"


def open_archive(root: Path | None, *, private: Path | None = None) -> Archive:
    """The archive named, else that of the environment, else the one at or above this folder."""
    named = root or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is not None and not (named / "archive.toml").is_file():
        raise UsageError(f"{named}: expected the folder of an archive, with archive.toml in it")
    return read_archive(named or find_root(Path.cwd()), private=private)


def chosen_cases(
    root: Path | None, *, family: str | None = None, case: str | None = None
) -> list[Case]:
    """The cases to try: one, those of a family, or one variant of every family."""
    archive = open_archive(root)
    if family and case:
        raise UsageError("name a family or a case, not both")
    if case:
        return [archive.case(case)]
    if family:
        archive.family(family)
        return [found for found in archive.cases_of(family) if found.withdrawn is None]
    return [found for found in archive.cases.values() if found.withdrawn is None]
