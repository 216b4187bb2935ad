"""Who may do what: by the rule alone, and at a server over TLS that asks for tokens."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight
from secured import (
    AB,
    BOUND_SECONDS,
    CERTIFICATES,
    CLIENT,
    COMMANDS,
    MUTUAL_TLS,
    ONE,
    STRANGER,
    TLS,
    Secured,
    call,
    make_token,
    serving,
)

import onefold
from onefold.client import Credentials, fetch_status
from onefold.client.channel import Unreachable
from onefold.errors import (
    Forbidden,
    GaveUp,
    InvalidInput,
    ProtocolError,
    StoreError,
    Unauthenticated,
)
from onefold.parts import manifest_of
from onefold.receipt import Receipt, Status
from onefold.server import Security, Server
from onefold.server.identity import check_allowed
from onefold.testing.support import number, one, wait_in_thread
from onefold.tokens import Caller, Role, TokenFile, revoke
from onefold.wire import Closed, Commit, Get, Pull, Put, Staged

CA = CERTIFICATES / "ca.pem"


class TestRule:
    """``check_allowed``, without a socket."""

    @pytest.mark.parametrize("verb", COMMANDS)
    def test_a_worker_speaks_for_itself(self, verb: str) -> None:
        """Every command of its own, the status, and no command of anybody else."""
        command = COMMANDS[verb]("run", "a", 0)
        check_allowed(None, command)
        check_allowed(Caller("a", Role.WORKER), command)
        for other in ("b", "A", "a ", "", "aa"):
            if verb == "status":
                check_allowed(Caller(other, Role.WORKER), command)
            else:
                with pytest.raises(Forbidden, match="worker 'a'"):
                    check_allowed(Caller(other, Role.WORKER), command)

    @pytest.mark.parametrize("verb", COMMANDS)
    def test_an_observer_reads_the_status(self, verb: str) -> None:
        """And nothing else, also where it is called as the worker is."""
        command = COMMANDS[verb]("run", "a", 0)
        if verb == "status":
            check_allowed(Caller("a", Role.OBSERVER), command)
        else:
            with pytest.raises(Forbidden, match="observer"):
                check_allowed(Caller("a", Role.OBSERVER), command)


@dataclass
class Guarded:
    """A server over TLS with tokens, and what people hold."""

    secured: Secured
    tokens: Path
    held: dict[str, str | None]

    def call(self, holder: str, verb: str, worker: str = "a") -> object:
        command = COMMANDS[verb](self.secured.aggregator.run, worker, 1)
        return call(self.secured.channel(tls_ca=CA, token=self.held[holder]), command)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """Everybody holds something; nothing has been pushed."""
    tokens = tmp_path / "tokens.json"
    held: dict[str, str | None] = {name: make_token(tokens, name) for name in ("a", "b")}
    held["observer"] = make_token(tokens, "a", observer=True)
    held["expired"] = make_token(tokens, "a", days=1e-9)
    held["revoked"] = make_token(tokens, "z")
    revoke(tokens, "z")
    held["nothing"] = None
    held["another file's"] = make_token(tmp_path / "others.json", "a")
    with serving(tmp_path / "run", Security(**TLS, tokens=tokens)) as secured:
        yield Guarded(secured, tokens, held)


NOBODY = ("nothing", "expired", "revoked", "another file's")
VERBS = [verb for verb in COMMANDS if verb != "status"]


class TestEveryVerb:
    """Each command, with each kind of token, over TLS."""

    def test_who_may_not_is_refused(self, guarded: Guarded) -> None:
        """Unknown to the server: Unauthenticated; known as another: Forbidden. Nothing happens."""
        for holder, verb in itertools.product(NOBODY, COMMANDS):
            with pytest.raises(Unauthenticated, match="onefold token new"):
                guarded.call(holder, verb)
        for holder, verb in itertools.product(("b", "observer"), VERBS):
            with pytest.raises(Forbidden):
                guarded.call(holder, verb)
        status = guarded.secured.aggregator.status()
        assert (status.staged_bytes, status.received_bytes, status.receipts) == (0, 0, {})
        assert status.open_steps == ()
        for holder in ("a", "b", "observer"):
            assert guarded.call(holder, "status") == status

    def test_each_worker_does_all_as_itself(self, guarded: Guarded) -> None:
        """A step from the joins to the aggregate, each command with the token of its worker."""
        secured = guarded.secured
        run = secured.aggregator.run
        for name in "ab":
            channel = secured.channel(tls_ca=CA, token=guarded.held[name])
            guarded.call(name, "join", name)
            staged = call(channel, Put(run, name, 1, 7, 1))
            assert isinstance(staged, Staged)
            manifest = manifest_of(ONE, [staged.part])
            receipt = call(channel, Commit(run, name, 1, 7, 1, manifest))
            assert isinstance(receipt, Receipt)
            assert receipt.status is Status.ACCEPTED
        for name in "ab":
            channel = secured.channel(tls_ca=CA, token=guarded.held[name])
            closed = call(channel, Pull(run, name, 1, 7, 1, 0.0))
            assert isinstance(closed, Closed)
            assert closed.manifest is not None
            part = call(channel, Get(run, name, 1, 7, 0, closed.manifest.parts[0]))
            assert isinstance(part, list)
            guarded.call(name, "leave", name)
        assert number(secured.aggregator.pull(7)) == 4

    def test_a_refused_part_is_not_read(self, guarded: Guarded) -> None:
        """Of a stream that nobody may send no more is read than is under way already."""
        secured = guarded.secured
        batch = pa.record_batch({"x": np.zeros(1 << 17)})
        options = flight.FlightCallOptions(timeout=BOUND_SECONDS)
        client = flight.FlightClient(secured.server.address, tls_root_certs=CA.read_bytes())
        descriptor = flight.FlightDescriptor.for_command(b"x")
        written = 0
        with pytest.raises(flight.FlightUnauthenticatedError):  # noqa: PT012 - any of these raises
            writer, _ = client.do_put(descriptor, batch.schema, options)
            with writer:
                for written in range(10_000):  # noqa: B007 - ten GB, were they all sent
                    writer.write_batch(batch)
        assert written < 1000
        assert secured.aggregator.status().received_bytes == 0

    def test_other_calls_of_flight_are_closed_too(self, guarded: Guarded) -> None:
        """What this server does not answer at all is asked for its token first."""
        client = flight.FlightClient(guarded.secured.server.address, tls_root_certs=CA.read_bytes())
        with pytest.raises(flight.FlightUnauthenticatedError):
            list(client.list_flights())
        with pytest.raises(flight.FlightUnauthenticatedError):
            list(client.list_actions())

    @pytest.mark.parametrize(
        "values",
        [
            [b"TOKEN"],
            [b"Basic TOKEN"],
            [b"Bearer"],
            [b"Bearer  TOKEN"],
            [b"Bearer TOKEN", b"Bearer TOKEN"],
            [b"Bearer TOKEN extra"],
        ],
    )
    def test_a_token_comes_in_one_form(self, guarded: Guarded, values: list[bytes]) -> None:
        """One header, ``Bearer``, one space, the token: all else is refused."""
        token = (guarded.held["a"] or "").encode()
        headers = [(b"authorization", value.replace(b"TOKEN", token)) for value in values]
        client = flight.FlightClient(guarded.secured.server.address, tls_root_certs=CA.read_bytes())
        options = flight.FlightCallOptions(timeout=BOUND_SECONDS, headers=headers)
        with pytest.raises(flight.FlightUnauthenticatedError):
            list(client.do_action(flight.Action("status", b""), options))


class TestClient:
    """The client with credentials, as a training loop has it."""

    def test_two_workers_train(self, guarded: Guarded) -> None:
        """Over TLS, with tokens, a step goes as it goes without."""
        address = guarded.secured.server.address
        assert address.startswith("grpc+tls://")
        clients = [
            onefold.connect(address, name, credentials=Credentials(tls_ca=CA, token=held))
            for name, held in guarded.held.items()
            if name in AB.roster
        ]
        for client in clients:
            client.push(0, one(3))
        assert [number(client.pull(0)) for client in clients] == [6, 6]
        for client in clients:
            client.leave()
            client.close()

    @pytest.mark.parametrize(
        ("holder", "kind"), [("nothing", Unauthenticated), ("b", Forbidden), ("revoked", None)]
    )
    def test_a_refusal_is_final(
        self, guarded: Guarded, holder: str, kind: type[Exception] | None
    ) -> None:
        """It is raised at once, whatever the timeout: one call is made, not ten minutes of them."""
        credentials = Credentials(tls_ca=CA, token=guarded.held[holder])
        connecting = wait_in_thread(
            lambda: onefold.connect(
                guarded.secured.server.address, "a", credentials=credentials, timeout_seconds=1e6
            )
        )
        with pytest.raises(kind or Unauthenticated):
            connecting.result()

    def test_revoking_takes_effect_while_it_runs(self, guarded: Guarded) -> None:
        """The next call is refused, of a client that is connected, without a restart."""
        client = guarded.secured.client("a", tls_ca=CA, token=guarded.held["a"])
        client.push(0, one(3))
        revoke(guarded.tokens, "a")
        for use in (lambda: client.push(1, one(3)), lambda: client.pull(0), client.leave):
            with pytest.raises(Unauthenticated, match="revoked"):
                use()
        fresh = make_token(guarded.tokens, "a")
        again = guarded.secured.client("a", tls_ca=CA, token=fresh)
        assert again.push(0, one(3)).stands

    def test_a_damaged_file_lets_nobody_in(
        self, guarded: Guarded, caplog: pytest.LogCaptureFixture
    ) -> None:
        """And turns nobody away for good: whoever has a token goes on once it is mended."""
        kept = guarded.tokens.read_bytes()
        guarded.tokens.write_bytes(kept[:-10])
        with caplog.at_level(logging.ERROR):
            for _ in range(3):
                with pytest.raises(StoreError, match="cannot read its tokens") as caught:
                    guarded.call("a", "status")
        assert str(guarded.tokens) not in str(caught.value)
        assert [str(guarded.tokens) in record.message for record in caplog.records] == [True]
        with pytest.raises(GaveUp, match=r"could not do 'status' .* cannot read its tokens"):
            fetch_status(
                guarded.secured.server.address,
                timeout_seconds=0.3,
                credentials=Credentials(tls_ca=CA, token=guarded.held["a"]),
            )
        looking = wait_in_thread(
            lambda: fetch_status(
                guarded.secured.server.address,
                timeout_seconds=BOUND_SECONDS,
                credentials=Credentials(tls_ca=CA, token=guarded.held["a"]),
            )
        )
        guarded.tokens.write_bytes(kept)
        assert looking.result().run == guarded.secured.aggregator.run

    def test_a_bug_lets_nobody_in(self, guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever goes wrong while a token is looked up, the call is not answered."""

        def fail(*_: object) -> None:
            raise RuntimeError("no luck")

        monkeypatch.setattr(TokenFile, "caller", fail)
        with pytest.raises((Unreachable, onefold.OnefoldError)):
            guarded.call("a", "status")
        with pytest.raises((Unreachable, onefold.OnefoldError)):
            guarded.call("a", "join")
        assert guarded.secured.aggregator.status().roster == AB.roster

    def test_what_is_none_is_refused(self) -> None:
        """With what was expected, and before anything is sent."""
        with pytest.raises(InvalidInput, match="a token is what"):
            Credentials(token=3)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="credentials are a Credentials, not 'x'"):
            onefold.connect("grpc://127.0.0.1:1", "a", credentials="x")  # type: ignore[arg-type]

    def test_a_token_is_not_shown(self) -> None:
        """Not where the credentials are printed, as a traceback may."""
        assert "secret" not in repr(Credentials(token="secret"))

    def test_explicit_beats_environment(self) -> None:
        """What is given stays; what is not comes from the variables."""
        environment = {"ONEFOLD_TOKEN": "t", "ONEFOLD_TLS_CA": "ca", "ONEFOLD_TLS_CERT": ""}
        assert Credentials().or_from(environment) == Credentials(token="t", tls_ca="ca")
        assert Credentials(token="mine").or_from(environment).token == "mine"
        assert Credentials().or_from({}) == Credentials()

    def test_connect_reads_the_environment(
        self, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ONEFOLD_TLS_CA", str(CA))
        monkeypatch.setenv("ONEFOLD_TOKEN", str(guarded.held["a"]))
        with onefold.connect(guarded.secured.server.address, "a") as client:
            assert client.joined.worker == "a"


FILES = {
    "no such certificate": ({**TLS, "tls_cert": "nowhere.pem"}, "No such file"),
    "another's key": ({**TLS, "tls_key": CERTIFICATES / "client.key"}, "private key"),
    "a key for a certificate": ({**TLS, "tls_cert": CERTIFICATES / "server.key"}, "PEM"),
    "an encrypted key": ({**TLS, "tls_key": CERTIFICATES / "encrypted.key"}, "encrypted"),
    "roots that are a key": ({**TLS, "tls_ca": CERTIFICATES / "server.key"}, "PEM"),
    "no tokens": ({"tokens": "nowhere.json"}, "onefold token new"),
    "a certificate as tokens": ({"tokens": CERTIFICATES / "ca.pem"}, "no file of tokens"),
}


def _hang_up(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            server.accept()[0].close()


class TestTls:
    """Certificates of servers and clients."""

    def test_a_server_that_is_not_known_is_refused_at_once(self) -> None:
        """Signed by other roots: no call is made, and none tried again."""
        impostor = Security(CERTIFICATES / "impostor.pem", CERTIFICATES / "impostor.key")
        with serving(security=impostor) as secured:
            with pytest.raises(Unauthenticated, match="tls_ca"):
                secured.client("a", seconds=1e6, tls_ca=CA)
            with pytest.raises(Unauthenticated, match="tls_ca"):
                secured.client("a", seconds=1e6)
            assert secured.client("a", tls_ca=CERTIFICATES / "other-ca.pem").joined.worker == "a"

    def test_a_certificate_of_another_name_is_refused_at_once(self) -> None:
        """Right roots, but not for this address."""
        other = Security(CERTIFICATES / "client.pem", CERTIFICATES / "client.key")
        with serving(security=other) as secured, pytest.raises(Unauthenticated, match="name"):
            secured.client("a", seconds=1e6, tls_ca=CA)

    def test_what_is_sent_cannot_be_read_in_the_clear(self) -> None:
        """A client without TLS gets no answer of a server with it, and is told so at once."""
        with serving(security=Security(**TLS)) as secured:
            place = secured.server.address.partition("://")[2]
            with pytest.raises(ProtocolError, match=rf"has TLS: say grpc\+tls://{place}"):
                fetch_status(f"grpc://{place}", timeout_seconds=1e6)

    def test_a_server_without_tls_is_told_at_once(self) -> None:
        """And nothing of a call is sent to it."""
        with serving() as secured:
            address = f"grpc+tls://{secured.server.address.partition('://')[2]}"
            with pytest.raises(ProtocolError, match="has no TLS"):
                fetch_status(address, timeout_seconds=1e6, credentials=Credentials(tls_ca=CA))

    def test_who_is_not_there_may_come(self) -> None:
        """A port where nobody listens, or somebody who hangs up, is tried until the deadline."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            hanging_up = threading.Thread(target=_hang_up, args=(server,), daemon=True)
            hanging_up.start()
            address = f"grpc://127.0.0.1:{server.getsockname()[1]}"
            with pytest.raises(GaveUp, match="see that the server runs there"):
                fetch_status(address, timeout_seconds=1.0)
            server.shutdown(socket.SHUT_RDWR)
            hanging_up.join(BOUND_SECONDS)

    def test_mutual_tls_wants_a_certificate(self) -> None:
        """Of its own roots: with none, or a stranger's, nobody is answered; a hint says why."""
        with serving(security=Security(**MUTUAL_TLS)) as secured:
            with pytest.raises(GaveUp, match="tls_cert"):
                secured.client("a", seconds=0.5, tls_ca=CA)
            with pytest.raises(GaveUp, match="its roots have not signed"):
                secured.client("a", seconds=0.5, **STRANGER)
            assert secured.client("a", **CLIENT).joined.worker == "a"

    def test_a_certificate_alone_tells_no_workers_apart(self) -> None:
        """Documented: with mutual TLS and no tokens its holder speaks as any worker."""
        with serving(security=Security(**MUTUAL_TLS)) as secured:
            for name in "ab":
                secured.client(name, **CLIENT).push(0, one(3))
            assert number(secured.aggregator.pull(0)) == 6

    def test_mutual_tls_and_tokens_want_both(self, tmp_path: Path) -> None:
        """A certificate does not stand in for a token, nor a token for a certificate."""
        tokens = tmp_path / "tokens.json"
        token = make_token(tokens, "a")
        with serving(security=Security(**MUTUAL_TLS, tokens=tokens)) as secured:
            with pytest.raises(Unauthenticated):
                secured.client("a", **CLIENT)
            with pytest.raises(GaveUp):
                secured.client("a", seconds=0.5, tls_ca=CA, token=token)
            with pytest.raises(Forbidden):
                secured.client("b", **CLIENT, token=token)
            assert secured.client("a", **CLIENT, token=token).joined.worker == "a"

    def test_the_peer_identity_is_what_the_page_says(self) -> None:
        """gRPC gives the certificate's alternative name, and nothing without mutual TLS."""

        class Asked(flight.FlightServerBase):  # type: ignore[misc] # pyarrow is untyped
            def do_action(
                self, context: flight.ServerCallContext, _action: flight.Action
            ) -> list[flight.Result]:
                return [flight.Result(context.peer_identity())]

        for security, expected in [
            (Security(**MUTUAL_TLS), b"client.example"),
            (Security(**TLS), b""),
        ]:
            options = security.flight_options()
            with Asked("grpc+tls://127.0.0.1:0", **options) as server:
                client = flight.FlightClient(
                    f"grpc+tls://127.0.0.1:{server.port}", **Credentials(**CLIENT).flight_options()
                )
                (result,) = client.do_action("x")
                assert result.body.to_pybytes() == expected

    @pytest.mark.parametrize("fault", FILES)
    def test_a_wrong_file_is_told_before_anybody_connects(self, fault: str) -> None:
        files, match = FILES[fault]
        with onefold.Aggregator() as aggregator:
            server = Server(aggregator, security=Security(**files))
            with pytest.raises(InvalidInput, match=match):
                server.start()

    def test_a_wrong_file_is_told_to_a_client_too(self) -> None:
        for files, match in [
            ({"tls_ca": CERTIFICATES / "server.key"}, "PEM"),
            ({**CLIENT, "tls_key": CERTIFICATES / "server.key"}, "private key"),
        ]:
            with pytest.raises(InvalidInput, match=match):
                fetch_status("grpc+tls://127.0.0.1:1", credentials=Credentials(**files))


class TestWhere:
    """Where a server listens, and where a token is sent."""

    ANYWHERE = ("0.0.0.0:0", "[::]:0", "grpc://0.0.0.0:0")

    @pytest.mark.parametrize("listen", ANYWHERE)
    def test_without_authentication_only_this_machine(self, listen: str) -> None:
        """All options that would help are named; TLS alone shows nobody who calls."""
        with onefold.Aggregator() as aggregator:
            for security in (None, Security(), Security(**TLS)):
                with pytest.raises(InvalidInput, match=r"--tokens.*--tls-ca.*--insecure"):
                    Server(aggregator, listen, security=security).start()

    def test_tokens_alone_are_not_sent_in_the_clear(self, tmp_path: Path) -> None:
        """Tokens without TLS are good for this machine."""
        tokens = tmp_path / "tokens.json"
        token = make_token(tokens, "a")
        with onefold.Aggregator(None, AB) as aggregator:
            with pytest.raises(InvalidInput, match="--tls-cert"):
                Server(aggregator, "0.0.0.0:0", security=Security(tokens=tokens)).start()
            with Server(aggregator, security=Security(tokens=tokens)) as server:
                fetch_status(server.address, credentials=Credentials(token=token))

    @pytest.mark.parametrize("guard", ["insecure", "tokens and TLS", "mutual TLS"])
    def test_what_asks_or_is_told_to_listens_anywhere(self, tmp_path: Path, guard: str) -> None:
        make_token(tmp_path / "tokens.json", "a")
        security = {
            "insecure": Security(insecure=True),
            "tokens and TLS": Security(**TLS, tokens=tmp_path / "tokens.json"),
            "mutual TLS": Security(**MUTUAL_TLS),
        }[guard]
        with (
            onefold.Aggregator() as aggregator,
            Server(aggregator, "0.0.0.0:0", security=security) as server,
        ):
            assert server.address.startswith(f"{security.scheme}://0.0.0.0:")

    @pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:0", "127.1.2.3:0"])
    def test_this_machine_needs_nothing(self, listen: str) -> None:
        with onefold.Aggregator() as aggregator, Server(aggregator, listen):
            pass

    def test_half_a_pair_is_refused(self) -> None:
        for made in (Security, Credentials):
            for half in ("tls_cert", "tls_key"):
                with pytest.raises(InvalidInput, match="tls_cert and tls_key"):
                    made(**{half: TLS[half]})
        with pytest.raises(InvalidInput, match="tls_ca"):
            Security(tls_ca=CA)

    @pytest.mark.parametrize("address", ["192.0.2.1:7000", "grpc://example.com:7000"])
    def test_a_token_is_not_sent_in_the_clear(self, address: str) -> None:
        """To another machine, unless that is asked for; nor are certificates left unused."""
        with pytest.raises(InvalidInput, match=r"grpc\+tls://"):
            fetch_status(address, credentials=Credentials(token="t"))
        with pytest.raises(InvalidInput, match=r"tls_ca need TLS"):
            fetch_status(address, credentials=Credentials(tls_ca=CA))
        credentials = Credentials(token="t", insecure=True)
        with pytest.raises(GaveUp):
            fetch_status("grpc://192.0.2.1:7", timeout_seconds=0.2, credentials=credentials)

    @pytest.mark.parametrize("token", ["", "a b", "a\n", "ä", "\x00"])
    def test_what_cannot_be_a_token_is_refused(self, token: str) -> None:
        with pytest.raises(InvalidInput, match="onefold token new"):
            Credentials(token=token)


class TestManyAtOnce:
    def test_each_call_has_its_own_caller(self, guarded: Guarded) -> None:
        """Threads that call at the same time, over one server, are never taken for one another."""
        wrong: list[str] = []

        def go_on(name: str, other: str) -> None:
            channel = guarded.secured.channel(tls_ca=CA, token=guarded.held[name])
            run = guarded.secured.aggregator.run
            for _ in range(50):
                call(channel, COMMANDS["join"](run, name, 0))
                try:
                    call(channel, COMMANDS["join"](run, other, 0))
                    wrong.append(name)
                except Forbidden:
                    pass

        threads = [
            threading.Thread(target=go_on, args=names) for names in (("a", "b"), ("b", "a")) * 2
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND_SECONDS)
        assert not any(thread.is_alive() for thread in threads)
        assert wrong == []


def test_security_is_frozen() -> None:
    """What a server asks cannot be changed while it runs."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Security().insecure = True  # type: ignore[misc]


def test_calls_to_this_machine_do_not_go_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``http_proxy`` names would read the token, which needs no TLS on the way to here."""
    with socket.create_server(("127.0.0.1", 0)) as proxy, serving(None) as secured:
        proxy.setblocking(False)
        for variable in ("http_proxy", "grpc_proxy", "https_proxy"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for variable in ("no_proxy", "no_grpc_proxy", "NO_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        assert secured.client("a").push(7, one(2)).stands
        with pytest.raises(BlockingIOError):
            proxy.accept()
