"""Whether memory grows: the slope of what a server takes, and how sure it is.

Anonymous memory goes up and down with what is being summed, and up at first, while allocators and
caches fill. So the first half of a run is left out, and of the second half short blocks are
compared by their medians. A straight line through the medians has a slope, and its 95 % interval
says what the noise allows. Memory *grows* if the whole interval lies above the bound, and the line
rises by more than what the allocators of so many threads may still take; it is *flat* if the whole
interval lies below. Otherwise the run was too short to tell, which is not held against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.processes import MIB, Reading

__all__ = ["GROWTH_MAX", "Growth", "growth"]

GROWTH_MAX = 64.0
"""MiB an hour. An hour is some hundred thousand updates, or some hundred GiB."""

_SETTLING_MIB = 16.0
"""What may be taken in the second half of a short run, however steep that is."""

_BLOCKS = 12
_STUDENT_T = 2.228
"""Of 95 %, two-sided, for as many blocks less two."""

_HOUR_SECONDS = 3600.0

Verdict = Literal["flat", "grows", "too short to tell"]


@dataclass(frozen=True, slots=True)
class Growth:
    """The slope of anonymous memory over the second half of a run, in MiB an hour."""

    slope: float | None
    error: float | None
    """Half the length of the 95 % interval."""
    first: float
    """MiB, the median of the first block."""
    last: float
    highest: float
    """MiB, over the whole run."""
    verdict: Verdict


def growth(readings: Sequence[Reading], most: float = GROWTH_MAX) -> Growth:
    """Judge readings at equal distances; ``most`` is the bound in MiB an hour."""
    anonymous = np.array([reading.anonymous_bytes for reading in readings]) / MIB
    at = np.array([reading.at_seconds for reading in readings])
    half = len(readings) // 2
    number = min(_BLOCKS, len(readings) - half)
    medians = np.array([np.median(block) for block in np.array_split(anonymous[half:], number)])
    middles = np.array([np.mean(block) for block in np.array_split(at[half:], number)])
    ends = float(medians[0]), float(medians[-1]), float(anonymous.max())
    if number < _BLOCKS:
        return Growth(None, None, *ends, "too short to tell")
    hours = (middles - middles.mean()) / _HOUR_SECONDS
    slope = float(hours @ medians / (hours @ hours))
    rest = medians - medians.mean() - slope * hours
    error = _STUDENT_T * float(np.sqrt(rest @ rest / (number - 2) / (hours @ hours)))
    verdict: Verdict = "too short to tell"
    if slope + error <= most:
        verdict = "flat"
    elif slope - error > most and slope * float(hours[-1] - hours[0]) > _SETTLING_MIB:
        verdict = "grows"
    return Growth(slope, error, *ends, verdict)
