"""Kernels as Python calls them: compiled when first needed, kept on disk, loaded without Numba.

Compiling takes seconds and importing Numba half a second, which no process should pay twice. A
kernel's machine code is therefore kept, and a process that finds it there loads it with LLVM's own
loader and calls it through :mod:`ctypes`, which lets go of the interpreter's lock meanwhile.

**The cache** is a directory of the user: ``$ONEFOLD_CACHE``, else ``$XDG_CACHE_HOME/onefold``, else
``~/.cache/onefold``. Where none can be written to, code is compiled afresh in every process, with a
warning. The key is a hash of every file of this package, of Numba's version and of the processor
with its features, so an edit anywhere in it counts. (Numba's own cache looks at the file that a
function stands in, and goes on using stale code when a function that it calls is edited in another
one.) A lock keeps two processes from compiling the same kernel at the same time, files are renamed
into place, and one whose digest does not fit is made again.

**How a kernel is called.** As Numba calls it: the addresses of the result and of a place for
exceptions, of which kernels have none, and then the arguments, arrays as their parts. That is
Numba's own convention and not a promise of it, so its version is in the key, the package asks for
the one that it was written for, and no test passes with another convention.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onefold.exact.kernels.address import address

__all__ = ["Kernel", "cache_directory", "why_not_kept"]

Argument: TypeAlias = "np.ndarray[Any, Any] | int | float"

_LOG = logging.getLogger(__name__)

_lock = threading.RLock()


def _begin_anew() -> None:
    global _lock  # noqa: PLW0603  # a fork keeps no thread that could let go of it
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)


class Kernel:
    """A kernel of a module of this package, called like a function of arrays and numbers.

    Arrays must be contiguous; their dtypes and those of the numbers (``int`` or ``float``) choose
    which compiled variant runs.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name
        self._variants: dict[tuple[object, ...], Callable[..., int]] = {}

    def __call__(self, *arguments: Argument) -> int:
        """What the kernel returns, or 0 if that is nothing."""
        kinds: list[object] = []
        parts: list[object] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                if not argument.flags.c_contiguous:
                    raise ValueError("kernels read memory as it lies")
                kinds += (argument.dtype, argument.ndim)
                parts += (None, None, argument.size, argument.itemsize, address(argument))
                parts += argument.shape
                parts += argument.strides
            else:
                kinds.append(type(argument))
                parts.append(argument)
        variant = self._variants.get(tuple(kinds))
        if variant is None:
            with _lock:
                variant = self._variants.get(tuple(kinds)) or self._load(arguments)
                self._variants[tuple(kinds)] = variant
        result = ctypes.c_int64()
        status = variant(ctypes.byref(result), None, *parts)
        if status:
            raise RuntimeError(f"kernel {self.name} returned {status}, and kernels raise nothing")
        return result.value

    def _load(self, arguments: Sequence[Argument]) -> Callable[..., int]:
        signature = [_kind(argument) for argument in arguments]
        symbol, code = self._code(signature)
        place = _linked(symbol, code)
        types = [kind for argument in arguments for kind in _c_types(argument)]
        pointer = ctypes.c_void_p
        return ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *types)(place)

    def _code(self, signature: Sequence[str]) -> tuple[str, bytes]:
        directory = cache_directory()
        if directory is None:
            _warn()
            return self._compile(signature)
        path = directory / f"{self.name}-{'-'.join(signature).replace(':', 'x')}"
        kept = _read(path)
        if kept is None:
            with _only_one(path):
                kept = _read(path)
                if kept is None:
                    kept = self._compile(signature)
                    _write(path, *kept)
        return kept

    def _compile(self, signature: Sequence[str]) -> tuple[str, bytes]:
        _LOG.info("compiling kernel %s for %s", self.name, ", ".join(signature))
        compiled = importlib.import_module("onefold.exact.kernels.compiled")
        module = importlib.import_module(f"onefold.exact.kernels.{self.module}")
        result: tuple[str, bytes] = compiled.machine_code(getattr(module, self.name), signature)
        return result


def _kind(argument: Argument) -> str:
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype.name}:{argument.ndim}"
    return "float" if isinstance(argument, float) else "int"


def _c_types(argument: Argument) -> list[Any]:
    if isinstance(argument, np.ndarray):
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        return [pointer, pointer, number, number, pointer, *[number] * (2 * argument.ndim)]
    return [ctypes.c_double if isinstance(argument, float) else ctypes.c_int64]


# -- machine code ------------------------------------------------------------------------------


@cache
def _linker() -> Any:
    """LLVM's loader of object files, which owns the memory of all kernels."""
    import llvmlite.binding as llvm  # noqa: PLC0415  # it takes a while, and not all sum

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


def _linked(symbol: str, code: bytes) -> int:
    import llvmlite.binding as llvm  # noqa: PLC0415

    linker = _linker()
    linker.add_object_file(llvm.ObjectFileRef.from_data(code))
    linker.finalize_object()
    address: int = linker.get_function_address(symbol)
    if not address:
        raise RuntimeError(f"{symbol} is not in its code")
    return address


# -- the cache ---------------------------------------------------------------------------------


@cache
def cache_directory() -> Path | None:
    """Where compiled code is kept; None where nothing can be written."""
    global _why_not_kept  # noqa: PLW0603  # of this process
    home = os.environ.get("ONEFOLD_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "onefold"
    )
    try:
        directory = Path(home).expanduser() / f"kernels-{_key()}"
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        _why_not_kept = error
        return None
    return directory


def _key() -> str:
    """A hash of all that compiled code depends on."""
    import llvmlite.binding as llvm  # noqa: PLC0415

    features = llvm.get_host_cpu_features().flatten()
    hasher = hashlib.sha256(repr((version("numba"), llvm.get_host_cpu_name(), features)).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        hasher.update(path.name.encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()[:16]


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold other processes off ``path`` while it is being made, where the system can do that."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # on Windows; on a full disk: then both compile
            import fcntl  # noqa: PLC0415

            file = stack.enter_context(path.with_name(f"{path.name}.lock").open("wb"))
            fcntl.flock(file, fcntl.LOCK_EX)  # let go of when the file is closed
        yield


def _read(path: Path) -> tuple[str, bytes] | None:
    """The symbol and the code in a file; None if it is not there, or is not whole."""
    try:
        digest, symbol, code = path.read_bytes().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    return (symbol.decode(), code) if digest == _digest(symbol, code) else None


def _write(path: Path, symbol: str, code: bytes) -> None:
    """A full disk is no reason to fail: the code is there, and the next process tries again."""
    global _why_not_kept  # noqa: PLW0603  # of this process
    name = symbol.encode()
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(b"\n".join([_digest(name, code), name, code]))
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        _why_not_kept = error
        _warn()


@cache  # once is enough
def _warn() -> None:
    _LOG.warning(
        "compiled kernels cannot be kept (%s), so every process compiles its own, some seconds "
        "each; $ONEFOLD_CACHE names another directory",
        _why_not_kept,
    )


_why_not_kept: Exception | None = None


def why_not_kept() -> Exception | None:
    """Why the last code that this process could not keep was not kept; None if all was."""
    return _why_not_kept


def _digest(symbol: bytes, code: bytes) -> bytes:
    return hashlib.sha256(symbol + code).hexdigest().encode()
