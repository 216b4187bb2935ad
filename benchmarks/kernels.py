"""The kernels beside their peers, in one run: tables into this directory.

    python benchmarks/kernels.py [--elements 4000000] [--entries 250000] [--repeats 5]

Peers that are not installed (torch, pandas) are left out. Every figure is the median of interleaved
repeats after one call to warm up; machines are shared, so read the ratios. The targets are stated
for 16 million elements and a million entries a part (``--elements 16000000 --entries 1000000``).
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np

import onefold
from onefold import Sparse
from onefold.exact.pool import thread_count

HERE = Path(__file__).parent
SEED = 7
Call = Callable[[], object]


def measured(calls: dict[str, Call], repeats: int) -> dict[str, float]:
    """The median seconds of each call, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def chain(arrays: list[np.ndarray]) -> np.ndarray:
    """What one writes without a library: add, array after array, rounding each time."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def torch_peers(arrays: list[np.ndarray]) -> dict[str, Call]:
    """``torch.sum`` of a stacked tensor and a chain of ``add_``, if torch is there."""
    if importlib.util.find_spec("torch") is None or arrays[0].dtype == ml_dtypes.bfloat16:
        return {}
    import torch  # noqa: PLC0415

    torch.set_num_threads(thread_count())
    tensors = [torch.from_numpy(array) for array in arrays]
    stacked = torch.stack(tensors)

    def add_chain() -> object:
        total = tensors[0].clone()
        for tensor in tensors[1:]:
            total.add_(tensor)
        return total

    return {"torch.sum, stacked": lambda: torch.sum(stacked, 0), "torch add_": add_chain}


def dense_rows(elements: int, repeats: int) -> list[list[str]]:
    """Sums and means of eight arrays, in GB/s of input."""
    rng = np.random.default_rng(SEED)
    rows = []
    cases = [
        ("float32", "sum", None, 0),
        ("float32", "mean", None, 0),
        ("float32", "weighted mean", [3, 5, 7, 11, 13, 17, 19, 23], 0),
        ("float64", "sum", None, 0),
        ("float64", "mean", None, 0),
        ("float16", "sum", None, 0),
        ("bfloat16", "sum", None, 0),
        ("int32", "sum", None, 0),
        ("int64", "sum", None, 0),
        ("float32", "sum, values times 2**±20", None, 20),
        ("float32", "sum, full range", None, 120),
        ("float64", "sum, full range", None, 1000),
    ]
    for name, what, weights, spread in cases:
        dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        size = elements if spread < 100 else elements // 20
        arrays = [_values(rng, size, dtype, spread) for _ in range(8)]
        out = np.empty(size, dtype)
        if what.startswith("sum"):
            calls: dict[str, Call] = {
                "1 thread": lambda a=arrays, o=out: onefold.sum_dense(a, o, threads=1),
                "all": lambda a=arrays, o=out: onefold.sum_dense(a, o),
            }
        else:
            calls = {
                "1 thread": lambda a=arrays, w=weights, o=out: onefold.mean_dense(
                    a, w, o, threads=1
                ),
                "all": lambda a=arrays, w=weights, o=out: onefold.mean_dense(a, w, o),
            }
        calls["NumPy chain"] = lambda a=arrays: chain(a)
        calls |= torch_peers(arrays)
        with np.errstate(all="ignore"):
            seconds = measured(calls, repeats)
        size_gb = 8 * arrays[0].nbytes / 1e9
        best = min(seconds[peer] for peer in calls if peer not in ("1 thread", "all"))
        speeds = [f"{size_gb / seconds[call]:.2f}" for call in ("1 thread", "all", "NumPy chain")]
        torch = [f"{size_gb / seconds[call]:.2f}" for call in calls if "torch" in call] or ["–"]
        rows.append([f"{name} {what}", *speeds, " / ".join(torch), f"{best / seconds['all']:.2f}x"])
    return rows


def _values(rng: np.random.Generator, size: int, dtype: np.dtype, spread: int) -> np.ndarray:
    if dtype.kind in "iu":
        return rng.integers(-(2**20), 2**20, size).astype(dtype)
    values = rng.standard_normal(size)
    if spread:
        values = values * 2.0 ** rng.integers(-spread, spread + 1, size)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def sparse_rows(entries: int, repeats: int) -> list[list[str]]:
    """Sums of 16 parts, in million entries a second."""
    rng = np.random.default_rng(SEED)
    pool = rng.integers(-(2**63), 2**63 - 1, 2 * entries)
    cases: dict[str, Callable[[], np.ndarray]] = {
        "uniform in 10 x entries": lambda: rng.integers(0, 10 * entries, entries),
        "uniform in 100 x entries": lambda: rng.integers(0, 100 * entries, entries),
        "hashed, unique": lambda: rng.integers(-(2**63), 2**63 - 1, entries),
        "hashed, repeated": lambda: rng.choice(pool, entries),
        "zipf 1.1": lambda: np.minimum(rng.zipf(1.1, entries), 2**60),
        "1000 clusters": lambda: (
            (rng.integers(0, 1000, entries) << 50) + rng.integers(0, 1000, entries)
        ),
        "two far outliers": lambda: np.append(
            rng.integers(0, 10 * entries, entries - 2), [2**62, -(2**62)]
        ),
        "all equal": lambda: np.full(entries, 7),
    }
    rows = []
    for name, keys in cases.items():
        parts = [Sparse(keys(), rng.standard_normal(entries).astype(np.float32)) for _ in range(16)]
        coordinates = np.concatenate([part.coordinates for part in parts])
        values = np.concatenate([part.values for part in parts])
        calls: dict[str, Call] = {
            "1 thread": lambda p=parts: onefold.sum_sparse(p, threads=1),
            "all": lambda p=parts: onefold.sum_sparse(p),
            "np.unique": lambda c=coordinates, v=values: np.bincount(
                np.unique(c, return_inverse=True)[1], v
            ),
        }
        if importlib.util.find_spec("torch") is not None:
            import torch  # noqa: PLC0415

            if coordinates.min() >= 0:
                indices = torch.from_numpy(coordinates)[None]
                size = (int(coordinates.max()) + 1,)
                numbers = torch.from_numpy(values)
                calls["torch coalesce"] = lambda i=indices, v=numbers, s=size: (
                    torch.sparse_coo_tensor(i, v, s).coalesce()
                )
        seconds = measured(calls, repeats)
        millions = coordinates.size / 1e6
        peers = {
            peer: millions / s for peer, s in seconds.items() if peer not in ("1 thread", "all")
        }
        rows.append(
            [
                name,
                f"{millions / seconds['1 thread']:.1f}",
                f"{millions / seconds['all']:.1f}",
                ", ".join(f"{peer} {speed:.1f}" for peer, speed in peers.items()),
                f"{millions / seconds['all'] / max(peers.values()):.1f}x",
            ]
        )
    return rows


def row_rows(entries: int, repeats: int) -> list[list[str]]:
    """Sums of rows, some eight to a coordinate, in GB/s of values."""
    rng = np.random.default_rng(SEED)
    rows = []
    for dim in (8, 64, 128, 256):
        size = max(64, entries // dim)
        parts = [
            Sparse(
                rng.integers(0, 2 * size, size),
                rng.standard_normal((size, dim)).astype(np.float32),
            )
            for _ in range(16)
        ]
        dense = np.zeros((2 * size, dim), np.float32)

        def scatter(parts: list[Sparse] = parts, dense: np.ndarray = dense) -> None:
            for part in parts:
                np.add.at(dense, part.coordinates, part.values)

        seconds = measured(
            {
                "1 thread": lambda p=parts: onefold.sum_sparse(p, threads=1),
                "all": lambda p=parts: onefold.sum_sparse(p),
                "np.add.at (dense, inexact)": scatter,
            },
            repeats,
        )
        gigabytes = 16 * size * dim * 4 / 1e9
        rows.append([f"dim {dim}", *(f"{gigabytes / s:.2f}" for s in seconds.values())])
    return rows


def growth(elements: int, repeats: int) -> tuple[list[int], list[float]]:
    """Seconds of a float32 sum of eight arrays, from 1000 values up."""
    rng = np.random.default_rng(SEED)
    sizes = [10**power for power in range(3, int(math.log10(elements)) + 1)]
    seconds = []
    for size in sizes:
        arrays = [rng.standard_normal(size).astype(np.float32) for _ in range(8)]
        seconds.append(measured({"sum": lambda a=arrays: onefold.sum_dense(a)}, repeats)["sum"])
    return sizes, seconds


def start_rows() -> list[list[str]]:
    """Imports and first calls in processes of their own, and the smallest call."""
    rows = []
    for what, code in {
        "import onefold": "import onefold",
        "first sum, compiled before": "import numpy as np, onefold\n"
        "onefold.sum_dense([np.ones(100, np.float32)] * 8)",
    }.items():
        command = [sys.executable, "-c", code]
        seconds = measured({what: lambda c=command: subprocess.run(c, check=True)}, 3)[what]
        rows.append([what, f"{seconds * 1e3:.0f} ms"])
    arrays = [np.ones(100, np.float32)] * 8
    tiny = measured({"tiny": lambda: onefold.sum_dense(arrays)}, 200)["tiny"]
    return [*rows, ["a sum of eight arrays of 100", f"{tiny * 1e6:.0f} µs"]]


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def plot(sizes: list[int], seconds: list[float]) -> str:
    """Growth as a picture, if matplotlib is there."""
    if importlib.util.find_spec("matplotlib") is None:
        return ""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6, 4))
    axes.loglog(sizes, [s / n / 8 * 1e9 for s, n in zip(seconds, sizes, strict=True)], "o-")
    axes.set(xlabel="elements", ylabel="ns per value", title="float32 sum of 8 arrays")
    figure.savefig(HERE / "kernels-growth.svg")
    return "![growth](kernels-growth.svg)\n"


def main() -> None:
    """Measure everything and write ``kernels.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=4_000_000)
    parser.add_argument("--entries", type=int, default=250_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    dense = dense_rows(arguments.elements, arguments.repeats)
    sparse = sparse_rows(arguments.entries, arguments.repeats)
    rows = row_rows(arguments.entries, arguments.repeats)
    sizes, seconds = growth(arguments.elements, arguments.repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    machine = (
        f"`python {' '.join(sys.argv)}` on {platform.processor() or platform.machine()}, "
        f"{thread_count()} threads, Python {platform.python_version()}, NumPy {np.__version__}; "
        f"load before: {load}. Peak memory of the whole run: {peak:.2f} GiB.\n"
    )
    text = "\n".join(
        [
            "# Kernels\n",
            machine,
            "## Dense: eight arrays, GB/s of input\n",
            table(["work", "1 thread", "all", "NumPy chain", "torch", "against the best"], dense),
            "## Sparse: 16 parts of float32, million entries/s\n",
            table(["coordinates", "1 thread", "all", "peers", "against the best"], sparse),
            "## Rows: 16 parts of float32, GB/s of values\n",
            table(["rows", "1 thread", "all", "np.add.at (dense, inexact)"], rows),
            "## Small calls\n",
            table(["what", "time"], start_rows()),
            "## Growth\n",
            table(
                ["elements", "seconds"],
                [[f"{n}", f"{s:.6f}"] for n, s in zip(sizes, seconds, strict=True)],
            ),
            plot(sizes, seconds),
        ]
    )
    (HERE / "kernels.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
