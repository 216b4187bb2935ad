"""A thing to be fuzzed, and how it is called."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from mutations import Mutator

__all__ = ["Target", "Violation", "no_other_error"]

MEMORY_BYTES_MAX = 1 << 29
"""How much more memory than ever before one input may take; the inputs are far smaller."""


class Violation(AssertionError):
    """A promise was broken; the message says which."""


@dataclass(frozen=True, slots=True)
class Target:
    """What reads bytes that others made.

    Args:
        name: What it goes by.
        run: Reads one input, and raises whatever breaks the promise.
        seeds: Inputs that are valid, or nearly so.
        mutate: Changes an input a little.
        share: How much of the time of a run it gets, beside the others.
        examples: How many inputs it gets in the ordinary tests.
        prepare: Does beforehand what would else be counted as the time of an input.
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    mutate: Mutator
    share: float = 1.0
    examples: int = 300
    prepare: Callable[[], None] = lambda: None

    def __call__(self, data: bytes) -> None:
        """Read one input; no memory to speak of may be taken for it."""
        before = _peak_bytes()
        self.run(data)
        taken = _peak_bytes() - before
        if taken > MEMORY_BYTES_MAX:
            raise Violation(f"an input of {len(data)} bytes took {taken} bytes of memory")

    def input_of(self, seed: int) -> bytes:
        """An input made from a number: a seed, changed."""
        rng = Random(seed)
        return self.mutate(rng.choice(self.seeds), rng)


@contextlib.contextmanager
def no_other_error(*kinds: type[BaseException]) -> Iterator[None]:
    """Let nothing but these out, where who calls is content with more."""
    try:
        yield
    except kinds:
        raise
    except Exception as error:
        raise Violation(f"expected a result or {kinds}, not {error!r:.200}") from error


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
