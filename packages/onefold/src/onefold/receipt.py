"""The answer to a push."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Receipt", "Status"]


class Status(enum.StrEnum):
    """What became of a push, in the order in which the rules are tried."""

    OTHER_RUN = "other_run"
    UNKNOWN_WORKER = "unknown_worker"
    FENCED = "fenced"
    CLOSED = "closed"
    TOO_FAR = "too_far"
    MISMATCH = "mismatch"
    NONFINITE = "nonfinite"
    CONFLICT = "conflict"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    REPLACED = "replaced"
    ACCEPTED = "accepted"


RECORDED = frozenset({Status.ACCEPTED, Status.REPLACED})
"""The statuses of a push that has become the worker's contribution."""

STANDS = frozenset({Status.ACCEPTED, Status.REPLACED, Status.DUPLICATE})
"""The statuses after which exactly this update is the worker's contribution."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a push.

    ``counted`` is stated for a closed step: whether this very incarnation, attempt and digest is
    in the aggregate; ``counted_as`` is then the attempt of this worker that is, if any.
    """

    status: Status
    reason: str
    step: int
    worker: str
    incarnation: int | None
    attempt: int | None
    digest: str
    counted: bool | None = None
    counted_as: int | None = None

    @property
    def stands(self) -> bool:
        """Whether this update is, at the time of the answer, the worker's contribution."""
        return self.status in STANDS or bool(self.counted)
