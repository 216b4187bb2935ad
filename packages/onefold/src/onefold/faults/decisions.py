"""What becomes of a call: a pure function of the seed and of the call's own words.

The kinds are drawn independently of each other:

==============  ==================================================================================
``lose``        the server never sees the call; the caller is told that the server is unavailable
``lose_reply``  the server does what the call asks; the caller is told that it is unavailable
``repeat``      the call is forwarded once more, later, when newer calls have overtaken it
``delay``       the call is held for a while before it is forwarded
``reorder``     the call is held until another has passed it
==============  ==================================================================================

A lost call is lost, whatever else was drawn for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import xxhash

from onefold.errors import InvalidInput

__all__ = ["KINDS", "Call", "Fate", "Faults"]

KINDS = ("repeat", "lose", "lose_reply", "delay", "reorder")
"""The names of the faults, in the order in which they are listed everywhere."""

_REPEAT_AFTER_DELAYS = 5.0


@dataclass(frozen=True, slots=True)
class Call:
    """What tells one call from all others: the words of its command.

    ``retry`` is the command's ``try``: how often the client has tried this very call before.
    ``part`` tells the parts of one large update apart.
    """

    verb: str
    worker: str | None = None
    incarnation: int | None = None
    step: int | None = None
    attempt: int | None = None
    retry: int | None = None
    part: int | None = None

    @classmethod
    def of(cls, command: bytes, verb: str = "") -> Call:
        """The call that a JSON command describes; ``verb`` is used where the command has none.

        A command that is no JSON object is a call without words: it is the server that is to
        refuse it, not the network.
        """
        try:
            words = json.loads(command)
        except (ValueError, RecursionError):
            words = None
        if not isinstance(words, dict):
            return cls(verb)
        return cls(
            verb=str(words.get("verb", verb)),
            worker=_text(words.get("worker")),
            incarnation=_integer(words.get("incarnation")),
            step=_integer(words.get("step")),
            attempt=_integer(words.get("attempt")),
            retry=_integer(words.get("try")),
            part=_integer(words.get("part")),
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one call. ``repeat_after_seconds`` is None where it is not repeated."""

    lose: bool = False
    lose_reply: bool = False
    reorder: bool = False
    delay_seconds: float = 0.0
    repeat_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the network misbehaves.

    Args:
        repeat: Probability, from 0 to 1, that a call is forwarded a second time, later.
        lose: Probability that a call is lost on its way to the server.
        lose_reply: Probability that the answer to a call is lost.
        delay: Probability that a call is held for a random time before it is forwarded.
        reorder: Probability that a call is held until another has passed it.
        delay_seconds_max: The longest delay, and the longest wait to be overtaken. A repeat comes
            up to five times as late, so that it lands among the calls of later steps.
        seed: Two runs with one seed give each call the same fate.

    Raises:
        InvalidInput: A probability outside 0 to 1, or a time that is no time.
    """

    repeat: float = 0.0
    lose: float = 0.0
    lose_reply: float = 0.0
    delay: float = 0.0
    reorder: float = 0.0
    delay_seconds_max: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in KINDS:
            probability = getattr(self, kind)
            if not 0 <= probability <= 1:
                raise InvalidInput(
                    f"fault {kind!r}: a probability is a number from 0 to 1, not {probability}"
                )
        if not 0 <= self.delay_seconds_max < float("inf"):
            raise InvalidInput(
                f"delay_seconds_max is a number of seconds of at least 0, "
                f"not {self.delay_seconds_max}"
            )

    @classmethod
    def parse(cls, text: str, *, seed: int = 0) -> Faults:
        """Faults from ``repeat=0.2,lose=0.1``; ``delay_seconds_max`` may be among them.

        Raises:
            InvalidInput: A name that is no fault, one that is given twice, or a value that is no
                probability.
        """
        values: dict[str, float] = {}
        for item in filter(None, (item.strip() for item in text.split(","))):
            name, equals, value = (piece.strip() for piece in item.partition("="))
            if not equals or name not in (*KINDS, "delay_seconds_max"):
                raise InvalidInput(
                    f"{item!r} is no fault: expected name=probability with the names "
                    f"{', '.join(KINDS)}, for example repeat=0.2,lose=0.1"
                )
            if name in values:
                raise InvalidInput(f"fault {name!r} is given twice")
            values[name] = _number(name, value)
        return cls(**values, seed=seed)

    def __str__(self) -> str:
        return ",".join(f"{kind}={getattr(self, kind):g}" for kind in KINDS if getattr(self, kind))

    @property
    def any(self) -> bool:
        """Whether there is any fault at all."""
        return any(getattr(self, kind) for kind in KINDS)

    @property
    def let_through(self) -> bool:
        """Whether a call that is made often enough is answered at last."""
        return self.lose < 1 and self.lose_reply < 1

    def fate(self, call: Call) -> Fate:
        """What becomes of ``call``; the same for the same seed and call, always."""
        if self.draw("lose", call) < self.lose:
            return Fate(lose=True)
        longest = self.delay_seconds_max
        delayed = self.draw("delay", call) < self.delay
        repeated = self.draw("repeat", call) < self.repeat
        repeat_after = self.draw("repeat_after_seconds", call) * longest * _REPEAT_AFTER_DELAYS
        return Fate(
            lose_reply=self.draw("lose_reply", call) < self.lose_reply,
            reorder=self.draw("reorder", call) < self.reorder,
            delay_seconds=self.draw("delay_seconds", call) * longest if delayed else 0.0,
            repeat_after_seconds=repeat_after if repeated else None,
        )

    def draw(self, what: str, call: Call) -> float:
        """A number from 0 up to 1: uniform over calls, independent for each ``what``."""
        words = (call.verb, call.worker, call.incarnation, call.step, call.attempt)
        key = json.dumps([self.seed, what, *words, call.retry, call.part])
        return (xxhash.xxh3_64_intdigest(key.encode()) >> 11) / (1 << 53)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"fault {name!r}: {text!r} is not a number") from None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None
