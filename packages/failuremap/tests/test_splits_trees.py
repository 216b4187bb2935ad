"""Copies of an implementation are found whatever they are called, and other programs are not."""

from __future__ import annotations

import builtins
import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failuremap.errors import SplitError
from failuremap.splits import LINKING_NODES_MIN, normalised_tree, trees_of

TEMPLATES = [
    # Each {letter} is a name of the source's own; the same letter is the same thing.
    """\
def {f}({a}, {b}):
    {c} = {{}}
    for {d}, {e} in {a}:
        if {d} == {b}:
            {c}[{d}] = {c}.get({d}, 0) + {e}
    return sorted({c}.items(), key=lambda {g}: {g}[1])
""",
    """\
import numpy as {a}
from math import fsum as {b}
def {c}({d}, *{e}, {f}=3, **{g}):
    return {b}({a}.abs({d}) + {f}) if {e} else {g}
def {h}({i}):
    return {c}({i}, {f}=len({i}))
""",
    """\
{a} = []
class {b}({c} := dict):
    def __init__(self_, {d}):
        self_.{e} = {d}
    def {f}(self_):
        return self_.{e} and {c}
def {g}({h}):
    global {i}
    {i} = {b}({h})
    def {j}():
        nonlocal {h}
        {h} = None
        return {i}
    with open('x') as {k}:
        {a}.append({k})
    return {j}() or {i}.{f}()
""",
    """\
def {a}({b}):
    try:
        match {b}:
            case [{c}, *{d}] | {{'k': {c}, **{d}}}:
                return {c}, {d}
            case {e}:
                return {e}
    except ValueError as {f}:
        return any(({g} := {h}) for {h} in {b}), {g}, {{**{f}.args}}
""",
]
LETTERS = "abcdefghijk"
taken = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "N", "self_", "numpy", "math"}
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_Nµ", min_size=1, max_size=8).filter(
    lambda name: name.isidentifier() and name not in taken and not name.startswith("__")
)
ATTRIBUTES = {"get", "items", "abs", "append", "args"}
"""Attributes of things from elsewhere; a method of that name makes them the source's own."""


@settings(derandomize=True, max_examples=150, deadline=None, database=None)
@given(
    template=st.sampled_from(TEMPLATES),
    names=st.lists(
        NAMES.filter(lambda n: n not in ATTRIBUTES), min_size=11, max_size=11, unique=True
    ),
)
def test_a_renamed_copy_collides(template: str, names: list[str]) -> None:
    """Arguments, locals, functions, classes, their attributes, captures: no name tells."""
    original = template.format(**{letter: f"name_{letter}" for letter in LETTERS})
    copy = template.format(**dict(zip(LETTERS, names, strict=True)))
    assert normalised_tree(copy) == normalised_tree(original)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "def f(a): return a - N",
            "'Says.'\ndef f(a):\n    'Does.'\n    # how\n    return (a - N)",
        ),
        ("def f(a): return a", "def f(a: list[int]) -> int: return a"),
        ("def f(a):\n b = a\n return b", "def f(a):\n b: int = a\n c: int\n return b"),
        ("def f(a): return N * a", "N = 3\ndef f(a): return N * a"),
        ("N = 3\ndef f(a): return N", "N = 5\ndef f(a): return N"),
        (
            "import numpy as np\ndef f(a): return np.sum(a)",
            "def f(a):\n import numpy\n return numpy.sum(a)",
        ),
        ("from math import fsum\nf = fsum", "from math import fsum as total\nf = total"),
        ("import os.path\nf = os.path", "import os.path as p, os\nf = os.path"),
        # One spelling in two scopes is two names, and a copy may tell them apart.
        ("def f(x): return x\ndef g(x): return x", "def f(x): return x\ndef g(y): return y"),
        ("def f(x): return [x for x in x]", "def f(x): return [y for y in x]"),
        ("def f(x, y=1): return (lambda y=y: y)", "def f(x, y=1): return (lambda z=y: z)"),
        (
            "def f(x): return [x + y for y in x for x in y]",
            "def f(x): return [z + y for y in x for z in y]",
        ),
        (
            "class A:\n x = 1\n def m(self): return x\nx = 2",
            "class A:\n y = 1\n def m(self): return x\nx = 2",
        ),
        (
            "def f(x):\n def g():\n  global x\n  x = 1\n return x",
            "def f(y):\n def g():\n  global x\n  x = 1\n return y",
        ),
        (
            "def f():\n global a\n a = 1\ndef g(): return a",
            "def f():\n global b\n b = 1\ndef g(): return b",
        ),
        (
            "y = 1\ndef f(x): return [y for y in x], y",
            "y = 1\ndef f(x): return [z for z in x], y",
        ),
        (
            "y = 1\ndef f(x):\n def g(y): return y\n return y",
            "y = 1\ndef f(x):\n def g(z): return z\n return y",
        ),
        (
            "def f(a):\n match a:\n  case {'k': 1, **r}: return r",
            "def f(a):\n match a:\n  case {'k': 1, **s}: return s",
        ),
        ("def f(a): return a\nf(a=1)", "def f(b): return b\nf(b=1)"),
    ],
)
def test_what_a_copy_may_change(one: str, other: str) -> None:
    """Layout, prose, annotations, N's value, imports by another name, names scope by scope."""
    assert normalised_tree(one) == normalised_tree(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(a, b): return a - b", "def f(a, b): return b - a"),
        ("def f(a): return a[1:]", "def f(a): return a[:1]"),
        ("def f(a): return a == 1", "def f(a): return a is 1"),
        ("def f(a): return a + 1", "def f(a): return a + 1.0"),
        ("def f(a): return a + 0.0", "def f(a): return a + -0.0"),
        ("def f(a): return True", "def f(a): return 1"),
        ("def f(a): return '1'", "def f(a): return 1"),
        ("def f(a): return None", "def f(a): return"),
        ("def f(a): return sum(a)", "def f(a): return max(a)"),
        ("def f(a): return a.real", "def f(a): return a.imag"),
        ("def f(a): return a", "def f(a): return N"),
        ("def f(a): return {**a, 1: 2}", "def f(a): return {1: 2, **a}"),
        ("def f(a): return sorted(a, key=a)", "def f(a): return sorted(a, cmp=a)"),
        ("def f(a): return [b for b in a if b]", "def f(a): return {b for b in a if b}"),
        ("async def f(a): return [b for b in a]", "async def f(a): return [b async for b in a]"),
        ("def f(a, b): return [c for c in a]", "def f(a, b): return [c for c in b]"),
        ("class A:\n def __eq__(s, o): return o", "class A:\n def __ne__(s, o): return o"),
        (
            "def f(x):\n def g():\n  nonlocal x\n  x = 1\n return x",
            "def f(x):\n def g():\n  y = 1\n return x",
        ),
        ("x = 0\ndef g():\n global x\n x = 1", "x = 0\ndef g():\n y = 1"),
        ("def f(*a): return a", "def f(**a): return a"),
        ("def f(a, /): return a", "def f(*, a): return a"),
        ("def f(*, a, b=1): return a", "def f(*, a=1, b): return a"),
        ("import numpy as m\nf = m.sum", "import math as m\nf = m.sum"),
        ("from . import a\nf = a", "from .. import a\nf = a"),
        ("class A(dict, metaclass=X): pass", "class A(dict, metaclass=Y): pass"),
        ("if a:\n b()\nc()", "if a:\n b()\n c()"),
    ],
)
def test_what_makes_another_program(one: str, other: str) -> None:
    """Operators, constants with their types, order, builtins, attributes, kinds of argument."""
    assert normalised_tree(one).digest != normalised_tree(other).digest


def test_the_digest_stands() -> None:
    """The digest of a source is the same in every version and interpreter: locks rest on it."""
    source = TEMPLATES[0].format(**{letter: letter for letter in LETTERS})
    digest, size = normalised_tree(source)
    assert size == 41
    assert digest == "20a8c30ceb98af372d251e3597ced4538a2951a2ce1df5bb8b1450696a004db3"


def test_small_trees_do_not_link() -> None:
    """The idioms that everybody writes are small; an implementation of some substance is not."""
    idioms = [
        "def solve(rows): return sum(rows)",
        "def solve(rows): return sorted(rows, key=lambda row: row[1])",
        "def solve(rows, step): return sum(row[2] for row in rows if row[0] == step)",
        "def solve(rows):\n t = {}\n for k, v in rows:\n  t[k] = t.get(k, 0) + v\n return t",
        "def solve(rows):\n s = set()\n for r in rows:\n  if r not in s:\n   s.add(r)\n return s",
    ]
    larger = TEMPLATES[0].format(**{letter: letter for letter in LETTERS})
    linking, small = trees_of([*idioms, larger, larger])
    assert len(small) == len(idioms)
    assert linking == {normalised_tree(larger).digest}
    assert trees_of([]) == (frozenset(), frozenset())


def test_the_limit_itself_links() -> None:
    """A tree of exactly the least size links, one of a node less does not."""
    sizes = {}
    for count in range(LINKING_NODES_MIN):
        source = f"def solve(rows):\n    return rows{' + 1' * count}"
        sizes[normalised_tree(source).size] = source
        source = f"def solve(rows):\n    return -rows{' + 1' * count}"
        sizes[normalised_tree(source).size] = source
    assert trees_of([sizes[LINKING_NODES_MIN]])[1] == frozenset()
    assert trees_of([sizes[LINKING_NODES_MIN - 1]])[0] == frozenset()


@pytest.mark.parametrize("source", ["def f(:", "a\0b", "(" * 5000, "-" * 100_000 + "1"])
def test_what_is_no_python_is_an_error(source: str) -> None:
    """A source that cannot be compared is refused, not taken for unlike all others."""
    with pytest.raises(SplitError, match="Python"):
        normalised_tree(source)
