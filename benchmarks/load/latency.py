"""How long calls took: percentiles over the whole run, and over windows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load.workers import KINDS

__all__ = ["PERCENTILES", "Calls"]

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 100.0)
_WINDOWS_MAX = 60


@dataclass(frozen=True, slots=True)
class Calls:
    """Every call of a run: its kind, when it began, and how long it took."""

    kinds: np.ndarray
    begun_at: np.ndarray
    seconds: np.ndarray

    @classmethod
    def load(cls, paths: Sequence[Path]) -> Calls:
        """Those of all worker processes, from their .npz files."""
        loaded = [np.load(path) for path in paths]
        return cls(
            *(
                np.concatenate([each[name] for each in loaded])
                for name in ("kinds", "begun_at", "seconds")
            )
        )

    def percentiles(self) -> dict[str, dict[str, float]]:
        """For each kind of call how many there were, and the percentiles in seconds."""
        return {
            name: _told(self.seconds[self.kinds == number]) for number, name in enumerate(KINDS)
        }

    def windows(self, begun_at: float, ended_at: float) -> list[dict[str, Any]]:
        """The same of windows of equal length, by when calls began, and how many began a second."""
        number = max(1, min(_WINDOWS_MAX, int(ended_at - begun_at)))
        edges = np.linspace(begun_at, ended_at, number + 1)
        length = edges[1] - edges[0]
        windows = []
        for start in edges[:-1]:
            chosen = (self.begun_at >= start) & (self.begun_at < start + length)
            part = Calls(self.kinds[chosen], self.begun_at[chosen], self.seconds[chosen])
            windows.append(
                {
                    "at": round(float(start + length / 2 - begun_at), 2),
                    "calls_a_second": round(float(chosen.sum() / length), 2),
                    "latency": part.percentiles(),
                }
            )
        return windows


def _told(seconds: np.ndarray) -> dict[str, float]:
    if not seconds.size:
        return {"count": 0}
    values = np.percentile(seconds, PERCENTILES, method="higher")
    return {
        "count": int(seconds.size),
        **{f"p{p:g}": round(float(v), 6) for p, v in zip(PERCENTILES, values, strict=True)},
    }
