"""What the process of a server keeps of the memory that it has used."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

ARENAS_AFTER = """
import ctypes, sys, threading
from onefold.server import share_memory_between_threads
if sys.argv[2] == "shared":
    share_memory_between_threads()
everybody = threading.Barrier(16)
def allocate():
    everybody.wait()
    kept = [bytes(10_000) for _ in range(1000)]
    everybody.wait()
threads = [threading.Thread(target=allocate) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


def arenas(path: Path, how: str) -> int:
    command = [sys.executable, "-c", ARENAS_AFTER, str(path), how]
    subprocess.run(command, check=True, timeout=60)
    return len(re.findall("<heap nr=", path.read_text()))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks glibc, which CI has")
def test_threads_share_arenas(tmp_path: Path) -> None:
    """Sixteen threads that allocate at the same time have a few arenas, and not one each."""
    assert arenas(tmp_path / "info", "shared") <= 2
    assert arenas(tmp_path / "info", "as it comes") > 2
