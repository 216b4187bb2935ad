"""How a client tells the time, waits, and draws: what a simulation puts its own in place of."""

from __future__ import annotations

import random
import threading
import time

__all__ = ["Timing"]


class Timing:
    """The clock and the chance of this machine. Several threads may use it."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait, until :meth:`end` at the latest."""
        self._ended.wait(seconds)

    def draw(self) -> float:
        """A random number from 0 up to 1."""
        return random.random()  # noqa: S311 - no secret

    def end(self) -> None:
        """End all waits, for good."""
        self._ended.set()

    @property
    def has_ended(self) -> bool:
        """Whether :meth:`end` has been called."""
        return self._ended.is_set()
