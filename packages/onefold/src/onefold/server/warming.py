"""Compiling the kernels while the server already answers, so that the first close need not.

A thread does it, kernel by kernel. A sum that needs a kernel in the meantime waits at most for the
one that is being compiled, and would else compile its own: Numba compiles under one lock for the
whole process (``numba.core.compiler_lock``), so two threads never compile at once, and whoever
comes second finds the code made. Nothing here can fail a call: an error is logged and ends the
warming only.
"""

from __future__ import annotations

import logging
import threading

__all__ = ["start_warming"]

_LOG = logging.getLogger(__name__)


def start_warming(stopping: threading.Event) -> threading.Thread:
    """Begin to compile all kernels, until they are or ``stopping`` is set, in a thread."""
    thread = threading.Thread(target=_warm, args=(stopping,), name="onefold-warming", daemon=True)
    thread.start()
    return thread


def _warm(stopping: threading.Event) -> None:
    try:
        from onefold.exact.warming import warm_up_steps  # noqa: PLC0415  # it loads much

        for name, step in warm_up_steps():
            if stopping.is_set():
                return
            _LOG.debug("compiling kernels: %s", name)
            step()
    except Exception:  # noqa: BLE001
        # A sum that needs what is missing compiles it, or says what is wrong.
        _LOG.exception("compiling the kernels ahead failed; each is compiled when it is needed")
