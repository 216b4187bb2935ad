"""The result of a closed step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from onefold.ledger import Contributor, Excluded, Outcome, StepClosed
from onefold.update import Tensor

__all__ = ["Aggregate"]


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """What a step came to, and who is in it.

    Attributes:
        step: The step.
        outcome: ``"update"``, or ``"skipped"``: no tensors, and every state stays as it is.
        tensors: Names to read-only arrays or Sparse (coordinates sorted, each once).
        contributors: Who counted, with incarnation, attempt, weight and digest; sorted by worker.
        excluded: Who did not, and why; sorted by worker.
        digest: XXH3-128 of the included set.
    """

    step: int
    outcome: Outcome
    tensors: Mapping[str, Tensor]
    contributors: tuple[Contributor, ...]
    excluded: tuple[Excluded, ...]
    digest: str

    @classmethod
    def of(cls, closed: StepClosed, tensors: Mapping[str, Tensor]) -> Aggregate:
        """The aggregate of a closed step."""
        return cls(
            step=closed.step,
            outcome=closed.outcome,
            tensors=MappingProxyType(dict(tensors)),
            contributors=closed.contributors,
            excluded=closed.excluded,
            digest=closed.digest(),
        )

    @property
    def tensor(self) -> Tensor:
        """The tensor, where updates are one bare array or Sparse."""
        return self.tensors[""]

    @property
    def count(self) -> int:
        """The number of contributions in it."""
        return len(self.contributors)

    @property
    def total_weight(self) -> int:
        """The weight of the contributions in it."""
        return sum(contributor.weight for contributor in self.contributors)
