"""The options that say when a step closes and what is computed: the same for every command."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from onefold.errors import InvalidPolicy

if TYPE_CHECKING:
    from onefold.policy import Policy

__all__ = [
    "OPTION_OF",
    "Deadline",
    "KeepSteps",
    "Minimum",
    "OnNonfiniteChoice",
    "OnNonfiniteOption",
    "OpenSteps",
    "OperationChoice",
    "OperationOption",
    "SyncEachPush",
    "WarmUp",
    "in_options",
    "named_path",
    "policy_of",
]

OPTION_OF = {
    "Credentials(insecure=True)": "--insecure",
    "deadline_seconds": "--deadline",
    "keep_steps": "--keep-steps",
    "open_steps_max": "--open-steps",
    "part_bytes_max": "--part-bytes",
    "staged_bytes_max": "--staged-bytes",
    "tls_ca": "--tls-ca",
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
}
"""How what messages name after the library's arguments is called on the command line."""

_MINIMUM = re.compile(r"(?<!-)\bminimum\b")
_NAMES = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, OPTION_OF))})(?!\w)")


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
        metavar="SECONDS",
        help="From a step's first push to its deadline; needs --minimum to close anything. "
        "[default: none]",
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

WarmUp: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--warm-up/--no-warm-up",
        envvar="ONEFOLD_WARM_UP",
        help="Compile all kernels in the background, or each when it is first needed.",
    ),
]


def policy_of(roster: Sequence[str] | int | str, **arguments: object) -> Policy:
    """The policy that the options state; a hint where they state one that has no effect.

    Args:
        roster: As for :class:`~onefold.Policy`.
        arguments: Of a policy, by its own names.

    Raises:
        InvalidPolicy: They contradict each other; the message calls them as the options are called.
    """
    from onefold.policy import Policy  # noqa: PLC0415 - `onefold --help` is to be quick

    try:
        policy = Policy(roster=roster, **arguments)  # type: ignore[arg-type] # it checks them
    except InvalidPolicy as error:
        raise InvalidPolicy(_MINIMUM.sub("--minimum", str(error))) from None
    if policy.deadline_seconds is not None and policy.minimum is None:
        typer.echo(
            "onefold: --deadline alone closes nothing, since a step then still waits for all: "
            "say with --minimum K how many suffice at the deadline",
            err=True,
        )
    return policy


def in_options(message: str) -> str:
    """A message of the library in the words of the command line."""
    return _NAMES.sub(lambda name: OPTION_OF[name[0]], message)


def named_path(text: str) -> Path:
    """A path from the command line; an empty one, as an unset variable gives, is a mistake."""
    if not text:
        raise typer.BadParameter('"" is no path')
    return Path(text)
