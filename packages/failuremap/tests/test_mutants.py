"""Syntax-tree mutants: the listed ones, one place each, the same every time."""

from __future__ import annotations

import ast
import hashlib
import warnings
from pathlib import Path

import pytest

from failuremap.errors import ArchiveError
from failuremap.mutation import mutants

# By operator: a source, and every mutant of it. A mutant's whole text is compared.
EXACT = {
    "a == b": {"a != b", "a is b"},
    "a != b": {"a == b", "a is not b"},
    "a < b": {"a <= b", "a >= b"},
    "a <= b": {"a < b", "a > b"},
    "a > b": {"a >= b", "a <= b"},
    "a >= b": {"a > b", "a < b"},
    "a is b": {"a is not b", "a == b"},
    "a is not b": {"a is b", "a != b"},
    "a in b": {"a not in b"},
    "a not in b": {"a in b"},
    "a < b < c": {"a <= b < c", "a >= b < c", "a < b <= c", "a < b >= c"},
    "a + b": {"a - b"},
    "a - b": {"a + b"},
    "a * b": {"a + b"},
    "a / b": {"a * b"},
    "a // b": {"a / b"},
    "a % b": {"a // b"},
    "a ** b": {"a * b"},
    "a & b": {"a | b"},
    "a | b": {"a & b"},
    "a << b": {"a >> b"},
    "a >> b": {"a << b"},
    "a @ b": set(),
    "a + b - c": {"a - b - c", "a + b + c"},
    "-a": {"a"},
    "not a": {"a"},
    "+a": set(),
    "a and b": {"a or b"},
    "a or b": {"a and b"},
    "7": {"8", "6", "0"},
    "1": {"2", "0"},
    "0": {"1", "-1"},
    "1.5": {"2.5", "0.5", "0.0"},
    "True": {"False"},
    "False": {"True"},
    "None": {"0"},
    "'x'": {"''"},
    "''": set(),
    "a[b:c:d]": {"a[:c:d]", "a[b::d]", "a[b:c]"},
    "a[:c]": {"a[:]"},
    "a[b]": set(),
    "a[1]": {"a[2]", "a[0]"},
    "abs(a)": {"a"},
    "sorted(a)": {"a"},
    "max(a)": {"a", "min(a)", "sum(a)"},
    "min(a)": {"a", "max(a)"},
    "sum(a)": {"a", "max(a)", "len(a)"},
    "any(a)": {"a", "all(a)"},
    "all(a)": {"a", "any(a)"},
    "f(a, b)": set(),
    "f()": set(),
    "sorted(a, key=b, reverse=c)": {"a", "sorted(a, reverse=c)", "sorted(a, key=b)"},
    "f(**a)": {"f()"},
    "d.get(a, b)": {"d.get(a)"},
    "d.get(a)": set(),
    "a if b else c": {"a if True else c", "a if False else c", "c if b else a"},
    "[a for a in b if c]": {"[a for a in b]"},
    "[a for a in b if c if d]": {"[a for a in b if d]", "[a for a in b if c]"},
    "{a: b for a in c if d}": {"{a: b for a in c}"},
    "a": set(),
}


@pytest.mark.parametrize("expression", EXACT)
def test_an_expression_has_the_mutants_of_its_operator(expression):
    """In a return statement: all of them, and no others."""
    found = {mutant.source for mutant in mutants(f"return {expression}")}
    wanted = EXACT[expression]
    assert found == {ast.unparse(ast.parse(f"return {w}")) + "\n" for w in wanted}


STATEMENTS = {
    "a += b": {"a -= b", "a = b", "pass"},
    "a @= b": {"a = b", "pass"},
    "a = b": {"pass"},
    "del a": {"pass"},
    "f(a)": {"a", "pass"},
    "return a": set(),
    "while a:\n    b": {"while False:\n    b", "while a:\n    pass"},
    "while a:\n    break": {
        "while False:\n    break",
        "while a:\n    continue",
        "while a:\n    pass",
    },
    "for a in b:\n    continue": {"for a in b:\n    break", "for a in b:\n    pass"},
    "if a:\n    return b": {"if True:\n    return b", "if False:\n    return b"},
    "if a:\n    return b\nelse:\n    return c": {
        "if True:\n    return b\nelse:\n    return c",
        "if False:\n    return b\nelse:\n    return c",
        "if a:\n    return c\nelse:\n    return b",
    },
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_has_the_mutants_of_its_kind(statement):
    """All of them, and no others."""
    found = {mutant.source for mutant in mutants(f"g(a, b)\n{statement}")}
    wanted = {f"g(a, b)\n{mutant}\n" for mutant in STATEMENTS[statement]}
    wanted.add(f"pass\n{ast.unparse(ast.parse(statement))}\n")
    assert found == wanted


REPAIR = '''"""About."""

import math


def solve(rows, step):
    """Docstring."""
    latest = {}
    for row_step, worker, value in rows:
        if row_step == step and value is not None:
            latest[worker] = abs(value) + 1
    return math.fsum(sorted(latest.values(), key=abs)[1:]) if latest else 0
'''


def compile_quietly(text):
    """Compile a mutant; ``is`` with a literal is one of the mistakes, and Python warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        compile(text, "mutant", "exec")


def test_mutants_are_distinct_compile_and_differ_from_their_source_in_one_place():
    """None is the unchanged source, however it is written; none is there twice; all are Python."""
    found = mutants(REPAIR)
    assert len(found) > 20
    texts = [mutant.source for mutant in found]
    assert len(set(texts)) == len(texts)
    original = ast.unparse(ast.parse(REPAIR))
    for mutant in found:
        assert mutant.source.endswith("\n")
        text = mutant.source.rstrip("\n")
        assert text != original
        assert ast.unparse(ast.parse(text)) == text
        compile_quietly(text)
        changed = set(text.splitlines()) ^ set(original.splitlines())
        assert len(changed) <= 2, mutant.name


def test_docstrings_are_no_constants_to_be_changed():
    """Neither of the module nor of functions and classes; nor are they dropped."""
    source = (
        '"""About."""\n\n\nclass A:\n    """Of the class."""\n\n'
        '    def f(self):\n        """Of f."""\n'
    )
    assert mutants(source) == []


def test_mutants_are_the_same_every_time_and_for_every_spelling():
    """Their order, too: layout and comments change names' lines at most."""
    assert mutants(REPAIR) == mutants(REPAIR)
    respelled = REPAIR.replace("latest = {}", "latest  =  {  }  # rows by worker")
    assert mutants(respelled) == mutants(REPAIR)
    assert mutants("# a comment\n\n" + REPAIR) != []
    moved = mutants("\n\n" + REPAIR)
    assert [mutant.source for mutant in moved] == [mutant.source for mutant in mutants(REPAIR)]


def test_a_mutant_says_where_and_how_and_has_the_digest_of_its_source():
    """``family.toml`` states both for an equivalent one."""
    found = {mutant.name: mutant for mutant in mutants("x = 1\ny = a == b\n")}
    assert "line 2: `a == b`: compared by Is" in found
    assert "line 1: `1` is 2" in found
    mutant = found["line 1: `1` is 2"]
    assert mutant.source == "x = 2\ny = a == b\n"
    assert mutant.digest == hashlib.sha256(mutant.source.encode()).hexdigest()


def test_a_source_that_is_no_python_is_an_error():
    """Of the archive."""
    with pytest.raises(ArchiveError, match="not Python"):
        mutants("def solve(:\n")


def test_an_empty_source_has_no_mutants():
    """Nor has one of comments."""
    assert mutants("") == mutants("# nothing\n") == []


def families():
    return sorted(Path(__file__).parents[3].glob("archive/families/*/impl/*.py"))


@pytest.mark.parametrize("file", families(), ids=lambda file: f"{file.parts[-3]}-{file.stem}")
def test_the_mutants_of_the_archives_implementations_can_be_run(file):
    """Each is Python with a ``solve`` in it, and has a name of its own or is told by its digest."""
    found = mutants(file.read_text(encoding="utf-8"))
    assert found
    assert len({(mutant.name, mutant.digest) for mutant in found}) == len(found)
    for mutant in found:
        compile_quietly(mutant.source)
        assert "def solve(" in mutant.source
