"""One child process, seen from the parent: start it, ask it, end it.

Everything that the child says is taken as the claim of a stranger: an answer is one line of JSON of
bounded size, in time, with the fields that its outcome has, or it is no answer. After anything but
a ``value`` or an ``error`` the child is ended; the next question needs a new one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from failuremap.errors import InfraError
from failuremap.fixtures import Question
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.limits import Limits
from failuremap.values import NotAValue, Tagged, untag

__all__ = ["Answer", "Child", "Load"]

_START = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from failuremap.child.main import main; del sys.path[0]; main()"
)
_ROOT = str(Path(__file__).resolve().parents[2])
_START_SECONDS = 30
"""For starting and confining the child: our own code, so being late is the machine's trouble."""
_END_SECONDS = 10
_folders: set[Path] = set()
"""The children's folders that are there, or may be."""


@atexit.register
def _remove_folders() -> None:
    """What a signal left: it may come in the midst of making a folder, or of removing one."""
    for folder in list(_folders):
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Load:
    """What a child loads: a source with its parameters, or a function of a module by name."""

    setup: Mapping[str, object]

    @classmethod
    def program(cls, text: str) -> Load:
        """A whole program: asked without arguments, it gives its exit status and its output."""
        return cls({"program": text, "functions": ["solve"]})

    @classmethod
    def source(
        cls,
        text: str,
        *,
        functions: tuple[str, ...] = ("solve",),
        parameters: Mapping[str, object] | None = None,
        file: str = "solution.py",
    ) -> Load:
        """Functions of a source, which sees the parameters as its globals."""
        return cls(
            {
                "source": text,
                "file": file,
                "functions": list(functions),
                "parameters": dict(parameters or {}),
            }
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question.

    ``outcome`` is ``value``, ``error``, ``timeout``, ``crash`` or ``protocol``. A value comes with
    the inputs as the call left them (None for one that is no plain value any more).
    """

    outcome: str
    value: object = None
    inputs: list[Tagged | None] = field(default_factory=list)
    message: str = ""


class Child:
    """A child process that has loaded its source; a context manager.

    ``isolate`` confines it (see ``child/isolation.py``); a user's own code runs unconfined, with
    the interpreter's site packages and the caller's environment.
    """

    def __init__(
        self,
        load: Load,
        interpreter: Interpreter,
        limits: Limits,
        *,
        hash_seed: int = 0,
        isolate: bool = True,
    ) -> None:
        self._load = load
        self._interpreter = interpreter
        self._limits = limits
        self._hash_seed = hash_seed
        self._isolate = isolate
        self._received = b""
        self._asked = 0
        self.isolation: tuple[str, ...] = ()
        self.failed: Answer | None = None
        """What came of loading the source, where it did not load."""

    def __enter__(self) -> Child:
        self._folder = Path(tempfile.gettempdir(), f"failuremap-{secrets.token_hex(8)}")
        _folders.add(self._folder)  # before it is there: a signal may end us between any two steps
        try:
            self._folder.mkdir(0o700)
            self._start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def ask(self, question: Question, *, function: str = "solve") -> Answer:
        """Have a function called as the question says."""
        request = {"op": "ask", "function": function, "question": question.document()}
        return self._answer_to(request)

    def generate(self, seed: str) -> Answer:
        """Have ``generate`` called with ``random.Random(seed)``."""
        return self._answer_to({"op": "generate", "seed": seed})

    @property
    def ended(self) -> bool:
        """Whether the process has been ended, so that no more can be asked."""
        return self._process is None

    def end(self) -> None:
        """Kill the process and all that it started, and remove its folder. Harmless if repeated."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait(_END_SECONDS)
            for descriptor in (self._requests, self._answers):
                os.close(descriptor)
            self._selector.close()
            self._writable.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        _folders.discard(self._folder)

    _process: subprocess.Popen[bytes] | None = None

    def _start(self) -> None:
        try:
            requests_in, self._requests = os.pipe()
        except OSError as error:
            raise InfraError(f"no more descriptors for a child: {error}") from None
        try:
            self._answers, answers_out = os.pipe()
        except OSError as error:
            os.close(requests_in)
            os.close(self._requests)
            raise InfraError(f"no more descriptors for a child: {error}") from None
        flags = ["-s", "-S"] if self._isolate else []
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running programs is what this does
                [
                    *(self._interpreter.path, *flags, "-c", _START),
                    *(_ROOT, str(requests_in), str(answers_out)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if self._isolate else 2,
                stderr=subprocess.DEVNULL if self._isolate else None,
                cwd=self._folder if self._isolate else None,
                env=self._environment(),
                pass_fds=(requests_in, answers_out),
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._requests)
            os.close(self._answers)
            raise InfraError(f"starting {self._interpreter.path}: {error}") from None
        finally:
            os.close(requests_in)
            os.close(answers_out)
        os.set_blocking(self._requests, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._writable = selectors.DefaultSelector()
        self._writable.register(self._requests, selectors.EVENT_WRITE)
        setup = {**self._load.setup, "limits": self._in_child(), "isolate": self._isolate}
        self._send(setup, time.monotonic() + _START_SECONDS)
        self._await_ready()

    def _in_child(self) -> dict[str, int]:
        return self._limits.in_child() if self._isolate else {}

    def _environment(self) -> dict[str, str]:
        own = {"PYTHONHASHSEED": str(self._hash_seed)}
        return {"LC_ALL": "C.UTF-8", **own} if self._isolate else {**os.environ, **own}

    def _await_ready(self) -> None:
        """Two answers: confined (ours, so anything else is the machine's trouble), and loaded."""
        ready = self._receive(_START_SECONDS, followed=True)
        if isinstance(ready, Answer) or ready.get("outcome") != "ready":
            said = ready.message if isinstance(ready, Answer) else ready.get("message")
            raise InfraError(f"{self._interpreter.path} did not start as a child: {said}")
        self.isolation = tuple(str(word) for word in ready["isolation"])  # type: ignore[attr-defined]
        loaded = self._receive(self._limits.call_seconds if self._isolate else _START_SECONDS)
        if not isinstance(loaded, Answer) and loaded.get("outcome") == "loaded":
            return
        self.failed = loaded if isinstance(loaded, Answer) else _read(loaded)
        self.end()

    def _answer_to(self, request: Mapping[str, object]) -> Answer:
        if self.failed is not None:
            return self.failed
        if self._process is None:
            raise AssertionError("asked a child that has ended")
        self._asked += 1
        deadline = time.monotonic() + self._limits.call_seconds
        unsent = self._send({**request, "id": self._asked}, deadline)
        received = unsent or self._receive(self._limits.call_seconds)
        if isinstance(received, Answer):
            answer = received
        elif received.get("id") != self._asked:
            answer = Answer("protocol", message="an answer to another question")
        else:
            answer = _read(received)
        if answer.outcome not in ("value", "error"):
            self.end()
        return answer

    def _send(self, request: Mapping[str, object], deadline: float) -> Answer | None:
        """Send a request; what it comes to where the child does not take it."""
        data = json.dumps(request).encode() + b"\n"
        while data:
            left = deadline - time.monotonic()
            if left <= 0 or not self._writable.select(left):
                return Answer("timeout", message="the question was not read in time")
            try:
                data = data[os.write(self._requests, data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return self._ended_with()
        return None

    def _receive(self, seconds: float, *, followed: bool = False) -> dict[str, object] | Answer:
        """The next line as a document, or the answer that its absence is.

        Only the first line may be followed by another before anything is asked.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self._received:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                return Answer("timeout", message=f"no answer within {seconds:g} seconds")
            data = os.read(self._answers, 2**16)
            if not data:
                return self._ended_with()
            self._received += data
            if len(self._received) > self._limits.answer_bytes:
                said = f"an answer of more than {self._limits.answer_bytes} bytes"
                return Answer("protocol", message=said)
        line, _, self._received = self._received.partition(b"\n")
        if self._received and not followed:
            return Answer("protocol", message="more than one answer to a question")
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return Answer("protocol", message="an answer that is not JSON")
        if not isinstance(document, dict):
            return Answer("protocol", message="an answer that is not a JSON object")
        return document

    def _ended_with(self) -> Answer:
        """The process closed its end: how it ended."""
        assert self._process is not None
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return Answer("protocol", message="the answers' descriptor was closed")
        if code < 0 or code > 128:  # above 128: a shell's convention, kept by the child
            number = -code if code < 0 else code - 128
            return Answer("crash", message=f"ended by signal {number}")
        return Answer("crash", message=f"ended with exit status {code}")


def _printable(words: object) -> str:
    """A stranger's words, cut to size, as text that can be written down."""
    return str(words)[:1000].encode(errors="replace").decode()


def _read(document: Mapping[str, object]) -> Answer:
    """A line of the child as an answer; whatever it should not be is ``protocol``."""
    message = _printable(document.get("message", ""))
    match document:
        case {"outcome": "value", "value": tagged, "inputs": list(inputs)}:
            try:
                return Answer("value", untag(tagged), inputs)
            except (NotAValue, RecursionError) as error:
                return Answer("protocol", message=str(error))
        case {"outcome": "error", "type": str(kind)}:
            kind = _printable(kind)
            return Answer("error", message=f"{kind}: {message}" if message else kind)
        case {"outcome": "protocol"}:
            return Answer("protocol", message=message)
    return Answer("protocol", message="an answer without a known outcome")
