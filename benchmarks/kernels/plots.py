"""Pictures of a run, as SVG that is the same for the same figures."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.kernels.results import OURS, Missing, Results, best_peer, speed

__all__ = ["draw"]


def draw(results: Results, directory: Path) -> list[tuple[str, str]]:
    """Titles and file names of the plots; none where there is no matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "onefold"
    import matplotlib.pyplot as plt  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, (title, paint) in _PLOTS.items():
        figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
        if paint(results, axes):
            axes.set_title(title)
            figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
            drawn.append((title, f"{directory.name}/{name}.svg"))
        plt.close(figure)
    return drawn


def _threads(results: Results, axes: Any) -> bool:
    cases = list(results.cases("threads"))
    for case in cases:
        counts = [int(count) for count in case["outcomes"]]
        speeds = [speed(case, count) for count in case["outcomes"]]
        axes.plot(counts, [each / speeds[0] for each in speeds], "o-", label=case["name"])
        axes.set_xticks(counts)
    if cases:
        axes.plot(counts, counts, "k:", label="ideal")
        axes.set(xlabel="threads", ylabel="times the speed of one thread", ylim=(0, None))
        axes.legend()
    return bool(cases)


def _growth(results: Results, axes: Any) -> bool:
    curves: dict[str, list[tuple[float, float]]] = {}
    for case in results.cases("growth"):
        for name, outcome in case["outcomes"].items():
            if outcome["seconds"] is not None:
                label = f"{name} ({case['name'].split(',')[0]})"
                curves.setdefault(label, []).append((case["amount"], speed(case, name)))
    for label, points in curves.items():
        axes.loglog(*zip(*points, strict=True), "o-" if label.startswith(OURS) else "s--")
    if curves:
        axes.legend(list(curves))
        axes.set(xlabel="values", ylabel="ns a value")
    return bool(curves)


def _distributions(results: Results, axes: Any) -> bool:
    cases = list(results.cases("sparse"))[::-1]
    places = range(len(cases))
    peers = []
    for case in cases:
        try:
            peers.append(speed(case, best_peer(case)))
        except Missing:
            peers.append(0.0)
    mine = [speed(case, OURS) for case in cases]
    axes.barh([place + 0.2 for place in places], mine, 0.4, label=OURS)
    axes.barh([place - 0.2 for place in places], peers, 0.4, label="best grouping peer")
    axes.set_yticks(list(places), [case["name"] for case in cases])
    axes.set(xlabel="million entries a second")
    axes.legend()
    return bool(cases)


_PLOTS: dict[str, tuple[str, Callable[[Results, Any], bool]]] = {
    "threads": ("Speed by number of threads", _threads),
    "growth": ("Time by number of values", _growth),
    "distributions": ("Sparse sums, by how keys lie", _distributions),
}
