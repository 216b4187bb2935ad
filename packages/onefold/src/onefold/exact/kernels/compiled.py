"""How a kernel is compiled, and where the compiled code is kept.

A kernel is a plain function that Numba compiles for the processor it runs on. All kernels release
the interpreter's lock, and none uses ``fastmath``: it would let the compiler cancel
``(a + b) - a`` to ``b``, on which everything here rests, and lose NaN and -0.0.

**The cache.** Compiling takes seconds, so the code is kept on disk, in a directory of the user
(``$ONEFOLD_CACHE``, else ``$XDG_CACHE_HOME/onefold``, else ``~/.cache/onefold``; where none can be
written to, code is compiled afresh in every process). Numba's own cache looks at the file that a
function stands in, and goes on using stale code when a function that it *calls* is edited in
another file. So the stamp here is a hash of every file of this package; Numba itself adds its own
version, the processor and its features. The directory's name has the hash too, so that two
versions of onefold do not throw each other's code away.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numba.extending
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

__all__ = ["by_type", "cache_directory", "entry", "inner"]

_OPTIONS = {"nogil": True, "error_model": "numpy"}


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call; its code becomes part of theirs."""
    compiled: Callable[..., Any] = numba.njit(**_OPTIONS)(function)
    return compiled


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel that Python calls, and keep its code."""
    compiled: Any = numba.njit(**_OPTIONS)(function)
    if cache_directory() is not None:
        compiled._cache = _KernelCache(function)  # noqa: SLF001  # what cache=True does, with ours
    result: Callable[..., Any] = compiled
    return result


def by_type(choose: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """A function that kernels call, and that is another one for other types.

    ``choose`` gets Numba's types of the arguments and returns what to compile for them, with the
    same parameters.
    """

    @wraps(choose)
    def stand_in(*_arguments: Any) -> Any:
        raise NotImplementedError("only kernels can call this")

    numba.extending.overload(stand_in, strict=False, jit_options=_OPTIONS)(choose)
    return stand_in


@cache
def cache_directory() -> Path | None:
    """Where compiled code is kept; None where nothing can be written."""
    home = os.environ.get("ONEFOLD_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "onefold"
    )
    try:
        directory = Path(home).expanduser() / f"kernels-{_source_hash()[:16]}"
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None
    return directory


@cache
def _source_hash() -> str:
    """Of all that the compiled code depends on, but for what Numba looks at by itself."""
    hasher = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        hasher.update(path.name.encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


class _Locator(_CacheLocator):
    """Tells Numba our directory and our stamp."""

    def __init__(self, function: FunctionType) -> None:
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return _source_hash()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> _Locator:
        return cls(py_func)


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl
