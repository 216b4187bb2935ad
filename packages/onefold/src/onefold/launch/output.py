"""What a process writes to one stream, in a file over all its lives, read as it comes."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["Output"]

_READ_BYTES_MAX = 1 << 16
_TRACEBACK = "Traceback (most recent call last):"
_TRACEBACK_LINES_MAX = 60
_LAST_LINES = 15


class Output:
    """One stream of a process.

    Args:
        path: Of the file, which the process appends to; what is in it already is not shown.
        ends_in_result: The last line, if it is JSON, is the result of the process and not shown.
    """

    def __init__(self, path: Path, *, ends_in_result: bool = False) -> None:
        self.path = path
        self._ends_in_result = ends_in_result
        self._shown_bytes = self._life_bytes = self._size_bytes()

    def begin_life(self) -> None:
        """The process is about to start, anew if it was started before."""
        self._life_bytes = self._size_bytes()

    def new_lines(self, exit_status: int | None) -> list[str]:
        """The lines that have come since the last call.

        Args:
            exit_status: None while the process runs: its last line may not be whole, and one that
                is JSON may be the result. That is shown if another follows, or if the process
                fails.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._shown_bytes)
            data = file.read()
        if exit_status is None:
            data = data[: data.rfind(b"\n") + 1]
        if self._ends_in_result and exit_status in (None, 0):
            data = _without_result(data)
        self._shown_bytes += len(data)
        return data.decode(errors="replace").splitlines()

    def result(self) -> object:
        """The last line of this life, if that is JSON; else None."""
        lines = self._life_lines()
        return _json(lines[-1]) if lines else None

    def end(self) -> list[str]:
        """The last traceback of this life with what follows it, else its last lines."""
        lines = self._life_lines()[-_TRACEBACK_LINES_MAX:]
        if _TRACEBACK in lines:
            return lines[lines.index(_TRACEBACK) :]
        return lines[-_LAST_LINES:]

    def _life_lines(self) -> list[str]:
        """The last lines of this life that are not blank."""
        if not self.path.exists():
            return []
        start = max(self._life_bytes, self._size_bytes() - _READ_BYTES_MAX)
        with self.path.open("rb") as file:
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
        cut = 1 if start > self._life_bytes else 0  # the first may not be whole
        return [line for line in lines[cut:] if line.strip()]

    def _size_bytes(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


def _without_result(data: bytes) -> bytes:
    """Whole lines without the last, and the blank ones after it, if that is JSON."""
    written = data.rstrip()
    start = written.rfind(b"\n") + 1
    is_result = written and _json(written[start:].decode(errors="replace")) is not None
    return data[:start] if is_result else data


def _json(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value
