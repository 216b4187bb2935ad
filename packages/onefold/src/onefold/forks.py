"""gRPC in a process that was forked: it waits for threads that only its parent has, for ever."""

from __future__ import annotations

import os

from onefold.errors import TransportError

__all__ = ["use_grpc"]

_used_in: int | None = None


def use_grpc() -> None:
    """Note that this process uses gRPC; to be called before each use, and cheap.

    Raises:
        TransportError: It is a fork of one that had used it already.
    """
    global _used_in  # noqa: PLW0603 - gRPC's own state is the whole process's
    process = os.getpid()
    if _used_in is None:
        _used_in = process
    if _used_in != process:
        raise TransportError(
            f"process {process} is a fork of {_used_in}, which had connected or served already; "
            "gRPC works in no fork of such a process: fork before, or start processes by 'spawn'"
        )
