"""``onefold serve``."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onefold.cli import options
from onefold.errors import InvalidPolicy

if TYPE_CHECKING:
    from onefold.policy import Policy

__all__ = ["serve"]

_DRAIN_SECONDS = 5.0


def serve(  # noqa: PLR0913 - the options of a command line
    directory: Annotated[
        Path,
        typer.Argument(
            parser=options.named_path,
            metavar="DIRECTORY",
            help="Where everything is kept: a new or empty directory, or that of a run, which then "
            "goes on.",
        ),
    ],
    *,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps wait for the first N workers that join."),
    ] = None,
    roster: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Steps wait for these workers.")
    ] = None,
    joined: Annotated[
        bool, typer.Option("--joined", help="Steps wait for the members when the step opens.")
    ] = False,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to listen, with grpc:// before it or not; port 0 takes a free one.",
        ),
    ] = "127.0.0.1:0",
    minimum: options.Minimum = None,
    deadline: options.Deadline = None,
    operation: options.OperationOption = options.OperationChoice.SUM,
    on_nonfinite: options.OnNonfiniteOption = options.OnNonfiniteChoice.PROPAGATE,
    keep_steps: options.KeepSteps = None,
    open_steps: options.OpenSteps = 2,
    sync_each_push: options.SyncEachPush = False,
    warm_up: options.WarmUp = True,
) -> None:
    """Aggregate what workers push, until Ctrl-C or SIGTERM.

    Prints `listening on grpc://HOST:PORT` once workers can connect. One of --workers, --roster and
    --joined says whom a step waits for. Killed at any moment and started again on the same
    DIRECTORY, it goes on where it was; --operation and whom a step waits for must then be as they
    were, all else may change.

    \b
    Example, and a worker of it:
      onefold serve runs/mnist --workers 4 --listen 0.0.0.0:7000
      ONEFOLD_ADDRESS=grpc://HOST:7000 ONEFOLD_WORKER=a python train.py
    """  # noqa: D301 - the backspace tells typer to keep the lines as they are
    policy = options.policy_of(
        _roster(workers, roster, joined=joined),
        minimum=minimum,
        deadline_seconds=deadline,
        operation=operation.value,
        on_nonfinite=on_nonfinite.value,
        open_steps_max=open_steps,
        sync_each_push=sync_each_push,
        keep_steps=keep_steps,
    )
    _serve_until_told(directory, policy, listen, warm_up=warm_up)


def _roster(workers: int | None, roster: str | None, *, joined: bool) -> list[str] | int | str:
    if (workers is not None) + (roster is not None) + joined != 1:
        raise InvalidPolicy(
            "say whom a step waits for with exactly one of --workers N, --roster a,b,c and --joined"
        )
    if roster is not None:
        return [name.strip() for name in roster.split(",")]
    return workers if workers is not None else "joined"


def _serve_until_told(directory: Path, policy: Policy, listen: str, *, warm_up: bool) -> None:
    from onefold.aggregator import Aggregator  # noqa: PLC0415
    from onefold.server import Server  # noqa: PLC0415

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with Aggregator(directory, policy) as aggregator:
        server = Server(aggregator, listen, warm_up=warm_up)
        server.start()
        try:
            typer.echo(f"listening on {server.address}")
            stopping.wait()
        finally:
            server.stop(drain_seconds=_DRAIN_SECONDS)
    typer.echo(f"stopped; what it has is kept in {directory}, from where it can go on", err=True)
