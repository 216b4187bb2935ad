"""What was measured, as it is read back from ``results.json``: questions, no measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["OURS", "SINGLE", "Missing", "Results", "best_peer", "number", "speed", "times_best"]

OURS = "onefold"
SINGLE = "onefold, 1 thread"

_PER_SECOND = {"GB/s": 1e9, "M nnz/s": 1e6}

Case = Mapping[str, Any]


class Missing(LookupError):
    """Nothing of that name was measured, or it failed."""


class Results:
    """All sections of one run."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.run: Mapping[str, Any] = document["run"]
        self.sections: list[Mapping[str, Any]] = document["sections"]

    def cases(self, table: str) -> Iterator[Case]:
        """Those of a table, in the order in which they were measured."""
        for section in self.sections:
            for case in section["cases"]:
                if case["table"] == table:
                    yield case

    def case(self, table: str, name: str) -> Case:
        """One of them.

        Raises:
            Missing: It was not measured.
        """
        for case in self.cases(table):
            if case["name"] == name:
                return case
        raise Missing(name)

    def all_cases(self, table: str) -> list[Case]:
        """All of a table, which must not be empty, nor broken off.

        Raises:
            Missing: It was not measured, or not to its end.
        """
        found = list(self.cases(table))
        whole = all(not s["exit_status"] for s in self.sections if s["section"] == table)
        if not found or not whole:
            raise Missing(table)
        return found


def seconds(case: Case, contestant: str) -> float:
    """The median of a contestant.

    Raises:
        Missing: It did not race, or failed.
    """
    outcome = case["outcomes"].get(contestant)
    if outcome is None or outcome["seconds"] is None:
        raise Missing(f"{contestant}: {case['name']}")
    return float(outcome["seconds"])


def speed(case: Case, contestant: str) -> float:
    """What a contestant did, in the case's unit: work per second, or time per work."""
    taken, unit = seconds(case, contestant), case["unit"]
    if unit == "µs":
        return taken * 1e6
    if unit == "ns/value":
        return taken / float(case["amount"]) * 1e9
    return float(case["amount"]) / taken / _PER_SECOND[unit]


def best_peer(case: Case, kind: str = "peer") -> str:
    """The fastest of a kind.

    Raises:
        Missing: There is none, or all failed.
    """
    peers = {
        name: outcome["seconds"]
        for name, outcome in case["outcomes"].items()
        if outcome["kind"] == kind and outcome["seconds"] is not None
    }
    if not peers:
        raise Missing(f"{kind}: {case['name']}")
    return min(peers, key=lambda name: peers[name])


def times_best(case: Case, contestant: str | None = None, kind: str = "peer") -> float:
    """How many times faster we are than a peer, or than the best."""
    return seconds(case, contestant or best_peer(case, kind)) / seconds(case, OURS)


def number(value: float) -> str:
    """With three digits, and no more than two behind the point."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
