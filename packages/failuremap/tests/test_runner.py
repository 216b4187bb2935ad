"""The child process and what is made of its answers; hostile programs have a file of their own."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import pytest

from failuremap.errors import InfraError
from failuremap.fixtures import parse_fixtures, question_of
from failuremap.runner.controls import CONTROLS, examine
from failuremap.runner.interpreters import interpreter_at, interpreters_at_hand
from failuremap.runner.limits import Limits
from failuremap.runner.process import Answer, Child, Load
from failuremap.runner.running import run_fixtures, run_repeatedly
from failuremap.runner.verdicts import STATUSES, Verdict, agreed, judge
from failuremap.values import same, tag

RIGHT = "def solve(values):\n    return sum(values)\n"
LIMITS = Limits(call_seconds=3)


def ask(source, interpreter, *arguments, limits=LIMITS, **options):
    """One answer, and the isolation that applied."""
    with Child(Load.source(source), interpreter, limits, **options) as child:
        return child.ask(question_of(arguments)), child.isolation


def checks(*lines):
    return parse_fixtures("\n".join(lines), {"N": 3})


# What is right passes.


@pytest.mark.parametrize(
    "expression",
    [
        "None",
        "True",
        "-0.0",
        "float('nan')",
        "2**53 + 1",
        "'é\\x00\\u2028'",
        "[(1, [2.5]), {'k': (None, False), 3: []}]",
        "{(1, 'a'): {}}",
    ],
)
def test_a_value_comes_back_as_it_was_returned(expression, interpreter):
    """Types and bits survive the way into the child and back."""
    value = eval(expression)
    answer, _ = ask("def solve(value):\n    return value\n", interpreter, value)
    assert answer.outcome == "value"
    assert same(answer.value, value)
    assert answer.inputs == [tag(value)]


def test_a_right_program_passes_and_prints_as_it_likes(interpreter, sums):
    """What is printed is never read; a right program gets a pass for every fixture, in order."""
    source = (
        "import sys\nprint('loading', flush=True)\n\n\ndef solve(values):\n"
        "    print('x' * 10**5)\n    print('y', file=sys.stderr)\n    return sum(values)\n"
    )
    run = run_fixtures(Load.source(source), sums, interpreter, LIMITS)
    assert [(v.label, v.status, v.actual) for v in run.verdicts] == [
        ("a list", "pass", 7),
        ("nothing", "pass", 0),
    ]
    assert run.passed
    assert run.exit_code == 0
    repeated = run_repeatedly(Load.source(RIGHT), sums[:1], interpreter, LIMITS)
    assert [verdict.status for verdict in repeated.verdicts] == ["pass"]


def test_a_program_may_use_what_python_ships(interpreter):
    """Imports of the standard library, classes and dataclasses work under confinement."""
    source = (
        "from __future__ import annotations\n"
        "import collections, dataclasses, decimal, fractions, functools, heapq, itertools, random\n"
        "@dataclasses.dataclass\nclass Sum:\n    total: int = 0\n"
        "def solve(values):\n    return dataclasses.asdict(Sum(sum(values)))\n"
    )
    answer, _ = ask(source, interpreter, [1, 2])
    assert answer == Answer("value", {"total": 3}, [["l", [["i", "1"], ["i", "2"]]]])


def test_parameters_are_globals_and_nothing_else_is_known(interpreter):
    """A source sees its parameters, and no name of the child's own code."""
    source = (
        "seen = sorted(n for n in dict(globals()) if n[:2] != '__')\n"
        "def solve():\n    return seen, N\n"
    )
    load = Load.source(source, parameters={"N": 4})
    with Child(load, interpreter, LIMITS) as child:
        assert child.ask(question_of([])).value == (["N"], 4)


def test_names_keep_their_identity_within_a_check_and_start_afresh_in_the_next(interpreter):
    """What one call does to a name the next call of the check sees, and no other check."""
    fixtures = checks(
        "rows = [1]",
        'check("within", [solve(rows), solve(rows), rows], [1, 2, [1, 0, 0]])',
        'check("afresh", [solve(rows), rows], [1, [1, 0]])',
    )
    source = "def solve(rows):\n    rows.append(0)\n    return len(rows) - 1\n"
    run = run_fixtures(Load.source(source), fixtures, interpreter, LIMITS)
    assert [verdict.actual for verdict in run.verdicts] == [[1, 2, [1, 0, 0]], [1, [1, 0]]]
    assert [verdict.status for verdict in run.verdicts] == ["fail", "fail"]  # an input changed
    assert all(verdict.equal for verdict in run.verdicts)


def test_an_input_that_is_changed_and_put_back_is_not_changed(interpreter):
    """What counts is the input after the call."""
    source = "def solve(v):\n    v.append(1)\n    v.pop()\n    return sum(v)\n"
    run = run_fixtures(
        Load.source(source), checks('check("a", solve([1]), 1)'), interpreter, LIMITS
    )
    assert run.passed


# What is recorded.


def test_a_child_that_ends_is_followed_by_a_fresh_one(interpreter):
    """A crash costs its own fixture only; what the program kept in memory is gone."""
    source = (
        "import os\nseen = []\n\n\ndef solve(n):\n    seen.append(n)\n"
        "    if n == 2:\n        os._exit(3)\n    return list(seen)\n"
    )
    fixtures = checks(*(f'check("{n}", solve({n}), [{n}])' for n in (1, 2, 3, 4)))
    run = run_fixtures(Load.source(source), fixtures, interpreter, LIMITS)
    assert [(v.status, v.actual) for v in run.verdicts] == [
        ("pass", [1]),
        ("crash", None),
        ("pass", [3]),
        ("fail", [3, 4]),
    ]
    assert run.verdicts[1].message == "ended with exit status 3"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("return 1 // 0", "error", "ZeroDivisionError: integer division or modulo by zero"),
        ("raise SystemExit(0)", "error", "SystemExit: 0"),
        ("raise KeyError", "error", "KeyError"),
        ("import os; os._exit(0)", "crash", "ended with exit status 0"),
        ("import ctypes; ctypes.string_at(0)", "crash", "ended by signal 11"),
        ("return {1, 2}", "protocol", "set is not a plain value"),
        ("import decimal; return decimal.Decimal(1)", "protocol", "decimal.Decimal is not a plain"),
        ("return 8", "fail", "got 8, expected 7"),
        ("return '7'", "fail", "got '7', expected 7"),
        ("s = sum(values); values.clear(); return s", "fail", "the call changed its input"),
        ("return 'x' * 10**5", "protocol", "an answer of more than 65536 bytes"),
    ],
)
def test_a_status_comes_with_words(body, status, words, interpreter, quick, sums):
    """Whoever reads a verdict learns what came."""
    load = Load.source(f"def solve(values): {body}\n")
    verdict = run_fixtures(load, sums[:1], interpreter, quick).verdicts[0]
    assert verdict.status == status
    assert words in verdict.message
    assert verdict.answered is (status in ("pass", "fail"))


@pytest.mark.parametrize(
    "source", ["def solve(:\n", "x = 1\n", "raise ValueError\n", "import nothing_like_it\n"]
)
def test_a_source_that_does_not_load_is_an_error_at_every_fixture(source, interpreter, sums):
    """Every label is reported, once, with the reason."""
    run = run_fixtures(Load.source(source), sums, interpreter, LIMITS)
    assert [(v.label, v.status) for v in run.verdicts] == [
        ("a list", "error"),
        ("nothing", "error"),
    ]
    assert run.verdicts[0].message == run.verdicts[1].message != ""


def test_a_source_that_does_not_load_is_loaded_once(interpreter, sums, monkeypatch):
    """One child for all fixtures: an endless import is not waited for at each."""
    started = []
    monkeypatch.setattr(
        "failuremap.runner.running.Child", lambda *a, **k: started.append(1) or Child(*a, **k)
    )
    run_fixtures(Load.source("x"), sums, interpreter, LIMITS)
    assert started == [1]


def test_an_interpreter_that_is_none_is_trouble_with_the_machine(interpreter, sums):
    """``infra`` is no verdict, and no pass; each fixture has it."""
    missing = replace(interpreter, path="/nowhere/python3")
    ended = replace(interpreter, path="/bin/true")
    for broken in (missing, ended):
        run = run_fixtures(Load.source(RIGHT), sums, broken, LIMITS)
        assert [verdict.status for verdict in run.verdicts] == ["infra", "infra"]
        assert broken.path in run.verdicts[0].message
        assert not run.passed
    with pytest.raises(InfraError, match="/nowhere/python3"):
        interpreter_at("/nowhere/python3")


def test_too_much_processor_time_ends_the_process(interpreter):
    """The limit on processor time holds where the wall clock would allow more."""
    limits = Limits(call_seconds=20, cpu_seconds=1)
    answer, isolation = ask("def solve():\n    while True: pass\n", interpreter, limits=limits)
    if "processor limit" not in isolation:
        pytest.skip("this machine limits no processor time")
    assert answer.outcome == "crash"


def test_a_late_answer_is_asked_for_once_more_with_more_time(interpreter, quick, tmp_path):
    """A busy machine does not look like an endless program, an endless one is not waited for."""
    source = "import time\ndef solve(s):\n    time.sleep(s)\n    return s\n"
    wait = 2 * quick.call_seconds
    fixtures = checks('check("late", solve(0.6), 0.6)', 'check("soon", solve(0), 0)')
    assert quick.call_seconds < wait == 0.6 < quick.with_more_time().call_seconds
    run = run_fixtures(Load.source(source), fixtures, interpreter, quick)
    assert [verdict.status for verdict in run.verdicts] == ["pass", "pass"]
    started = time.monotonic()
    run = run_fixtures(
        Load.source(source), checks('check("never", solve(3600), 0)'), interpreter, quick
    )
    assert run.verdicts[0].message == "no answer within 1.2 seconds"
    assert time.monotonic() - started < 60


# Hash seeds.


def test_an_answer_that_depends_on_hash_order_is_flaky(interpreter, sums):
    """Three hash seeds tell; one run of the same program does not."""
    source = "def solve(values):\n    return hash('x') % 10**6\n"
    once = run_fixtures(Load.source(source), sums[:1], interpreter, LIMITS)
    assert once.verdicts[0].status == "fail"
    run = run_repeatedly(Load.source(source), sums[:1], interpreter, LIMITS)
    assert run.verdicts[0].status == "flaky"
    assert "runs disagree" in run.verdicts[0].message
    assert not run.passed


def test_a_hash_seed_is_what_it_is_said_to_be(interpreter):
    """The same seed hashes alike, another seed otherwise."""
    source = "def solve():\n    return hash('text')\n"
    found = [ask(source, interpreter, hash_seed=seed)[0].value for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_runs_agree_only_where_status_and_value_are_the_same():
    """``-0.0`` is not ``0.0`` and ``1`` not ``True`` between runs either; words may differ."""
    passed = Verdict("a", "pass", answered=True, actual=0.0)
    assert agreed([[passed], [passed]]) == [passed]
    for other in (replace(passed, actual=-0.0), replace(passed, actual=0), Verdict("a", "error")):
        assert [verdict.status for verdict in agreed([[passed], [passed], [other]])] == ["flaky"]
    crashes = [Verdict("a", "crash", message=words) for words in ("one", "two")]
    assert agreed([[crash] for crash in crashes]) == [crashes[0]]


# The user's own code: unconfined.


def test_a_function_of_a_module_is_loaded_by_name_with_its_adapter(interpreter, tmp_path):
    """Dotted attributes work; the adapter gets the function and the arguments."""
    (tmp_path / "users_own.py").write_text(
        "class A:\n    @staticmethod\n    def f(x): return x + 1\n"
    )
    setup = {
        "module": "users_own",
        "attribute": "A.f",
        "path": [str(tmp_path)],
        "functions": ["solve"],
        "adapter": "def adapt(function, x):\n    return function(x * 10)\n",
        "adapter_file": "adapter.py",
    }
    with Child(Load(setup), interpreter, LIMITS, isolate=False) as child:
        assert child.ask(question_of([4])).value == 41
        assert child.isolation == ()
    setup["attribute"] = "A.missing"
    with Child(Load(setup), interpreter, LIMITS, isolate=False) as child:
        assert child.ask(question_of([4])).outcome == "error"
        assert "missing" in child.failed.message


@pytest.mark.parametrize(
    ("value", "came"),
    [
        ("numpy.array([1.5, 2.5])", [1.5, 2.5]),
        ("(numpy.int64(3), [numpy.float32(0.5)])", (3, [0.5])),
        ("{numpy.int8(1): numpy.bool_(True)}", {1: True}),
    ],
)
def test_arrays_of_users_become_lists_where_that_is_asked_for(value, came, tmp_path):
    """Leniently, arrays and their scalars are the numbers that they hold; otherwise no values."""
    pytest.importorskip("numpy")
    own = replace(interpreters_at_hand()[0], path=sys.executable)
    (tmp_path / "arrays.py").write_text(f"import numpy\ndef solve():\n    return {value}\n")
    setup = {
        "module": "arrays",
        "attribute": "solve",
        "path": [str(tmp_path)],
        "functions": ["solve"],
        "lenient": True,
    }
    with Child(Load(setup), own, LIMITS, isolate=False) as child:
        assert same(child.ask(question_of([])).value, came)
    del setup["lenient"]
    with Child(Load(setup), own, LIMITS, isolate=False) as child:
        assert child.ask(question_of([])).outcome == "protocol"


def test_generated_inputs_are_a_function_of_the_seed(interpreter):
    """The same seed gives the same, another seed another."""
    source = "def generate(rng):\n    return (rng.random(), rng.randint(0, 10**9))\n"
    load = Load.source(source, functions=("generate",))
    with Child(load, interpreter, LIMITS) as child:
        one, two, other = (child.generate(seed) for seed in ("1", "1", "2"))
    assert one == two != other
    assert one.outcome == other.outcome == "value"


# Judging.


def test_the_judge_compares_by_type_and_bit():
    """Equal in Python is not enough."""
    fixture = checks('check("a", solve(1), [1, 0.0])')[0]
    inputs = fixture.question.inputs()
    statuses = {
        repr(value): judge(fixture, Answer("value", value, inputs)).status
        for value in ([1, 0.0], [1, -0.0], [1.0, 0.0], [True, 0.0], (1, 0.0), [1, 0])
    }
    assert statuses.pop("[1, 0.0]") == "pass"
    assert set(statuses.values()) == {"fail"}


def test_an_answer_without_all_inputs_is_a_changed_input():
    """Whoever says less about the inputs than was asked does not pass."""
    fixture = checks("x = [1]", 'check("a", [solve(x), solve(2)], [1, 1])')[0]
    good = fixture.question.inputs()
    assert judge(fixture, Answer("value", [1, 1], good)).status == "pass"
    for inputs in ([], good[:1], good[::-1], [*good, ["n"]], [good[0], None]):
        assert judge(fixture, Answer("value", [1, 1], inputs)).status == "fail"


def test_every_outcome_of_an_answer_is_a_status():
    """What is no value keeps its outcome as status, with its words."""
    fixture = checks('check("a", solve(1), 1)')[0]
    for outcome in ("error", "timeout", "crash", "protocol"):
        verdict = judge(fixture, Answer(outcome, message="words"))
        assert (verdict.status, verdict.message) == (outcome, "words")
        assert outcome in STATUSES


def test_the_controls_of_the_runner_are_good_here(interpreter):
    """Every control has an allowed status, or lacks the isolation that it is about."""
    results = list(examine(interpreter, replace(LIMITS, call_seconds=0.5)))
    assert [result.control for result in results] == list(CONTROLS)
    bad = [(r.control.name, r.status, r.message) for r in results if r.good is False]
    assert bad == []


def test_interpreters_at_hand_are_one_an_environment_with_our_own_first():
    """Two paths to the same Python are one; each answers as it says."""
    found = interpreters_at_hand()
    assert found[0].version == ".".join(map(str, sys.version_info[:3]))
    assert len({interpreter.environment for interpreter in found}) == len(found)
    source = "import sys\ndef solve():\n    return '.'.join(map(str, sys.version_info[:3]))\n"
    for interpreter in found:
        assert ask(source, interpreter)[0].value == interpreter.version
