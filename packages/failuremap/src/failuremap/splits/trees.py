"""The syntax tree of a source with everything erased that a copy changes.

Two cases with one implementation under two sets of names are one case to whoever trains on them.
So the digest is of the tree, and the tree says nothing of

* layout, comments, docstrings and annotations;
* the value of ``N``, in which the variants of a family differ;
* the spelling of names that the source binds: each is numbered where it first appears, scope by
  scope (:mod:`~failuremap.splits.scopes`), as are the attributes that the source itself sets;
* how an imported thing is called: ``np.sum``, ``numpy.sum`` and ``n.sum`` are one.

What is left are structure, operators, constants, builtins, and attributes of other people's
objects. Reordering or rewriting escapes it: this finds copies, not equivalent programs.

Small trees coincide without being copies: ``return sorted(rows)`` is nobody's. Under
:data:`LINKING_NODES_MIN` nodes a coincidence is a warning and joins nothing. Measured: a builtin
over the arguments has 7 to 13 nodes, an idiom of one line (filter, sum where, sort by a key) 11 to
22, and the loops that everybody writes (count into a dictionary, drop repeats in order) 18 to 30.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

from failuremap.errors import SplitError
from failuremap.splits.scopes import COMPREHENSIONS, FUNCTIONS, Comprehension, Function, Scope

__all__ = ["LINKING_NODES_MIN", "Tree", "normalised_tree", "trees_of"]

LINKING_NODES_MIN = 32
"""The fewest nodes at which two equal trees are taken for a copy."""

_PARAMETER = "N"
_UNSAID = {"annotation", "ctx", "kind", "returns", "type_comment", "type_params"}
_NAME_FIELDS = {
    ("FunctionDef", "name"),
    ("AsyncFunctionDef", "name"),
    ("ClassDef", "name"),
    ("Name", "id"),
    ("arg", "arg"),
    ("ExceptHandler", "name"),
    ("MatchAs", "name"),
    ("MatchStar", "name"),
    ("MatchMapping", "rest"),
}


class Tree(NamedTuple):
    """A normalised tree: the SHA-256 (hex) of it, and its number of nodes."""

    digest: str
    size: int


def normalised_tree(source: str) -> Tree:
    """The digest and size of a source's tree, the same for every renamed copy of it.

    Raises:
        SplitError: The source is not Python, or is nested too deeply to be walked.
    """
    try:
        writer = _Writer(ast.parse(source))
    except SyntaxError as error:
        raise SplitError(
            f"line {error.lineno}: expected Python, got {error.msg}; a source that does not parse "
            "cannot be compared with others"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SplitError(f"the source cannot be read as Python: {error}") from None
    # The tokens are a flat list, so that depth is no matter here.
    said = json.dumps(writer.tokens, separators=(",", ":"))
    return Tree(hashlib.sha256(said.encode()).hexdigest(), writer.size)


def trees_of(sources: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The digests of the sources' trees: of those that link, and of those too small to."""
    trees = [normalised_tree(source) for source in sources]
    small = frozenset(tree.digest for tree in trees if tree.size < LINKING_NODES_MIN)
    return frozenset(tree.digest for tree in trees) - small, small


class _Writer:
    """Writes a tree as tokens, in the order of its fields; names by where they are bound."""

    def __init__(self, tree: ast.Module) -> None:
        self.tokens: list[str] = []
        self.size = 0
        self._numbers: dict[tuple[object, str], int] = {}
        self._own_attributes = _attributes_set(tree)
        self._scope = Scope.of_module(tree)
        # What renders the program binds N where the source does not.
        self._scope.bound.add(_PARAMETER)
        self._write(tree)

    def _write(self, node: ast.AST) -> None:
        if _says_nothing(node):
            return
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign(targets=[node.target], value=node.value)
        self.size += 1
        self.tokens.append(f"({type(node).__name__}")
        if isinstance(node, FUNCTIONS):
            self._function(node)
        elif isinstance(node, COMPREHENSIONS):
            self._comprehension(node)
        elif isinstance(node, ast.ClassDef):
            self._fields(node, "name", "bases", "keywords", "decorator_list")
            self._within(Scope.of_body(node.body, self._scope, is_class=True), node, "body")
        elif isinstance(node, ast.Call):
            self._call(node)
        else:
            self._fields(node, *node._fields)
        self.tokens.append(")")

    def _function(self, node: Function) -> None:
        """Decorators and defaults are evaluated outside, arguments and body belong inside."""
        self._fields(node, "name", "decorator_list")
        self._fields(node.args, "defaults", "kw_defaults")
        inner = Scope.of_function(node, self._scope)
        self._within(inner, node.args, "posonlyargs", "args", "vararg", "kwonlyargs", "kwarg")
        self._within(inner, node, "body")

    def _comprehension(self, node: Comprehension) -> None:
        """The first iterable is evaluated outside; all else belongs inside."""
        self._write(node.generators[0].iter)
        inner = Scope.of_comprehension(node, self._scope)
        outer, self._scope = self._scope, inner
        for position, generator in enumerate(node.generators):
            self.tokens.append("for" if not generator.is_async else "async for")
            self._fields(generator, "target", "ifs", *(["iter"] if position else []))
        self._fields(node, "elt", "key", "value")
        self._scope = outer

    def _call(self, node: ast.Call) -> None:
        """Keywords of the source's own functions are argument names, and are erased as those."""
        self._fields(node, "func", "args")
        own = isinstance(node.func, ast.Name) and self._is_own(node.func.id)
        for keyword in node.keywords:
            self.size += 1
            erased = own and keyword.arg is not None
            self.tokens.append(f"keyword {'' if erased else keyword.arg or '**'}")
            self._write(keyword.value)

    def _within(self, scope: Scope, node: ast.AST, *names: str) -> None:
        outer, self._scope = self._scope, scope
        self._fields(node, *names)
        self._scope = outer

    def _fields(self, node: ast.AST, *names: str) -> None:
        """What the node has to say. A field that is empty or absent is not mentioned.

        So a field that a later interpreter adds, and that older programs leave empty, leaves the
        digest as it was.
        """
        for name in names:
            value = getattr(node, name, None)
            if name in _UNSAID or (value is None and not isinstance(node, ast.Constant)):
                continue
            if value == []:
                continue
            self.tokens.append(name)
            self._value(node, name, value)

    def _value(self, node: ast.AST, field: str, value: object) -> None:
        if isinstance(value, ast.AST):
            self._write(value)
        elif isinstance(value, list):
            for item in value:
                self._value(node, field, item)
        elif isinstance(value, str) and (type(node).__name__, field) in _NAME_FIELDS:
            self.tokens.append(self._name(value))
        elif isinstance(node, ast.Attribute) and value in self._own_attributes:
            self.tokens.append(self._number("attribute", str(value)))
        else:
            self.tokens.append(f"{type(value).__name__} {value!r}")

    def _is_own(self, name: str) -> bool:
        holder = self._scope.holder(name)
        return holder is not None and name not in holder.imported

    def _name(self, name: str) -> str:
        holder = self._scope.holder(name)
        if holder is None:
            return f"builtin {name}"
        if name in holder.imported:
            return f"import {holder.imported[name]}"
        if holder.is_class:
            own = name in self._own_attributes
            return self._number("attribute", name) if own else f"special {name}"
        return self._number(holder, name)

    def _number(self, holder: object, name: str) -> str:
        """A name by its place in the order in which the names of this source first appear."""
        return f"#{self._numbers.setdefault((holder, name), len(self._numbers))}"


def _says_nothing(node: ast.AST) -> bool:
    """Whether a statement is one of those that copies differ in and results do not."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
            return True  # resolved in every name that they concern
        case ast.Expr(value=ast.Constant(value=str())):
            return True  # a docstring, or a comment in the shape of one
        case ast.Assign(targets=[ast.Name(id="N")], value=ast.Constant()):
            return True  # in a rendered program
        case ast.AnnAssign(value=None):
            return True
        case _:
            return False


def _attributes_set(tree: ast.Module) -> frozenset[str]:
    """The attributes that the source itself sets, on its classes or on their objects."""
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            named |= Scope.of_body(node.body, Scope(), is_class=True).bound
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            named.add(node.attr)
    return frozenset(name for name in named if not name.startswith("__"))
