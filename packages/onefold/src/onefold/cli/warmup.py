"""``onefold warmup``: compile the kernels ahead of their first use."""

from __future__ import annotations

__all__ = ["warmup"]


def warmup() -> None:
    """Compile the kernels for this processor, so that no later run waits for it.

    The code is kept in a directory of the user ($ONEFOLD_CACHE, else ~/.cache/onefold) until
    onefold, Numba or the processor changes. What is there already is only loaded.
    """
    from rich.progress import track  # noqa: PLC0415  # quick --help

    from onefold.exact.kernels.compiled import cache_directory  # noqa: PLC0415
    from onefold.exact.warming import warm_up_steps  # noqa: PLC0415

    steps = list(warm_up_steps())
    for _, step in track(steps, description="Compiling kernels"):
        step()
    directory = cache_directory()
    where = (
        f"kept in {directory}" if directory else "not kept: no cache directory can be written to"
    )
    print(f"{len(steps)} groups of kernels compiled, {where}")  # noqa: T201  # it is a command
