"""What happened in a job: while it runs, and when it is over."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from onefold.faults.traffic import Traffic
from onefold.launch.plan import Kill
from onefold.launch.process import Stream
from onefold.status import OpenStepStatus, RunStatus

__all__ = ["Progress", "Report", "Tally", "Watcher", "WorkerReport", "stuck_steps"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is. ``closed_steps`` is the number of the highest closed step plus one.

    ``stuck`` says, step by step, that it waits for a worker who has finished.
    """

    closed_steps: int
    receipts: dict[str, int]
    received_bytes: int
    stuck: tuple[str, ...] = ()


class Watcher(Protocol):
    """Who wants to know what goes on."""

    def progress(self, progress: Progress) -> None:
        """The job is this far; called a few times a second."""

    def line(self, name: str, text: str, stream: Stream) -> None:
        """A process wrote a line; the result of a worker is none."""

    def event(self, text: str) -> None:
        """Somebody was killed or started again, or is waited for in vain."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What became of one worker. ``result`` is its last line of output, if that was JSON.

    ``stopped`` says that it was still running when the job was over and was asked to end.
    """

    exit_status: int | None
    starts: int
    kills: int
    failures: int
    result: object
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a job; ``errors`` is empty if all workers finished and all kills happened."""

    seed: int
    seconds: float
    progress: Progress
    workers: dict[str, WorkerReport]
    server_starts: int
    kills: tuple[Kill, ...]
    faults: str
    traffic: Traffic | None
    errors: tuple[str, ...]
    interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether it came to its end, and nothing is to be complained about."""
        return not self.errors and not self.interrupted

    def to_json(self) -> dict[str, object]:
        """The same as plain values, for ``--summary``."""
        return {"succeeded": self.succeeded, **dataclasses.asdict(self)}


def stuck_steps(status: RunStatus, finished: frozenset[str], now: float) -> tuple[str, ...]:
    """Which open steps wait for workers who have finished, in words.

    A step whose deadline is still to come is not among them: it may close without these workers.
    """
    return tuple(
        f"step {step.step} waits for worker {', '.join(missing)}, which has finished"
        for step in status.open_steps
        if (missing := [name for name in step.missing or () if name in finished])
        and not _may_close_late(step, now)
    )


def _may_close_late(step: OpenStepStatus, now: float) -> bool:
    return step.deadline_at is not None and now < step.deadline_at


class Tally:
    """Adds up what the lives of a server count, each from zero."""

    def __init__(self) -> None:
        self._before: Counter[str] = Counter()
        self._received_bytes_before = 0
        self._latest: RunStatus | None = None
        self._closed_steps = 0
        self._stuck: tuple[str, ...] = ()

    def update(self, status: RunStatus, stuck: tuple[str, ...] = ()) -> Progress:
        """Take in what the server of now says."""
        self._latest = status
        self._stuck = stuck
        if status.highest_closed is not None:
            self._closed_steps = max(self._closed_steps, status.highest_closed + 1)
        return self.progress

    def restarted(self) -> None:
        """The server counts from zero again."""
        if self._latest is not None:
            self._before.update(self._latest.receipts)
            self._received_bytes_before += self._latest.received_bytes
            self._latest = None

    @property
    def progress(self) -> Progress:
        """What has been seen so far, over all lives."""
        receipts, received_bytes = Counter(self._before), self._received_bytes_before
        if self._latest is not None:
            receipts.update(self._latest.receipts)
            received_bytes += self._latest.received_bytes
        return Progress(self._closed_steps, dict(receipts), received_bytes, self._stuck)
