"""The lines of a source as Python counts them."""

from __future__ import annotations

import re

__all__ = ["source_lines"]

_ENDINGS = re.compile("\r\n|\r|\n")


def source_lines(source: str) -> list[str]:
    """The lines to which the line numbers of ``ast`` lead, the first of them at 1.

    ``str.splitlines`` would end a line at a form feed, too.
    """
    return _ENDINGS.split(source)
