"""``onefold serve``."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from onefold.cli import options
from onefold.errors import InvalidPolicy, StoreError

if TYPE_CHECKING:
    from onefold.aggregator import Aggregator
    from onefold.policy import Policy
    from onefold.server import Limits, Security

__all__ = ["serve"]

_DRAIN_SECONDS = 5.0

Directory: TypeAlias = Annotated[
    Path,
    typer.Argument(
        parser=options.named_path,
        metavar="DIRECTORY",
        help="Where everything is kept: a new or empty directory, or that of a run, which then "
        "goes on.",
    ),
]
Workers: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Steps wait for the first N workers that join.")
]
Roster: TypeAlias = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Steps wait for these workers.")
]
Joined: TypeAlias = Annotated[
    bool, typer.Option("--joined", help="Steps wait for the members when the step opens.")
]
Listen: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Where to listen, with grpc:// before it or not; port 0 takes a free one.",
    ),
]
TlsCert: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path, metavar="FILE", help="Use TLS, with this certificate (PEM)."
    ),
]
TlsKey: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path, metavar="FILE", help="The certificate's private key (PEM)."
    ),
]
TlsCa: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="FILE",
        help="Let in only who shows a certificate signed by these roots (PEM).",
    ),
]
Tokens: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="FILE",
        help="Answer only who has a token of this file, as `onefold token` makes it.",
    ),
]
Insecure: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Listen anywhere without authentication, or take tokens without TLS."
    ),
]
PartBytes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The size of a part of an update at most, in bytes; less than 65 MiB, the parts of "
        "clients, limits whole updates. [default: 256 MiB]",
    ),
]
StagedBytes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="The size of all parts of open steps at most. [default: the disk's]"
    ),
]


def serve(  # noqa: PLR0913 - the options of a command line
    directory: Directory,
    *,
    workers: Workers = None,
    roster: Roster = None,
    joined: Joined = False,
    listen: Listen = "127.0.0.1:0",
    minimum: options.Minimum = None,
    deadline: options.Deadline = None,
    operation: options.OperationOption = options.OperationChoice.SUM,
    on_nonfinite: options.OnNonfiniteOption = options.OnNonfiniteChoice.PROPAGATE,
    keep_steps: options.KeepSteps = None,
    open_steps: options.OpenSteps = 2,
    sync_each_push: options.SyncEachPush = False,
    warm_up: options.WarmUp = True,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    tokens: Tokens = None,
    insecure: Insecure = False,
    part_bytes: PartBytes = None,
    staged_bytes: StagedBytes = None,
) -> None:
    """Aggregate what workers push, until Ctrl-C or SIGTERM.

    Prints `listening on grpc://HOST:PORT` (grpc+tls:// with TLS) once workers can connect. One of
    --workers, --roster and --joined says whom a step waits for. With neither --tokens nor --tls-ca
    anybody who connects can push as any worker, so it then listens on this machine only.

    Killed at any moment and started again on the same DIRECTORY, it goes on where it was;
    --operation and whom a step waits for must then be as they were, all else may change.

    \b
    Example, and a worker of it:
      onefold token new a --tokens tokens.json
      onefold serve runs/mnist --workers 4 --listen 0.0.0.0:7000 --tokens tokens.json \\
          --tls-cert server.pem --tls-key server.key
      ONEFOLD_ADDRESS=grpc+tls://HOST:7000 ONEFOLD_TLS_CA=ca.pem ONEFOLD_TOKEN=... \\
          ONEFOLD_WORKER=a python train.py
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
    from onefold.server import Limits, Security  # noqa: PLC0415 - `onefold --help` is to be quick

    parts = {} if part_bytes is None else {"part_bytes_max": part_bytes}
    serving = _Serving(
        listen=listen,
        security=Security(tls_cert, tls_key, tls_ca, tokens, insecure),
        limits=Limits(staged_bytes_max=staged_bytes, **parts),
        warm_up=warm_up,
    )
    _serve_until_told(directory, policy, serving)


@dataclass(frozen=True, slots=True)
class _Serving:
    """How a server is to listen."""

    listen: str
    security: Security
    limits: Limits
    warm_up: bool


def _roster(workers: int | None, roster: str | None, *, joined: bool) -> list[str] | int | str:
    if (workers is not None) + (roster is not None) + joined != 1:
        raise InvalidPolicy(
            "say whom a step waits for with exactly one of --workers N, --roster a,b,c and --joined"
        )
    if roster is not None:
        return [name.strip() for name in roster.split(",")]
    return workers if workers is not None else "joined"


def _serve_until_told(directory: Path, policy: Policy, serving: _Serving) -> None:
    from onefold.aggregator import Aggregator  # noqa: PLC0415
    from onefold.server import Server, share_memory_between_threads  # noqa: PLC0415

    share_memory_between_threads()
    # No threading.Event: a handler may interrupt its wait() where that holds the lock of its set().
    told, tell = os.pipe()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.write(tell, b"."))
    aggregator = Aggregator(directory, policy)
    server = Server(
        aggregator,
        serving.listen,
        security=serving.security,
        limits=serving.limits,
        warm_up=serving.warm_up,
    )
    try:
        server.start()  # opens the aggregator once it has been seen that it can listen
        typer.echo(f"listening on {server.address}")
        os.read(told, 1)
        kept = _where_kept(aggregator, directory)
    finally:
        server.stop(drain_seconds=_DRAIN_SECONDS)
        aggregator.shutdown()
    typer.echo(f"stopped; {kept}", err=True)


def _where_kept(aggregator: Aggregator, directory: Path) -> str:
    try:
        return f"run {aggregator.run} is kept in {directory}, from where it can go on"
    except StoreError as error:
        return str(error)
