"""One training step of eight local workers with a model of 1 MiB, and a round of Flower's."""

from __future__ import annotations

import json
import multiprocessing
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np

from benchmarks.processes import serve
from benchmarks.server.turns import Scale
from onefold import connect

__all__ = ["flower", "training"]

_WORKERS = 8
_ELEMENTS = (1 << 20) // 4
_WARM_UP_STEPS = 3
_FLOWER = Path(__file__).with_name("flower.py")


def training(directory: Path, scale: Scale) -> float:
    """Seconds from one aggregate to the next, where workers have nothing else to do; a median."""
    names = [f"w{index}" for index in range(_WORKERS)]
    context = multiprocessing.get_context("spawn")
    steps = scale.training_steps + _WARM_UP_STEPS
    options = ("--roster", ",".join(names), "--keep-steps", "2", "--operation", "mean")
    with serve(directory / "training", *options) as served:
        ends = context.Array("d", steps)
        processes = [
            context.Process(target=_train, args=(served.address, name, steps, ends))
            for name in names
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError("a worker failed; what it said is above")
    return statistics.median(np.diff(np.array(ends)).tolist()[_WARM_UP_STEPS - 1 :])


def _train(address, name, steps, ends) -> None:  # type: ignore[no-untyped-def]
    """In a process of its own: a model that moves by the mean of what the workers push."""
    update = np.full(_ELEMENTS, 0.5, np.float32)
    with connect(address, name) as client:
        for step in range(steps):
            update = client.reduce(step, {"w": update * np.float32(0.5)}).tensors["w"]
            with ends.get_lock():
                ends[step] = max(ends[step], time.monotonic())


def flower(python: str, scale: Scale) -> tuple[float, str]:
    """Seconds of a round of Flower's, the median, and its version; ``python`` has flwr."""
    rounds = scale.training_steps // 2 + _WARM_UP_STEPS
    command = [python, str(_FLOWER), str(rounds), str(_WORKERS), str(_ELEMENTS)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return statistics.median(told["seconds"][_WARM_UP_STEPS - 1 :]), told["version"]
