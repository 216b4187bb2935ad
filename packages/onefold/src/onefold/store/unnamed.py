"""Parts that have come and that no contribution names: whose they are, and for how long.

Whoever means to commit or to remove parts *takes* them here first, and they are given once. So what
one call commits no other can remove, whichever comes first, and nobody removes what another worker
sent. The stores sweep what nothing names when they open; between two openings this tells what to
remove.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["UNNAMED_SECONDS_MAX", "Unnamed"]

UNNAMED_SECONDS_MAX = 600.0
"""How long parts are kept after the last sign of life of who sends them: the next block or commit.

A client that has lost its connection tries again for as long as its timeout says, ten minutes
unless it is told otherwise, and then gives up. One that comes later sends all parts again.
"""


@dataclass(slots=True)
class _Sending:
    """What a worker has sent for a step, and when it was last heard of, on :class:`_Watch`."""

    heard_at: float
    parts: set[str] = field(default_factory=set)


class _Watch:
    """Seconds that have passed, by a clock that may be put back: it then counts on from there."""

    def __init__(self) -> None:
        self._passed, self._last = 0.0, 0.0

    def at(self, now: float) -> float:
        """How many have passed at ``now``; never less than before."""
        self._passed += max(0.0, now - self._last)
        self._last = now
        return self._passed


class Unnamed:
    """The parts in a store that nothing names yet.

    Every ``now`` is in seconds on one clock. Once that is put back, what was heard of before still
    grows old.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch = _Watch()
        self._sendings: dict[tuple[int, str | None], _Sending] = {}  # the last heard of comes last
        # The same by worker, without those of closed steps: to count, at each upload, only its own.
        self._waiting: dict[str | None, dict[int, _Sending]] = {}

    def hear(self, step: int, worker: str | None, now: float) -> None:
        """Note a sign of life of who sends; ``worker`` is None where nobody said who."""
        with self._lock:
            if (step, worker) in self._sendings:
                self._heard(step, worker, now)

    def add(self, step: int, worker: str | None, parts: Iterable[str], now: float) -> None:
        """Note parts that have come, or that were taken and not committed."""
        with self._lock:
            sending = self._heard(step, worker, now)
            sending.parts.update(parts)
            self._waiting.setdefault(worker, {})[step] = sending

    def of(self, step: int, worker: str, parts: Iterable[str]) -> set[str]:
        """Which of ``parts`` came from a worker for a step, or from nobody in particular."""
        with self._lock:
            return set(parts) & set().union(*(s.parts for s in self._of(step, worker)))

    def take(self, step: int, worker: str, parts: Iterable[str]) -> set[str]:
        """As :meth:`of`, and from now on they are the caller's."""
        with self._lock:
            return self._taken([(step, worker), (step, None)], set(parts))

    def take_any(self, parts: Iterable[str]) -> set[str]:
        """As :meth:`take`, whoever sent them."""
        with self._lock:
            return self._taken(list(self._sendings), set(parts))

    def take_expired(self, now: float) -> set[str]:
        """The parts of whoever has not been heard of for long."""
        with self._lock:
            taken: set[str] = set()
            for who, sending in list(self._expired(self._watch.at(now))):
                taken |= sending.parts
                del self._sendings[who]
                self._waiting.get(who[1], {}).pop(who[0], None)
            return taken

    def count(self, worker: str) -> int:
        """How many parts of a worker there are, for steps that are not over."""
        with self._lock:
            waiting = self._waiting.get(worker, {})
            for step in [step for step, sending in waiting.items() if not sending.parts]:
                del waiting[step]
            return sum(len(sending.parts) for sending in waiting.values())

    def end_step(self, step: int) -> None:
        """Parts for a step are not counted any more: it has closed, and the store dropped them.

        They stay known, so that a commit that comes too late is told that it does.
        """
        with self._lock:
            for waiting in self._waiting.values():
                waiting.pop(step, None)

    def clear(self) -> None:
        """Forget all, as when the store has been opened again and swept."""
        with self._lock:
            self._sendings, self._waiting = {}, {}

    def _heard(self, step: int, worker: str | None, now: float) -> _Sending:
        heard_at = self._watch.at(now)
        sending = self._sendings.pop((step, worker), None) or _Sending(heard_at)
        sending.heard_at = heard_at
        self._sendings[step, worker] = sending
        return sending

    def _taken(self, senders: Iterable[tuple[int, str | None]], parts: set[str]) -> set[str]:
        """What of ``parts`` these have sent; a sender who has nothing left here is forgotten.

        Else every update would leave an entry for ten minutes: hundreds of thousands of them.
        """
        taken: set[str] = set()
        for who in senders:
            sending = self._sendings.get(who)
            if sending is None:
                continue
            taken |= sending.parts & parts
            sending.parts -= parts
            if not sending.parts:
                del self._sendings[who]
        return taken

    def _of(self, step: int, worker: str) -> list[_Sending]:
        known = (self._sendings.get((step, who)) for who in (worker, None))
        return [sending for sending in known if sending is not None]

    def _expired(self, passed: float) -> Iterator[tuple[tuple[int, str | None], _Sending]]:
        for who, sending in self._sendings.items():
            if passed - sending.heard_at < UNNAMED_SECONDS_MAX:
                return
            yield who, sending
