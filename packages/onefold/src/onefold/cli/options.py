"""The options that say when a step closes and what is computed: the same for every command."""

from __future__ import annotations

import enum
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "Deadline",
    "KeepSteps",
    "Minimum",
    "OnNonfiniteChoice",
    "OnNonfiniteOption",
    "OpenSteps",
    "OperationChoice",
    "OperationOption",
    "SyncEachPush",
]


class OperationChoice(enum.StrEnum):
    """The values of ``--operation``."""

    SUM = "sum"
    MEAN = "mean"
    WEIGHTED_MEAN = "weighted_mean"


class OnNonfiniteChoice(enum.StrEnum):
    """The values of ``--on-nonfinite``."""

    PROPAGATE = "propagate"
    REJECT = "reject"
    SKIP = "skip"


Minimum: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Contributions that suffice once the deadline has passed. [default: all]"
    ),
]
Deadline: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="From a step's first push to its deadline. [default: none]"
    ),
]
OperationOption: TypeAlias = Annotated[
    OperationChoice, typer.Option(help="What an aggregate is; weighted by the updates' weights.")
]
OnNonfiniteOption: TypeAlias = Annotated[
    OnNonfiniteChoice,
    typer.Option(
        help="NaN and infinity: as IEEE 754 does, reject the update, or skip the whole step."
    ),
]
KeepSteps: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Newest aggregates that keep their tensors. [default: all]"),
]
OpenSteps: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Steps in a row that may be open at a time.")
]
SyncEachPush: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--sync-each-push", help="Make each accepted update survive a power cut, not only a crash."
    ),
]
