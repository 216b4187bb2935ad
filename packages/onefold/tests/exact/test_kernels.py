"""The kernels have the bits of the slow way, at every edge of blocks, pieces and threads."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from oracle import FORMATS, dtype_of, same_bits
from quick_oracle import mean_columns, sum_columns

import onefold
from onefold import Sparse
from onefold.errors import InvalidInput, SumOverflow
from onefold.exact import buffers, pool
from onefold.exact.slow_dense import reduce_slowly
from onefold.exact.slow_sparse import reduce_slowly as reduce_sparse_slowly
from onefold.exact.weighting import Weighting

SEED = 20250102
BLOCK, PIECE = 1024, 1 << 16
SIZES = (0, 1, 3, 8, BLOCK - 1, BLOCK, BLOCK + 1, PIECE - 1, PIECE, PIECE + 1)
floats = pytest.mark.parametrize("name", FORMATS)


def values(rng, size, name, spread):
    """Gaussian times a power of two, with zeros of both signs and now and then an infinity."""
    scaled = rng.standard_normal(size) * 2.0 ** rng.integers(-spread, spread + 1, size)
    scaled[rng.random(size) < 0.02] = -0.0
    scaled[rng.random(size) < 0.0005] = np.inf
    with np.errstate(over="ignore"):
        return scaled.astype(dtype_of(name))


def slowly(arrays, weighting):
    result = np.empty(arrays[0].shape, arrays[0].dtype)
    reduce_slowly([arrays[index] for index in weighting.selected], weighting, result)
    return result


@floats
@pytest.mark.parametrize("spread", [0, 12, 100])
def test_every_size_and_number_of_threads_gives_the_slow_bits(name, spread):
    """Around the edges of blocks and pieces, on 1, 2, 3 and 8 threads."""
    rng = np.random.default_rng(SEED)
    for size in SIZES:
        count = int(rng.integers(1, 12))
        arrays = [values(rng, size, name, spread) for _ in range(count)]
        weights = rng.integers(1, 2 ** int(rng.integers(1, 29)), count).tolist()
        expected = slowly(arrays, Weighting.sum(count))
        for threads in (1, 2, 3, 8):
            same_bits(onefold.sum_dense(arrays, threads=threads), expected)
        same_bits(onefold.mean_dense(arrays), slowly(arrays, Weighting.mean(count, None)))
        weighting = Weighting.mean(count, weights)
        same_bits(onefold.mean_dense(arrays, weights), slowly(arrays, weighting))


@floats
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 17, 300])
def test_every_number_of_arrays(name, count):
    """Eight at a time, two at a time and the odd one: none is left out or counted twice."""
    rng = np.random.default_rng(SEED)
    arrays = [values(rng, 40, name, 3) for _ in range(count)]
    same_bits(onefold.sum_dense(arrays), sum_columns(arrays))
    same_bits(onefold.mean_dense(arrays), mean_columns(arrays))


@floats
def test_the_edge_of_what_eight_exponents_allow(name):
    """One bit within and one bit beyond the span in which eight values add up exactly."""
    form = FORMATS[name]
    low = float(form.tiny) * 2.0**4
    for gap in range(24, 60):
        top = min(low * 2.0**gap, float(form.largest))
        column = [top, low, -low, low, 3 * low, top, top, top]
        arrays = [np.array([value]).astype(form.dtype) for value in column]
        same_bits(onefold.sum_dense(arrays), sum_columns(arrays))
        weights = [1, 2, 3, 4, 5, 6, 7, 2**10]
        same_bits(onefold.mean_dense(arrays, weights), mean_columns(arrays, weights))


def test_any_offset_of_an_aligned_buffer():
    """Kernels read where an array starts, wherever in a cache line that is."""
    rng = np.random.default_rng(SEED)
    buffer = rng.standard_normal(200).astype(np.float32)
    for offset in range(20):
        arrays = [buffer[offset : offset + 100], buffer[offset + 1 : offset + 101]]
        out = np.zeros(120, np.float32)
        onefold.sum_dense(arrays, out[offset : offset + 100])
        same_bits(out[offset : offset + 100], sum_columns(arrays))
        assert not out[:offset].any()
        assert not out[offset + 100 :].any()


@floats
@pytest.mark.parametrize("count", [1, 2, 9])
def test_what_is_read_again_by_a_later_tier_has_not_been_written_over(name, count):
    """Where ``out`` is an input, each tier still sees the addends, on any number of threads."""
    rng = np.random.default_rng(SEED)
    for spread in (0, 12, 100):
        arrays = [values(rng, PIECE + 3, name, spread) for _ in range(count)]
        expected = slowly(arrays, Weighting.sum(count))
        for threads in (1, 3):
            copies = [array.copy() for array in arrays]
            same_bits(onefold.sum_dense(copies, copies[-1], threads=threads), expected)


KEYS = {
    "few": lambda rng, size: rng.integers(0, 50, size),
    "dense": lambda rng, size: rng.integers(-size, size, size),
    "hashed": lambda rng, size: rng.choice(rng.integers(-(2**63), 2**63 - 1, size // 3 + 1), size),
    "ends": lambda rng, size: rng.choice(np.array([-(2**63), 2**63 - 1, 0, -1, 1]), size),
    "equal": lambda _, size: np.full(size, -(2**63)),
    "outliers": lambda rng, size: np.where(
        rng.random(size) < 1e-3, 2**62, rng.integers(0, size, size)
    ),
    "clusters": lambda rng, size: (rng.integers(0, 5, size) << 40) + rng.integers(0, 40, size),
    "skewed": lambda rng, size: np.minimum(rng.zipf(1.2, size), 2**40),
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int64"])
def test_any_distribution_of_keys(name, keys):
    """By table or sorted, in one bucket or many, on 1 or 3 threads: the slow bits."""
    rng = np.random.default_rng(SEED)
    for size in (1, 30, 3000, 40_000):
        coordinates = KEYS[keys](rng, size).astype(np.int64)
        spread = int(rng.choice([0, 30]))
        numbers = values(rng, size, name, spread) if name in FORMATS else coordinates >> 20
        cuts = np.sort(rng.integers(0, size + 1, 3))
        parts = list(map(Sparse, np.split(coordinates, cuts), np.split(numbers, cuts)))
        expected = reduce_sparse_slowly(parts, Weighting.sum(4), numbers.dtype)
        for threads in (1, 3):
            got = onefold.sum_sparse(parts, threads=threads)
            assert got.coordinates.tolist() == expected.coordinates.tolist()
            same_bits(got.values, expected.values)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("dim", [1, 8, 1025])
def test_rows_of_any_length(name, dim):
    """Rows shorter and longer than a block, unique and repeated, weighted or not."""
    rng = np.random.default_rng(SEED)
    parts = [
        Sparse(rng.integers(0, 9, 12), np.stack([values(rng, dim, "float64", 9)] * 12).astype("f2"))
        for _ in range(3)
    ]
    parts = [
        Sparse(part.coordinates, np.nan_to_num(part.values, posinf=1).astype(dtype_of(name)))
        for part in parts
    ]
    for weights in (None, [3, 5, 7]) if name in FORMATS else ():
        got = onefold.mean_sparse(parts, weights)
        expected = reduce_sparse_slowly(parts, Weighting.mean(3, weights), parts[0].values.dtype)
        same_bits(got.values, expected.values)
    got = onefold.sum_sparse(parts)
    expected = reduce_sparse_slowly(parts, Weighting.sum(3), parts[0].values.dtype)
    same_bits(got.values, expected.values)


def test_an_overflow_on_several_threads_is_the_first_one():
    """Whichever thread finds one first, the least coordinate is named."""
    array = np.zeros(5 * PIECE, np.int64)
    array[[PIECE + 5, 4 * PIECE]] = 2**62
    for _ in range(5):
        with pytest.raises(SumOverflow, match=f"coordinate {PIECE + 5}:"):
            onefold.sum_dense([array, array], threads=4)


def test_pieces_are_done_once_each_whatever_the_threads():
    """Also when several Python threads ask at once, and when one piece raises."""
    done = []
    pool.in_pieces(done.append, 100, 4)
    assert sorted(done) == list(range(100))

    def fail(number):
        if number == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pool.in_pieces(fail, 10, 4)
    arrays = [np.full(3 * PIECE, value, np.float32) for value in (1, 2)]
    with ThreadPoolExecutor(6) as callers:
        results = list(callers.map(lambda _: onefold.sum_dense(arrays, threads=3), range(12)))
    assert all((result == 3).all() for result in results)


def test_threads_are_checked():
    """A number of threads is a positive integer."""
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(InvalidInput, match="threads"):
            onefold.sum_dense([np.ones(2)], threads=wrong)
    assert onefold.sum_dense([np.ones(2)], threads=np.int64(2)).tolist() == [1, 1]


def test_a_sum_that_interrupts_another_on_its_thread_changes_nothing():
    """A signal handler that sums, again and again, within dense, sparse and row sums."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("Windows has no timer that interrupts")
    rng = np.random.default_rng(5)
    wide = [
        (rng.standard_normal(300_000) * 2.0 ** rng.integers(-60, 60, 300_000)).astype(np.float32)
        for _ in range(3)
    ]
    keys = rng.integers(0, 2**40, 100_000)
    numbers = [onefold.Sparse(keys, array[:100_000]) for array in wide]
    rows = [onefold.Sparse(keys[:10_000], array.reshape(-1, 30)) for array in wide]
    small = [array[:3000] for array in wide]
    few = [onefold.Sparse(keys[:3000], array) for array in small]
    expected = onefold.sum_dense(small), onefold.sum_sparse(few).values
    calls = [
        lambda: onefold.sum_dense(wide),
        lambda: onefold.mean_dense([array.view(np.float16) for array in wide]),
        lambda: onefold.sum_dense([array.view(np.int32) >> 4 for array in wide]),
        lambda: onefold.sum_sparse(numbers).values,
        lambda: onefold.sum_sparse(rows).values,
    ]
    undisturbed = [call() for call in calls]
    interruptions = []
    summing = []

    def interrupt(_number, _frame):
        same_bits(onefold.sum_dense(small), expected[0])
        same_bits(onefold.sum_sparse(few).values, expected[1])
        interruptions.append(1)
        if (
            summing
        ):  # a timer that goes on by itself would, where all is slow, interrupt without end
            signal.setitimer(signal.ITIMER_REAL, 0.003)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while len(interruptions) < 200:
            for call, result in zip(calls, undisturbed, strict=True):
                summing.append(1)
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                got = call()
                summing.clear()
                signal.setitimer(signal.ITIMER_REAL, 0)
                same_bits(got, result)
    finally:
        summing.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


RUN_AFTER_FORK = """
import os, numpy as np, onefold
arrays = [np.ones(300_000, np.float32)] * 3
assert (onefold.sum_dense(arrays, threads=3) == 3).all()
child = os.fork()
if child == 0:
    os._exit(0 if (onefold.sum_dense(arrays, threads=3) == 3).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_has_threads_of_its_own():
    """The threads that the parent had do not exist in the child, and nothing waits for them."""
    environment = {**os.environ, "ONEFOLD_THREADS": "3"}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN_AFTER_FORK], check=True, env=environment
    )


INTERRUPTED = """
import signal
from onefold.exact import pool

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for number in range(1500):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 2e-5 + number % 40 * 1e-5)
            while True:
                pool.in_pieces(lambda _: None, 9, 3)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        done = []
        pool.in_pieces(done.append, 9, 3)
        assert sorted(done) == list(range(9))
"""


def test_no_ctrl_c_leaves_threads_waiting_for_ever():
    """Wherever it comes while work is given out, the next is done, each piece once."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("Windows has no timer that interrupts")
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, timeout=120)


def test_what_was_summed_is_not_kept_by_threads_that_wait():
    """Nor are threads more than were asked for, whoever raised before."""
    before = {thread for thread in threading.enumerate() if thread.name == "onefold-sums"}
    held = np.ones(5)
    gone = weakref.ref(held)

    def fail(number, held=held):
        raise ZeroDivisionError(number + held.size)

    for _ in range(50):
        with pytest.raises(ZeroDivisionError):
            pool.in_pieces(fail, 20, 2)
    after = {thread for thread in threading.enumerate() if thread.name == "onefold-sums"}
    assert len(after - before) <= 1
    del held, fail
    for _ in range(500):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None


def test_the_cache_needs_no_writable_home(tmp_path):
    """Where nothing can be written the kernels compile anyway."""
    (tmp_path / "file").write_text("")
    code = "from onefold.exact.kernels import loading; print(loading.cache_directory())"
    environment = {**os.environ, "ONEFOLD_CACHE": str(tmp_path / "file")}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stdout.strip() == "None"


def test_no_thread_is_started_for_small_work():
    """What is one piece stays on the caller's thread."""
    seen = []
    pool.in_pieces(lambda _: seen.append(threading.current_thread()), 1, 8)
    assert seen == [threading.current_thread()]


def test_an_overflow_is_told_as_it_was_when_the_result_goes_into_an_addend():
    first = np.array([100, 1], np.int8)
    with pytest.raises(SumOverflow, match="sum is 200"):
        onefold.sum_dense([first, first.copy()], out=first)


def test_the_address_of_padding_stays_that_of_an_array_that_lives(monkeypatch):
    """Two threads make the first of a dtype at the same time; the second does not replace it."""
    dtype = np.dtype(np.int16)
    monkeypatch.setattr(buffers, "_paddings", {})
    make, both = np.full, threading.Barrier(2, timeout=60)

    def together(*arguments):
        both.wait()
        return make(*arguments)

    monkeypatch.setattr(np, "full", together)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(buffers.padding, [dtype, dtype]))
    assert found == [buffers.address(buffers._paddings[dtype])] * 2
