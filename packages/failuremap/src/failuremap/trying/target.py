"""The function that somebody wants to try, and how the archive's arguments reach it.

The function is named ``MODULE:FUNCTION`` and imported by the user's interpreter from the current
directory or whatever that interpreter has installed. It is the user's own code, so it is not
confined; it runs in a process of its own, which may crash or hang without harm to us.

An adapter is a Python file with ``adapt(function, *arguments)``, which calls the function as it
wants to be called and gives back a plain value. Arrays, series and tensors become lists without
one.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from failuremap.errors import UsageError
from failuremap.runner.interpreters import Interpreter, interpreter_at
from failuremap.runner.limits import Limits
from failuremap.runner.process import Child, Load

__all__ = ["Target", "read_target"]

_NAME = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


@dataclass(frozen=True, slots=True)
class Target:
    """A function to try."""

    module: str
    attribute: str
    adapter: str | None
    adapter_file: str
    interpreter: Interpreter
    limits: Limits

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return f"{self.module}:{self.attribute}"

    def child(self) -> Child:
        """A process that has imported the function."""
        return Child(
            Load(
                {
                    "module": self.module,
                    "attribute": self.attribute,
                    "adapter": self.adapter,
                    "adapter_file": self.adapter_file,
                    "functions": ["solve"],
                    "path": [str(Path.cwd())],
                    "lenient": True,
                }
            ),
            self.interpreter,
            self.limits,
            isolate=False,
        )


def read_target(
    text: str,
    *,
    adapter: Path | None = None,
    python: str | None = None,
    call_seconds: float = 10.0,
) -> Target:
    """The target that a command line names; ``UsageError`` says what is wrong with it."""
    found = _NAME.fullmatch(text)
    if found is None:
        raise UsageError(f"expected MODULE:FUNCTION, such as onefold:reduce_replicas, got {text!r}")
    if not 0 < call_seconds < math.inf:
        raise UsageError(f"--timeout: expected a number of seconds above 0, got {call_seconds:g}")
    source = None
    if adapter is not None:
        try:
            source = adapter.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the adapter cannot be read: {error}") from None
        if "def adapt(" not in source:
            raise UsageError(f"{adapter}: expected def adapt(function, *arguments)")
    return Target(
        found[1],
        found[2],
        source,
        str(adapter or "adapter.py"),
        interpreter_at(python or sys.executable),
        Limits(call_seconds=call_seconds),
    )
