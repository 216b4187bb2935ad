"""Plain values: equal by type and bits, written as Python, and viewed as ordinary JSON.

The tagged form (``tag``, ``untag``) is explained in ``child/tagged.py``, which the child
process shares with us.
"""

from __future__ import annotations

import json

from failuremap.child.tagged import NotAValue, tag, untag

__all__ = ["NotAValue", "Tagged", "json_view", "same", "shown", "tag", "untag"]

Tagged = list[object]
"""The tagged form of a value, as JSON has it."""


def same(left: object, right: object) -> bool:
    """Whether two plain values are of one type and one content, down to the bits of floats."""
    return tag(left) == tag(right)


def json_view(value: object) -> object:
    """A value as ``json.dumps`` and ``json.loads`` would give it back: tuples become lists."""
    if isinstance(value, list | tuple):
        return [json_view(item) for item in value]
    if isinstance(value, dict):
        return {_json_key(key): json_view(item) for key, item in value.items()}
    return value


def _json_key(key: object) -> str:
    """A dict's key as JSON writes it: ``true``, ``null``, numbers as text."""
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    return key if isinstance(key, str) else repr(key)


def shown(value: object, characters_max: int = 200) -> str:
    """A value as Python text, shortened in the middle where it is long."""
    text = repr(value)
    if len(text) <= characters_max:
        return text
    half = characters_max // 2
    return f"{text[:half]} … {text[-half:]}"
