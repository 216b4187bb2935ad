"""What confines the child, from the strongest that the kernel allows to what is always there.

On Linux, where the kernel lets us:

- *namespaces*: new user, process, network, IPC and mount namespaces. No network interface is up; no
  other process can be seen, signalled or read; when the child ends, all it started ends with it.
- *system calls* (x86-64): a filter that answers "not permitted" to opening a socket, starting a
  process or program, writing, creating or removing a file, reading another process, raising a
  limit.
- *limits*: memory, processor time, file size, open files, no core dumps.

Everywhere: a new process group, which the parent kills, and the limits that the system knows.

Not confined: reading. The child can read what its user can read on disk, fixtures of the open tier
among them. The record of each run says which of the above was really applied.

The applied parts are named by words (``namespaces``, ``no network``, ...), which the first answer
lists. Raising ``OSError`` here means that the machine, not the program, is at fault.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

from failuremap.child import seccomp

__all__ = ["confine"]

_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522


def confine(limits: dict[str, int], *, isolate: bool) -> list[str]:
    """Confine this process for good; the parts that were really applied, as words.

    With namespaces this forks: the caller goes on in the confined process, and the process that it
    was waits for it and ends with its exit status.
    """
    applied = []
    on_linux = sys.platform == "linux"
    libc = ctypes.CDLL(None, use_errno=True) if isolate and on_linux else None
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if libc is not None and _enter_namespaces(libc):
        applied += ["user namespace", "process namespace", "no network"]
    if libc is not None:
        _become_worker(libc)
        if applied and _own_proc(libc):
            applied.append("own /proc")
        if applied:
            _drop_capabilities(libc)
    applied += _set_limits(limits, signals=isolate)
    if libc is not None:
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if seccomp.install(libc):
            applied += ["system call filter", "no new processes", "no file writes"]
            if "no network" not in applied:
                applied.append("no network")
    return sorted(applied)


def _enter_namespaces(libc: ctypes.CDLL) -> bool:
    """New namespaces, or none: the user's ids are mapped onto themselves."""
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWNS
    if libc.unshare(flags) != 0:
        return False
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    return True


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _become_worker(libc: ctypes.CDLL) -> None:
    """Fork: the worker goes on and dies with its parent, which waits and ends as the worker did."""
    process = os.fork()
    if process == 0:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        return
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _own_proc(libc: ctypes.CDLL) -> bool:
    """A /proc that shows only this namespace."""
    if libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None) != 0:
        return False
    return bool(libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID_NODEV_NOEXEC, None) == 0)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up what being first in a user namespace grants."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def _set_limits(limits: dict[str, int], *, signals: bool) -> list[str]:
    """The limits of this process; soft and hard alike, so that they cannot be raised again."""
    wanted = {
        "memory limit": (resource.RLIMIT_AS, limits.get("memory_bytes")),
        "processor limit": (resource.RLIMIT_CPU, limits.get("cpu_seconds")),
        "file size limit": (resource.RLIMIT_FSIZE, limits.get("file_bytes")),
        "open file limit": (resource.RLIMIT_NOFILE, limits.get("open_files")),
    }
    applied = []
    for word, (kind, value) in wanted.items():
        if value is None:
            continue
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            continue  # macOS knows no limit on memory: the record then lacks the word
        applied.append(word)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if signals:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing too much is an error, not a crash
    return applied
