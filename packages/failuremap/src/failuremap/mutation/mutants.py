"""Syntax-tree mutants: the small mistakes that somebody could have made instead.

Fixtures that let a mutant of the repair pass do not pin the contract down. Each operator here is a
kind of mistake seen in reducers; a mutant is the source with exactly one place changed by one
operator. Mutants that come to the same source are one; the unchanged source is none.

===================  ==============================================================================
comparisons          ``==`` to ``!=`` and ``is``; ``<`` to ``<=`` and ``>=``; ``in`` to ``not in``
arithmetic           ``+`` to ``-``; ``*`` to ``+``; ``//`` to ``/``; ``%`` to ``//``; ``+=`` to
``=``
signs                ``-x`` to ``x``; ``not x`` to ``x``
constants            numbers by one up and down, and to zero; ``True`` to ``False``; strings emptied
slices and indices   each bound dropped; the step dropped; an index moved by one
calls                ``f(x)`` to ``x`` (``abs``, ``int``, ``sorted``, ...); ``max`` to ``min`` and
                     ``sum``; a keyword (``key``, ``reverse``, ``default``) dropped; ``d.get`` and
                     ``d.setdefault`` defaults dropped
branches             a condition to ``True`` and ``False``; ``and`` to ``or``; ``if`` arms swapped
statements           one dropped; ``continue`` to ``break`` and back
comprehensions       a filter dropped
===================  ==============================================================================
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from failuremap.digests import source_digest
from failuremap.errors import ArchiveError

__all__ = ["Mutant", "mutants"]

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq, ast.Is),
    ast.NotEq: (ast.Eq, ast.IsNot),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot, ast.Eq),
    ast.IsNot: (ast.Is, ast.NotEq),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS = {
    "all": ("any",),
    "any": ("all",),
    "max": ("min", "sum"),
    "min": ("max",),
    "sum": ("max", "len"),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A source with one place changed; its name says where and how."""

    name: str
    source: str

    @property
    def digest(self) -> str:
        """The digest of the mutated source, which an ``equivalent`` entry states."""
        return source_digest(self.source)


Change = tuple[str, Callable[[], None]]
"""What a change does, in words, and how to do it to the tree that the node belongs to."""


def mutants(source: str) -> list[Mutant]:
    """The distinct mutants of a source, in the order of their places."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ArchiveError(f"a source to be mutated is not Python: {error}") from None
    seen = {ast.unparse(tree)}
    found: list[Mutant] = []
    count = sum(1 for _ in _changes(copy.deepcopy(tree)))
    for index in range(count):
        changed = copy.deepcopy(tree)
        line, words, apply = next(c for i, c in enumerate(_changes(changed)) if i == index)
        apply()
        ast.fix_missing_locations(changed)
        text = ast.unparse(changed)
        if text not in seen:
            seen.add(text)
            found.append(Mutant(f"line {line}: {words}", text + "\n"))
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Every change of one place, in a fixed order."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            children = value if isinstance(value, list) else [value]
            for position, node in enumerate(children):
                if not isinstance(node, ast.AST) or _is_docstring(parent, node):
                    continue
                place = _Place(parent, field, position if isinstance(value, list) else None)
                for words, apply in _of_node(node, place):
                    yield getattr(node, "lineno", getattr(parent, "lineno", 0)), words, apply


def _is_docstring(parent: ast.AST, node: ast.AST) -> bool:
    body = getattr(parent, "body", None)
    first = isinstance(body, list) and body and body[0] is node
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return bool(first and constant) or (
        isinstance(parent, ast.Expr) and isinstance(node, ast.Constant)
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node hangs, so that it can be exchanged or dropped."""

    parent: ast.AST
    field: str
    position: int | None

    def put(self, node: ast.AST) -> Callable[[], None]:
        def apply() -> None:
            if self.position is None:
                setattr(self.parent, self.field, node)
            else:
                getattr(self.parent, self.field)[self.position] = node

        return apply

    def put_pass(self) -> Callable[[], None]:
        return self.put(ast.Pass())


def _of_node(node: ast.AST, place: _Place) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from _comparison(node)
        case ast.BinOp():
            yield from _arithmetic(node)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _said(node, "and/or exchanged"), lambda: setattr(node, "op", other)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield f"`{ast.unparse(node)}` without its sign", place.put(node.operand)
        case ast.Constant():
            yield from _constant(node, place)
        case ast.Subscript():
            yield from _subscript(node)
        case ast.Call():
            yield from _call(node, place)
        case ast.comprehension():
            for index, condition in enumerate(node.ifs):
                yield f"filter `{ast.unparse(condition)}` dropped", _pop(node.ifs, index)
        case ast.stmt():
            yield from _statement(node, place)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield from _branch(node)


def _said(node: ast.AST, words: str) -> str:
    text = ast.unparse(node).splitlines()[0]
    return f"`{text}`: {words}"


def _pop(items: list[ast.expr], index: int) -> Callable[[], None]:
    def apply() -> None:
        items.pop(index)

    return apply


def _comparison(node: ast.Compare) -> Iterator[Change]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:

            def apply(index: int = index, other: type[ast.cmpop] = other) -> None:
                node.ops[index] = other()

            yield _said(node, f"compared by {other.__name__}"), apply


def _arithmetic(node: ast.BinOp) -> Iterator[Change]:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        yield _said(node, f"{other.__name__} instead"), lambda: setattr(node, "op", other())


def _constant(node: ast.Constant, place: _Place) -> Iterator[Change]:
    value = node.value
    others: list[object] = []
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, int | float):
        others = [value + 1, value - 1, value * 0]
    elif isinstance(value, str) and value:
        others = [""]
    elif value is None:
        others = [0]
    for other in others:
        if other != value or type(other) is not type(value):
            yield f"`{value!r}` is {other!r}", place.put(ast.Constant(other))  # type: ignore[arg-type]


def _subscript(node: ast.Subscript) -> Iterator[Change]:
    if isinstance(node.slice, ast.Slice):
        cut = node.slice
        for bound in ("lower", "upper", "step"):
            if getattr(cut, bound) is not None:
                yield (
                    _said(node, f"{bound} dropped"),
                    lambda bound=bound: setattr(cut, bound, None),  # type: ignore[misc]
                )


def _call(node: ast.Call, place: _Place) -> Iterator[Change]:
    if isinstance(node.func, ast.Name):
        if len(node.args) == 1:
            yield _said(node, "call dropped"), place.put(node.args[0])
        for other in _CALLS.get(node.func.id, ()):
            yield (
                _said(node, f"{other} instead"),
                lambda other=other: setattr(  # type: ignore[misc]
                    node, "func", ast.Name(other, ast.Load())
                ),
            )
    for keyword in list(node.keywords):
        yield (
            _said(node, f"`{keyword.arg}` dropped"),
            lambda keyword=keyword: node.keywords.remove(  # type: ignore[misc]
                keyword
            ),
        )
    if isinstance(node.func, ast.Attribute) and len(node.args) == 2:
        yield _said(node, "second argument dropped"), _pop(node.args, 1)


def _statement(node: ast.stmt, place: _Place) -> Iterator[Change]:
    match node:
        case ast.AugAssign():
            other = _ARITHMETIC.get(type(node.op))
            if other is not None:
                yield _said(node, f"{other.__name__} instead"), lambda: setattr(node, "op", other())
            plain = ast.Assign([copy.deepcopy(node.target)], copy.deepcopy(node.value))
            yield _said(node, "assigned, not added"), place.put(plain)
            yield _said(node, "dropped"), place.put_pass()
        case ast.Continue():
            yield "`continue` is `break`", place.put(ast.Break())
            yield "`continue` dropped", place.put_pass()
        case ast.Break():
            yield "`break` is `continue`", place.put(ast.Continue())
            yield "`break` dropped", place.put_pass()
        case ast.Assign() | ast.Expr() | ast.Delete():
            yield _said(node, "dropped"), place.put_pass()


def _branch(node: ast.If | ast.While | ast.IfExp) -> Iterator[Change]:
    values = (True, False) if not isinstance(node, ast.While) else (False,)
    for value in values:
        yield (
            _said(node, f"condition {value}"),
            lambda value=value: setattr(  # type: ignore[misc]
                node, "test", ast.Constant(value)
            ),
        )
    if not isinstance(node, ast.While) and node.orelse:

        def swap() -> None:
            node.body, node.orelse = node.orelse, node.body

        yield _said(node, "arms swapped"), swap
