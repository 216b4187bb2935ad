"""Servers that ask who is there, and what is shown to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from onefold.aggregator import Aggregator
from onefold.client import Credentials
from onefold.client.calls import Calls
from onefold.client.channel import FlightChannel
from onefold.client.worker import Client
from onefold.ledger import Joined
from onefold.parts import encode, manifest_of
from onefold.policy import Policy
from onefold.receipt import Receipt
from onefold.server import Limits, Security, Server
from onefold.status import RunStatus
from onefold.tokens import Role, token_for
from onefold.update import Update
from onefold.wire import (
    Command,
    Commit,
    Done,
    Get,
    GetStatus,
    Join,
    Leave,
    Pull,
    PullAnswer,
    Put,
    Staged,
)

BOUND_SECONDS = 60.0
CERTIFICATES = Path(__file__).parent / "certificates"
AB = Policy(roster=["a", "b"])
ONE = Update.of(np.array([2.0]))

TLS = {"tls_cert": CERTIFICATES / "server.pem", "tls_key": CERTIFICATES / "server.key"}
MUTUAL_TLS = {**TLS, "tls_ca": CERTIFICATES / "ca.pem"}
CA = {"tls_ca": CERTIFICATES / "ca.pem"}
CLIENT = {**CA, "tls_cert": CERTIFICATES / "client.pem", "tls_key": CERTIFICATES / "client.key"}
STRANGER = {
    **CA,
    "tls_cert": CERTIFICATES / "stranger.pem",
    "tls_key": CERTIFICATES / "stranger.key",
}


@dataclass
class Secured:
    """A server, and calls to it without any trying again."""

    aggregator: Aggregator
    server: Server
    stack: ExitStack = field(default_factory=ExitStack)

    def channel(self, **credentials: object) -> FlightChannel:
        made = FlightChannel(self.server.address, Credentials(**credentials))
        self.stack.callback(made.close)
        return made

    def client(self, worker: str, seconds: float = BOUND_SECONDS, **credentials: object) -> Client:
        calls = Calls(self.channel(**credentials), seconds)
        return self.stack.enter_context(Client(worker, calls))


@contextmanager
def serving(
    directory: Path | None = None,
    security: Security | None = None,
    limits: Limits | None = None,
    policy: Policy = AB,
    **options: object,
) -> Iterator[Secured]:
    with (
        Aggregator(directory, policy, **options) as aggregator,
        Server(aggregator, security=security, limits=limits) as server,
        ExitStack() as stack,
    ):
        yield Secured(aggregator, server, stack)


def make_token(path: Path, name: str, *, observer: bool = False, days: float | None = None) -> str:
    role = Role.OBSERVER if observer else Role.WORKER
    return token_for(path, name, role, expires_in_days=days)[0]


def call(channel: FlightChannel, command: Command) -> object:
    """Give a command as the client does, once."""
    match command:
        case Put():
            part = next((schema, list(batches)) for schema, batches in encode(ONE))
            expected = Staged if command.manifest is None else Receipt
            return channel.put(command, part, expected, seconds=BOUND_SECONDS)
        case Get():
            return list(channel.get(command, seconds=BOUND_SECONDS))
        case Join():
            return channel.act(command, Joined, seconds=BOUND_SECONDS)
        case Commit():
            return channel.act(command, Receipt, seconds=BOUND_SECONDS)
        case Pull():
            return channel.act(command, PullAnswer, seconds=BOUND_SECONDS)
        case Leave():
            return channel.act(command, Done, seconds=BOUND_SECONDS)
        case GetStatus():
            return channel.act(command, RunStatus, seconds=BOUND_SECONDS)


def _commands() -> dict[str, Callable[[str, str, int], Command]]:
    manifest = manifest_of(ONE, ["0"])
    return {
        "join": lambda _run, worker, _: Join(worker, f"life of {worker}"),
        "leave": Leave,
        "put": lambda *who: Put(*who, 7, 1),
        "put whole": lambda *who: Put(*who, 7, 1, manifest=manifest),
        "commit": lambda *who: Commit(*who, 7, 1, manifest),
        "pull": lambda *who: Pull(*who, 7, None, 0.0),
        "get": lambda *who: Get(*who, 7, 0, "0"),
        "status": lambda *_: GetStatus(),
    }


COMMANDS = _commands()
"""A command of each kind, by the run, worker and incarnation that give it."""
