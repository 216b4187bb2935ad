"""``onefold simulate``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from onefold.cli.signals import ending_by

if TYPE_CHECKING:
    from onefold.simulation.campaign import Campaign, Tally
    from onefold.simulation.world import Outcome

__all__ = ["simulate"]

_SEEDS_SHOWN_MAX = 20


def simulate(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="How many seeds to run.")] = 100,
    seed: Annotated[int, typer.Option(min=0, metavar="FIRST", help="The first of them.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=16, metavar="N", help="Workers in each run. [default: as the seed says]"
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, max=100, metavar="N", help="Steps in each run. [default: as the seed says]"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes to use. [default: as many as processors]"),
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print what happens in each run.")] = False,
) -> None:
    """Try the guarantees on simulated runs in which everything that can fail does.

    Each seed is a run of its own: the real client, aggregator and ledger in virtual time, under
    lost, repeated and late messages, partitions, killed and frozen workers, server crashes at any
    write, power cuts, full disks and jumping clocks. After each event the guarantees are checked.
    One that is broken is shown with its seed and the shortest trace that was found; the same seed
    always gives the same run. Exit status 0: all held; 1: one was broken; 128 and the
    signal's number after a signal, with what the seeds until then came to.

    \b
    Example:
      onefold simulate --seeds 1000
      onefold simulate --seed 7 --seeds 1 --trace
    """  # noqa: D301 - the backspace tells typer to keep the lines as they are
    from onefold.simulation.campaign import Campaign  # noqa: PLC0415 - `onefold --help` is quick

    campaign = Campaign(seed, seeds, workers, steps)
    # A signal is noted and asked for, and interrupts nothing: neither a simulated run, whose
    # threads wait for each other, nor the ending of processes.
    signals: list[int] = []
    is_stopped = lambda: bool(signals)  # noqa: E731
    with ending_by(lambda number, _: signals.append(number)):
        if trace:
            violated = _run_traced(campaign, is_stopped)
        else:
            violated = _run(campaign, jobs or os.cpu_count() or 1, is_stopped)
    if signals:
        raise typer.Exit(128 + signals[0])
    if violated:
        raise typer.Exit(1)


def _run_traced(campaign: Campaign, is_stopped: Callable[[], bool]) -> bool:
    from onefold.simulation.campaign import Tally, traced  # noqa: PLC0415

    total = Tally()
    for seed in range(campaign.first, campaign.first + campaign.seeds):
        if is_stopped():
            break
        outcome = traced(campaign.scenario(seed), is_shrunk=False)
        _print_trace(outcome)
        total.note(outcome)
    typer.echo(f"\n{_summary(total)}")
    return bool(total.violations)


def _run(campaign: Campaign, jobs: int, is_stopped: Callable[[], bool]) -> bool:
    from onefold.simulation.campaign import Tally, traced  # noqa: PLC0415

    total = Tally()
    _add_up(campaign, jobs, total, is_stopped)
    if is_stopped():
        typer.echo("interrupted; of the seeds so far:", err=True)
    typer.echo(_summary(total))
    if not total.violations:
        return False
    first, *others = sorted(total.violations)
    typer.echo(f"\nseed {first} breaks a guarantee: {total.violations[first]}\n")
    if others:
        shown = ", ".join(map(str, others[:_SEEDS_SHOWN_MAX]))
        more = "" if len(others) <= _SEEDS_SHOWN_MAX else f" and {len(others)} in all"
        typer.echo(f"so do seeds {shown}{more}\n")
    if not is_stopped():
        typer.echo("looking for a shorter run ...", err=True)
        scenario = campaign.scenario(first)
        _print_trace(traced(scenario, is_shrunk=True, is_stopped=is_stopped))
    typer.echo(
        f"\nthe whole of it: onefold simulate --seed {first} --seeds 1{_sizes(campaign)} --trace"
    )
    return True


def _add_up(campaign: Campaign, jobs: int, total: Tally, is_stopped: Callable[[], bool]) -> None:
    """Run all seeds, with a progress bar on standard error."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Simulating", total=campaign.seeds)
        for tally in campaign.run(jobs, is_stopped):
            total.add(tally)
            broken = f", {len(total.violations)} broken" if total.violations else ""
            progress.update(task, completed=total.seeds, description=f"Simulating{broken}")


def _summary(total: Tally) -> str:
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(total.faults.items()))
    return (
        f"{total.seeds} seeds: {total.events} events, {total.steps} steps closed, "
        f"{total.seconds / 86400:.1f} days of virtual time\n"
        f"faults by kind: {faults or 'none'}\n"
        f"guarantees broken: {len(total.violations)}"
    )


def _print_trace(outcome: Outcome) -> None:
    typer.echo(f"seed {outcome.scenario.seed}: {outcome.scenario}")
    for line in outcome.trace:
        typer.echo(line)
    typer.echo(f"faults of this seed: {'; '.join(outcome.faults) or 'none'}")
    if outcome.violation is not None:
        typer.echo(f"BROKEN  {outcome.violation}")


def _sizes(campaign: Campaign) -> str:
    sizes = (("--workers", campaign.workers), ("--steps", campaign.steps))
    return "".join(f" {name} {value}" for name, value in sizes if value is not None)
