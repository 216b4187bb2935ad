"""Worker processes, each with several workers on threads of their own.

Each worker is a client of its own: its own connection, life and spool. A client waits most of the
time, without Python's lock, so several in a process lose little; 64 processes would need the memory
of 64 interpreters and, on two cores, wait for each other instead.
"""

from __future__ import annotations

import json
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.load.contents import Contents, Plan, Workload
from benchmarks.load.gate import Gate
from onefold import Aggregate, Client, Receipt, connect
from onefold.errors import Expired

__all__ = ["KINDS", "Setting", "work"]

KINDS = ("push", "pull", "reduce", "pull again")
"""Of calls. *pull* and *reduce* wait for the other workers; *pull again*, of a closed step, not."""

_WRONGS_TOLD_MAX = 20
_TIMEOUT_SECONDS = 60.0

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Setting:
    """What all worker processes know."""

    address: str
    workload: Workload
    workers: int
    seed: int
    late_seconds: float
    """The usual lateness of workers that come late."""
    deadline_seconds: float | None
    spool_directory: str


class _Record:
    """What a process has seen. Its threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.kinds = array("b")
        self.begun_at = array("d")
        self.seconds = array("d")
        self.counts: Counter[str] = Counter()
        self.wrongs: list[str] = []

    def took(self, kind: str, begun_at: float, seconds: float) -> None:
        with self._lock:
            self.kinds.append(KINDS.index(kind))
            self.begun_at.append(begun_at)
            self.seconds.append(seconds)

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def wrong(self, what: str) -> None:
        with self._lock:
            self.counts["wrong"] += 1
            if len(self.wrongs) < _WRONGS_TOLD_MAX:
                self.wrongs.append(what)

    def save(self, path: Path) -> None:
        """``path`` with the suffix .npz, and .json for what was counted."""
        np.savez(
            path.with_suffix(".npz"),
            kinds=np.array(self.kinds, np.int8),
            begun_at=np.array(self.begun_at),
            seconds=np.array(self.seconds),
        )
        told = {"counts": self.counts, "wrongs": self.wrongs}
        path.with_suffix(".json").write_text(json.dumps(told))


def work(setting: Setting, indices: range, gate: Gate, target: Path) -> None:
    """The workers of one process, until the gate closes; what they have seen goes to ``target``."""
    record = _Record()
    contents = Contents(setting.workload, setting.workers, setting.seed)
    threads = [
        threading.Thread(target=_Worker(setting, contents, index, record).run, args=(gate,))
        for index in indices
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record.save(target)


class _Worker:
    def __init__(self, setting: Setting, contents: Contents, index: int, record: _Record) -> None:
        self._setting = setting
        self._contents = contents
        self._index = index
        self._name = contents.names[index]
        self._record = record
        self._is_warm = False

    def run(self, gate: Gate) -> None:
        """Take part in every step until the gate closes; what goes wrong closes it."""
        step = 0
        try:
            with connect(
                self._setting.address,
                self._name,
                timeout_seconds=_TIMEOUT_SECONDS,
                spool_directory=self._setting.spool_directory,
            ) as client:
                while gate.enter(step):
                    self._take_part(client, step)
                    self._is_warm = True
                    step += 1
        except Exception as error:  # noqa: BLE001 - whatever ends a worker is a result
            self._wrong(step, f"{type(error).__name__}: {error}")
            gate.close()

    def _take_part(self, client: Client, step: int) -> None:
        plan = self._contents.plan(self._index, step)
        if plan.late:
            self._record.count("late")
            time.sleep(plan.late * self._setting.late_seconds)
        receipts = []
        if plan.replaces:
            receipts.append(self._push(client, step, 1))
        try:
            if plan.is_apart:
                receipts.append(self._push(client, step, plan.attempts))
                if plan.repeats:
                    receipts.append(self._push(client, step, plan.attempts))
                aggregate = self._timed("pull", lambda: client.pull(step))
            else:
                update = self._contents.update(self._index, step, plan.attempts)
                aggregate = self._timed("reduce", lambda: client.reduce(step, update))
                self._count_update(plan)
            self._check(step, plan, aggregate, receipts)
            self._look_back(client, step, plan, aggregate)
        except Expired:  # with a deadline the others may be far ahead
            if self._setting.deadline_seconds is None:
                raise
            self._record.count("expired before it was pulled")

    def _look_back(self, client: Client, step: int, plan: Plan, aggregate: Aggregate) -> None:
        """Once a step has closed: send again, pull again."""
        if plan.repeats_late:
            counted = _attempts(aggregate).get(self._name)
            receipt = self._push(client, step, plan.attempts)
            if receipt.counted is not (counted == receipt.attempt):
                self._wrong(step, f"{counted=} in the aggregate, a late repeat was told {receipt}")
        if plan.pulls_again:
            again = self._timed("pull again", lambda: client.pull(step))
            if again.digest != aggregate.digest or again.contributors != aggregate.contributors:
                self._wrong(step, "the aggregate is another when it is pulled again")

    def _push(self, client: Client, step: int, attempt: int) -> Receipt:
        plan = self._contents.plan(self._index, step)
        update = self._contents.update(self._index, step, attempt)
        receipt = self._timed("push", lambda: client.push(step, update))
        self._record.count(f"receipts: {receipt.status}")
        self._count_update(plan)
        if receipt.attempt != attempt:
            self._wrong(step, f"attempt {attempt} was answered as {receipt}")
        return receipt

    def _check(self, step: int, plan: Plan, aggregate: Aggregate, receipts: list[Receipt]) -> None:
        """Compare an aggregate with what is known: who is in it, acknowledged as what, and bits."""
        attempts = _attempts(aggregate)
        listed = [each.worker for each in (*aggregate.contributors, *aggregate.excluded)]
        if sorted(listed) != list(self._contents.names):
            self._wrong(step, f"not every worker is listed once: {listed}")
        elif aggregate.excluded and self._setting.deadline_seconds is None:
            self._wrong(step, f"there was no deadline, and without are {aggregate.excluded}")
        elif (wrong := self._contents.wrong(step, attempts, aggregate.tensors)) is not None:
            self._wrong(step, wrong)
        counted = attempts.get(self._name)
        for receipt in receipts[-1:]:
            acknowledged = receipt.attempt if receipt.stands else receipt.counted_as
            later = not plan.is_apart and plan.replaces  # reduce() has pushed another since
            if counted != acknowledged and not (later and counted == plan.attempts):
                self._wrong(step, f"acknowledged was {acknowledged}, counted is {counted}")
        self._record.count("aggregates")
        self._record.count("excluded", len(aggregate.excluded) if self._index == 0 else 0)

    def _count_update(self, plan: Plan) -> None:
        self._record.count("updates")
        self._record.count("bytes", self._setting.workload.size_bytes(plan.entries))

    def _timed(self, kind: str, call: Callable[[], _T]) -> _T:
        begun_at = time.monotonic()
        result = call()
        if self._is_warm:
            self._record.took(kind, begun_at, time.monotonic() - begun_at)
        return result

    def _wrong(self, step: int, what: str) -> None:
        self._record.wrong(f"{self._name}, step {step}: {what}")


def _attempts(aggregate: Aggregate) -> dict[str, int]:
    return {each.worker: each.attempt or 0 for each in aggregate.contributors}
