"""The stand-alone program: plain Python runs it, its digest covers it, its exit status speaks."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys

import pytest

from failuremap.errors import UsageError
from failuremap.programs.render import program_digest, render, without_docstring
from failuremap.runner.interpreters import interpreters_at_hand
from failuremap.runner.process import Load
from failuremap.runner.running import run_fixtures
from failuremap.verify.standalone import expected_observations

ROLES = ("failure", "attempt-1", "repair")


@pytest.fixture
def run_program(tmp_path):
    """A program, run as anybody would run it: exit status and what it printed."""

    def run(text, interpreter=None):
        file = tmp_path / "program.py"
        file.write_text(text, encoding="utf-8")
        path = interpreter.path if interpreter else sys.executable
        ran = subprocess.run(
            [path, "-I", "-B", str(file)], capture_output=True, timeout=60, check=False
        )
        assert ran.stderr == b""
        lines = ran.stdout.decode().splitlines()
        assert len(lines) == 1
        return ran.returncode, json.loads(lines[0])

    return run


@pytest.mark.parametrize(("role", "status"), [("failure", 1), ("attempt-1", 1), ("repair", 0)])
def test_plain_python_runs_it_and_sees_what_the_runner_sees(small, run_program, role, status):
    """One line of JSON, and an exit status of 0 only if every fixture passed; on every Python."""
    case = small.one()
    fixtures = case.fixtures()
    load = Load.source(case.implementation(role), parameters=case.parameters)
    for interpreter in interpreters_at_hand():
        code, document = run_program(render(case, role), interpreter)
        assert code == status
        assert set(document) == {"observations", "passed"}
        assert document["passed"] is (status == 0)
        from failuremap.runner.limits import Limits

        run = run_fixtures(load, fixtures, interpreter, Limits(call_seconds=5))
        assert document["observations"] == expected_observations(fixtures, run)
        assert run.exit_code == status


def test_the_failures_observations_are_these(small, run_program):
    """Written out by hand: label, actual, expected, passed."""
    _, document = run_program(render(small.one(), "failure"))
    assert document["observations"] == [
        {
            "check": "values are summed and shifted",
            "actual": [3, [1, 2]],
            "expected": [4, [1, 2]],
            "passed": False,
        },
        {"check": "no values give the shift", "actual": 0, "expected": 1, "passed": False},
        {"check": "a negative value counts", "actual": -4, "expected": -3, "passed": False},
    ]


def test_the_program_is_this_text(small):
    """Header, import, parameters, implementation, check, fixtures, line of JSON: byte for byte."""
    assert (
        render(small.one(), "failure")
        == '''"""FA-00001 / A sum that is shifted / variant 1 / failure

Leaves the shift out.
"""

import json

N = 1


def solve(values):
    return sum(values)


observations = []


def check(label, actual, expected):
    """Keep what was asked, what came and what was expected, type by type."""
    passed = repr(actual) == repr(expected)
    observations.append(
        {"check": label, "actual": actual, "expected": expected, "passed": passed}
    )


# The shift is there.
values = [N, 2]
check("values are summed and shifted", [solve(values), values], [2 * N + 2, [N, 2]])
check("no values give the shift", solve([]), N)
check("a negative value counts", solve([-5, N]), 2 * N - 5)

passed = all(observation["passed"] for observation in observations)
print(json.dumps({"observations": observations, "passed": passed}, ensure_ascii=False))
raise SystemExit(0 if passed else 1)
'''
    )


@pytest.mark.parametrize("role", ROLES)
def test_the_digest_covers_the_program_byte_for_byte(small, role):
    """SHA-256 of the text as it is written, with its one final newline."""
    text = render(small.one(), role)
    assert text.endswith(")\n")
    assert not text.endswith("\n\n")
    assert program_digest(small.one(), role) == hashlib.sha256(text.encode()).hexdigest()
    assert render(small.one(), role) == text


def test_variants_and_roles_are_different_programs(small):
    """Each has a digest of its own, and its parameter and role in it."""
    small.case(2, variant=2)
    programs = {render(small.one(number), role) for number in (1, 2) for role in ROLES}
    assert len(programs) == 6
    assert sum("\nN = 2\n" in program for program in programs) == 3


@pytest.mark.parametrize(
    ("role", "about"), [("failure", "failure"), ("attempt-1", "attempt"), ("repair", "contract")]
)
def test_the_header_says_what_the_program_is(small, role, about):
    """Id, title, variant and role; then the prose that belongs to the role, in short lines."""
    words = "A long story, told in many words. " * 12
    small.family(**{about: words.strip()})
    header = ast.get_docstring(ast.parse(render(small.one(), role)))
    assert header.splitlines()[0] == f"FA-00001 / A sum that is shifted / variant 1 / {role}"
    assert " ".join(header.split("\n\n", 1)[1].split()) == words.strip()
    assert max(map(len, header.splitlines())) <= 88


def test_what_the_parts_say_is_kept(small):
    """Module docstrings go; comments, docstrings of functions and blank lines within stay."""
    small.write(
        "families/shifted-sum/impl/failure.py",
        '"""About\nthis."""\n\n# A comment.\nimport math\n\n\ndef solve(values):\n'
        '    """Docstring."""\n\n    # Inside.\n    return math.fsum(values)\n\n\n',
    )
    text = render(small.one(), "failure")
    assert (
        '\nN = 1\n\n\n# A comment.\nimport math\n\n\ndef solve(values):\n    """Docstring."""\n\n'
        "    # Inside.\n    return math.fsum(values)\n\n\nobservations = []\n" in text
    )
    assert "About" not in text
    assert "# The shift is there.\nvalues = [N, 2]\n" in text
    assert "What a shifted sum must be." not in text


def test_without_docstring_leaves_code_alone():
    """Only a docstring at the head goes; a string elsewhere stays."""
    assert without_docstring('"""A."""\nx = 1\n') == "x = 1"
    assert without_docstring("'A.'\n\n\nx = 1\n\n") == "x = 1"
    assert without_docstring("x = 1\n'A.'\n") == "x = 1\n'A.'"
    assert without_docstring('f"""A."""\n') == 'f"""A."""'
    assert without_docstring("") == ""


def test_code_beside_the_docstring_is_kept():
    """A statement after a semicolon is a statement."""
    assert "x = 1" in without_docstring('"""A."""; x = 1\n')


def test_a_strange_line_end_in_a_literal_is_kept():
    """Python ends lines at newlines only."""
    for strange in ("\u2028", "\x85", "\x1c"):
        source = f"x = '{strange}'\n"
        assert without_docstring(source) == source.strip("\n")
        assert ast.parse(without_docstring(f'"""A."""\n{source}'))


def test_parameters_are_written_as_python(small, run_program):
    """Strings, lists and floats as parameters come out as the runner sees them."""
    small.family(params={"N": [2], "NAME": ["é'\""], "STEPS": [[1, 2.5]]})
    small.case(params={"N": 2, "NAME": "é'\"", "STEPS": [1, 2.5]})
    small.write(
        "families/shifted-sum/impl/repair.py", "def solve(v):\n    return [N, NAME, STEPS]\n"
    )
    small.write(
        "families/shifted-sum/fixtures.py",
        'check("é\u20ac", [solve(0), NAME], [[2, "é\'\\"", [1, 2.5]], NAME])\n',
    )
    code, document = run_program(render(small.one(), "repair"))
    assert code == 0
    assert document["observations"][0]["check"] == "é\u20ac"
    assert document["observations"][0]["actual"] == [[2, "é'\"", [1, 2.5]], "é'\""]


@pytest.mark.parametrize(
    ("actual", "expected", "passed"),
    [
        ("1.0", "1", False),
        ("True", "1", False),
        ("-0.0", "0.0", False),
        ("(1,)", "[1]", False),
        ("float('nan')", "float('nan')", True),
        ("[0.1 + 0.2]", "[0.3]", False),
        ("2**53 + 1", "9007199254740993", True),
    ],
)
def test_check_compares_type_by_type_as_the_runner_does(
    small, run_program, actual, expected, passed
):
    """``repr`` tells what ``==`` does not."""
    small.write("families/shifted-sum/impl/repair.py", f"def solve(v):\n    return {actual}\n")
    small.write("families/shifted-sum/fixtures.py", f'check("a", solve(N), {expected})\n')
    code, document = run_program(render(small.one(), "repair"))
    assert (code, document["passed"]) == (int(not passed), passed)


def test_a_role_that_is_not_there_cannot_be_rendered(small):
    """The message names the roles there are."""
    with pytest.raises(UsageError, match="failure, attempt-1, repair"):
        render(small.one(), "attempt-9")
