"""The result of a closed step."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from onefold.errors import InvalidInput, NoUpdate
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
        """The tensor, where updates are one bare array or Sparse.

        Raises:
            NoUpdate: The step was skipped, and has no tensors.
            InvalidInput: Its tensors have names.
        """
        if self.outcome == "skipped":
            raise NoUpdate(
                f"step {self.step} was skipped and has no tensors: ask whether outcome is "
                '"skipped" first, and then leave every state as it is'
            )
        if "" not in self.tensors:
            raise InvalidInput(
                f"the tensors of step {self.step} have names ({reprlib.repr(list(self.tensors))}): "
                "read aggregate.tensors[name]"
            )
        return self.tensors[""]

    @property
    def count(self) -> int:
        """The number of contributions in it."""
        return len(self.contributors)

    @property
    def total_weight(self) -> int:
        """The weight of the contributions in it."""
        return sum(contributor.weight for contributor in self.contributors)
