"""Files that commands write and read: wrong paths are said before the work, in one line."""

from __future__ import annotations

import os
from pathlib import Path

from failuremap.errors import UsageError

__all__ = ["check_writable", "printable", "write_file"]


def check_writable(*files: Path | None) -> None:
    """``UsageError`` for a file that could not be written once the work is done."""
    for file in files:
        if file is None:
            continue
        if file.is_dir() or not file.parent.is_dir():
            raise UsageError(f"{file} cannot be written: expected a file in a folder that is there")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise UsageError(f"{file} cannot be written: permission denied")


def write_file(file: Path, text: str) -> None:
    """Write beside the place, then rename: never half a file."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def printable(text: str) -> str:
    """A stranger's text without what a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
