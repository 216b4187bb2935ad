"""``onefold run``."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from onefold.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from onefold.launch import Job, Report

__all__ = ["run"]

_INTERRUPTED = 130


Command: TypeAlias = Annotated[
    list[str], typer.Argument(help="What each worker runs, after `--`.", metavar="COMMAND")
]
Workers: TypeAlias = Annotated[int, typer.Option(metavar="N", help="How many; named 0 to N-1.")]
FaultsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAME=P,...",
        help="How the network misbehaves: the probabilities of repeat, lose, lose_reply, "
        "delay and reorder, for each call.",
    ),
]
KillWorker: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="How often to kill a worker (SIGKILL).")
]
KillServer: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="How often to kill the server (SIGKILL).")
]
Steps: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Steps that COMMAND takes, if known: kills are spread over all of them, "
        "and the bar has an end.",
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Decides every fault and kill.")]
Summary: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what happened as JSON.")
]
Directory: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        help="Keep the run's data and everybody's output here; a run that is there goes on. "
        "[default: a temporary place]",
    ),
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="Show what the processes write as they do.")
]


def run(  # noqa: PLR0913 - the options of a command line
    command: Command,
    *,
    workers: Workers,
    faults: FaultsOption = "",
    kill_worker: KillWorker = 0,
    kill_server: KillServer = 0,
    steps: Steps = None,
    seed: Seed = 0,
    summary: Summary = None,
    directory: Directory = None,
    verbose: Verbose = False,
    minimum: options.Minimum = None,
    deadline: options.Deadline = None,
    operation: options.OperationOption = options.OperationChoice.SUM,
    on_nonfinite: options.OnNonfiniteOption = options.OnNonfiniteChoice.PROPAGATE,
) -> None:
    """Run COMMAND as N workers beside a server on this machine, and see them through.

    Each worker finds ONEFOLD_ADDRESS, ONEFOLD_WORKER and ONEFOLD_WORKERS in its environment, which
    is all that onefold.connect() needs. Whoever dies is started again. The exit status is 0 only
    if all workers finished.

    \b
    Examples:
      onefold run --workers 4 -- python examples/digits.py
      onefold run --workers 4 --faults repeat=0.2,lose=0.1,delay=0.2 \\
          --kill-worker 1 --kill-server 1 -- python examples/digits.py
    """  # noqa: D301 - the backspace tells typer to keep the lines as they are
    from onefold.faults import Faults  # noqa: PLC0415 - `onefold --help` is to be quick
    from onefold.launch import Job  # noqa: PLC0415

    job = Job(
        command=tuple(command),
        workers=workers,
        serve_options=_serve_options(minimum, deadline, operation, on_nonfinite),
        faults=Faults.parse(faults, seed=seed),
        worker_kills=kill_worker,
        server_kills=kill_server,
        steps=steps,
        seed=seed,
        directory=directory,
    )
    raise typer.Exit(_run(job, summary, verbose=verbose))


def _serve_options(
    minimum: int | None,
    deadline: float | None,
    operation: options.OperationChoice,
    on_nonfinite: options.OnNonfiniteChoice,
) -> tuple[str, ...]:
    given = [f"--operation={operation.value}", f"--on-nonfinite={on_nonfinite.value}"]
    if minimum is not None:
        given.append(f"--minimum={minimum}")
    if deadline is not None:
        given.append(f"--deadline={deadline}")
    return tuple(given)


def _run(job: Job, summary: Path | None, *, verbose: bool) -> int:
    from rich.console import Console  # noqa: PLC0415

    from onefold.launch import run_job  # noqa: PLC0415
    from onefold.launch.display import Display  # noqa: PLC0415

    # Whoever ends this process politely must not leave its children behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    console = Console(stderr=True)
    try:
        with Display(console, job, verbose=verbose) as display:
            report = run_job(job, display)
    except KeyboardInterrupt:
        console.print("interrupted: every process of the run was stopped", highlight=False)
        return _INTERRUPTED
    if summary is not None:
        summary.write_text(json.dumps(report.to_json(), indent=2) + "\n")
    return _tell(report, console)


def _tell(report: Report, console: Console) -> int:
    """Print the table, then each worker's result to standard output; the exit status."""
    from onefold.launch.display import table_of  # noqa: PLC0415

    console.print(table_of(report))
    for worker in report.workers.values():
        if worker.result is not None:
            typer.echo(json.dumps(worker.result))
    for error in report.errors:
        typer.echo(f"onefold: {error}", err=True)
    return 0 if report.succeeded else 1


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
