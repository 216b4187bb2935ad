"""A filter on the system calls of this process: a list of what is answered with EPERM.

Everything else is allowed: a filter that allows only what Python needs would have to follow every
release of Python and its C library. Opening a file is allowed for reading only. A thread may be
started, a process not. The numbers are those of x86-64 (Linux, ``asm/unistd_64.h``); on another
processor no filter is installed and the record says so by its absence.

The program is classic BPF (``linux/filter.h``, ``linux/seccomp.h``): load a word of the call's
description, compare, jump over what does not apply, return what to do.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

__all__ = ["install"]

_ARCHITECTURE_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE = 0, 4
_OFFSET_ARGUMENTS = 16

_LOAD_WORD, _JUMP_EQUAL, _JUMP_ANY_BIT, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_UNKNOWN = 0x00050000 | errno.ENOSYS

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CLONE_THREAD = 0x00010000

_REFUSED = {
    "network": {"socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50,
                "socketpair": 53, "accept4": 288},
    "processes": {"fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "kill": 62, "tkill": 200,
                  "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
                  "pidfd_send_signal": 424, "pidfd_open": 434, "pidfd_getfd": 438,
                  "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
                  "setsid": 112, "setpgid": 109},
    "files": {"creat": 85, "truncate": 76, "rename": 82, "renameat": 264, "renameat2": 316,
              "mkdir": 83, "mkdirat": 258, "rmdir": 84, "link": 86, "linkat": 265, "unlink": 87,
              "unlinkat": 263, "symlink": 88, "symlinkat": 266, "mknod": 133, "mknodat": 259,
              "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92, "fchown": 93, "lchown": 94,
              "fchownat": 260, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "utime": 132,
              "utimes": 235, "utimensat": 280, "futimesat": 261, "memfd_create": 319},
    "shared": {"shmget": 29, "shmat": 30, "semget": 64, "msgget": 68, "mq_open": 240},
    "kernel": {"unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
               "chroot": 161, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298, "keyctl": 250,
               "add_key": 248, "request_key": 249, "io_uring_setup": 425, "io_uring_enter": 426,
               "io_uring_register": 427, "setrlimit": 160, "prlimit64": 302, "prctl": 157,
               "seccomp": 317, "personality": 135},
}  # fmt: skip
_OPEN, _OPENAT, _OPENAT2, _CLONE, _CLONE3, _FCNTL = 2, 257, 437, 56, 435, 72
_SIGNALLING = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX: they have the kernel send signals to other processes."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(libc: ctypes.CDLL) -> bool:
    """Install the filter for this process and what it becomes; whether the kernel took it."""
    if os.uname().machine != "x86_64" or struct.calcsize("P") != 8:
        return False
    instructions = b"".join(_instructions())
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Program(len(instructions) // 8, ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _instructions() -> list[bytes]:
    program = [
        _step(_LOAD_WORD, _OFFSET_ARCHITECTURE),
        _step(_JUMP_EQUAL, _ARCHITECTURE_X86_64, yes=1),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD_WORD, _OFFSET_NUMBER),
        _step(_JUMP_AT_LEAST, _X32_BIT, no=1),
        _step(_RETURN, _KILL_PROCESS),
    ]
    # New forms of old calls keep their arguments in memory, which a filter cannot read: a C library
    # that is told "no such call" goes back to the old form.
    for number in (_OPENAT2, _CLONE3):
        program += [_step(_JUMP_EQUAL, number, no=1), _step(_RETURN, _UNKNOWN)]
    for group in _REFUSED.values():
        for number in group.values():
            program += [_step(_JUMP_EQUAL, number, no=1), _step(_RETURN, _REFUSE)]
    program += _by_bits(_OPEN, argument=1, bits=_WRITING, refuse_if_set=True)
    program += _by_bits(_OPENAT, argument=2, bits=_WRITING, refuse_if_set=True)
    program += _by_bits(_CLONE, argument=0, bits=_CLONE_THREAD, refuse_if_set=False)
    program += _by_value(_FCNTL, argument=1, values=_SIGNALLING)
    return [*program, _step(_RETURN, _ALLOW)]


def _by_bits(number: int, *, argument: int, bits: int, refuse_if_set: bool) -> list[bytes]:
    """Refuse one call by the bits of one argument (its low word); leaves other calls alone."""
    skip = {"yes": 0, "no": 1} if refuse_if_set else {"yes": 1, "no": 0}
    return [
        _step(_JUMP_EQUAL, number, no=4),
        _step(_LOAD_WORD, _OFFSET_ARGUMENTS + 8 * argument),
        _step(_JUMP_ANY_BIT, bits, **skip),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]


def _by_value(number: int, *, argument: int, values: tuple[int, ...]) -> list[bytes]:
    """Refuse one call where one argument (its low word) has one of some values."""
    compared = [
        step
        for value in values
        for step in (_step(_JUMP_EQUAL, value, no=1), _step(_RETURN, _REFUSE))
    ]
    return [
        _step(_JUMP_EQUAL, number, no=len(compared) + 2),
        _step(_LOAD_WORD, _OFFSET_ARGUMENTS + 8 * argument),
        *compared,
        _step(_RETURN, _ALLOW),
    ]


def _step(code: int, constant: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction: ``yes`` and ``no`` say how many to jump over."""
    return struct.pack("=HBBI", code, yes, no, constant)
