"""How much memory a call takes beyond its inputs, its output included.

Each kind is measured in a process of its own, which first makes a small call of the same kind: what
code and libraries take is not counted.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import onefold
from benchmarks.kernels.data import DISTRIBUTIONS, PARTS, SEED, dense_values, parts_of
from benchmarks.kernels.measure import Case
from benchmarks.kernels.rows import row_parts
from benchmarks.kernels.scale import Scale
from benchmarks.machine import say
from onefold import Sparse

__all__ = ["measure_memory", "memory"]

_POLL_SECONDS = 0.001
_ENTRY_BYTES = 12
"""A coordinate and a float32."""


def _dense(name: str) -> Callable[[int], list[np.ndarray]]:
    dtype = np.dtype(name)

    def make(size: int) -> list[np.ndarray]:
        rng = np.random.default_rng(SEED)
        return [dense_values(rng, size // dtype.itemsize // 8, dtype) for _ in range(8)]

    return make


def _sparse(number: int) -> Callable[[int], list[Sparse]]:
    return lambda size: parts_of(DISTRIBUTIONS[number], size // _ENTRY_BYTES // PARTS)


KINDS: dict[str, tuple[Callable[[int], list], Callable[[list], object]]] = {
    "dense float32 sum, W=8": (_dense("float32"), onefold.sum_dense),
    "dense float64 sum, W=8": (_dense("float64"), onefold.sum_dense),
    "dense float32 weighted mean, W=8": (
        _dense("float32"),
        lambda arrays: onefold.mean_dense(arrays, range(1, 9)),
    ),
    **{
        f"sparse, {distribution.name}": (_sparse(number), onefold.sum_sparse)
        for number, distribution in enumerate(DISTRIBUTIONS)
    },
    "rows, dim 8": (lambda size: row_parts(8, size), onefold.sum_sparse),
    "rows, dim 64": (lambda size: row_parts(64, size), onefold.sum_sparse),
    "rows, dim 64, nearly unique": (
        lambda size: row_parts(64, size, keys_per_row=8),
        onefold.sum_sparse,
    ),
}


def memory(scale: Scale) -> Iterator[Case]:
    """Every kind, in a process of its own."""
    for kind in KINDS:
        say(f"memory: {kind}")
        code = (
            "import json; from benchmarks.kernels.memory import measure_memory; "
            f"print(json.dumps(measure_memory({kind!r}, {scale.memory_bytes})))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
        )
        facts = json.loads(done.stdout)
        yield Case("memory", kind, facts["input"], "x input", facts=facts)


def measure_memory(kind: str, size: int) -> dict[str, int | str]:
    """Bytes of input, and by how much memory grew at most while it was summed."""
    make, call = KINDS[kind]
    call(make(1 << 16))
    given = make(size)
    _give_back_freed()
    before = _status("VmRSS")
    can_reset = _reset_peak()
    with _Polled() as polled:
        result = call(given)
    peak = max(_status("VmHWM") if can_reset else 0, polled.peak)
    output = result.values.nbytes if isinstance(result, Sparse) else result.nbytes
    return {
        "input": sum(_bytes(each) for each in given),
        "extra": max(0, peak - before),
        "output": output + (result.coordinates.nbytes if isinstance(result, Sparse) else 0),
        "how": "VmHWM, reset before the call" if can_reset else "VmRSS, polled",
    }


def _bytes(given: np.ndarray | Sparse) -> int:
    if isinstance(given, Sparse):
        return given.coordinates.nbytes + given.values.nbytes
    return given.nbytes


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


def _give_back_freed() -> None:
    """What the C library keeps of freed memory would be used again, and so not be seen to grow."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _reset_peak() -> bool:
    """Have the kernel forget the highest use so far; not every system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return _status("VmHWM") < _status("VmRSS") + (1 << 20)


class _Polled:
    """Look at the memory in use again and again, on a thread of its own."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> _Polled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            self.peak = max(self.peak, _status("VmRSS"))
