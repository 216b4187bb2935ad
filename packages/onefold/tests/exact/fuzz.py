# ruff: noqa: T201  # a program for people
"""Sum hostile numbers for as long as asked and compare every bit with exact integers.

Run it with ``make fuzz-exact`` or ``python packages/onefold/tests/exact/fuzz.py --seconds 60``.
Each round has a seed of its own, which together with ``--rounds 1`` gives that round again. A
round sums and averages the adversaries of one dtype, dense, by coordinate or as a tree of partial
sums, and again in another order and on another number of threads. The first mismatch is printed
with its addends, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import adversaries  # noqa: E402  # the folders above are no packages
import quick_oracle  # noqa: E402
from oracle import DTYPES, FORMATS, bits_of  # noqa: E402
from test_adversaries import expected_sparse, fitting, in_a_tree  # noqa: E402

import onefold  # noqa: E402
from onefold import ExactPartial, Sparse  # noqa: E402
from onefold.exact import sparse_numbers  # noqa: E402

sparse_numbers._FEW_ENTRIES, sparse_numbers._THREAD_ENTRIES = 500, 1
"""Of the sizes here some are then above and some below, and threads are as many as are told."""
THREADS = (1, 2, 3, 5, 8)
WIDTH = 2500
"""About how many elements a round checks at once."""


class Wrong(Exception):
    """Bits that differ; the message has all that is needed to see it again."""


def _hex(array: np.ndarray) -> list[str]:
    return [f"0x{int(bits):x}" for bits in bits_of(array)]


def compare(got: np.ndarray, expected: np.ndarray, addends: np.ndarray, note: str) -> int:
    """The number of elements, all of whose bits agree; ``addends`` are (workers, elements)."""
    if got.dtype != expected.dtype or got.size != expected.size:
        raise Wrong(f"{note}: {got.dtype}[{got.size}], not {expected.dtype}[{expected.size}]")
    where = np.flatnonzero(bits_of(got) != bits_of(expected))
    if where.size:
        at = int(where[0])
        raise Wrong(
            f"{note}: {where.size} of {got.size} elements differ, the first is {at}\n"
            f"  addends  {_hex(addends[:, at])}\n"
            f"  got      {_hex(got)[at]}\n  expected {_hex(expected)[at]}"
        )
    return got.size


def dense_round(name: str, rng: Random, done: Counter[str]) -> None:
    """Sum, mean and weighted mean; in order, shuffled, and on several numbers of threads."""
    count = rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, rng.randint(1, 40), rng.choice([64, 300])])
    weights = adversaries.some_weights(count, rng)
    each = max(1, WIDTH // count // len(adversaries.kinds_of(name)))
    columns = adversaries.bank(name, weights, rng, each)
    size = rng.choice([columns.shape[1], 1, 1023, 1024, 1025, 3000])
    order = rng.sample(range(count), count)
    for operation, given, bank in (
        ("sum", None, fitting(columns)),
        ("mean", None, columns),
        ("weighted mean", weights, columns),
    ):
        if not bank.shape[1]:
            continue
        exact = quick_oracle.columns(bank, given, mean=operation != "sum")
        done[f"dense {operation}"] += exact.size
        which = np.array([rng.randrange(exact.size) for _ in range(size)])
        if rng.random() < 0.5:
            which = np.sort(which)
        if size == columns.shape[1]:
            which = np.arange(exact.size)
        for title, at in (("in order", list(range(count))), ("shuffled", order)):
            threads = rng.choice(THREADS)
            arrays = [np.ascontiguousarray(bank[index][which]) for index in at]
            if operation == "sum":
                got = onefold.sum_dense(arrays, threads=threads)
            else:
                of = None if given is None else [given[index] for index in at]
                got = onefold.mean_dense(arrays, of, threads=threads)
            note = f"dense {operation} of {count} {name} {title}, {threads} threads, {given}"
            done[f"  {title}"] += compare(got, exact[which], np.stack(arrays), note)


def sparse_round(name: str, rng: Random, done: Counter[str]) -> None:
    """Sums and means by coordinate, then of the same entries in other parts and another order."""
    generator = np.random.default_rng(rng.getrandbits(64))
    keys, row = rng.choice(list(adversaries.KEYS)), rng.choice([0, 0, 0, 1, 3, 17])
    size = rng.choice([1, 30, 1000, 4000]) // max(1, row) + 1
    where = np.sort(adversaries.KEYS[keys](generator, size).astype(np.int64))
    groups = np.unique(where, return_counts=True)[1]
    values = adversaries.values_for(name, groups, row or 1, rng)
    values = values.reshape(size, *((row,) if row else ()))
    parts = []
    for _ in range(2):
        count = rng.randint(1, 7)
        cuts = np.sort(generator.integers(0, size + 1, count - 1))
        pieces = np.split(generator.permutation(size), cuts)
        parts.append([Sparse(where[piece], values[piece]) for piece in pieces])
    first, again = parts
    weights = adversaries.some_weights(len(first), rng)
    for operation, given, used in (
        ("sum", None, (first, again)),
        ("mean", None, (first,)),
        ("weighted mean", weights, (first,)),
    ):
        coordinates, exact = expected_sparse(first, given, mean=operation != "sum")
        done[f"sparse {operation}"] += exact.size
        for some in used:
            threads = rng.choice(THREADS)
            if operation == "sum":
                got = onefold.sum_sparse(some, threads=threads)
            else:
                got = onefold.mean_sparse(some, given, threads=threads)
            note = f"sparse {operation} of {size} {name} at {keys}, rows {row}, {given}, {threads}"
            if not np.array_equal(got.coordinates, coordinates):
                raise Wrong(f"{note}: other coordinates")
            wrong = np.flatnonzero(bits_of(got.values) != bits_of(exact))
            if wrong.size:
                owner, element = divmod(int(wrong[0]), max(1, row))
                chosen = values.reshape(size, -1)[where == coordinates[owner], element]
                raise Wrong(
                    f"{note}: coordinate {coordinates[owner]}, element {element}\n"
                    f"  addends  {_hex(chosen)}\n  got      {_hex(got.values)[wrong[0]]}\n"
                    f"  expected {_hex(exact)[wrong[0]]}"
                )
            done["  other parts and order"] += exact.size if some is again else 0


def tree_round(name: str, rng: Random, done: Counter[str]) -> None:
    """Partial sums of some, merged in any order and by way of bytes now and then."""
    count = rng.choice([1, 2, 3, 7, 9, 20])
    weights = adversaries.some_weights(count, rng)
    each = max(1, WIDTH // 2 // count // len(adversaries.kinds_of(name)))
    columns = adversaries.bank(name, weights, rng, each)
    total = in_a_tree(
        zip(columns, weights, strict=True), lambda: ExactPartial.dense(columns.shape[1:], name), rng
    )
    note = f"a tree of {count} {name}, {weights}"
    exact = quick_oracle.columns(columns, weights, mean=True)
    done["tree mean"] += compare(total.mean(), exact, columns, f"mean of {note}")
    if name in FORMATS:
        exact = quick_oracle.columns(columns, weights)
        done["tree sum"] += compare(total.sum(), exact, columns, f"sum of {note}")
    where = np.array(rng.sample(range(-(2**40), 2**40), columns.shape[1]))
    parts = [Sparse(where, array) for array in columns]
    sparse = in_a_tree(
        zip(parts, weights, strict=True), lambda: ExactPartial.sparse(name), rng
    ).mean()
    exact = quick_oracle.columns(columns, weights, mean=True)[np.argsort(where)]
    note = f"mean of a sparse tree of {count} {name}, {weights}"
    done["tree sparse mean"] += compare(sparse.values, exact, columns[:, np.argsort(where)], note)


ROUNDS = {"dense": dense_round, "sparse": sparse_round, "tree": tree_round}


def one_round(seed: int, done: Counter[str]) -> None:
    """The round of a seed."""
    rng = Random(seed)
    name = rng.choice([*DTYPES, *FORMATS, *FORMATS])  # floats more often
    kind = rng.choice(["dense", "dense", "sparse", "tree"])
    counted: Counter[str] = Counter()
    ROUNDS[kind](name, rng, counted)
    done += counted
    done["of " + name] += sum(number for kind, number in counted.items() if kind[0] != " ")


def checked(done: Counter[str]) -> int:
    """The elements of all kinds, each counted once."""
    return sum(number for kind, number in done.items() if not kind.startswith((" ", "of ")))


def main() -> int:
    """Run rounds until the time is over; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: 600)")
    parser.add_argument("--seed", type=int, help="the first round's seed (default: from the clock)")
    parser.add_argument("--rounds", type=int, help="stop after so many rounds")
    asked = parser.parse_args()
    seed = int(time.time()) * 1000 if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    done: Counter[str] = Counter()
    start = shown = time.monotonic()
    rounds = 0
    while time.monotonic() - start < asked.seconds and rounds != asked.rounds:
        try:
            one_round(seed + rounds, done)
        except Exception as error:
            print(f"\nWRONG: round with --seed {seed + rounds} --rounds 1: {error!r:.200}")
            print(error)
            if not isinstance(error, Wrong):
                raise
            return 1
        rounds += 1
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            kinds = ", ".join(
                f"{kind} {number:,}" for kind, number in done.items() if kind[:3] in KINDS
            )
            print(f"{shown - start:5.0f} s  {rounds} rounds  {kinds}", flush=True)
    took = time.monotonic() - start
    print(f"\n{'elements':>12}  kind")
    for kind in sorted(done, key=lambda kind: (kind[:3] not in KINDS, kind)):
        print(f"{done[kind]:12,}  {kind}")
    total = checked(done)
    print(
        f"{total:12,}  in {rounds} rounds and {took:.0f} s: {total / took:,.0f} a second, no fault"
    )
    return 0


KINDS = ("den", "spa", "tre")

if __name__ == "__main__":
    sys.exit(main())
