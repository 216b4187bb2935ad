"""What the suites are made of: a clock that stands still, short updates, exact comparison."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from onefold.aggregate import Aggregate
from onefold.aggregator import Aggregator
from onefold.ledger import Receipt, Status
from onefold.parts import encode, manifest_of
from onefold.policy import Policy
from onefold.update import Sparse, Tensor, Update

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Clock",
    "MakeAggregator",
    "Row",
    "commit",
    "number",
    "one",
    "pairs",
    "push_all",
    "reasons",
    "same_bits",
    "sparse",
    "statuses",
    "wait_in_thread",
    "who",
]

Row = tuple[int, str, float]
"""``(step, worker, value)``, as in the catalogue."""

WAIT_SECONDS_MAX = 60.0
"""The bound on every wait of the suites: reaching it is a failure, never a matter of course."""


class Clock:
    """Unix seconds that stand still until they are told to move."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time, in Unix seconds."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self.now += seconds


class MakeAggregator(Protocol):
    """Opens an aggregator that the fixture shuts down at the end of the test."""

    def __call__(self, policy: Policy = ..., clock: Callable[[], float] = ...) -> Aggregator:
        """An open, empty aggregator."""


def one(value: float, dtype: str = "float64") -> Update:
    """An update of one number, whose tensor has no name."""
    return Update.of(np.array([value], dtype=np.dtype(dtype)))


def sparse(*entries: tuple[int, float], dtype: str = "float64") -> Sparse:
    """A Sparse from ``(coordinate, value)`` pairs."""
    coordinates = np.array([coordinate for coordinate, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=np.dtype(dtype))
    return Sparse(coordinates, values)


def number(aggregate: Aggregate) -> float:
    """The one number of an aggregate of :func:`one` updates."""
    tensor = aggregate.tensor
    assert not isinstance(tensor, Sparse)
    assert tensor.shape == (1,)
    return float(tensor[0])


def pairs(tensor: Tensor) -> list[tuple[int, float]]:
    """The ``(coordinate, value)`` pairs of a sparse result, in its own order."""
    assert isinstance(tensor, Sparse)
    numbers = tensor.values.tolist()
    return list(zip(tensor.coordinates.tolist(), numbers, strict=True))


def push_all(aggregator: Aggregator, rows: Sequence[Row]) -> list[Receipt]:
    """Push ``(step, worker, value)`` rows that state no attempt, in order."""
    return [aggregator.push(step, worker, one(value)) for step, worker, value in rows]


def statuses(receipts: Sequence[Receipt]) -> list[Status]:
    """What became of each."""
    return [receipt.status for receipt in receipts]


def who(aggregate: Aggregate) -> list[str]:
    """The workers in an aggregate, sorted."""
    return sorted(contributor.worker for contributor in aggregate.contributors)


def reasons(aggregate: Aggregate) -> dict[str, str]:
    """Who is not in an aggregate, and why."""
    return {excluded.worker: excluded.reason for excluded in aggregate.excluded}


def same_bits(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> bool:
    """Whether two sets of tensors have the same names, kinds, dtypes, shapes and bytes."""
    return left.keys() == right.keys() and all(
        _bytes(left[name]) == _bytes(right[name]) for name in left
    )


def _bytes(tensor: Tensor) -> tuple[object, ...]:
    if isinstance(tensor, Sparse):
        return (tensor.shape, *_bytes(tensor.coordinates), *_bytes(tensor.values))
    return (tensor.dtype.name, tensor.shape, tensor.tobytes())


def commit(  # noqa: PLR0913 - the arguments of Aggregator.commit
    aggregator: Aggregator,
    step: int,
    worker: str,
    update: Update,
    *,
    attempt: int | None = None,
    incarnation: int | None = None,
    run: str | None = None,
) -> Receipt:
    """Push as a server does: stage the parts one by one, then commit what they make up."""
    staged = [aggregator.stage(step, schema, batches) for schema, batches in encode(update)]
    manifest = manifest_of(update, staged)
    return aggregator.commit(
        step, worker, manifest, attempt=attempt, incarnation=incarnation, run=run
    )


class Waiting:
    """A call that runs in a thread of its own; :meth:`result` is what it returned or raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._answer: list[Any] = []
        self._error: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            self._error.append(error)

    def result(self) -> Any:
        """What the call returned; raises what it raised."""
        self.thread.join(WAIT_SECONDS_MAX)
        assert not self.thread.is_alive(), f"still waiting after {WAIT_SECONDS_MAX} seconds"
        if self._error:
            raise self._error[0]
        return self._answer[0]


def wait_in_thread(call: Callable[[], Any]) -> Waiting:
    """Start ``call`` beside the test."""
    return Waiting(call)
