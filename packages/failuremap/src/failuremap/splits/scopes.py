"""Which names a syntax tree binds, and where.

Erasing names without knowing their scopes fails both ways: one placeholder for all makes ``a - b``
and ``b - a`` the same program, while one number for each spelling tells ``x`` here and ``x`` there
from ``y`` here and ``x`` there, which is all that a renamed copy has to change. Scopes are those of
the language reference, section 4.2.2. The standard library's ``symtable`` knows them too, but what
it reports changes with the interpreter, and a digest must not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["COMPREHENSIONS", "FUNCTIONS", "Comprehension", "Function", "Scope"]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True, eq=False)
class Scope:
    """A region of names: a module, function, class body or comprehension.

    Attributes:
        parent: The region around it; None for the module.
        is_class: A class body, whose names the functions in it do not see.
        bound: The names that are bound here.
        global_names: The names that a ``global`` statement hands to the module.
        imported: Where the names that are bound by an import come from.
    """

    parent: Scope | None = None
    is_class: bool = False
    bound: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)
    imported: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_body(
        cls, nodes: Iterable[ast.AST], parent: Scope | None, *, is_class: bool = False
    ) -> Scope:
        """The scope whose statements (or expression) are ``nodes``."""
        scope = cls(parent, is_class)
        handed_on: set[str] = set()
        for node in _own_nodes(nodes):
            scope.bound |= set(_names_bound(node))
            if isinstance(node, ast.Global):
                scope.global_names |= set(node.names)
            elif isinstance(node, ast.Nonlocal):
                handed_on |= set(node.names)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                scope.imported |= dict(_origins(node))
        scope.bound -= handed_on
        return scope

    @classmethod
    def of_function(cls, node: Function, parent: Scope) -> Scope:
        """The scope of a function: its arguments and whatever its body binds."""
        body = node.body if isinstance(node.body, list) else [node.body]
        return cls.of_body([*_arguments(node.args), *body], parent)

    @classmethod
    def of_comprehension(cls, node: Comprehension, parent: Scope) -> Scope:
        """The scope of a comprehension: its targets, and nothing that it assigns with ``:=``."""
        return cls.of_body([generator.target for generator in node.generators], parent)

    @classmethod
    def of_module(cls, tree: ast.Module) -> Scope:
        """The outermost scope, with the names that functions bind in it by ``global``."""
        scope = cls.of_body(tree.body, None)
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                scope.bound |= set(node.names)
        return scope

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        return self if self.parent is None else self.parent.module

    def holder(self, name: str) -> Scope | None:
        """The scope that ``name`` belongs to when it is used here; None if nothing binds it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.global_names:
                return self.module
            if (name in scope.bound or name in scope.imported) and (
                scope is self or not scope.is_class
            ):
                return scope
            scope = scope.parent
        return None


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    starred = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]


def _own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that bind in the scope that ``nodes`` make up: not those of scopes within it."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _children(node)


def _children(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.decorator_list, *_defaults(node.args)]
        case ast.Lambda():
            return _defaults(node.args)
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            # What is assigned with := in a comprehension is bound outside it, its targets are not.
            targets = {id(generator.target) for generator in node.generators}
            inner = [child for part in node.generators for child in ast.iter_child_nodes(part)]
            shown = [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.comprehension)]
            return [*shown, *(child for child in inner if id(child) not in targets)]
        case _:
            return list(ast.iter_child_nodes(node))


def _defaults(arguments: ast.arguments) -> list[ast.AST]:
    return [*arguments.defaults, *(node for node in arguments.kw_defaults if node is not None)]


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name


def _origins(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            root = alias.name.partition(".")[0]
            yield root, root
