# ruff: noqa: T201  # a program for people
"""Feed hostile input to whatever parses, guided by which code it reaches, for as long as asked.

Run it with ``make fuzz`` or ``python tests/hostile/fuzz.py --seconds 600``. Each target runs in a
process of its own for its share of the time; inputs are counted by the fuzzer (Atheris, which is
libFuzzer) and, for the running server, by the program that attacks it. What breaks a promise, takes
more than twenty seconds or more than two gigabytes is kept in a directory, with how to see it
again, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
MODULES = ("onefold_targets", "failuremap_targets")
SERVER = "server"
INPUT_BYTES_MAX = 1 << 12
UNITS = re.compile(r"number_of_executed_units:\s*(\d+)")


@dataclass(frozen=True)
class Result:
    """What one target's process did."""

    name: str
    inputs: int
    seconds: float
    failed: bool
    log: Path


def loaded(*, instrument: bool) -> dict[str, object]:
    """The targets by name; instrumented, they tell Atheris which of their code an input reaches."""
    if not instrument:
        modules = [__import__(name) for name in MODULES]
    else:
        import atheris

        read = ["onefold", "failuremap", "onefold_targets", "failuremap_targets"]
        read += ["tomllib", "zipfile", "fractions", "json"]
        # What Numba compiles it must find as it was written.
        with atheris.instrument_imports(include=read, exclude=["onefold.exact.kernels"]):
            modules = [__import__(name) for name in MODULES]
    return {target.name: target for module in modules for target in module.TARGETS}


def run_one(name: str, seconds: float, keep: Path) -> None:
    """Fuzz a target in this process, which ends with it."""
    import atheris

    target = loaded(instrument=True)[name]
    target.prepare()
    corpus = keep / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for index, seed in enumerate(target.seeds):
        (corpus / f"seed-{index}").write_bytes(seed)

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.75:  # several times as quick
            return atheris.Mutate(data, size_max)
        return target.mutate(data, rng)[:size_max]

    options = {
        "max_total_time": max(1, int(seconds)),
        "artifact_prefix": f"{keep / name}-",
        "max_len": max(INPUT_BYTES_MAX, *map(len, target.seeds)),
        "timeout": 20,
        "rss_limit_mb": 2048,
        "print_final_stats": 1,
        "detect_leaks": 0,
    }
    arguments = [f"-{key}={value}" for key, value in options.items()]
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], target, custom_mutator=mutate)
    atheris.Fuzz()


def run_child(name: str, seconds: float, keep: Path) -> Result:
    """Run a target, or the attack on a server, in another process and read what it says."""
    log = keep / f"{name}.log"
    program = [str(HERE / "attack.py")] if name == SERVER else [__file__, "--child", name]
    start = time.monotonic()
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, *program, "--seconds", str(seconds), "--keep", str(keep)],
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    counted = UNITS.findall(log.read_text(errors="replace"))
    inputs = int(counted[-1]) if counted else 0
    failed = done.returncode != 0 or not inputs
    return Result(name, inputs, time.monotonic() - start, failed, log)


def again(name: str, file: Path) -> int:
    """Read one input once, without any fuzzer around it."""
    loaded(instrument=False)[name](file.read_bytes())  # type: ignore[operator]
    print(f"{file}: read or refused, as it should be")
    return 0


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600, help="for all (default: 3600)")
    parser.add_argument("--target", action="append", help="only this one; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once (default: 1)")
    parser.add_argument("--keep", type=Path, help="where findings and inputs are kept")
    parser.add_argument("--again", type=Path, metavar="FILE", help="only read this one input")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run all targets; the exit status."""
    asked = arguments()
    if asked.child:
        run_one(asked.child, asked.seconds, asked.keep)
    if asked.again:
        return again((asked.target or ["?"])[0], asked.again)
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="hostile-"))
    keep.mkdir(parents=True, exist_ok=True)
    shares = {name: target.share for name, target in loaded(instrument=False).items()}
    shares[SERVER] = 3.0
    names = asked.target or list(shares)
    if unknown := set(names) - shares.keys():
        print(f"no target {', '.join(sorted(unknown))}; there are {', '.join(shares)}")
        return 2
    each = asked.seconds * asked.jobs / sum(shares[name] for name in names)
    print(f"{len(names)} targets for {asked.seconds:.0f} s; all is kept in {keep}", flush=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        running = [pool.submit(run_child, name, each * shares[name], keep) for name in names]
        results = [told(future.result(), keep) for future in running]
    total, took = sum(r.inputs for r in results), sum(r.seconds for r in results)
    found = [result.name for result in results if result.failed]
    print(f"{total:12,}  in all, {took:.0f} s, {', '.join(found) or 'nothing'} found")
    return 1 if found else 0


def told(result: Result, keep: Path) -> Result:
    """Print the line of a target, and how to see again what it found."""
    rate = result.inputs / result.seconds
    print(f"{result.inputs:12,}  {result.name}, {rate:,.0f} a second", flush=True)
    if result.failed:
        print(f"FOUND by {result.name}: see {result.log}")
        for file in sorted(keep.glob(f"{result.name}-*")):
            print(f"  again: python {__file__} --target {result.name} --again {file}")
    return result


if __name__ == "__main__":
    sys.exit(main())
