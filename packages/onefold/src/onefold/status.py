"""How a run stands, for people and for programs that watch it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["OpenStepStatus", "RunStatus"]


@dataclass(frozen=True, slots=True)
class OpenStepStatus:
    """An open step: who has contributed, who is waited for (None: nobody), until when.

    ``vacant`` is how many more it waits for who have yet to join; ``problem`` why it could not be
    closed, if that was tried.
    """

    step: int
    contributed: tuple[str, ...]
    missing: tuple[str, ...] | None
    vacant: int
    deadline_at: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run stands; receipts and received bytes are counted since this process opened it."""

    run: str
    operation: str
    highest_closed: int | None
    open_steps: tuple[OpenStepStatus, ...]
    roster: tuple[str, ...] | None
    receipts: Mapping[str, int]
    received_bytes: int
    staged_bytes: int
