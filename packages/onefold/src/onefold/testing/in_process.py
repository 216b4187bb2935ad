"""The transport that is none: workers in the process of the aggregator.

It keeps what a client keeps (a life, the attempt of each step) and nothing else, so that the suite
of transports can be read, and run, without a network.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from onefold.aggregate import Aggregate
from onefold.aggregator import Aggregator
from onefold.errors import Fenced
from onefold.ledger import Joined, Receipt, Status
from onefold.update import Tensor, Update

__all__ = ["InProcessCluster", "InProcessWorker"]


class InProcessWorker:
    """One life of a worker: a repeat keeps its attempt, a recomputed update takes the next."""

    def __init__(self, aggregator: Aggregator, worker: str) -> None:
        self._aggregator = aggregator
        self._sent: dict[int, tuple[int, str]] = {}
        self.joined: Joined = aggregator.join(worker, uuid.uuid4().hex)

    def push(
        self, step: int, update: Mapping[str, Tensor] | Tensor | Update, *, weight: int = 1
    ) -> Receipt:
        """Contribute ``update`` to ``step``.

        Raises:
            Fenced: A newer life of this worker has joined.
        """
        content = Update.of(update, weight)
        digest = content.digest()
        attempt, before = self._sent.get(step, (-1, ""))
        if digest != before:
            attempt += 1
            self._sent[step] = (attempt, digest)
        receipt = self._aggregator.push(
            step,
            self.joined.worker,
            content,
            attempt=attempt,
            incarnation=self.joined.incarnation,
        )
        if receipt.status is Status.FENCED:
            raise Fenced(receipt)
        return receipt

    def pull(self, step: int, timeout_seconds: float = 60) -> Aggregate:
        """The aggregate of ``step``; see :meth:`Aggregator.pull`."""
        return self._aggregator.pull(step, timeout_seconds=timeout_seconds)

    def reduce(
        self, step: int, update: Mapping[str, Tensor] | Tensor | Update, weight: int = 1
    ) -> Aggregate:
        """Push, then pull."""
        self.push(step, update, weight=weight)
        return self.pull(step)

    def leave(self) -> None:
        """Leave the run: later steps do not wait for this worker."""
        self._aggregator.leave(self.joined.worker, self.joined.incarnation)


class InProcessCluster:
    """Connects workers to an aggregator in this process."""

    def __init__(self, aggregator: Aggregator) -> None:
        self.aggregator = aggregator

    def connect(self, worker: str) -> InProcessWorker:
        """A new life of ``worker``."""
        return InProcessWorker(self.aggregator, worker)
