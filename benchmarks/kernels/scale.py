"""How large everything is: at full size, and for a quick look whether it all works."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Scale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of data, and how long to measure."""

    elements: int
    """In each of eight float32 arrays; wider types get fewer, so that the bytes are the same."""
    adversarial_elements: int
    slow_elements: int
    """Where a peer works value by value in Python."""
    entries: int
    """In each of 16 sparse parts."""
    row_bytes: int
    """Of the values of all 16 parts of rows."""
    dense_power_max: int
    sparse_power_max: int
    memory_bytes: int
    fresh_processes: int
    warm_seconds: float
    rounds_min: int
    rounds_max: int
    race_seconds: float
    """Rounds beyond the fewest are added until this has passed."""


FULL = Scale(
    elements=16_000_000,
    adversarial_elements=2_000_000,
    slow_elements=20_000,
    entries=1_000_000,
    row_bytes=1 << 28,
    dense_power_max=8,
    sparse_power_max=7,
    memory_bytes=1 << 28,
    fresh_processes=5,
    warm_seconds=1.2,
    rounds_min=5,
    rounds_max=15,
    race_seconds=3.0,
)

QUICK = Scale(
    elements=16_000,
    adversarial_elements=2_000,
    slow_elements=200,
    entries=1_000,
    row_bytes=1 << 18,
    dense_power_max=4,
    sparse_power_max=4,
    memory_bytes=1 << 20,
    fresh_processes=1,
    warm_seconds=0.0,
    rounds_min=1,
    rounds_max=1,
    race_seconds=0.0,
)
