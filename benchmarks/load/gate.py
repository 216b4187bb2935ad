"""Where all workers stop: at the same step, or those behind would wait for those that left."""

from __future__ import annotations

import time
from multiprocessing.context import SpawnContext

__all__ = ["Gate"]


class Gate:
    """Workers of several processes pass it at the beginning of each step."""

    def __init__(self, context: SpawnContext) -> None:
        self._lock = context.Lock()
        self._highest = context.Value("q", -1, lock=False)
        self._is_closed = context.Value("b", 0, lock=False)
        self._begun_at = context.Value("d", 0.0, lock=False)

    def enter(self, step: int) -> bool:
        """Whether a worker is to take part in a step; whoever asks first decides for all."""
        with self._lock:
            if step > self._highest.value:
                if self._is_closed.value:
                    return False
                self._highest.value = step
            if step > 0 and not self._begun_at.value:
                self._begun_at.value = time.monotonic()
            return True

    def close(self) -> None:
        """Let no step begin that nobody has begun."""
        with self._lock:
            self._is_closed.value = 1

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        with self._lock:
            return bool(self._is_closed.value)

    @property
    def begun_at(self) -> float:
        """When step 1 began, on the monotonic clock; 0 if it has not. Step 0 warms up."""
        with self._lock:
            return float(self._begun_at.value)

    @property
    def highest(self) -> int:
        """The highest step that somebody has begun."""
        with self._lock:
            return int(self._highest.value)
