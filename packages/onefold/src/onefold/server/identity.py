"""May this caller give this command? The whole of it, without a socket."""

from __future__ import annotations

from onefold.errors import Forbidden
from onefold.tokens import Caller, Role
from onefold.wire import Command, GetStatus, verb_of

__all__ = ["check_allowed"]


def check_allowed(caller: Caller | None, command: Command) -> None:
    """Let through what a caller may do.

    =========  ======  ==============================================
    caller     status  join, leave, put, commit, pull, get
    =========  ======  ==============================================
    None       yes     yes: the server asks nobody who they are
    worker     yes     where the command names this very worker
    observer   yes     no
    =========  ======  ==============================================

    Raises:
        Forbidden: It may not; the message says as whom it may.
    """
    if caller is None or isinstance(command, GetStatus):
        return
    if caller.role is not Role.WORKER:
        raise Forbidden(
            f"{caller.name!r} has the token of an observer, which is good for the status only; "
            f"{verb_of(command)!r} needs that of worker {command.worker!r}"
        )
    if command.worker != caller.name:
        raise Forbidden(
            f"the token is that of worker {caller.name!r}, which cannot give the command "
            f"{verb_of(command)!r} as worker {command.worker!r}; use the token of the worker that "
            "the client is connected as"
        )
