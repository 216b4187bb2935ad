"""The child's life: confine yourself, load the source, answer questions until there are no more.

Protocol: one JSON document a line, requests on one descriptor and answers on another. Standard
output is never read by anybody.

1. The first request is the *setup*: what to load, under which limits. The first answer lists the
   isolation that was really applied, before any foreign code has run.
2. The second answer says whether the source loaded.
3. Each request then has one answer, and the next request comes only after it. An answer is a
   ``value`` with the inputs as the call left them, or an ``error`` with its type and words, or a
   ``protocol`` complaint about what came back that is no plain value.

Requests: ``{"op": "ask", "function": f, "question": {...}}`` and ``{"op": "generate", "seed": s}``,
each with an ``id`` that its answer repeats.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import types
from collections.abc import Callable

from failuremap.child.isolation import confine
from failuremap.child.tagged import NotAValue, tag, untag

__all__ = ["main"]

MESSAGE_CHARACTERS_MAX = 500

Function = Callable[..., object]


class _Channel:
    """Lines in and lines out, over two descriptors."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = os.fdopen(requests, "rb")
        self._answers = answers
        self._write = os.write
        self._dumps = json.JSONEncoder(ensure_ascii=True).encode
        self._loads = json.JSONDecoder().decode

    def receive(self) -> dict[str, object] | None:
        line = self._requests.readline()
        return self._loads(line.decode()) if line else None

    def send(self, answer: dict[str, object]) -> None:
        data = self._dumps(answer).encode() + b"\n"
        while data:
            data = data[self._write(self._answers, data) :]


def main() -> None:
    """Run the child: ``argv`` holds the descriptors of requests and answers."""
    channel = _Channel(int(sys.argv[-2]), int(sys.argv[-1]))
    setup = channel.receive()
    if setup is None:
        return
    sys.setrecursionlimit(1000)
    try:
        isolation = confine(setup["limits"], isolate=bool(setup["isolate"]))  # type: ignore[arg-type]
    except OSError as error:
        channel.send({"outcome": "infra", "message": f"confining the child: {error}"})
        return
    channel.send({"outcome": "ready", "isolation": isolation})
    try:
        functions = _load(setup)
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        channel.send(_error(error))
        return
    channel.send({"outcome": "loaded"})
    lenient = bool(setup.get("lenient"))
    while (request := channel.receive()) is not None:
        answer = _answer(request, functions, lenient=lenient)
        channel.send({**answer, "id": request["id"]})


def _load(setup: dict[str, object]) -> dict[str, Function]:
    """The functions that the setup asks for, from a source or from a module by name."""
    names: list[str] = setup["functions"]  # type: ignore[assignment]
    if "program" in setup:
        return {"solve": lambda: _whole(str(setup["program"]))}
    if "module" in setup:
        sys.path[:0] = setup["path"]  # type: ignore[call-overload]
        found: object = importlib.import_module(str(setup["module"]))
        for part in str(setup["attribute"]).split("."):
            found = getattr(found, part)
        function = _adapted(found, setup)  # type: ignore[arg-type]
        return dict.fromkeys(names, function)
    module = _module(str(setup["source"]), str(setup["file"]), setup.get("parameters"))
    return {name: vars(module)[name] for name in names}


def _adapted(function: Function, setup: dict[str, object]) -> Function:
    """The user's function as the archive calls it; the adapter takes it and the arguments."""
    if not callable(function):
        raise TypeError(f"{setup['module']}:{setup['attribute']} is not callable")
    if not setup.get("adapter"):
        return function
    adapter = vars(_module(str(setup["adapter"]), str(setup["adapter_file"]), {}))["adapt"]
    return lambda *arguments: adapter(function, *arguments)


def _whole(program: str) -> tuple[int, str]:
    """Run a whole program: its exit status and what it printed."""
    printed = io.StringIO()
    status = 0
    with contextlib.redirect_stdout(printed):
        try:
            _module(program, "program.py", {}, name="__main__")
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
    return status, printed.getvalue()


def _module(source: str, file: str, parameters: object, name: str = "solution") -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    vars(module).update(parameters or {})  # type: ignore[call-overload]
    exec(compile(source, file, "exec"), vars(module))  # noqa: S102 - this is what the child is for
    return module


def _answer(
    request: dict[str, object], functions: dict[str, Function], *, lenient: bool
) -> dict[str, object]:
    try:
        if request["op"] == "generate":
            value = functions["generate"](_random(str(request["seed"])))
            inputs: list[object] = []
        else:
            function = functions[str(request["function"])]
            value, inputs = _ask(function, request["question"])  # type: ignore[arg-type]
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return _error(error)
    try:
        value = tag(_plain(value) if lenient else value)
    except (NotAValue, RecursionError) as error:
        return {"outcome": "protocol", "message": str(error)[:MESSAGE_CHARACTERS_MAX]}
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return _error(error)
    return {"outcome": "value", "value": value, "inputs": [_tagged_or_none(i) for i in inputs]}


def _random(seed: str) -> object:
    """A seeded generator; imported here because most children never need it."""
    from random import Random  # noqa: PLC0415

    return Random(seed)  # noqa: S311 - for inputs, not for secrets


def _ask(function: Function, question: dict[str, object]) -> tuple[object, list[object]]:
    """What the template comes to, and the inputs as they are now: names first, then in order."""
    names = {name: untag(value) for name, value in question["names"].items()}  # type: ignore[attr-defined]
    written: list[object] = []

    def fill(template: list[object], *, inside_call: bool = False) -> object:
        kind, content = template
        if kind == "name":
            return names[content]
        if kind == "value":
            value = untag(content)
            if inside_call:
                written.append(value)
            return value
        items = [fill(item, inside_call=kind == "call") for item in content]  # type: ignore[attr-defined]
        if kind == "call":
            return function(*items)
        return items if kind == "l" else tuple(items)

    value = fill(question["template"])  # type: ignore[arg-type]
    return value, [*names.values(), *written]


def _tagged_or_none(value: object) -> object:
    """An input after the call; None where it is no longer a plain value."""
    try:
        return tag(value)
    except (NotAValue, RecursionError):
        return None


def _plain(value: object) -> object:
    """Arrays, series, tensors and their scalars as the lists and numbers that they hold."""
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)  # type: ignore[attr-defined,call-arg]
    if type(value) is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    convert = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return convert() if convert is not None else value


def _error(error: BaseException) -> dict[str, object]:
    """An exception's type and words, whatever its own methods do."""
    name = str(type.__dict__["__name__"].__get__(type(error)))
    try:
        message = str(error)[:MESSAGE_CHARACTERS_MAX].encode(errors="replace").decode()
    except BaseException:  # noqa: BLE001 - even its words are foreign code
        message = ""
    return {"outcome": "error", "type": name, "message": message}
