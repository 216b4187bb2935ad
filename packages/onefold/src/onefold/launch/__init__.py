"""Run workers beside a server: start, watch, kill, restart, and tell what happened.

:func:`run_job` starts ``onefold serve`` and the worker processes, puts a misbehaving
:class:`~onefold.faults.Proxy` between them if that is asked for, kills processes at moments that a
seed decides, starts again whatever died, and ends with a :class:`Report`. Whatever happens in
between, no child outlives it: where it is killed itself, its :mod:`~onefold.launch.guard` sees to
that.
"""

from __future__ import annotations

from onefold.launch.job import Interrupted, run_job
from onefold.launch.plan import Job, Kill, planned_kills, worker_environment
from onefold.launch.report import Report, Watcher, WorkerReport

__all__ = [
    "Interrupted",
    "Job",
    "Kill",
    "Report",
    "Watcher",
    "WorkerReport",
    "planned_kills",
    "run_job",
    "worker_environment",
]
