"""How much a child process may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

__all__ = ["Limits"]

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one child process.

    ``call_seconds`` is the wall time of loading the source and of each question;
    ``answer_bytes`` bounds one answer, ``memory_bytes`` the address space.
    """

    call_seconds: float = 1.0
    cpu_seconds: int = 60
    memory_bytes: int = 512 * MEBIBYTE
    file_bytes: int = 0
    open_files: int = 32
    answer_bytes: int = 4 * MEBIBYTE

    def in_child(self) -> dict[str, int]:
        """What the child sets for itself."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "memory_bytes": self.memory_bytes,
            "file_bytes": self.file_bytes,
            "open_files": self.open_files,
        }

    def with_more_time(self) -> Limits:
        """The same limits for a second try on a machine that may only have been busy."""
        return replace(self, call_seconds=4 * self.call_seconds)

    def document(self) -> dict[str, object]:
        """As JSON, for cache keys; seconds as text, for canonical JSON has few floats."""
        return {name: str(value) for name, value in asdict(self).items()}
