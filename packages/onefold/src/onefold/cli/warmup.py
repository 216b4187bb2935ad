"""``onefold warmup``: compile the kernels ahead of their first use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from onefold.exact.warming import Step

__all__ = ["warmup"]


def warmup() -> None:
    """Compile the kernels for this processor, so that no later run waits for it.

    The code is kept in a directory of the user ($ONEFOLD_CACHE, else ~/.cache/onefold) until
    onefold, Numba or the processor changes. What is there already is only loaded.
    """
    from onefold.exact.kernels.loading import cache_directory, why_not_kept  # noqa: PLC0415
    from onefold.exact.warming import warm_up_steps  # noqa: PLC0415

    directory = cache_directory()
    if directory is None:
        _fail(f"nothing was compiled: no file can be written to {_wanted_directory()}")
    steps = list(warm_up_steps())
    _compile(steps)
    if error := why_not_kept():  # the disk is full, or the directory is gone
        _fail(f"not all that was compiled could be kept in {directory}: {error}")
    typer.echo(f"{len(steps)} groups of kernels compiled, kept in {directory}")


def _compile(steps: list[Step]) -> None:
    """Call each step, with a progress bar on standard error that names it."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(steps))
        for name, step in steps:
            progress.update(task, description=f"Compiling kernels: {name}")
            step()
            progress.advance(task)
        progress.update(task, description="Kernels compiled")


def _fail(what: str) -> NoReturn:
    """End the command: what is wrong, and what to do about it."""
    typer.echo(f"onefold: {what}; $ONEFOLD_CACHE names another directory to keep it in", err=True)
    raise typer.Exit(1)


def _wanted_directory() -> str:
    return os.environ.get("ONEFOLD_CACHE") or "$XDG_CACHE_HOME/onefold or ~/.cache/onefold"
