"""What a job is, and when who is to be killed: decided before anything starts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from onefold.errors import InvalidInput
from onefold.faults.decisions import Faults

__all__ = ["Job", "Kill", "planned_kills", "worker_environment"]

_GAP_STEPS = (3, 12)
"""Between kills, where it is not known how many steps there will be."""

_NOT_INHERITED = ("ONEFOLD_TLS_CA", "ONEFOLD_TLS_CERT", "ONEFOLD_TLS_KEY", "ONEFOLD_TOKEN")
"""What is shown to servers elsewhere; that of a job is on this machine and asks for nothing."""

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Job:
    """A command to run as several workers, and what they are to suffer.

    Args:
        command: What each worker runs.
        workers: How many; their names are ``0`` to ``workers - 1``.
        serve_options: Further options of ``onefold serve``.
        faults: How the network between workers and server misbehaves.
        worker_kills: How often a worker is killed.
        server_kills: How often the server is killed.
        steps: How many steps the command takes, if known: the kills are then spread over all of
            them, else they come early.
        seed: Of the moments and the victims of the kills.
        restarts_max: How often a process that fails by itself is started again.
        directory: Where the server's data and the output of all go; None for a temporary place.

    Raises:
        InvalidInput: A number is out of range, or there is no command.
    """

    command: tuple[str, ...]
    workers: int
    serve_options: tuple[str, ...] = ()
    faults: Faults = field(default_factory=Faults)
    worker_kills: int = 0
    server_kills: int = 0
    steps: int | None = None
    seed: int = 0
    restarts_max: int = 3
    directory: Path | None = None

    def __post_init__(self) -> None:
        if not self.command:
            raise InvalidInput("no command to run: put it after `--`, e.g. -- python train.py")
        if self.workers < 1:
            raise InvalidInput(f"a job has at least 1 worker, not {self.workers}")
        if min(self.worker_kills, self.server_kills, self.restarts_max) < 0:
            raise InvalidInput("a number of kills or restarts is at least 0")
        if self.steps is not None and self.steps < 1:
            raise InvalidInput(f"a job has at least 1 step, not {self.steps}")
        if not self.faults.let_through:
            raise InvalidInput(
                f"with the faults {self.faults} no call is ever answered: lose and lose_reply are "
                "to be less than 1"
            )
        kills = self.worker_kills + self.server_kills
        if self.steps is not None and self.steps <= kills:
            raise InvalidInput(f"{kills} kills need more than {self.steps} steps")

    @property
    def names(self) -> tuple[str, ...]:
        """The workers."""
        return tuple(str(index) for index in range(self.workers))


@dataclass(frozen=True, slots=True)
class Kill:
    """Somebody is killed once ``closed_steps`` steps are over.

    ``victim`` is the worker to be killed; if that one has finished, the next who has not.
    """

    closed_steps: int
    target: Literal["worker", "server"]
    victim: int = 0


def planned_kills(job: Job) -> tuple[Kill, ...]:
    """The kills of a job, in the order in which they happen; the same for the same seed.

    A kill is tied to the progress of the run and not to the clock, so that it happens in the
    middle of the work on a slow machine as on a fast one.
    """
    # Not for secrets: the point is that it can be repeated.
    generator = random.Random(f"kills {job.seed}")  # noqa: S311
    targets: list[Literal["worker", "server"]] = ["worker"] * job.worker_kills
    targets += ["server"] * job.server_kills
    generator.shuffle(targets)
    moments = _moments(generator, len(targets), job.steps)
    return tuple(
        Kill(moment, target, generator.randrange(job.workers))
        for moment, target in zip(moments, targets, strict=True)
    )


def worker_environment(
    environment: Mapping[str, str], name: str, job: Job, address: str
) -> dict[str, str]:
    """What a worker finds in its environment, on top of ``environment``.

    The numerical libraries get one thread each unless the environment says otherwise: several
    workers share this machine, and a sum that is split over threads rounds differently when their
    number changes, so that the same worker would not compute the same gradient everywhere.
    """
    defaults = dict.fromkeys(_ONE_THREAD, "1") | {"PYTHONUNBUFFERED": "1"}
    inherited = {name: environment[name] for name in environment if name not in _NOT_INHERITED}
    return {
        **defaults,
        **inherited,
        "ONEFOLD_ADDRESS": address,
        "ONEFOLD_WORKER": name,
        "ONEFOLD_WORKERS": str(job.workers),
    }


def _moments(generator: random.Random, count: int, steps: int | None) -> list[int]:
    """After how many closed steps to kill, ascending."""
    if steps is None:
        moments = [0]
        for _ in range(count):
            moments.append(moments[-1] + generator.randint(*_GAP_STEPS))
        return moments[1:]
    # One in each equal share of the middle of the run: the last must come before the end.
    first, last = 0.05 * steps, 0.8 * steps
    width = (last - first) / max(count, 1)
    return [int(first + (place + generator.random()) * width) for place in range(count)]
