"""The progress bar and the table of ``onefold run``."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from onefold.launch import report
from onefold.launch.plan import Job
from onefold.launch.process import Stream, ending_text

__all__ = ["Display", "byte_text", "table_of"]


class Display:
    """Shows on a terminal what goes on; a :class:`~onefold.launch.Watcher`.

    Args:
        console: Where to.
        job: What is being run.
        verbose: Show everything that the processes write, not only what workers print.
    """

    def __init__(self, console: Console, job: Job, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._console = console
        self._bar = Progress(
            TextColumn("steps"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:.0f}" + (f"/{job.steps}" if job.steps else "")),
            TimeElapsedColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("steps", total=job.steps)
        self._counts = Text("", "dim")
        self._live = Live(Group(self._bar, self._counts), console=console)

    def progress(self, progress: report.Progress) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=progress.closed_steps)
        self._counts.plain = "\n".join((_counts_text(progress), *progress.stuck))

    def line(self, name: str, text: str, stream: Stream) -> None:
        """Show a line that a worker printed, above the bar; of the rest only if asked to."""
        if self._verbose or (stream == "out" and name != "server"):
            self._console.print(Text.assemble((f"{name}: ", "cyan"), text), soft_wrap=True)

    def event(self, text: str) -> None:
        """Show a kill or a restart."""
        self._console.print(Text(text, "yellow"))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()
        if not self._console.is_terminal:  # there the bar has ended its line itself
            self._console.line()


def _counts_text(progress: report.Progress) -> str:
    receipts = progress.receipts
    return (
        f"{_pushes(receipts)} pushes, {receipts.get('duplicate', 0)} repeats, "
        f"{receipts.get('replaced', 0)} replaced, {receipts.get('superseded', 0)} superseded, "
        f"{byte_text(progress.received_bytes)}"
    )


def _pushes(receipts: dict[str, int]) -> int:
    return sum(receipts.values())


def byte_text(count: int) -> str:
    """A number of bytes as people read it."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def table_of(job_report: report.Report) -> Table:
    """What happened, as a table."""
    table = Table(title="What happened", show_header=False, title_justify="left")
    table.add_column("what")
    table.add_column("how much", justify="right")
    progress = job_report.progress
    table.add_row("steps closed", str(progress.closed_steps))
    table.add_row("seconds", f"{job_report.seconds:.1f}")
    table.add_row("bytes of updates received", byte_text(progress.received_bytes), end_section=True)
    for status, count in sorted(progress.receipts.items()):
        table.add_row(f"pushes {status}", str(count))
    table.add_section()
    for name, count in _traffic_rows(job_report):
        table.add_row(name, str(count))
    table.add_section()
    for target in ("worker", "server"):
        kills = sum(kill.target == target for kill in job_report.kills)
        table.add_row(f"{target} kills", str(kills))
    for name, worker in job_report.workers.items():
        table.add_row(f"worker {name}", f"{_fate_text(worker)}, started {_times(worker.starts)}")
    return table


def _fate_text(worker: report.WorkerReport) -> str:
    if worker.exit_status == 0:
        return "finished"
    if worker.stopped:
        return "stopped"
    return "never started" if worker.exit_status is None else ending_text(worker.exit_status)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _traffic_rows(job_report: report.Report) -> list[tuple[str, int]]:
    traffic = job_report.traffic
    if traffic is None:
        return []
    return [
        ("calls", traffic.calls),
        ("calls repeated", traffic.repeated),
        ("calls lost", traffic.lost),
        ("answers lost", traffic.replies_lost),
        ("calls delayed", traffic.delayed),
        ("calls reordered", traffic.reordered),
        ("calls that found no server", traffic.unavailable),
    ]
