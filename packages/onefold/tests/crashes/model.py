"""A run on a disk that forgets, and what was promised about it.

A :class:`Run` is made by its seed: who joins, pushes, replaces, pulls, leaves and closes, and when
the process is killed or the power cut, in the middle of an operation on the disk or between two
calls. After each cut the directory is opened again, and everything is compared with what had been
acknowledged. At last all workers see all steps through.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest import mock

from disk import Disk
from expected import Wrong, bits_of, check_sum, some_update
from struck import Blow, Crash, StruckFiles

from onefold.aggregate import Aggregate
from onefold.aggregator import Aggregator
from onefold.errors import Expired, NotYet, NoUpdate
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.testing.support import Clock
from onefold.update import Update

__all__ = ["Run"]

_STEPS = 5
_CALLS_MAX = 60
_STANDS = {Status.ACCEPTED, Status.REPLACED, Status.DUPLICATE}

Sending = tuple[int, str, int, int]
"""Step, worker, incarnation, attempt."""


@dataclass
class _Worker:
    name: str
    lives: list[tuple[str, int]]
    has_left: bool = False

    @property
    def incarnation(self) -> int:
        return self.lives[-1][1]


class Run:
    """One run. ``files`` makes the disk of each life: a mutant of it must be found out."""

    def __init__(self, seed: int, base: Path, disk: type[Disk] = Disk) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.base = base
        self.counts: Counter[str] = Counter()
        self._make = disk
        rng = self.rng
        self.names = [f"worker-{index}" for index in range(rng.randint(1, 3))]
        self.tensors = rng.sample(["dense", "sparse", "whole"], rng.randint(1, 3))
        self.policy = Policy(
            roster=rng.choice([self.names, self.names, "joined", None]),
            operation=rng.choice(["sum", "sum", "mean", "weighted_mean"]),
            sync_each_push=rng.random() < 0.5,
            keep_steps=rng.choice([None, None, 2]),
            open_steps_max=rng.choice([1, 2, 3]),
        )
        self.run: str | None = None
        self.workers: dict[str, _Worker] = {}
        self.joining: dict[str, str] = {}
        self.sent: dict[Sending, Update] = {}
        self.acknowledged: dict[tuple[int, str], tuple[int, int]] = {}
        self.seen: dict[int, tuple[Aggregate, dict[str, tuple[object, ...]]]] = {}
        self.over: set[int] = set()
        self.aggregator: Aggregator
        self.disk: Disk

    def go(self) -> Counter[str]:
        """Run it to its end; what happened, counted.

        Raises:
            Wrong: A promise was broken.
        """
        made = Random(self.seed + 1)

        def made_uuid() -> uuid.UUID:
            return uuid.UUID(int=made.getrandbits(128), version=4)

        with mock.patch("uuid.uuid4", made_uuid):
            cuts = self.rng.randint(1, 4)
            root = self.base / "life0"
            root.mkdir()
            self.disk = self._make(root, self._strike())
            for life in range(1, cuts + 1):
                self._live(self._use, self.base / f"life{life}")
            self.disk.strike = None
            self._live(self._finish, self.base / "last")
            self.disk.strike = None
            self._live(self._finish, None)
        return self.counts

    # Lives and their ends.

    def _live(self, use: Callable[[], None], next_root: Path | None) -> None:
        """Open the disk, check it and use it; then comes what is left of it in ``next_root``."""
        self.aggregator = Aggregator(self.disk.root, self.policy, clock=Clock())
        self.aggregator._store.files = disk = self.disk
        try:
            try:
                self.aggregator.open()
                self._check()
                use()
            except Crash:
                self.counts["crashes within " + disk.done[-1].split(" ")[0]] += 1
            if not disk.dead:
                self.aggregator.shutdown()
            if next_root is not None:
                self._cut(next_root)
        finally:
            disk.dead = True
            self.aggregator._store.close()
            disk.bury()

    def _strike(self):  # type: ignore[no-untyped-def]
        """Where the next life is to end: at an operation, or else between calls."""
        of = self.rng.choice(["", "", "commit", "sync", "rename", "write manifest", "remove"])
        at = self.rng.choice([None, *(self.rng.randint(1, most) for most in (4, 10, 10, 60))])
        when = self.rng.choice(["before", "within", "within", "after"])
        left = [at]

        def strike(_: StruckFiles, what: str) -> Blow | None:
            if left[0] is not None and what.startswith(of):
                left[0] -= 1
            return Blow(when, Crash()) if left[0] == 0 else None

        return strike

    def _cut(self, root: Path) -> None:
        seed = self.rng.getrandbits(32)
        if self.rng.random() < 0.4:
            self.counts["kills"] += 1
            self.disk = self.disk.after_kill(root, self._strike(), seed)
            return
        self.counts["power cuts"] += 1
        before = self.disk
        self.disk = before.after_power_cut(root, self._strike(), seed, self.rng)
        self.counts += before.losses
        if not self.policy.sync_each_push:
            self.acknowledged = {}

    # What happens.

    def _use(self) -> None:
        for name in self.names:
            if name not in self.workers or name in self.joining:
                self._join(name)
        for step in range(_STEPS):  # who was not answered asks again
            if self.rng.random() < 0.5:
                self._pull(step)
        for _ in range(self.rng.choice([0, 1, 5, self.rng.randint(0, _CALLS_MAX)])):
            if self.rng.random() < 0.02:
                self.aggregator.shutdown()
                self.aggregator.open()
                self._check()
            self._call()
        if not self.disk.dead and self.rng.random() < 0.7:
            # The power goes while the process lives: it does not close its files.
            self.disk.dead = True

    def _call(self) -> None:
        worker = self.workers[self.rng.choice(self.names)]
        step = self._some_step()
        match self.rng.choices(
            ["push", "pull", "join", "leave", "close", "status"], [60, 25, 3, 1, 2, 2]
        )[0]:
            case "push":
                self._push(worker, step)
            case "pull":
                self._pull(step)
            case "join":
                self._join(worker.name)
            case "leave" if self.policy.roster == "joined" and len(self.names) > 1:
                self.aggregator.leave(worker.name, worker.incarnation)
                worker.has_left = True
            case "close":
                self._close(step)
            case _:
                self.aggregator.status()

    def _some_step(self) -> int:
        lowest = min((step for step in range(_STEPS) if step not in self.over), default=0)
        return min(max(0, lowest + self.rng.choice([-1, 0, 0, 0, 0, 1])), _STEPS - 1)

    def _join(self, name: str) -> None:
        life = self.joining.setdefault(name, f"{name}-life-{self.rng.getrandbits(32)}")
        incarnation = self.aggregator.join(name, life).incarnation
        del self.joining[name]
        worker = self.workers.setdefault(name, _Worker(name, []))
        worker.lives.append((life, incarnation))
        worker.has_left = False

    def _push(self, worker: _Worker, step: int) -> Receipt:
        """Push the first time, again, or something else in its place."""
        attempt = self._last_attempt(worker, step)
        if attempt is None or self.rng.random() < 0.3:
            attempt = 0 if attempt is None else attempt + 1
            update = some_update(self.rng, self.tensors)
            self.sent[step, worker.name, worker.incarnation, attempt] = update
        return self._send(step, worker, attempt)

    def _send(self, step: int, worker: _Worker, attempt: int) -> Receipt:
        update = self.sent[step, worker.name, worker.incarnation, attempt]
        receipt = self.aggregator.push(
            *(step, worker.name, update),
            weight=update.weight,
            attempt=attempt,
            incarnation=worker.incarnation,
        )
        self.counts[receipt.status] += 1
        if receipt.status in _STANDS:
            self.acknowledged[step, worker.name] = (worker.incarnation, attempt)
        elif receipt.status is Status.CLOSED:
            self._pull(step)
        elif receipt.status not in {Status.TOO_FAR, Status.UNKNOWN_WORKER}:
            raise Wrong(f"{worker.name} pushed to step {step} and was told {receipt}")
        return receipt

    def _last_attempt(self, worker: _Worker, step: int) -> int | None:
        attempts = [
            attempt
            for (at, name, incarnation, attempt) in self.sent
            if (at, name, incarnation) == (step, worker.name, worker.incarnation)
        ]
        return max(attempts, default=None)

    def _pull(self, step: int) -> Aggregate | None:
        """Ask for a step as clients do: what the server lacks for it is sent again."""
        try:
            aggregate = self.aggregator.pull(step)
        except NotYet:
            for worker in self.workers.values():
                attempt = self._last_attempt(worker, step)
                sending = (step, worker.name, worker.incarnation, attempt)
                if attempt is not None and not self.aggregator.stands(*sending):
                    self.counts["sent again"] += 1
                    self._send(step, worker, attempt)
            return None
        except Expired:
            if self.policy.keep_steps is None:
                raise Wrong(f"step {step} is said to be pruned") from None
            self.over.add(step)
            return None
        except NoUpdate as error:
            if step in self.seen or any(at == step for at, _ in self.acknowledged):
                raise Wrong(f"step {step} is said to have had nothing: {error}") from None
            self.over.add(step)
            return None
        self._see(aggregate)
        return aggregate

    def _close(self, step: int) -> None:
        with suppress(NoUpdate, Expired):
            self._see(self.aggregator.close(step))

    # What must be.

    def _see(self, aggregate: Aggregate) -> None:
        """Check an aggregate against all that was sent, and against what it was before."""
        step = aggregate.step
        self.over.add(step)
        bits = bits_of(aggregate.tensors)
        if step in self.seen:
            before, bits_before = self.seen[step]
            told = (aggregate.contributors, aggregate.excluded, aggregate.digest)
            if bits != bits_before or told != (
                before.contributors,
                before.excluded,
                before.digest,
            ):
                raise Wrong(f"step {step} was {before} and is {aggregate}")
            return
        names = [one.worker for one in aggregate.contributors]
        if names != sorted(set(names)):
            raise Wrong(f"step {step}: somebody counts twice: {names}")
        updates = []
        for one in aggregate.contributors:
            update = self.sent[step, one.worker, one.incarnation, one.attempt]
            if (one.weight, one.digest) != (update.weight, update.digest()):
                raise Wrong(f"step {step}: {one} is not what was sent")
            updates.append(update)
        for (at, name), sending in self.acknowledged.items():
            if at == step and not any(
                one.worker == name and (one.incarnation, one.attempt) >= sending
                for one in aggregate.contributors
            ):
                raise Wrong(f"step {step} lacks {name}'s {sending}, which was acknowledged")
        check_sum(aggregate, updates, self.policy.operation)
        self.counts["aggregates checked"] += 1
        self.seen[step] = (aggregate, bits)

    def _check(self) -> None:
        """Everything that was acknowledged is there."""
        self.run = self.run or self.aggregator.run
        if self.aggregator.run != self.run:
            raise Wrong(f"the run was {self.run} and is {self.aggregator.run}")
        self.counts["openings checked"] += 1
        for worker in self.workers.values():
            for life, incarnation in worker.lives:
                told = self.aggregator.join(worker.name, life).incarnation
                if told != incarnation:
                    raise Wrong(f"{worker.name}'s {life} was {incarnation} and is {told}")
            roster = self.aggregator.status().roster
            if worker.has_left and roster is not None and worker.name in roster:
                raise Wrong(f"{worker.name} had left and is back")
        for (step, name), (incarnation, attempt) in list(self.acknowledged.items()):
            stands = self.aggregator.stands(step, name, incarnation, attempt)
            if not stands and self._seen_through(step) is None:
                raise Wrong(f"{name}'s {incarnation}, {attempt} for step {step} is not there")
        for step in self.over:
            self._seen_through(step)

    def _seen_through(self, step: int) -> bool | None:
        """Whether a step that is closed is still readable; None if it is not closed."""
        try:
            self._see(self.aggregator.pull(step))
        except Expired:
            if self.policy.keep_steps is None:
                raise Wrong(f"step {step} is said to be pruned") from None
            return False
        except NotYet:
            if step in self.seen:
                raise Wrong(f"step {step} had closed and is open") from None
            return None
        except NoUpdate:
            if step in self.seen:
                raise Wrong(f"step {step} had closed and is said to have had nothing") from None
            return None
        return True

    def _finish(self) -> None:
        """All workers see all steps through."""
        for name in self.names:
            if name not in self.workers or name in self.joining:
                self._join(name)
        for step in range(_STEPS):
            for worker in self.workers.values():
                if self._last_attempt(worker, step) is None:
                    self._push(worker, step)
                else:
                    self._send(step, worker, self._last_attempt(worker, step) or 0)
            if self.policy.roster is None:
                self._close(step)
            if self._pull(step) is None and step not in self.over:
                raise Wrong(f"step {step} does not close: {self.aggregator.status()}")
        left = [path.name for path in (self.disk.root / "staged").iterdir()]
        if left:
            raise Wrong(f"all steps are over and there is still {left}")
