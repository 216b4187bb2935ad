"""Your own function against a case: verdicts, the smallest failing input, reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from failuremap.archive import read_archive
from failuremap.errors import UsageError
from failuremap.trying.reports import junit_xml, pytest_file
from failuremap.trying.session import try_case
from failuremap.trying.shrink import complexity, shrink
from failuremap.trying.target import read_target

ARCHIVE = Path(__file__).resolve().parents[3] / "archive"
REPLICAS, SPARSE = "FA-99296", "FA-99291"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module where the child finds it, and give the target of a function in it."""
    monkeypatch.chdir(tmp_path)

    def make(source, name="f", **options):
        (tmp_path / "mine.py").write_text(source)
        return read_target(f"mine:{name}", **options)

    return make


def case(identifier):
    return read_archive(ARCHIVE).case(identifier)


@pytest.mark.parametrize(
    ("function", "identifier"),
    [("onefold:reduce_replicas", REPLICAS), ("onefold:reduce_coordinates", SPARSE)],
)
def test_onefold_passes(function, identifier):
    """onefold's two rules pass the family that describes them, without an adapter."""
    tried = try_case(case(identifier), read_target(function))
    assert tried.status == "pass"
    assert tried.generated == 200
    assert tried.smallest is None


def test_a_repeat_counted_twice_is_shown_smallest(module):
    """Summing every row fails on two rows of one worker, and on nothing smaller."""
    target = module("def f(rows, step):\n    return sum(v for s, _, v in rows if s == step)\n")
    tried = try_case(case(REPLICAS), target)
    assert tried.status == "fail"
    rows, step = tried.smallest.arguments
    assert len(rows) == 2
    (first_step, first_worker, _), (last_step, last_worker, _) = rows
    assert first_step == last_step == step
    assert first_worker == last_worker
    assert tried.smallest.expected == rows[1][2]
    assert tried.smallest.verdict.actual == rows[0][2] + rows[1][2]


NUMPY = """
import numpy as np

def last_of_each(rows, step):
    last = {worker: value for s, worker, value in rows if s == step}
    return np.sum(list(last.values())) if last else 0

def in_float64(rows, step):
    last = {worker: value for s, worker, value in rows if s == step}
    return np.array(list(last.values()), np.float64).sum()
"""
PANDAS = """
import pandas as pd

def last_of_each(rows, step):
    frame = pd.DataFrame(rows, columns=["step", "worker", "value"], dtype=object)
    return frame[frame.step == step].groupby("worker", sort=False).value.last().sum()

def without_step(rows, step):
    frame = pd.DataFrame(rows, columns=["step", "worker", "value"], dtype=object)
    last = frame.drop_duplicates("worker", keep="last")
    return last[last.step == step].value.sum()
"""
TORCH = """
import torch

def coalesced(rows):
    coordinates = [c for _, entries in rows for c, _ in entries]
    values = [v for _, entries in rows for _, v in entries]
    if not coordinates:
        return []
    tensor = torch.sparse_coo_tensor([coordinates], values, check_invariants=False).coalesce()
    return [[c, v] for c, v in zip(tensor.indices()[0], tensor.values())]
"""


@pytest.mark.parametrize(
    ("source", "name", "identifier", "status"),
    [
        (NUMPY, "last_of_each", REPLICAS, "fail"),
        (NUMPY, "in_float64", REPLICAS, "fail"),
        (PANDAS, "last_of_each", REPLICAS, "pass"),
        (PANDAS, "without_step", REPLICAS, "fail"),
        (TORCH, "coalesced", SPARSE, "fail"),
    ],
)
def test_one_liners_of_the_libraries(module, source, name, identifier, status):
    """Array libraries answer as far as their types reach; what fails is shown smallest."""
    tried = try_case(case(identifier), module(source, name), by_value=True)
    assert tried.status == status
    if status == "fail":
        assert tried.smallest is not None
        assert complexity(tried.smallest.arguments)[0] <= 12
        assert tried.smallest.verdict.status != "pass"


def test_only_types_are_told_apart_by_value(module):
    """A float for an int fails exactly and passes by value; the report says that it is that."""
    source = (
        "def f(rows, step):\n"
        "    last = {w: v for s, w, v in rows if s == step}\n"
        "    total = sum(last.values())\n"
        "    return float(total) if abs(total) < 2**53 else total\n"
    )
    exact = try_case(case(REPLICAS), module(source))
    assert exact.status == "fail"
    assert exact.only_types
    assert try_case(case(REPLICAS), module(source), by_value=True).status == "pass"


def test_a_function_that_crashes_or_hangs_is_survived(module):
    """A call that ends the process or never ends is a verdict, and the next call is made."""
    source = (
        "import os\n\n"
        "def f(rows, step):\n"
        "    if not rows:\n        os._exit(3)\n"
        "    return sum({w: v for s, w, v in rows if s == step}.values())\n"
    )
    tried = try_case(case(REPLICAS), module(source))
    statuses = [verdict.status for verdict in tried.verdicts]
    assert statuses.count("crash") >= 1
    assert statuses.count("pass") == len(statuses) - statuses.count("crash")
    assert len(tried.smallest.arguments[0]) == 0
    hanging = "def f(rows, step):\n    while True:\n        pass\n"
    tried = try_case(case(REPLICAS), module(hanging, call_seconds=0.05), generated=1)
    assert {verdict.status for verdict in tried.verdicts} == {"timeout"}


def test_an_input_that_is_changed_fails(module):
    """The right sum over rows that are gone afterwards is no pass."""
    source = (
        "def f(rows, step):\n"
        "    rows = rows if isinstance(rows, list) else list(rows)\n"
        "    total = sum({w: v for s, w, v in rows if s == step}.values())\n"
        "    rows.clear()\n    return total\n"
    )
    tried = try_case(case(REPLICAS), module(source))
    assert tried.status == "fail"
    assert "changed its input" in tried.smallest.verdict.message


def test_an_adapter_maps_the_arguments(module, tmp_path):
    """A function of another form is tried through ``adapt``."""
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "def adapt(function, rows, step):\n"
        "    return function({w: v for s, w, v in rows if s == step})\n"
    )
    target = module("def f(updates):\n    return sum(updates.values())\n", adapter=adapter)
    assert try_case(case(REPLICAS), target).status == "pass"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine", "MODULE:FUNCTION"),
        ("mine:", "MODULE:FUNCTION"),
        ("no_such_module_here:f", "cannot be loaded: ModuleNotFoundError"),
        ("math:no_such_function", "cannot be loaded: AttributeError"),
        ("math:pi", "cannot be loaded: TypeError: math:pi is not callable"),
    ],
)
def test_what_cannot_be_tried_is_a_usage_error(name, words):
    """A target that does not exist is said to be so, and is no verdict on anything."""
    with pytest.raises(UsageError, match=words):
        try_case(case(REPLICAS), read_target(name))


def test_shrinking_reaches_the_smallest():
    """Greedy shrinking finds the least number above a bound, in the least surroundings."""
    start = ([[7, "worker-9", 812], [3, "b", 950], [7, "c", 2]], 7)

    def fails(arguments):
        return any(len(row) == 3 and row[2] > 40 for row in arguments[0])

    rows, step = shrink(start, fails)
    assert step == 0
    assert rows == [[0, "a", 41]]


def test_shrinking_keeps_equal_things_equal():
    """A name that must be the same in two places is renamed in both at once."""
    start = ([["worker-17", 3], ["x", 1], ["worker-17", 4]],)

    def fails(arguments):
        names = [row[0] for row in arguments[0] if len(row) == 2]
        return len(names) != len(set(names))

    assert shrink(start, fails) == ([["a", 0], ["a", 0]],)


def test_shrinking_stops_at_its_bound():
    """Never more tries than allowed, and never anything that does not fail."""
    tries = []

    def fails(arguments):
        tries.append(arguments)
        return len(arguments[0]) > 2

    result = shrink((list(range(100)),), fails, tries_max=7)
    assert len(tries) == 7
    assert len(result[0]) > 2


def test_reports(module, tmp_path):
    """JUnit XML counts what failed; the pytest file fails on the same fixtures by itself."""
    target = module("def f(rows, step):\n    return sum(v for s, _, v in rows if s == step)\n")
    tried = try_case(case(REPLICAS), target)
    suite = Xml.fromstring(junit_xml(target, [tried]).encode()).find("testsuite")
    failed = [v.label for v in tried.verdicts if v.status != "pass"]
    assert int(suite.get("tests")) == len(tried.verdicts) + 1
    assert int(suite.get("failures")) == len(failed) + 1
    assert [t.get("name") for t in suite if len(t)][:-1] == failed
    (tmp_path / "test_mine.py").write_text(pytest_file(target, [case(REPLICAS)]))
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    for label in failed:
        assert label in finished.stdout


@pytest.mark.parametrize(("repeat", "status"), [("", 0), ("\n    total += bool(rows)", 1)])
def test_the_pytest_plugin_runs_the_cases(tmp_path, repeat, status):
    """``pytest --failuremap`` has one test a fixture and one for generated inputs."""
    (tmp_path / "mine.py").write_text(
        "def f(rows, step):\n"
        f"    total = sum({{w: v for s, w, v in rows if s == step}}.values()){repeat}\n"
        "    return total\n"
    )
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA"),
            *("--failuremap", "mine:f", "--failuremap-case", REPLICAS),
            *("--failuremap-archive", str(ARCHIVE), str(tmp_path)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == status, finished.stdout + finished.stderr
    count = len(case(REPLICAS).fixtures()) + 1
    assert finished.stdout.count(f"failuremap::{REPLICAS}[") == count
    assert ("smallest failing input: solve(" in finished.stdout) == bool(status)
