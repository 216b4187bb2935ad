"""The targets, row by row, and what a run has to say to each.

A row is met only if everything that it speaks of is: the worst of several figures counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.kernels.adversarial import USUAL
from benchmarks.kernels.results import (
    OURS,
    SINGLE,
    Missing,
    Results,
    best_peer,
    number,
    seconds,
    speed,
    times_best,
)

__all__ = ["TARGETS", "Target", "Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured, in words, and whether that is enough; None if it was not measured."""

    measured: str
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table of targets."""

    work: str
    goal: str
    judge: Callable[[Results], Verdict]


def judge(target: Target, results: Results) -> Verdict:
    """The verdict; what was not measured has none."""
    try:
        return target.judge(results)
    except Missing:
        return Verdict("not measured", None)


_WIDE = [
    "float32 sum, W=8",
    "float32 mean, W=8",
    "float32 sum, W=64",
    "float32 mean, W=64",
]


def _against_best(names: list[str], least: float) -> Callable[[Results], Verdict]:
    def verdict(results: Results) -> Verdict:
        cases = [results.case("dense", name) for name in names]
        ratios = [times_best(case) for case in cases]
        texts = [
            f"{number(ratio)}x {best_peer(case)} ({name})"
            for name, case, ratio in zip(names, cases, ratios, strict=True)
        ]
        return Verdict("; ".join(texts), min(ratios) >= least)

    return verdict


def _share_of_bandwidth(results: Results) -> Verdict:
    cases = [results.case("dense", name) for name in _WIDE]
    shares = [speed(case, OURS) / speed(case, "read bandwidth") for case in cases]
    texts = [f"{number(share)} ({name})" for name, share in zip(_WIDE, shares, strict=True)]
    return Verdict("; ".join(texts), min(shares) >= 0.75)


def _weighted(results: Results) -> Verdict:
    case = results.case("dense", "float32 weighted mean, W=8")
    own, ratio = speed(case, OURS), times_best(case, "Flower's formula")
    text = f"{number(own)} GB/s, {number(ratio)}x Flower's formula"
    return Verdict(text, own >= 16 and ratio >= 8)


def _integers(results: Results) -> Verdict:
    narrow, wide = (results.case("dense", f"{name} sum, W=8") for name in ("int32", "int64"))
    own = times_best(narrow, "torch.sum to int64")
    same = times_best(narrow, "torch.sum, stacked")
    other = times_best(wide, "torch.sum, stacked")
    text = (
        f"int32 {number(own)}x torch.sum as it is, which widens to int64 "
        f"({number(same)}x if told not to); int64 {number(other)}x"
    )
    return Verdict(text, own >= 10 and other >= 1.37)


def _adversarial(results: Results) -> Verdict:
    slowest, texts = 0.0, []
    for name in ("dense float32, W=8", "dense float64, W=8"):
        case = results.case("adversarial", name)
        factors = {
            kind: seconds(case, kind) / seconds(case, USUAL)
            for kind in case["outcomes"]
            if kind != USUAL
        }
        worst = max(factors, key=lambda kind: factors[kind])
        slowest = max(slowest, factors[worst])
        texts.append(f"{name}: {number(factors[worst])}x slower ({worst})")
    return Verdict("; ".join(texts), slowest <= 15)


def _uniform(results: Results) -> Verdict:
    case = results.case("sparse", "uniform in 10M")
    own, ratio = speed(case, OURS), times_best(case, "torch coalesce")
    text = f"{number(own)} M nnz/s, {number(ratio)}x torch coalesce"
    return Verdict(text, own >= 200 and ratio >= 25)


def _hashed(results: Results) -> Verdict:
    names = ("hashed 64-bit, unique", "hashed 64-bit, 2M distinct")
    own = [speed(results.case("sparse", name), OURS) for name in names]
    texts = [f"{number(each)} ({name})" for name, each in zip(names, own, strict=True)]
    return Verdict("; ".join(texts), min(own) >= 120)


def _any_distribution(results: Results) -> Verdict:
    cases = results.all_cases("sparse")
    slowest = min(cases, key=lambda case: speed(case, OURS))
    stuck = min(cases, key=lambda case: times_best(case, SINGLE))
    own, gain = speed(slowest, OURS), times_best(stuck, SINGLE)
    text = (
        f"at least {number(own)} M nnz/s ({slowest['name']}), "
        f"at least {number(gain)}x one thread ({stuck['name']})"
    )
    return Verdict(text, own >= 60 and gain > 1)


def _rows(goals: dict[int, float]) -> Callable[[Results], Verdict]:
    def verdict(results: Results) -> Verdict:
        own = {dim: speed(results.case("rows", f"dim {dim}"), OURS) for dim in goals}
        text = " / ".join(number(each) for each in own.values())
        return Verdict(f"{text} GB/s", all(own[dim] >= goal for dim, goal in goals.items()))

    return verdict


def _memory(results: Results) -> Verdict:
    cases = results.all_cases("memory")
    ratios = {case["name"]: case["facts"]["extra"] / case["facts"]["input"] for case in cases}
    worst = max(ratios, key=lambda name: ratios[name])
    text = f"{number(min(ratios.values()))} to {number(ratios[worst])}x ({worst})"
    return Verdict(text, ratios[worst] <= 2)


def _tiny(results: Results) -> Verdict:
    own = {case["name"]: speed(case, OURS) for case in results.all_cases("tiny")}
    text = "; ".join(f"{number(each)} µs ({name})" for name, each in own.items())
    return Verdict(text, max(own.values()) <= 50)


def _start(fact: str, most: float) -> Callable[[Results], Verdict]:
    def verdict(results: Results) -> Verdict:
        cases = results.all_cases("start")
        worst = max(cases, key=lambda case: case["facts"][fact])
        taken = worst["facts"][fact]
        return Verdict(f"at most {taken:.3f} s ({worst['name']})", taken <= most)

    return verdict


TARGETS = (
    Target(
        "dense float32 sum and mean, W = 8 and 64",
        "≥ 1.0x the best peer",
        _against_best(_WIDE, 1.0),
    ),
    Target(
        "dense float32 sum and mean, W = 8 and 64", "≥ 0.75 of read bandwidth", _share_of_bandwidth
    ),
    Target("dense float64", "≥ 0.9x the best peer", _against_best(["float64 sum, W=8"], 0.9)),
    Target("dense bfloat16", "≥ 1.0x the best peer", _against_best(["bfloat16 sum, W=8"], 1.0)),
    Target("dense float16", "≥ 1.1x the best peer", _against_best(["float16 sum, W=8"], 1.1)),
    Target("weighted mean float32, W = 8", "≥ 16 GB/s, ≥ 8x Flower", _weighted),
    Target("int32, int64 with overflow check", "≥ 10x / 1.37x torch", _integers),
    Target("dense, adversarial", "≤ 15x slower than usual", _adversarial),
    Target("sparse scalars, uniform in 10M", "≥ 200 M nnz/s, ≥ 25x torch coalesce", _uniform),
    Target("sparse scalars, hashed 64-bit ids", "≥ 120 M nnz/s", _hashed),
    Target(
        "sparse scalars, any distribution",
        "≥ 60 M nnz/s, faster on all threads than on one",
        _any_distribution,
    ),
    Target("sparse rows, dim 64 / 128 / 256", "≥ 7 / 9 / 12 GB/s", _rows({64: 7, 128: 9, 256: 12})),
    Target("sparse rows, dim 8", "≥ 2.5 GB/s", _rows({8: 2.5})),
    Target("extra memory, output included", "≤ 2x input", _memory),
    Target("a tiny call (100 values)", "≤ 50 µs", _tiny),
    Target("`import onefold`", "≤ 0.15 s", _start("import", 0.15)),
    Target("import and first warm-cache call", "≤ 0.5 s", _start("import and first call", 0.5)),
)
