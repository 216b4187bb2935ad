"""What a proxy counts, and how it lets one call overtake another."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

__all__ = ["Counter", "Overtaking", "Traffic"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went through a proxy.

    ``repeated`` counts repeats that were sent, ``reordered`` calls that another really passed.
    ``unavailable`` counts calls that found no server.
    """

    calls: int = 0
    repeated: int = 0
    lost: int = 0
    replies_lost: int = 0
    delayed: int = 0
    reordered: int = 0
    unavailable: int = 0
    bytes_to_server: int = 0
    bytes_from_server: int = 0


class Counter:
    """A :class:`Traffic` that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traffic = Traffic()

    def add(self, name: str, amount: int) -> None:
        """Add to one of the fields."""
        with self._lock:
            self._traffic = replace(self._traffic, **{name: getattr(self._traffic, name) + amount})

    def snapshot(self) -> Traffic:
        """The counts so far."""
        with self._lock:
            return self._traffic


class Overtaking:
    """Lets a call wait until the server has dealt with another."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passed = 0
        self._released = False

    def passed(self) -> None:
        """The server has answered a call."""
        with self._changed:
            self._passed += 1
            self._changed.notify_all()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait to be overtaken; whether that happened within the time."""
        with self._changed:
            before = self._passed
            self._changed.wait_for(lambda: self._released or self._passed > before, timeout_seconds)
            return self._passed > before

    def release(self) -> None:
        """Hold nobody from now on."""
        with self._changed:
            self._released = True
            self._changed.notify_all()
