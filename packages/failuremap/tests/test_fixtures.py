"""The language of fixtures: what it says, what it refuses and where, and that it runs nothing."""

from __future__ import annotations

import time

import pytest

from failuremap.errors import ArchiveError, FixtureError
from failuremap.fixtures import fixtures_digest, parse_fixtures, question_of
from failuremap.values import same, tag

N = {"N": 3}


def expected(expression, parameters=N):
    """The value of an expression, as an expected value."""
    return parse_fixtures(f'check("a", solve(1), {expression})', parameters)[0].expected


@pytest.mark.parametrize(
    "expression",
    [
        "1",
        "-1",
        "+1",
        "--1.5",
        "-0.0",
        "0x10",
        "1_000",
        "1e999",
        "None",
        "True",
        "False",
        "''",
        "'a' \"b\"",
        "'é\\x00'",
        "[]",
        "()",
        "(1,)",
        "{}",
        "[1, (2, [3.0, {'k': ('v',)}]), None]",
        "{2: 1, 'k': [], None: ()}",
        "{(1, 'a'): 0}",
        "N",
        "[N, N + 1, N - 1, N * 2, N / 2, N // 2, N % 2, N ** 2]",
        "7 // -2",
        "-7 % 3",
        "2 ** 0",
        "2 ** 4095",
        "2.5 ** 2",
        "'a' + 'b' + 'c'",
        "[1] + [2] + []",
        "(1,) + ()",
        "str(N)",
        "str(-12)",
        "'w' + str(10 * N)",
        "float(2)",
        "float(2 ** 53 + 1)",
        "float('inf')",
        "float('-inf')",
        "float('nan')",
        "[i for i in range(4)]",
        "[[i, i * N] for i in range(2, 8, 3)]",
        "[[i + j for j in range(i)] for i in range(4, 0, -1)]",
        "[i for i in range(0)]",
        "[N for N in range(2)] + [N]",
        "[str(i) for i in range(N)]",
    ],
)
def test_an_expression_has_the_value_that_python_gives_it(expression):
    """Python itself is the oracle, type by type and bit by bit."""
    assert same(expected(expression), eval(expression, dict(N)))


@pytest.mark.parametrize(
    "expression",
    [
        "print(1)",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "unknown",
        "[].append",
        "[1][0]",
        "'%s' % 1",
        "'x' * 3",
        "[0] * 3",
        "'a' + 1",
        "[1] + (2,)",
        "None + 1",
        "True + 1",
        "-True",
        "-'a'",
        "~1",
        "not 1",
        "1 < 2",
        "1 and 2",
        "1 if 2 else 3",
        "1 << 2",
        "1 | 2",
        "1 @ 2",
        "lambda: 1",
        "(lambda: 1)()",
        "{1, 2}",
        "{**{1: 2}}",
        "[*[1]]",
        "{[1]: 2}",
        "{1: 2 for i in range(3)}",
        "{i for i in range(3)}",
        "(i for i in range(3))",
        "[i for i in [1, 2]]",
        "[i for i in range(3) if i]",
        "[i for i, j in range(3)]",
        "[i + j for i in range(3) for j in range(3)]",
        "[i async for i in range(3)]",
        "[i for i in range()]",
        "[i for i in range(1, 2, 3, 4)]",
        "[i for i in range(stop=3)]",
        "[i for i in range(3.0)]",
        "[i for i in range(True)]",
        "[i for i in range(1, 5, 0)]",
        "f'{1}'",
        "b'x'",
        "1j",
        "...",
        "(x := 1)",
        "await x",
        "(yield)",
        "str(1.5)",
        "str(True)",
        "str(None)",
        "str([1])",
        "str()",
        "str(1, 2)",
        "float('1.5')",
        "float('infinity')",
        "float(None)",
        "float(True)",
        "float(x=1)",
        "float(10 ** 400)",
        "int(1)",
        "abs(1)",
        "max(1, 2)",
        "list()",
        "tuple([1])",
        "solve(1)",
        "check",
        "1 / 0",
        "1 // 0",
        "1 % 0",
        "1.0 / 0",
        "10 ** 400 / 1",
        "10 ** 400 * 1.0",
        "2 ** -1",
        "2 ** 0.5",
        "(-8) ** 0.5",
    ],
)
def test_what_is_no_pure_expression_is_refused_with_its_line(expression):
    """Calls, names, attributes, operators: each is an error that says file and line."""
    for statement in (f'check("a", solve(1), {expression})', f'check("a", solve({expression}), 1)'):
        if statement.endswith("solve(solve(1)), 1)"):
            continue
        source = f"# a comment\n\n{statement}"
        with pytest.raises(FixtureError, match=r"^rows\.py(, line 3: expected |: not Python: )"):
            parse_fixtures(source, N, file="rows.py")


@pytest.mark.parametrize(
    "expression",
    [
        "10 ** 10 ** 10",
        "10 ** (10 ** 10)",
        "2 ** 4096",
        "(2 ** 4095) * 2",
        "-(2 ** 4095) - 2 ** 4095",
        "9 ** 9 ** 9 ** 9",
        "2.0 ** 5000",
        "[i for i in range(10 ** 9)]",
        "[[j for j in range(500)] for i in range(500)]",
        "[[[[0 for i in range(99)] for i in range(99)] for i in range(99)] for i in range(99)]",
        "[2 ** 4095 * i for i in range(1000)]",
    ],
)
def test_what_would_fill_memory_or_time_is_refused_before_it_does(expression):
    """Pure is not enough: sizes are bounded, and the refusal takes moments."""
    started = time.process_time()
    with pytest.raises(FixtureError, match="line 1: expected"):
        expected(expression)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "from os import path",
        "x: int = 1",
        "x = y = 1",
        "x, y = 1, 2",
        "x += 1",
        "[x] = [1]",
        "x.y = 1",
        "del x",
        "if True:\n    check('b', solve(1), 1)",
        "for i in range(3): check('b', solve(i), i)",
        "while 1: pass",
        "def solve(v): return v",
        "class A: pass",
        "with x: pass",
        "try: pass\nfinally: pass",
        "assert True",
        "pass",
        "raise ValueError",
        "'not the first statement'",
        "1",
        "solve(1)",
        "print(1)",
        "check('b', solve(1))",
        "check('b', solve(1), 1, 2)",
        "check('b', solve(1), expected=1)",
        "check(*['b', solve(1), 1])",
        "a.check('b', solve(1), 1)",
        "x = check('b', solve(1), 1)",
        "x = solve(1)",
        "N = 4",
        "solve = 1",
        "check = 1",
        "global x",
    ],
)
def test_statements_other_than_names_and_checks_are_refused_with_their_line(source):
    """The second line is the one that is named."""
    with pytest.raises(FixtureError, match=r"^fixtures\.py, line 2: expected "):
        parse_fixtures(f'check("a", solve(1), 1)\n{source}', N)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "at least one check"),
        ("# nothing\n", "at least one check"),
        ("x = 1\n", "line 1: expected a check that uses x"),
        ("x = 1\ny = x\ncheck('a', solve(x), 1)", "line 3: expected a check that uses y"),
        ("x = 1\nx = 2\ncheck('a', solve(x), 1)", "line 2: expected a name that is not taken"),
        ("check('a', solve(x), 1)\nx = 1", "line 1: .*found `x`"),
        ("check('a', solve(1), 1)\ncheck('a', solve(2), 2)", "line 2: expected a label that no"),
        ("solve = 1\ncheck('a', solve(solve), 1)", "line 1: expected a name that is not taken"),
        ("check = 1\ncheck('a', solve(check), 1)", "line 1: expected a name that is not taken"),
        ("check('', solve(1), 1)", "line 1: expected a label in quotes"),
        ("check(' \\n', solve(1), 1)", "line 1: expected a label in quotes"),
        ("check(f'a', solve(1), 1)", "line 1: expected a label in quotes"),
        ("check('a' + 'b', solve(1), 1)", "line 1: expected a label in quotes"),
        ("check(1, solve(1), 1)", "line 1: expected a label in quotes"),
        ("check(N, solve(1), 1)", "line 1: expected a label in quotes"),
        ("check('a', 1, 1)", r"line 1: expected solve\(...\), or a list"),
        ("check('a', [1], 1)", r"line 1: expected solve\(...\), or a list"),
        ("check('a', [[], ()], 1)", r"line 1: expected solve\(...\), or a list"),
        ("check('a', [solve], 1)", "line 1: .*found `solve`"),
        ("check('a', {1: solve(1)}, 1)", "line 1: .*found `solve"),
        ("check('a', solve(1) + 1, 1)", "line 1: .*found `solve"),
        ("check('a', solve(solve(1)), 1)", "line 1: .*found `solve"),
        ("check('a', solve(v=1), 1)", "line 1: .*found `solve"),
        ("check('a', solve(*[1]), 1)", r"line 1: .*found `\*\[1\]`"),
        ("check('a', [solve(i) for i in range(2)], 1)", "line 1: .*found `solve"),
        ("check('a', solve(1), 1", "not Python"),
        ("check('a', solve(1), 1)\0", "not Python"),
        ("check('a', solve(1), " + "[" * 5000 + "]" * 5000 + ")", "not Python"),
        ("check('a', solve(1), " + "-" * 3000 + "1)", "not Python|too deep"),
        ("check('a', solve(1), " + "9" * 5000 + ")", "not Python"),
    ],
)
def test_a_file_that_breaks_a_rule_is_told_which(source, words):
    """A message for each rule, and always an error of the archive."""
    with pytest.raises(FixtureError, match=words) as caught:
        parse_fixtures(source, N)
    assert isinstance(caught.value, ArchiveError)
    assert len(str(caught.value)) < 400


def test_nothing_is_executed(tmp_path):
    """Refused or accepted, a file of fixtures touches nothing."""
    mark = tmp_path / "mark"
    for source in (
        f"check('a', solve(open({str(mark)!r}, 'w')), 1)",
        f"check('a', solve(1), [open({str(mark)!r}, 'w') for i in range(1)])",
        f"check('a', solve(1), 1)\nopen({str(mark)!r}, 'w')",
    ):
        with pytest.raises(FixtureError):
            parse_fixtures(source, N)
    assert not mark.exists()


def test_a_fixture_is_its_label_question_and_expected_value_with_its_line():
    """A docstring, comments and blank lines are free; order is kept; parameters are put in."""
    source = (
        '"""About."""\n\n# rows\nrows = [N, "a"]\n'
        'check(\n    "one",\n    solve(rows, N, [1]),\n    2 * N,\n)\n'
        'check("two", [solve((N,)), (solve(rows), rows, N)], ())\n'
    )
    one, two = parse_fixtures(source, N)
    assert (one.label, one.expected, one.line) == ("one", 6, 6)
    assert one.question.names == {"rows": tag([3, "a"])}
    assert one.question.template == [
        "call",
        [["name", "rows"], ["value", tag(3)], ["value", tag([1])]],
    ]
    assert one.question.inputs() == [tag([3, "a"]), tag(3), tag([1])]
    assert (two.label, two.expected, two.line) == ("two", (), 10)
    assert two.question.template == [
        "l",
        [
            ["call", [["value", tag((3,))]]],
            ["t", [["call", [["name", "rows"]]], ["name", "rows"], ["value", tag(3)]]],
        ],
    ]
    assert two.question.inputs() == [tag([3, "a"]), tag((3,))]


def test_a_name_is_one_thing_in_a_check_and_a_copy_elsewhere():
    """By name only where it stands alone in a call or beside it; within a display it is a value."""
    source = (
        'rows = [1]\nmore = [rows, rows]\ncheck("a", [solve(rows, [rows]), solve(more)], rows)\n'
    )
    fixture = parse_fixtures(source, {})[0]
    call, other = fixture.question.template[1]
    assert call == ["call", [["name", "rows"], ["value", tag([[1]])]]]
    assert other == ["call", [["name", "more"]]]
    assert fixture.question.names == {"rows": tag([1]), "more": tag([[1], [1]])}
    fixture.expected.append(2)
    assert fixture.question.names["rows"] == tag([1])


def test_values_of_names_and_parameters_are_never_shared():
    """Changing what one fixture expects changes neither another nor the parameters."""
    parameters = {"N": [1]}
    source = 'rows = [N]\ncheck("a", solve(rows), rows)\ncheck("b", solve(N), rows)\n'
    one, two = parse_fixtures(source, parameters)
    one.expected[0].append(2)
    assert two.expected == [[1]]
    assert parameters == {"N": [1]}


def test_a_question_of_arguments_is_one_call():
    """What generated inputs are asked with."""
    question = question_of([[1], "x"])
    assert question.document() == {
        "names": {},
        "template": ["call", [["value", tag([1])], ["value", tag("x")]]],
    }
    assert question.inputs() == [tag([1]), tag("x")]


BASE = 'x = [N]\ncheck("a", solve(x, 1), 1)\ncheck("b", solve(2), 2)\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"a"', '"A"'),
        ("1), 1", "1), 1.0"),
        ("1), 1", "1), True"),
        ("x, 1", "x, 2"),
        ("solve(x, 1)", "solve(1, x)"),
        ("solve(x, 1)", "solve(x + [], 1)"),
        ("solve(x, 1)", "[solve(x, 1)]"),
        ("solve(2)", "[solve(2), solve(2)]"),
        ("[N]", "(N,)"),
        ("[N]", "[N, N]"),
        ("x", "y"),
    ],
)
def test_the_digest_of_fixtures_covers_what_they_ask_and_expect(old, new):
    """Labels, values, types, names, shape."""
    changed = BASE.replace(old, new)
    assert changed != BASE
    assert fixtures_digest(parse_fixtures(changed, N)) != fixtures_digest(parse_fixtures(BASE, N))


def test_the_digest_of_fixtures_covers_order_and_parameters_but_not_spelling():
    """Comments, layout and the way to write a value do not count; order and N do."""
    digest = fixtures_digest(parse_fixtures(BASE, N))
    respelled = (
        '# !\nx = [\n    2 + 1,\n]\ncheck("a", solve(x, 4 - 3), 1)\n\ncheck("b", solve(2), 1 + 1)'
    )
    assert fixtures_digest(parse_fixtures(respelled, N)) == digest
    assert fixtures_digest(parse_fixtures(BASE, {"N": 4})) != digest
    assert fixtures_digest(parse_fixtures(BASE, N)[::-1]) != digest


# Bugs that were found: what should be a FixtureError is another exception, or none.


@pytest.mark.parametrize(
    "statement",
    [
        'check("a", solve(1), [i for i in range(10 ** 30)])',
        'check("a", solve(1), {(1, [2]): 3})',
        'check("a", solve("\\ud800"), 1)',
        'check("a", solve(1), "\\ud800")',
        'check("\\ud800", solve(1), 1)',
        'check("a", solve(' + "[" * 102 + "]" * 102 + "), 1)",
        'check("a", solve(1), ' + "[" * 102 + "]" * 102 + ")",
        'check("a", solve(1), 0x' + "f" * 4000 + ")",
        'check("a", solve(1), ' + "9" * 4000 + ")",
        'check("a", solve(1), {1: 2, 1: 3})',
        'check("a", solve(1), {1: 2, True: 3})',
        'range = 3\ncheck("a", solve(range), [i for i in range(3)])',
        'str = 3\ncheck("a", solve(str), str(3))',
        'observations = []\ncheck("a", solve(observations), 1)',
        'json = 1\ncheck("a", solve(json), 1)',
        'passed = 1\ncheck("a", solve(passed), 1)',
        "\n".join(
            ['a0 = "0123456789"']
            + [f"a{i} = a{i - 1} + a{i - 1}" for i in range(1, 19)]
            + ['check("a", solve(a18), 1)']
        ),
    ],
)
def test_what_cannot_be_a_fixture_is_a_fixture_error(statement):
    """Whatever cannot be digested, asked, or said by the stand-alone program is refused here."""

    def documents():
        return [fixture.document() for fixture in parse_fixtures(statement, N)]

    with pytest.raises(FixtureError):
        documents()
