"""The runs that verification needs, cached, and spread over the cores.

A unit of work drives child processes and mostly waits for them, so threads are enough.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from failuremap.archive import Case
from failuremap.fixtures import Fixture, fixtures_digest
from failuremap.runner.interpreters import Interpreter, interpreters_at_hand, this_interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Load
from failuremap.runner.running import HASH_SEEDS, REPEATS, Run, run_fixtures, run_repeatedly
from failuremap.runner.verdicts import Verdict
from failuremap.values import tag, untag
from failuremap.verify.cache import Cache
from failuremap.verify.contract import GENERATED, ContractReport, check_contract
from failuremap.verify.standalone import Printed, run_program

__all__ = ["Settings", "Work", "cores", "default_jobs"]

Result = TypeVar("Result")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs() -> int:
    """One more than the cores: a unit of work waits while its child starts."""
    return cores() + 1


@dataclass(frozen=True, slots=True)
class Settings:
    """How to verify: where, within which limits, on which interpreters, with which cache."""

    cache: Cache
    limits: Limits = field(default_factory=Limits)
    interpreters: tuple[Interpreter, ...] = field(default_factory=interpreters_at_hand)
    jobs: int = field(default_factory=default_jobs)


class Work:
    """A pool that makes runs; a context manager. ``done`` is called after each unit."""

    def __init__(self, settings: Settings, done: Callable[[], None] = lambda: None) -> None:
        self.settings = settings
        self.units = 0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """How long the units of each case took, by its id."""
        self._done = done
        self._lock = threading.Lock()
        self._digests: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(settings.jobs, thread_name_prefix="failuremap")

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def submit(self, case: Case, unit: Callable[[], Result]) -> Future[Result]:
        """Have a unit of work done for a case."""

        def timed() -> Result:
            started = time.monotonic()
            try:
                return unit()
            finally:
                with self._lock:
                    self.seconds[case.id] += time.monotonic() - started

        self.units += 1
        future = self._pool.submit(timed)
        future.add_done_callback(lambda _: self._done())
        return future

    def run_once(self, case: Case, source: str, fixtures: Sequence[Fixture]) -> Future[Run]:
        """One run, on this interpreter: enough to see whether a fixture notices a mistake."""
        interpreter = this_interpreter()
        load = Load.source(source, parameters=case.parameters)
        return self.submit(
            case,
            lambda: self._cached(
                self._key("once", case, source, fixtures, interpreter),
                lambda: run_fixtures(load, fixtures, interpreter, self.settings.limits),
            ),
        )

    def run_repeatedly(
        self, case: Case, source: str, fixtures: Sequence[Fixture], interpreter: Interpreter
    ) -> Future[Run]:
        """Across hash seeds and repeats on one interpreter; ``flaky`` where they disagree."""
        load = Load.source(source, parameters=case.parameters)
        limits = self.settings.limits
        return self.submit(
            case,
            lambda: self._cached(
                self._key("repeatedly", case, source, fixtures, interpreter),
                lambda: run_repeatedly(load, fixtures, interpreter, limits),
            ),
        )

    def run_whole(self, case: Case, program: str) -> Future[Printed | str]:
        """The stand-alone program as a whole."""
        interpreter = this_interpreter()
        key = self._key("whole", case, program, (), interpreter)

        def make() -> dict[str, object]:
            return {"found": run_program(program, interpreter)}

        def unit() -> Printed | str:
            found = self.settings.cache.get(
                key, make, keep=lambda made: not isinstance(made["found"], str)
            )["found"]
            return found if isinstance(found, str) else (found[0], found[1])  # type: ignore[index]

        return self.submit(case, unit)

    def check_contract(
        self, case: Case, source: str, fixtures: Sequence[Fixture]
    ) -> Future[ContractReport]:
        """A source and the fixtures against contract and oracle."""
        interpreter = this_interpreter()
        load = Load.source(source, parameters=case.parameters)
        key = self._key("contract", case, source, fixtures, interpreter)
        key |= {"contract": case.family.contract, "generated": GENERATED}

        def make() -> dict[str, object]:
            report = check_contract(case, load, fixtures, interpreter, self.settings.limits)
            return {"generated": report.generated, "problems": list(report.problems)}

        def unit() -> ContractReport:
            found = self.settings.cache.get(key, make, keep=lambda made: not made["problems"])
            return ContractReport(found["generated"], tuple(found["problems"]))  # type: ignore[arg-type]

        return self.submit(case, unit)

    def _key(
        self,
        kind: str,
        case: Case,
        source: str,
        fixtures: Sequence[Fixture],
        interpreter: Interpreter,
    ) -> dict[str, object]:
        return {
            "kind": kind,
            "source": source,
            "params": {name: tag(value) for name, value in case.parameters.items()},
            "fixtures": self._digest_of(case, fixtures),
            "environment": interpreter.environment,
            "path": interpreter.path,
            "limits": self.settings.limits.document(),
            "policy": [list(HASH_SEEDS), REPEATS],
        }

    def _digest_of(self, case: Case, fixtures: Sequence[Fixture]) -> str:
        """The digest of a case's fixtures, made once: large inputs take long to write out."""
        if not fixtures:
            return ""
        if case.id not in self._digests:
            self._digests[case.id] = fixtures_digest(fixtures)
        return self._digests[case.id]

    def _cached(self, key: Mapping[str, object], make: Callable[[], Run]) -> Run:
        return _run(self.settings.cache.get(key, lambda: _document(make()), keep=_lasting))


def _lasting(document: Mapping[str, object]) -> bool:
    verdicts: list[Mapping[str, object]] = document["verdicts"]  # type: ignore[assignment]
    return all(v["status"] not in ("infra", "timeout", "flaky") for v in verdicts)


def _document(run: Run) -> dict[str, object]:
    return {
        "isolation": list(run.isolation),
        "verdicts": [
            {
                "label": verdict.label,
                "status": verdict.status,
                "actual": tag(verdict.actual) if verdict.answered else None,
                "message": verdict.message,
            }
            for verdict in run.verdicts
        ],
    }


def _run(document: Mapping[str, object]) -> Run:
    verdicts = [
        Verdict(
            label=verdict["label"],
            status=verdict["status"],
            answered=verdict["actual"] is not None,
            actual=untag(verdict["actual"]) if verdict["actual"] is not None else None,
            message=verdict["message"],
        )
        for verdict in document["verdicts"]  # type: ignore[attr-defined]
    ]
    return Run(tuple(verdicts), tuple(document["isolation"]))  # type: ignore[arg-type]
