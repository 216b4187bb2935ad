"""A real server, killed at random instants while workers push and pull."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from random import Random

from expected import Wrong, bits_of, check_sum, some_update

from onefold.aggregate import Aggregate
from onefold.aggregator import Aggregator
from onefold.client import connect
from onefold.launch.plan import Job
from onefold.launch.server import ServerProcess
from onefold.policy import Policy
from onefold.update import Update

__all__ = ["ServerRun"]

_WORKERS = 3
_STEPS = 12
_KILLS_MIN, _KILLS_MAX = 2, 8
_TIMEOUT_SECONDS = 120.0


class ServerRun:
    """One run, by its seed: the updates are; when the server dies depends on the machine, too."""

    def __init__(self, seed: int, base: Path) -> None:
        self.rng = Random(seed)
        self.base = base
        self.counts: Counter[str] = Counter()
        tensors = self.rng.sample(["dense", "sparse", "whole"], self.rng.randint(1, 3))
        self.job = Job(
            ("x",),
            _WORKERS,
            serve_options=("--sync-each-push",) if self.rng.random() < 0.5 else (),
        )
        self.updates = {
            (step, name): some_update(self.rng, tensors)
            for step in range(_STEPS)
            for name in self.job.names
        }
        self.pulled: dict[tuple[int, str], Aggregate] = {}
        self._errors: list[BaseException] = []
        self._answered = threading.Event()
        self._killed = threading.Event()
        """Often enough for the last step to begin: a quick machine has done them all else."""

    def go(self) -> Counter[str]:
        """Run it; what happened, counted.

        Raises:
            Wrong: A promise was broken.
        """
        server = ServerProcess(self.job, self.base)
        assert server.start(), server.process.complaint()
        threads = [
            threading.Thread(target=self._work, args=(server.address, name))
            for name in self.job.names
        ]
        for thread in threads:
            thread.start()
        try:
            self._kill(server, threads)
        finally:
            self._killed.set()
            for thread in threads:
                thread.join(_TIMEOUT_SECONDS)
            server.stop()
        if self._errors:
            raise self._errors[0]
        self._check()
        self.counts["server kills"] += server.process.kills
        return self.counts

    def _kill(self, server: ServerProcess, threads: list[threading.Thread]) -> None:
        """Kill the server at random instants, mostly while it is at work."""
        nothing = threading.Event()
        for _ in range(self.rng.randint(3, _KILLS_MAX)):
            if self.rng.random() < 0.8:  # else while it begins
                self._answered.clear()
                while not self._answered.wait(0.1) and any(each.is_alive() for each in threads):
                    pass
            nothing.wait(self.rng.choice([0.0, 0.01, 0.05, 0.2]) * self.rng.random())
            if not any(thread.is_alive() for thread in threads):
                return
            server.process.kill()
            if not server.start():
                raise Wrong(f"the server does not start again: {server.process.complaint()}")
            if server.process.kills >= _KILLS_MIN:
                self._killed.set()

    def _work(self, address: str, name: str) -> None:
        try:
            with connect(
                address, name, timeout_seconds=_TIMEOUT_SECONDS, spool_directory=self.base
            ) as client:
                for step in range(_STEPS):
                    while step == _STEPS - 1 and not self._killed.wait(0.01):
                        self._answered.set()
                    update = self.updates[step, name]
                    client.push(step, update, weight=update.weight)
                    self._answered.set()
                    if step:  # two steps are open at a time
                        self.pulled[step - 1, name] = client.pull(step - 1)
                self.pulled[_STEPS - 1, name] = client.pull(_STEPS - 1)
        except BaseException as error:  # noqa: BLE001 - raised again by go()
            self._errors.append(error)

    def _check(self) -> None:
        """Every aggregate counts everybody once, to the bit, and is what each worker had pulled."""
        with Aggregator(self.base / "store", Policy(roster=list(self.job.names))) as aggregator:
            for step in range(_STEPS):
                aggregate = aggregator.pull(step)
                names = [one.worker for one in aggregate.contributors]
                if names != list(self.job.names):
                    raise Wrong(f"step {step} counts {names}")
                updates: list[Update] = [self.updates[step, name] for name in names]
                check_sum(aggregate, updates, "sum")
                for name in names:
                    before = self.pulled[step, name]
                    if bits_of(before.tensors) != bits_of(aggregate.tensors) or (
                        before.contributors != aggregate.contributors
                    ):
                        raise Wrong(f"step {step}: {name} pulled {before}, now it is {aggregate}")
                self.counts["aggregates of killed servers checked"] += 1
