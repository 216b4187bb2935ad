"""How a kernel is compiled: the only module, with its siblings' decorators, that needs Numba.

A kernel is a plain function that Numba compiles for the processor it runs on. None uses
``fastmath``: it would let the compiler cancel ``(a + b) - a`` to ``b``, on which everything here
rests, and lose NaN and -0.0.

Kernels allocate nothing and raise nothing, and so need nothing of Numba once they are compiled:
:mod:`onefold.exact.kernels.loading` keeps their machine code and calls it, in this process and in
later ones.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numba
import numba.extending
from numba import types

__all__ = ["by_type", "entry", "inner", "machine_code"]

_OPTIONS = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,  # no allocations, so no counting of references either
}

_DECLARED = re.compile(r"^declare .*?@\"?([^\"(]+)", re.MULTILINE)

_KNOWN = re.compile(r"llvm\.|mem(cpy|move|set)$|fma$|fmaf$")
"""What machine code may refer to: it is in every process."""


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call; its code becomes part of theirs."""
    compiled: Callable[..., Any] = numba.njit(**_OPTIONS)(function)
    return compiled


entry = inner
"""The same for a kernel that Python calls, by way of the package's list of kernels."""


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


def machine_code(kernel: Any, signature: Sequence[str]) -> tuple[str, bytes]:
    """Compile a kernel.

    Args:
        kernel: What :func:`entry` returned.
        signature: The type of each argument: ``int``, ``float``, or for an array its dtype and
            number of dimensions, as in ``float32:2``.

    Returns:
        The symbol of the function in the code, and the code: an object file.
    """
    arguments = tuple(_numba_type(kind) for kind in signature)
    with _quiet():
        kernel.compile(arguments)
    result = kernel.overloads[arguments]
    for declared in _DECLARED.findall(result.library.get_llvm_str()):
        if not _KNOWN.match(declared):
            raise RuntimeError(f"{declared} would be missing where Numba is not loaded")
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Numba says of every line it compiles out of a log for which nobody asked for it."""
    logger = logging.getLogger("numba")
    level = logger.level
    if level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _numba_type(kind: str) -> Any:
    dtype, _, dimensions = kind.partition(":")
    if not dimensions:
        return {"int": types.int64, "float": types.float64}[kind]
    return types.Array(getattr(types, dtype), int(dimensions), "C")
