"""Programs that want a pass without being right, or want out; and what they must get.

Each is asked for the sums of ``[1, 2, 4]`` and ``[]``. ``{marks}`` stands for a file that no
program may come to write, ``{witness}`` for one that must stay as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HOSTILE", "Hostile"]


@dataclass(frozen=True)
class Hostile:
    """A program, the statuses that its first fixture may have, and the isolation it is about."""

    name: str
    source: str
    statuses: tuple[str, ...]
    needs: str = ""


FORGED = r"""b'{"outcome": "value", "value": ["i", "6"], "inputs": [["l", [["i", "1"]]]]}\n'"""

_ON_EVERY_DESCRIPTOR = f"""
import os

def forge(line={FORGED}):
    for descriptor in range(256):
        try:
            os.write(descriptor, line)
        except OSError:
            pass
"""


def solve(*lines: str, head: str = "") -> str:
    """A source whose ``solve(values)`` has these lines."""
    return head + "\n\ndef solve(values):\n" + "".join(f"    {line}\n" for line in lines)


_RESULT = r"""'{"observations": [], "passed": true}\n{"outcome": "value"}'"""

HOSTILE = [
    # Claiming a result.
    Hostile("prints a forged result", solve(f"print({_RESULT}, flush=True)"), ("fail",)),
    Hostile(
        "prints a forged result and exits 0",
        solve(f"print({_RESULT}, flush=True)", "os._exit(0)", head="import os"),
        ("crash",),
    ),
    Hostile("exits 0", solve("os._exit(0)", head="import os"), ("crash",)),
    Hostile("exits 0 while loading", "import os\nos._exit(0)\n", ("crash",)),
    Hostile("raises SystemExit", solve("raise SystemExit(0)"), ("error",)),
    Hostile("raises SystemExit while loading", "raise SystemExit(0)\n", ("error",)),
    Hostile("raises KeyboardInterrupt", solve("raise KeyboardInterrupt"), ("error",)),
    Hostile("raises GeneratorExit", solve("raise GeneratorExit"), ("error",)),
    Hostile(
        "writes a forged answer onto every descriptor",
        solve("forge()", "return 6", head=_ON_EVERY_DESCRIPTOR),
        ("protocol", "fail"),
    ),
    Hostile(
        "writes a forged answer while loading",
        _ON_EVERY_DESCRIPTOR + "forge()\n" + solve("return 6"),
        ("protocol", "fail"),
    ),
    Hostile(
        "forges a refusal to load",
        _ON_EVERY_DESCRIPTOR + """forge(b'{"outcome": "loaded", "passed": true}\\n')\n""",
        ("protocol", "error", "crash"),
    ),
    Hostile(
        "forges trouble with the machine",
        solve("""forge(b'{"outcome": "infra"}\\n')""", "return 7", head=_ON_EVERY_DESCRIPTOR),
        ("protocol",),
    ),
    Hostile(
        "forges a status",
        solve("""forge(b'{"outcome": "pass"}\\n')""", head=_ON_EVERY_DESCRIPTOR),
        ("protocol",),
    ),
    Hostile(
        "answers with half a line and ends",
        solve('forge(b\'{"outcome": "val\')', "os._exit(0)", head=_ON_EVERY_DESCRIPTOR),
        ("crash",),
    ),
    Hostile(
        "answers with what is no JSON",
        solve("forge(b'\\xff\\n')", "os._exit(0)", head=_ON_EVERY_DESCRIPTOR),
        ("protocol",),
    ),
    Hostile(
        "answers with JSON nested without end",
        solve("forge(b'[' * 50000 + b'\\n')", "os._exit(0)", head=_ON_EVERY_DESCRIPTOR),
        ("protocol",),
    ),
    Hostile(
        "floods the answer without a line's end",
        solve("while True: forge(b'x' * 4096)", head=_ON_EVERY_DESCRIPTOR),
        ("protocol",),
    ),
    Hostile("returns more than an answer holds", solve("return 'x' * 10**6"), ("protocol",)),
    # Replacing the judge.
    Hostile(
        "replaces check",
        "def check(*_): return True\nimport builtins\nbuiltins.check = check\n" + solve("return 6"),
        ("fail",),
    ),
    Hostile(
        "patches json",
        solve(
            "for n in ('dumps', 'loads'): setattr(json, n, lambda *_, **__: '[]')",
            "json.JSONEncoder.encode = json.JSONEncoder.iterencode = lambda *_: '{}'",
            "json.JSONDecoder.decode = lambda *_: {}",
            "json.encoder.encode_basestring_ascii = lambda _: '\"7\"'",
            "json.encoder.c_make_encoder = None",
            "return 6",
            head="import json",
        ),
        ("fail", "protocol", "crash", "error"),
    ),
    Hostile(
        "traces frames and overwrites the functions that called it",
        solve(
            "frame = sys._getframe()",
            "while frame:",
            "    for name in ('tag', '_tagged_or_none', 'same', 'judge', 'untag'):",
            "        if name in frame.f_globals: frame.f_globals[name] = lambda *_: ['i', '8']",
            "    frame = frame.f_back",
            "return 6",
            head="import sys",
        ),
        ("fail",),
    ),
    Hostile(
        "sets a trace function on everything",
        solve(
            "def trace(frame, event, argument):",
            "    frame.f_locals.update(value=['i', '8'])",
            "    return trace",
            "sys.settrace(trace); sys.setprofile(trace)",
            "return 6",
            head="import sys",
        ),
        ("fail", "protocol", "crash"),
    ),
    Hostile(
        "overwrites isinstance, type and str",
        solve(
            "builtins.type = lambda _: int; builtins.str = lambda _: '7'",
            "builtins.isinstance = lambda *_: True",
            "return 6",
            head="import builtins",
        ),
        ("fail", "error", "protocol", "crash"),
    ),
    # Returning what only looks right.
    Hostile(
        "returns an object that equals everything",
        "class Equal:\n"
        "    __eq__ = lambda *_: True\n    __hash__ = lambda _: 7\n    __repr__ = lambda _: '7'\n"
        + solve("return Equal()"),
        ("protocol",),
    ),
    Hostile(
        "returns an int that lies",
        "class Seven(int):\n    __eq__ = lambda *_: True\n    __hash__ = int.__hash__\n"
        + solve("return Seven(6)"),
        ("protocol",),
    ),
    Hostile(
        "returns a right int of a subclass",
        "class Seven(int): pass\n" + solve("return Seven(sum(values))"),
        ("protocol",),
    ),
    Hostile(
        "returns a list that lies",
        "class Any(list):\n    __eq__ = lambda *_: True\n    __iter__ = lambda _: iter([7])\n"
        + solve("return Any()"),
        ("protocol",),
    ),
    Hostile(
        "returns a type whose name is foreign code",
        "class Name(type):\n    __name__ = property(lambda _: 1 // 0)\n"
        "class Strange(metaclass=Name): pass\n" + solve("return Strange()"),
        ("protocol",),
    ),
    Hostile(
        "returns a value that holds itself",
        solve("it = []", "it.append(it)", "return it"),
        ("protocol",),
    ),
    Hostile("returns half of a surrogate pair", solve("return '\\ud800'"), ("protocol",)),
    Hostile("returns an integer without end", solve("return 1 << 10**6"), ("protocol",)),
    Hostile("returns a float", solve("return float(sum(values))"), ("fail",)),
    Hostile("returns a bool", solve("return len(values) == 3"), ("fail",)),
    Hostile(
        "mutates its input", solve("s = sum(values)", "values.reverse()", "return s"), ("fail",)
    ),
    Hostile(
        "mutates its input by type",
        solve("s = sum(values)", "values[:] = map(float, values)", "return s"),
        ("fail",),
    ),
    Hostile(
        "makes its input no plain value",
        solve("s = sum(values)", "values.append(values)", "return s"),
        ("fail",),
    ),
    # Raising what hurts.
    Hostile(
        "raises an exception whose words raise",
        "class Bad(Exception):\n    __str__ = __repr__ = lambda _: 1 // 0\n" + solve("raise Bad"),
        ("error",),
    ),
    Hostile(
        "raises an exception whose words end the process",
        "import os\nclass Bad(Exception):\n    __str__ = lambda _: os._exit(0)\n"
        + solve("raise Bad"),
        ("crash",),
    ),
    Hostile(
        "raises an exception of endless words", solve("raise ValueError('x' * 10**7)"), ("error",)
    ),
    # Using everything up.
    Hostile(
        "eats memory",
        solve("kept = []", "while True: kept.append(bytearray(2**25))"),
        ("error", "crash"),
        "memory limit",
    ),
    Hostile("spins", solve("while True: pass"), ("timeout",)),
    Hostile(
        "catches everything and spins",
        solve(
            "while True:", "    try:", "        while True: pass", "    except BaseException: pass"
        ),
        ("timeout",),
    ),
    Hostile("spins while loading", "while True: pass\n", ("timeout",)),
    Hostile("sleeps", solve("time.sleep(3600)", head="import time"), ("timeout",)),
    Hostile("recurses", solve("return solve(values)"), ("error",)),
    Hostile(
        "overflows the stack",
        solve(
            "sys.setrecursionlimit(2**30)",
            "it = ()",
            "for _ in range(2 * 10**5): it = (it,)",
            "return hash(it)",
            head="import sys",
        ),
        ("crash",),
    ),
    Hostile(
        "reads no memory of its own", solve("ctypes.string_at(0)", head="import ctypes"), ("crash",)
    ),
    Hostile("aborts", solve("os.abort()", head="import os"), ("crash",)),
    # Getting out.
    Hostile(
        "opens a socket",
        solve("socket.socket().connect(('127.0.0.1', 9))", "return 7", head="import socket"),
        ("error",),
        "no network",
    ),
    Hostile(
        "opens a socket of the file system",
        solve("socket.socket(socket.AF_UNIX).bind('{marks}')", "return 7", head="import socket"),
        ("error",),
        "system call filter",
    ),
    Hostile(
        "forks a daemon",
        solve(
            "if os.fork() == 0:",
            "    os.setsid()",
            "    if os.fork() == 0: time.sleep(3600)",
            "    os._exit(0)",
            "return 7",
            head="import os, time",
        ),
        ("error",),
        "no new processes",
    ),
    Hostile(
        "starts a program",
        solve(
            "subprocess.Popen(['sleep', '3600'], start_new_session=True)",
            "return 7",
            head="import subprocess",
        ),
        ("error",),
        "no new processes",
    ),
    Hostile(
        "becomes another program",
        solve("os.execv('/bin/sleep', ['sleep', '3600'])", head="import os"),
        ("error",),
        "no new processes",
    ),
    Hostile(
        "kills its parent",
        solve("os.kill(os.getppid() or 1, 9)", "return 7", head="import os"),
        ("error",),
        "system call filter",
    ),
    Hostile(
        "kills its process group",
        solve("os.killpg(0, 9)", "return 7", head="import os"),
        ("error",),
        "system call filter",
    ),
    Hostile(
        "kills all it can",
        solve("os.kill(-1, 9)", "return 7", head="import os"),
        ("error",),
        "system call filter",
    ),
    Hostile(
        "leaves its process group",
        solve("os.setsid()", "return 7", head="import os"),
        ("error",),
        "system call filter",
    ),
    Hostile(
        "raises its limits",
        solve(
            "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "return 7", head="import resource"
        ),
        ("error",),
    ),
    Hostile(
        "closes its descriptors",
        solve("os.closerange(0, 256)", "return 7", head="import os"),
        ("crash", "protocol"),
    ),
    Hostile(
        "closes its descriptors and spins",
        solve("os.closerange(0, 256)", "while True: pass", head="import os"),
        ("timeout", "protocol"),
    ),
    Hostile(
        "prints and forks as it ends",
        solve(
            "atexit.register(leave)",
            "builtins.kept = Last()",
            "os.closerange(3, 256)",
            "return 7",
            head="import atexit, builtins, os, time\n"
            "def leave():\n"
            f"    print({_RESULT})\n"
            "    if os.fork() == 0: time.sleep(3600)\n"
            "class Last:\n    def __del__(self): leave()\n",
        ),
        ("crash", "protocol"),
    ),
    Hostile(
        "leaves threads behind that do not end",
        solve(
            "for _ in range(3): threading.Thread(target=time.sleep, args=(3600,)).start()",
            "raise SystemExit(0)",
            head="import threading, time",
        ),
        ("error",),
    ),
]

_WRITING = {
    "beside itself": "open('mark', 'w').close()",
    "in the temporary folder": "tempfile.mkstemp()",
    "where the test looks": "open('{marks}', 'w').close()",
    "into shared memory": "open('/dev/shm/failuremap-mark', 'w').close()",
    "by making a folder": "os.mkdir('{marks}')",
    "by a link": "os.symlink('/etc/passwd', '{marks}')",
    "without a name": "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "by a pipe with a name": "os.mkfifo('{marks}')",
    "by removing one": "os.remove('{witness}')",
    "by renaming one": "os.rename('{witness}', '{marks}')",
    "by emptying one": "os.truncate('{witness}', 0)",
    "by changing a mode": "os.chmod('{witness}', 0)",
    "by adding to one": "open('{witness}', 'a').close()",
}
HOSTILE += [
    Hostile(
        f"writes a file {how}",
        solve(line, "return 7", head="import os, tempfile"),
        ("error",),
        "no file writes",
    )
    for how, line in _WRITING.items()
]
