"""Answers forged on the private descriptor: never a pass, never the parent's own trouble."""

from __future__ import annotations

import pytest

from failuremap.fixtures import parse_fixtures
from failuremap.runner.limits import Limits
from failuremap.runner.process import Load
from failuremap.runner.running import run_fixtures

LIMITS = Limits(call_seconds=3)


def checks(*lines):
    return parse_fixtures("\n".join(lines), {"N": 3})


FORGE = """
import json, os, time

def forge(value, inputs, outcome="value", **more):
    line = json.dumps({"outcome": outcome, "value": value, "inputs": inputs, **more}) + "\\n"
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, line.encode())
        except OSError:
            pass
"""


@pytest.mark.timeout(5)
def test_a_child_that_does_not_read_cannot_hold_up_the_parent(interpreter, quick):
    """A long question to a child that never reads it ends in time as well."""
    source = FORGE + (
        "def solve(values):\n    forge(['i', '1'], [['l', [['i', '1']]]])\n    while True: pass\n"
    )
    fixtures = checks(
        'check("short", solve([1]), 1)', 'check("long", solve([i for i in range(40000)]), 2)'
    )
    run = run_fixtures(Load.source(source), fixtures, interpreter, quick)
    assert run.verdicts[1].status in ("timeout", "protocol")


def test_words_of_a_program_can_be_written_down(interpreter, sums):
    """Whatever a program calls its types, the message is text that UTF-8 can hold."""
    sources = [
        "class X: pass\nX.__module__ = '\\ud800'\ndef solve(values): return X()\n",
        FORGE + "def solve(v):\n    forge(0, 0, 'error', type='\\ud800', message='\\ud800')\n",
        FORGE + "def solve(v):\n    forge(0, 0, 'protocol', message='\\ud800')\n",
    ]
    for source in sources:
        run = run_fixtures(Load.source(source), sums[:1], interpreter, LIMITS)
        run.verdicts[0].message.encode()


def test_two_answers_to_one_question_are_none(interpreter):
    """Not even where both are right."""
    source = FORGE + (
        "def solve(n):\n    line = json.dumps({'outcome': 'value', 'value': ['i', '1'], 'inputs': "
        "[['i', '5']]}) + '\\n'\n"
        "    for descriptor in range(3, 64):\n"
        "        try: os.write(descriptor, 2 * line.encode())\n"
        "        except OSError: pass\n"
        "    return 1\n"
    )
    run = run_fixtures(Load.source(source), checks('check("a", solve(5), 1)'), interpreter, LIMITS)
    assert run.verdicts[0].status == "protocol"
    assert "more than one answer" in run.verdicts[0].message


def test_an_answer_to_one_question_is_none_to_the_next(interpreter):
    """A program that answers twice, the second time late, does not answer two questions."""
    source = FORGE + (
        "def solve(n):\n    forge(['i', '1'], [['i', '5']])\n"
        "    time.sleep(0.2)\n    return n - 3\n"
    )
    fixtures = checks(
        'check("a", solve(5), 1)', 'check("b", [solve(5)], 2)', 'check("c", solve(5), 2)'
    )
    run = run_fixtures(Load.source(source), fixtures, interpreter, LIMITS)
    assert [verdict.status for verdict in run.verdicts[1:]] != ["pass", "pass"]
    assert not run.passed


def test_no_answer_of_a_stranger_is_the_parents_exception(interpreter, sums):
    """Whatever line comes is a verdict: nothing that a child says raises in the parent."""
    bodies = [
        ["i", "9" * 4299],
        ["d", [[["l", []], ["n"]]]],
        ["f", "7ff0000000000001"],
        ["i", "01"],
        ["s", "\ud800"],
        ["x"],
        [],
        None,
        {"i": "7"},
    ]
    for body in bodies:
        source = FORGE + f"def solve(v):\n    forge({body!r}, [])\n    os._exit(0)\n"
        run = run_fixtures(Load.source(source), sums[:1], interpreter, LIMITS)
        assert run.verdicts[0].status in ("protocol", "fail"), body
