"""``onefold run``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from onefold.cli import options
from onefold.cli.signals import ending_by
from onefold.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from onefold.launch import Job, Report

__all__ = ["run"]

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
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="FILE",
        help="Write what happened as JSON, also if it is interrupted.",
    ),
]
Directory: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="DIRECTORY",
        help="Keep the run's data and everybody's output here; a run that is there goes on. "
        "[default: a temporary place]",
    ),
]
Verbose: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Show standard error of the workers too, and what the server says.",
    ),
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
    is all that onefold.connect() needs. What it prints is shown with its name before it; its last
    line, if that is JSON, is its result, which goes to standard output when all is over. Whoever
    fails is started again, up to 3 times and each time after a longer pause. The exit status is 0
    only if all workers finished, 1 if not, and 128 and the signal's number after a signal.

    \b
    Examples, in a clone of the repository after `make setup` (digits.py needs scikit-learn):
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
    options.policy_of(
        job.names,
        minimum=minimum,
        deadline_seconds=deadline,
        operation=operation.value,
        on_nonfinite=on_nonfinite.value,
    )
    _check_program(command[0])
    _check_places(directory, summary)
    raise typer.Exit(_run(job, summary, verbose=verbose))


def _check_program(program: str) -> None:
    """Refuse what cannot be started before anything is."""
    if shutil.which(program) is not None:
        return
    if Path(program).is_file():
        raise InvalidInput(
            f"{program!r} is a file but cannot be executed as it is called: start it with its "
            f"interpreter, for example -- python {program}"
        )
    raise InvalidInput(f"there is no program {program!r}: it is neither on PATH nor a file")


def _check_places(directory: Path | None, summary: Path | None) -> None:
    """Refuse places that cannot be written to before there is anything to write."""
    try:
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--directory {directory} cannot be used: {error.strerror}") from None
    try:
        if summary is not None:
            summary.open("a").close()
    except OSError as error:
        raise InvalidInput(f"--summary {summary} cannot be written: {error.strerror}") from None


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

    from onefold.launch import Interrupted, run_job  # noqa: PLC0415
    from onefold.launch.display import Display  # noqa: PLC0415

    # Whoever ends this process politely must not leave its children behind.
    received: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    with ending_by(interrupt):
        console = Console(stderr=True, markup=False, highlight=False)
        try:
            with Display(console, job, verbose=verbose) as display:
                report = run_job(job, display)
        except Interrupted as interrupted:
            report = interrupted.report
        except KeyboardInterrupt:  # before the job began
            return 128 + received[0]
        if summary is not None:
            summary.write_text(json.dumps(report.to_json(), indent=2) + "\n")
        exit_status = _tell(report, console, verbose=verbose)
        return 128 + received[0] if report.interrupted else exit_status


def _tell(report: Report, console: Console, *, verbose: bool) -> int:
    """Print the table, then each worker's result to standard output; the exit status."""
    from onefold.launch.display import table_of  # noqa: PLC0415

    console.print(table_of(report))
    for worker in report.workers.values():
        if worker.result is not None:
            typer.echo(json.dumps(worker.result))
    for error in report.errors:
        # The lines of standard error that follow the first have been shown already.
        typer.echo(f"onefold: {error.partition(chr(10))[0] if verbose else error}", err=True)
    if report.interrupted:
        typer.echo("onefold: interrupted; every process of the run was stopped", err=True)
    return 0 if report.succeeded else 1
