"""A published stand-alone program in its parts: docstring, parameters, implementation, fixtures.

A program is a module of these top-level pieces, in any order that runs:

- a docstring and imports;
- parameters, ``N = <int>``: assignments of an integer to a name in capitals;
- the implementation: ``solve``, and the helpers, classes and constants that it reaches;
- the report: ``check``, the list it fills, what is computed from that list, ``print``, the exit;
- the fixtures: ``check(...)`` calls, and the names that they use.

The last two may stand in ``def main()``, called at the end. A piece belongs to a part by what it
reaches, not by where it stands: a constant that ``solve`` reads is implementation wherever it is
assigned, and a function that only ``check`` calls is part of the report. Anything else (a loop of
checks, a ``try`` around them, two statements on a line) is refused by line: a program that is
understood in half would be verified in half.
"""

from __future__ import annotations

import ast
import re
import symtable
import textwrap
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from failuremap.errors import ImportFailure
from failuremap.programs.lines import source_lines

__all__ = ["SplitProgram", "split_program"]

_PARAMETER = re.compile("[A-Z][A-Z0-9_]*")
_KEPT = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
_REPORTERS = {"print", "sys.stdout.write", "sys.stdout.flush", "sys.exit", "exit", "quit"}


@dataclass(frozen=True, slots=True)
class SplitProgram:
    """The parts of a program.

    Attributes:
        docstring: The module's docstring.
        params: The parameters by name, ``N`` as a rule.
        implementation: The source that defines ``solve``: imports, constants, helpers, ``solve``.
        fixtures: The source of the fixtures: assignments and ``check(...)`` calls.
    """

    docstring: str
    params: Mapping[str, int]
    implementation: str
    fixtures: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """A top-level statement, its text with the comments above it, and the names in it."""

    node: ast.stmt
    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    called: str | None = field(default=None)


def split_program(source: str, *, name: str = "the program") -> SplitProgram:
    """The parts of a stand-alone program; ``ImportFailure`` names the line that has no place."""
    tree = _parsed(source, name)
    pieces = _flat(_pieces(tree.body, source_lines(source), name), name)
    parts = _Parts(pieces, name)
    implementation = [piece for piece in pieces if parts.is_implementation(piece)]
    fixtures = [piece.text for piece in pieces if piece in parts.fixtures]
    return SplitProgram(
        ast.get_docstring(tree) or "",
        parts.params,
        _joined(implementation),
        "\n".join(fixtures) + "\n",
    )


class _Parts:
    """Which piece belongs where, decided by what it reaches."""

    def __init__(self, pieces: list[_Piece], name: str) -> None:
        self._name = name
        solve = [piece for piece in pieces if "solve" in piece.binds]
        if len(solve) != 1 or not isinstance(solve[0].node, ast.FunctionDef):
            raise ImportFailure(f"{name}: expected one function `def solve(...)`")
        checks = [piece for piece in pieces if piece.called == "check"]
        if not checks:
            raise ImportFailure(f'{name}: expected calls check("label", actual, expected)')
        self._report = _report(pieces, name)
        asked = [p for p in _reach(checks, pieces, without="check") if p not in solve]
        self._docstring = pieces[0] if _is_docstring(pieces[0].node) else None
        direct = frozenset[str]().union(*(check.reads for check in checks))
        self.params = {
            key: value
            for piece in pieces
            for key, value in _parameter(piece)
            if key == "N" or key in direct
        }
        self._used = _reach(solve, pieces)
        self._asked = asked
        self.fixtures = checks + [
            piece
            for piece in asked
            if isinstance(piece.node, ast.Assign | ast.AnnAssign)
            and piece.binds.isdisjoint(self.params)
            and not (piece in self._used and piece.binds.isdisjoint(direct))
        ]

    def is_implementation(self, piece: _Piece) -> bool:
        """Whether the piece is part of the implementation; ``ImportFailure`` if of nothing."""
        if piece is self._docstring or not piece.binds.isdisjoint(self.params):
            return False
        if isinstance(piece.node, ast.Import | ast.ImportFrom):
            return _imported(piece, [*self._used, *self._asked])
        if piece in self._used:
            return True
        if piece in self.fixtures or piece in self._report:
            return False
        if piece.binds.isdisjoint({"check", "solve"}) and isinstance(piece.node, _KEPT):
            return True  # used by a fixture, or by nothing: the implementation had it
        raise _refused(piece, self._name)


def _joined(pieces: list[_Piece]) -> str:
    text = ""
    simple = True
    for piece in pieces:
        plain = not isinstance(piece.node, ast.FunctionDef | ast.ClassDef)
        between = "" if not text else "\n" if plain and simple else "\n\n\n"
        text, simple = text + between + piece.text, plain
    return text + "\n"


def _parsed(source: str, name: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError as error:
            where = f"{name}, line {error.lineno}"
            raise ImportFailure(f"{where}: expected a Python program, came {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ImportFailure(f"{name}: expected a Python program: {error}") from None


def _pieces(body: Iterable[ast.stmt], lines: list[str], name: str) -> list[_Piece]:
    """The statements with their texts; comments above a statement belong to it."""
    pieces: list[_Piece] = []
    ended = 0
    for node in body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if first <= ended:
            raise ImportFailure(
                f"{name}, line {first}: expected one statement a line; "
                "put each on a line of its own"
            )
        above = first - 1
        while above > ended and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        ended = node.end_lineno or node.lineno
        text = textwrap.dedent("\n".join(lines[above:ended]))
        try:
            pieces.append(_Piece(node, text, *_names(node, text), _called(node)))
        except (RecursionError, MemoryError, ValueError):
            raise ImportFailure(f"{name}, line {first}: the statement is nested too deep") from None
    return pieces


def _flat(pieces: list[_Piece], name: str) -> list[_Piece]:
    """The pieces with the body of ``main()``, and of ``if __name__ == ...``, in their place."""
    flat: list[_Piece] = []
    for piece in pieces:
        node = piece.node
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test) and not node.orelse:
            body = node.body
        elif isinstance(node, ast.FunctionDef) and node.name == "main":
            if node.args.args or node.args.kwonlyargs or node.args.vararg or node.args.kwarg:
                raise ImportFailure(
                    f"{name}, line {node.lineno}: expected main() to take no arguments"
                )
            body = node.body[1:] if _is_docstring(node.body[0]) else node.body
        else:
            flat.append(piece)
            continue
        offset = node.lineno - 1
        own = piece.text.split("\n")
        own = own[len(own) - ((node.end_lineno or 0) - offset) :]
        flat += _pieces(body, [""] * offset + own, name)
    return flat


def _report(pieces: list[_Piece], name: str) -> list[_Piece]:
    """``check``, what it fills, what is computed from that, and what prints and exits."""
    check = next((piece for piece in pieces if "check" in piece.binds), None)
    if check is None:
        raise ImportFailure(f"{name}: expected a function `def check(label, actual, expected)`")
    names = {
        bound
        for piece in _reach([check], pieces)
        if isinstance(piece.node, ast.Assign | ast.AnnAssign)
        for bound in piece.binds
        if isinstance(piece.node.value, ast.List | ast.Dict | ast.Call)
        or not _PARAMETER.fullmatch(bound)
    }
    report = [piece for piece in pieces if piece is check or piece.binds & names]
    for piece in pieces:
        if piece in report or "solve" in piece.binds or piece.called == "check":
            continue
        assigns = isinstance(piece.node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        if (assigns and piece.reads & names) or _reports(piece):
            names |= piece.binds
            report.append(piece)
    solve = [piece for piece in pieces if "solve" in piece.binds]
    kept = _reach([*solve, *(p for p in pieces if p.called == "check")], pieces, without="check")
    return report + [
        piece
        for piece in _reach(report, pieces)
        if piece not in report and piece not in kept and isinstance(piece.node, _KEPT)
    ]


def _reports(piece: _Piece) -> bool:
    node = piece.node
    if isinstance(node, ast.Raise | ast.Return | ast.Global | ast.Nonlocal | ast.Pass):
        return True
    return piece.called in {*_REPORTERS, "main"} or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _reach(roots: list[_Piece], pieces: list[_Piece], without: str = "") -> list[_Piece]:
    """The pieces that these reach by the names they read, the roots among them."""
    reached = list(roots)
    names: set[str] = set()
    pending = list(roots)
    while pending:
        fresh = pending.pop().reads - names - {without}
        names |= fresh
        for piece in pieces:
            if piece not in reached and piece.binds & fresh:
                reached.append(piece)
                pending.append(piece)
    return reached


def _parameter(piece: _Piece) -> list[tuple[str, int]]:
    match piece.node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ) if _PARAMETER.fullmatch(name):
            pass
        case _:
            return []
    match value:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return [(name, number)]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return [(name, -number)]
    return []


def _imported(piece: _Piece, users: list[_Piece]) -> bool:
    if isinstance(piece.node, ast.ImportFrom) and piece.node.module == "__future__":
        return True
    return any(piece.binds & user.reads for user in users)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names(node: ast.stmt, text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The module's names that a statement binds, and those that it reads, inside functions too."""
    try:
        top = symtable.symtable(text, "<statement>", "exec")
    except SyntaxError:  # a `return` out of the body of main()
        reads = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        return frozenset(), frozenset(reads)
    binds = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    binds |= {child.get_name() for child in top.get_children() if child.get_type() != "annotation"}
    binds &= {s.get_name() for s in top.get_symbols()}
    reads = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    pending = list(top.get_children())
    while pending:
        table = pending.pop()
        pending += table.get_children()
        reads |= {s.get_name() for s in table.get_symbols() if s.is_global()}
    return frozenset(binds), frozenset(reads)


def _called(node: ast.stmt) -> str | None:
    """``f`` or ``a.f`` where the statement is a call of it and nothing else."""
    match node:
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function)
    return None


def _refused(piece: _Piece, name: str) -> ImportFailure:
    came = next(line for line in piece.text.split("\n") if not line.lstrip().startswith("#"))
    return ImportFailure(
        f"{name}, line {piece.node.lineno}: expected an import, an assignment, a function, a "
        f'class, check("label", actual, expected) or the report at the end, came `{came[:80]}`; '
        "it can be run as a whole, but its fixtures cannot be told from its implementation"
    )
