"""A cell of a table as a value: a Python literal, and ``nan`` and ``inf`` as ``repr`` has them."""

from __future__ import annotations

import ast
import math
import warnings

from failuremap.importing.lines import straight
from failuremap.values import NotAValue, tag

__all__ = ["NotLiteral", "literal", "python_tree"]

CHARACTERS_MAX = 10_000
NODES_MAX = 5_000
DEPTH_MAX = 60
_NAMES = {"nan": math.nan, "inf": math.inf}


class NotLiteral(ValueError):
    """The text is no literal that a value can be read from; the message says why."""


def literal(text: str) -> object:
    """The value of a cell, out of backticks and with straight quotes if it needs them."""
    text = text.strip()
    if len(text) > CHARACTERS_MAX:
        raise NotLiteral(f"it has {len(text)} characters, and at most {CHARACTERS_MAX} are read")
    bare = text.strip("`").strip() if text.startswith("`") and text.endswith("`") else text
    try:
        return _value(bare)
    except NotLiteral:
        straightened = straight(bare)
        if straightened == bare:
            raise
        return _value(straightened)


def python_tree(source: str) -> ast.Module:
    """``ast.parse`` whose every failure is a ``SyntaxError``, and that warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise SyntaxError(str(error) or type(error).__name__) from None


def _value(text: str) -> object:
    if _depth(text) > DEPTH_MAX:
        raise NotLiteral(f"it is nested more than {DEPTH_MAX} deep")
    try:
        value = ast.literal_eval(_Names().visit(_expression(text)))
        tag(value)
    except NotLiteral:
        raise
    except NotAValue as error:
        raise NotLiteral(str(error)) from None
    except SyntaxError as error:
        raise NotLiteral(f"it is no Python literal ({error.msg})") from None
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise NotLiteral(f"it is no Python literal ({error})") from None
    return value


def _expression(text: str) -> ast.expr:
    tree = python_tree(text)
    if sum(1 for _ in ast.walk(tree)) > NODES_MAX:
        raise NotLiteral(f"it has more than {NODES_MAX} parts")
    match tree.body:
        case [ast.Expr(value=expression)]:
            return expression
    raise NotLiteral("it is no single Python literal")


def _depth(text: str) -> int:
    """The deepest nesting that the text can have: brackets (also in strings) and signs."""
    deepest = depth = signs = 0
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        signs = signs + 1 if character in "+-~" else 0
        deepest = max(deepest, depth, signs)
    return deepest


class _Names(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in _NAMES:
            return ast.copy_location(ast.Constant(_NAMES[node.id]), node)
        return node
