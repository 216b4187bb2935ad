"""What the child cannot see: environment, descriptors, memory, network, expected values."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from failuremap.fixtures import parse_fixtures, question_of
from failuremap.runner.limits import Limits
from failuremap.runner.process import Child, Load
from failuremap.runner.running import run_fixtures

SECRET = "a-secret-of-the-parent-0123456789"
LIMITS = Limits(call_seconds=3)


def ask(source, interpreter, *arguments, limits=LIMITS, **options):
    """One answer, and the isolation that applied."""
    with Child(Load.source(source), interpreter, limits, **options) as child:
        return child.ask(question_of(arguments)), child.isolation


def checks(*lines):
    return parse_fixtures("\n".join(lines), {"N": 3})


LOOKING = """
import os

def readable(kind):
    found = []
    for process in sorted(os.listdir('/proc')):
        if not process.isdigit():
            continue
        names = [kind]
        if kind == 'fd':
            try:
                names = [f'fd/{name}' for name in os.listdir(f'/proc/{process}/fd')]
            except OSError:
                continue
        for name in names:
            try:
                file = os.open(f'/proc/{process}/{name}', os.O_RDONLY | os.O_NONBLOCK)
                found.append(os.read(file, 10**6).decode('latin-1'))
                os.close(file)
            except OSError:
                pass
    return found
"""


@pytest.fixture(scope="module")
def isolation(interpreter):
    return ask("def solve(): pass\n", interpreter)[1]


@pytest.fixture
def apart(isolation):
    """Tests that read /proc say something only on Linux, and only where it is the child's own."""
    if "own /proc" not in isolation:
        pytest.skip("this machine gives children no /proc of their own")


def test_the_parents_environment_is_not_found(apart, interpreter, monkeypatch):
    """Neither handed down nor readable in any process that the child can see."""
    monkeypatch.setenv("FAILUREMAP_SECRET", SECRET)
    source = LOOKING + "def solve():\n    return dict(os.environ), readable('environ')\n"
    environment, found = ask(source, interpreter)[0].value
    assert environment == {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}
    assert SECRET not in "".join(found)


def test_the_parents_descriptors_are_not_found(apart, interpreter, tmp_path):
    """A file that the parent holds open, and that has no name any more, cannot be read."""
    file = tmp_path / "secret"
    with file.open("w+") as opened:
        opened.write(SECRET)
        opened.flush()
        file.unlink()
        os.set_inheritable(opened.fileno(), True)
        source = LOOKING + (
            "import fcntl\n"
            "def solve():\n"
            "    own = [os.pread(d, 99, 0).decode() for d in range(3, 99) if regular(d)]\n"
            "    return own, readable('fd'), readable('cmdline')\n"
            "def regular(d):\n"
            "    try: return os.fstat(d).st_size > 0\n"
            "    except OSError: return False\n"
        )
        own, found, commands = ask(source, interpreter)[0].value
    assert own == []
    assert SECRET not in "".join(found)
    assert all("failuremap" in command for command in commands), "only its own processes"


def test_the_parents_memory_cannot_be_read(apart, interpreter):
    """No other process than its own is there to be read, by /proc, by id or by system call."""
    source = (
        "import ctypes, os\n"
        "def attempt(action):\n"
        "    try: return action() and None\n"
        "    except OSError as error: return type(error).__name__\n"
        "def read(process):\n"
        "    return open(f'/proc/{process}/mem', 'rb').close() or True\n"
        "def solve(parent):\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    ptrace = libc.ptrace(16, parent, 0, 0)\n"
        "    return [attempt(lambda: read(parent)), attempt(lambda: read(os.getppid())), ptrace,\n"
        "            sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), os.getpid()]\n"
    )
    by_id, by_parent, traced, processes, own = ask(source, interpreter, os.getpid())[0].value
    assert by_id in ("FileNotFoundError", "PermissionError")
    assert by_parent in ("FileNotFoundError", "PermissionError")
    assert traced == -1
    assert processes == [own]


def test_no_interface_of_the_network_is_there(isolation, interpreter):
    """Its own loopback, which is down, is all that there is."""
    if "own /proc" not in isolation:
        pytest.skip("this machine gives children no namespaces")
    source = (
        "def solve():\n"
        "    lines = open('/proc/net/dev').read().splitlines()[2:]\n"
        "    routes = open('/proc/net/route').read()\n"
        "    return [line.split(':')[0].strip() for line in lines], routes\n"
    )
    interfaces, routes = ask(source, interpreter)[0].value
    assert interfaces == ["lo"]
    assert routes.splitlines()[1:] == []


def test_nothing_is_left_of_what_a_namespaces_first_process_may(apart, interpreter):
    """No capability, and no way to get one by running a program."""
    source = (
        "def solve():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return dict(line.split(':\\t') for line in lines if line[:3] in ('Cap', 'NoN'))\n"
    )
    status = ask(source, interpreter)[0].value
    assert {status[name] for name in ("CapEff", "CapPrm", "CapInh")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"


NUMBERS = {
    "socket": 41, "connect": 42, "bind": 49, "listen": 50, "socketpair": 53, "fork": 57,
    "vfork": 58, "execve": 59, "kill": 62, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84,
    "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "ptrace": 101,
    "setpgid": 109, "setsid": 112, "prctl": 157, "setrlimit": 160, "mount": 165, "tkill": 200,
    "tgkill": 234, "mkdirat": 258, "unlinkat": 263, "renameat": 264, "linkat": 265,
    "symlinkat": 266, "fchmodat": 268, "unshare": 272, "prlimit64": 302, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "renameat2": 316, "execveat": 322,
    "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434, "pidfd_getfd": 438,
}  # fmt: skip
"""Linux on x86-64, from its table of system calls; not read from the code under test."""


def refused_calls(interpreter, numbers):
    """The error of each system call, made with arguments that mean nothing."""
    source = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def solve(numbers):\n"
        "    found = []\n"
        "    for number in numbers:\n"
        "        ctypes.set_errno(0)\n"
        "        libc.syscall(number, -1, -1, -1, -1, -1, -1)\n"
        "        found.append(ctypes.get_errno())\n"
        "    return found\n"
    )
    return dict(
        zip(numbers, ask(source, interpreter, list(numbers.values()))[0].value, strict=True)
    )


def test_system_calls_that_reach_out_are_refused(isolation, interpreter):
    """Each, with "not permitted", whatever its arguments are."""
    if "system call filter" not in isolation:
        pytest.skip("this machine filters no system calls")
    found = refused_calls(interpreter, NUMBERS)
    assert found == dict.fromkeys(NUMBERS, errno.EPERM)


def test_signals_that_are_queued_are_refused_too(isolation, interpreter):
    """``rt_sigqueueinfo`` sends any signal to any process of the user."""
    if "system call filter" not in isolation:
        pytest.skip("this machine filters no system calls")
    queueing = {"rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297}
    assert refused_calls(interpreter, queueing) == dict.fromkeys(queueing, errno.EPERM)


def test_the_child_has_a_process_group_of_its_own_and_ends_with_what_started_it(interpreter):
    """So that all of it can be killed, and so that none of it outlives a parent that was killed."""
    with Child(Load.source("def solve(): return 1\n"), interpreter, LIMITS) as child:
        process = child._process
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid != os.getpgid(0)
        process.kill()
        process.wait(5)
        assert child.ask(question_of([])).outcome == "crash"


def test_the_child_is_told_no_expected_value(interpreter):
    """Nothing in the memory that Python knows of holds an expected value that cannot be guessed."""
    secret = 918_273_645_918_273
    source = (
        "import gc\n"
        "def solve(n):\n"
        f"    wanted = {secret - 1} + n\n"
        "    seen = [o for o in gc.get_objects() if type(o) in (list, dict, tuple)]\n"
        "    return any(str(wanted) in repr(o) for o in seen if len(o) < 99)\n"
    )
    fixtures = checks(f'check("a", solve(1), {secret})')
    run = run_fixtures(Load.source(source), fixtures, interpreter, LIMITS)
    assert run.verdicts[0].actual is False


def test_the_folder_of_a_child_is_empty_and_goes_with_it(interpreter):
    """It runs in a new folder that nothing can be written to, removed at its end."""
    answer, _ = ask("import os\ndef solve():\n    return os.getcwd(), os.listdir()\n", interpreter)
    folder, files = answer.value
    assert files == []
    assert Path(folder) != Path.cwd()
    assert not Path(folder).exists()


def test_no_descriptor_of_the_parent_is_lost(interpreter, sums):
    """After runs that end well and badly the parent has the descriptors that it had."""
    if sys.platform != "linux":
        pytest.skip("descriptors are counted in /proc")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for body in ("return 7", "import os; os._exit(0)", "return open"):
        run_fixtures(Load.source(f"def solve(v): {body}\n"), sums, interpreter, LIMITS)
    run_fixtures(Load.source("x"), sums, replace(interpreter, path="/nowhere"), LIMITS)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
