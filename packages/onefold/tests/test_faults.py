"""The network that misbehaves from a seed: what it decides, and that it does what it decided."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from onefold.errors import InvalidInput
from onefold.faults import KINDS, Call, Fate, Faults, Proxy

BOUND_SECONDS = 20.0


def calls(count: int) -> Iterator[Call]:
    for number in range(count):
        yield Call("push", str(number % 4), 1, number // 4, 0, 0)


class TestParsing:
    def test_all_names_are_read(self) -> None:
        faults = Faults.parse(
            "repeat=0.2, lose=0.1,lose_reply=0.05,delay=1,reorder=0,delay_seconds_max=0.5", seed=7
        )
        assert faults == Faults(0.2, 0.1, 0.05, 1.0, 0.0, delay_seconds_max=0.5, seed=7)

    def test_no_text_is_no_faults(self) -> None:
        assert Faults.parse("") == Faults()
        assert not Faults.parse("").any

    def test_what_is_written_can_be_read(self) -> None:
        faults = Faults.parse("repeat=0.2,lose=0.1")
        assert Faults.parse(str(faults)) == faults

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("loose=0.1", "'loose=0.1' is no fault: expected name=probability with the names repe"),
            ("lose", "'lose' is no fault"),
            ("lose=", "fault 'lose': '' is not a number"),
            ("lose=often", "fault 'lose': 'often' is not a number"),
            ("lose=1.5", "fault 'lose': a probability is a number from 0 to 1, not 1.5"),
            ("lose=-0.1", "from 0 to 1, not -0.1"),
            ("lose=nan", "from 0 to 1, not nan"),
            ("lose=0.1,lose=0.2", "fault 'lose' is given twice"),
            ("delay_seconds_max=-1", "delay_seconds_max is a number of seconds"),
            ("delay_seconds_max=inf", "delay_seconds_max is a number of seconds"),
            ("seed=1", "'seed=1' is no fault"),
        ],
    )
    def test_a_mistake_is_named(self, text: str, message: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            Faults.parse(text)
        assert message in str(caught.value)


class TestCall:
    def test_a_command_is_read(self) -> None:
        command = {"verb": "push", "worker": "1", "incarnation": 2, "step": 3, "attempt": 4}
        call = Call.of(json.dumps({**command, "try": 5, "part": 6, "run": "r"}).encode())
        assert call == Call("push", "1", 2, 3, 4, 5, 6)

    @pytest.mark.parametrize("command", [b"", b"\xff", b"[1]", b"nonsense"])
    def test_what_is_no_command_has_no_words(self, command: bytes) -> None:
        assert Call.of(command, "status") == Call("status")

    def test_words_of_a_wrong_type_are_left_out(self) -> None:
        assert Call.of(b'{"verb": "push", "worker": 1, "step": "x"}') == Call("push")


class TestDecisions:
    def test_the_same_seed_decides_the_same(self) -> None:
        faults = Faults(0.3, 0.3, 0.3, 0.3, 0.3, seed=5)
        again = Faults(0.3, 0.3, 0.3, 0.3, 0.3, seed=5)
        assert [faults.fate(c) for c in calls(500)] == [again.fate(c) for c in calls(500)]

    def test_another_seed_decides_otherwise(self) -> None:
        one, other = Faults(lose=0.5, seed=1), Faults(lose=0.5, seed=2)
        differing = sum(one.fate(c) != other.fate(c) for c in calls(2000))
        assert 880 < differing < 1120

    def test_every_word_of_the_call_matters(self) -> None:
        base = ["push", "0", 1, 2, 3, 4, 5]
        others = [[*base[:i], "x" if i < 2 else 9, *base[i + 1 :]] for i in range(len(base))]
        draws = {Faults().draw("lose", Call(*words)) for words in [base, *others]}  # type: ignore[arg-type]
        assert len(draws) == 8

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
    def test_the_rates_are_those_asked_for(self, kind: str, probability: float) -> None:
        count = 4000
        faults = Faults(**{kind: probability})
        fates = [faults.fate(call) for call in calls(count)]
        happened = {
            "repeat": [fate.repeat_after_seconds is not None for fate in fates],
            "lose": [fate.lose for fate in fates],
            "lose_reply": [fate.lose_reply for fate in fates],
            "delay": [fate.delay_seconds > 0 for fate in fates],
            "reorder": [fate.reorder for fate in fates],
        }
        for other in KINDS:
            expected = probability if other == kind else 0.0
            # Five standard deviations: a wrong rate fails, and chance does not.
            margin = 5 * (count * expected * (1 - expected)) ** 0.5
            assert abs(sum(happened[other]) - count * expected) <= margin

    def test_the_kinds_are_independent(self) -> None:
        drawn = np.array([[Faults().draw(kind, call) for kind in KINDS] for call in calls(10_000)])
        correlations = np.corrcoef(drawn.T) - np.eye(len(KINDS))
        assert np.abs(correlations).max() < 5 / 10_000**0.5

    def test_a_lost_call_is_nothing_else(self) -> None:
        fate = Faults(1, 1, 1, 1, 1).fate(Call("push"))
        assert fate.lose
        assert fate == Fate(lose=True)

    def test_times_are_bounded(self) -> None:
        faults = Faults(repeat=1, delay=1, delay_seconds_max=0.25)
        fates = [faults.fate(call) for call in calls(5000)]
        delays = [fate.delay_seconds for fate in fates]
        repeats = [fate.repeat_after_seconds or 0.0 for fate in fates]
        assert 0 <= min(delays) < 0.01
        assert 0.24 < max(delays) < 0.25
        assert 0.25 < max(repeats) < 5 * 0.25


SCHEMA = pa.schema([("value", pa.int64())])


class FakeServer(flight.FlightServerBase):  # type: ignore[misc] # pyarrow is untyped
    """Keeps what comes, and answers with it."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.changed = threading.Condition()
        self.seen: list[tuple[str, object]] = []

    @property
    def address(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def note(self, what: str, detail: object) -> None:
        with self.changed:
            self.seen.append((what, detail))
            self.changed.notify_all()

    def wait_for(self, condition: Callable[[list[tuple[str, object]]], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self.seen), BOUND_SECONDS)

    def do_put(self, _context: object, _descriptor: object, reader: object, writer: object) -> None:
        values: list[int] = []
        metadata: list[bytes] = []
        while True:
            try:
                chunk = reader.read_chunk()  # type: ignore[attr-defined]
            except StopIteration:
                break
            values += chunk.data.column(0).to_pylist() if chunk.data else []
            metadata += [chunk.app_metadata.to_pybytes()] if chunk.app_metadata else []
        self.note("put", sum(values))
        if values and values[0] < 0:
            raise flight.FlightServerError("negative", extra_info=b"receipt")
        writer.write(str(sum(values)).encode())  # type: ignore[attr-defined]
        writer.write(b"|".join(metadata))  # type: ignore[attr-defined]

    def do_action(self, _context: object, action: flight.Action) -> list[flight.Result]:
        self.note("action", action.body.to_pybytes())
        return [flight.Result(action.body), flight.Result(pa.py_buffer(b"done"))]

    def do_get(self, _context: object, ticket: flight.Ticket) -> flight.GeneratorStream:
        self.note("get", ticket.ticket)
        batches = (pa.record_batch([[number]], schema=SCHEMA) for number in range(3))
        return flight.GeneratorStream(SCHEMA, ((batch, b"m") for batch in batches))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.shutdown()


def put(client: flight.FlightClient, *values: int, **words: object) -> list[bytes]:
    command = json.dumps({"verb": "push", **words}).encode()
    writer, reader = client.do_put(flight.FlightDescriptor.for_command(command), SCHEMA)
    with writer:
        for value in values:
            writer.write_batch(pa.record_batch([[value]], schema=SCHEMA))
        writer.write_metadata(b"end")
        writer.done_writing()
        answers: list[bytes] = []
        while (answer := reader.read()) is not None:
            answers.append(answer.to_pybytes())
    return answers


def act(client: flight.FlightClient, **words: object) -> list[bytes]:
    action = flight.Action("do", json.dumps(words).encode())
    return [result.body.to_pybytes() for result in client.do_action(action)]


class TestProxy:
    def test_without_faults_nothing_is_changed(self, server: FakeServer) -> None:
        with Proxy(server.address, Faults()) as proxy, flight.connect(proxy.address) as client:
            assert put(client, 1, 2, 3) == [b"6", b"end"]
            assert act(client, verb="join") == [b'{"verb": "join"}', b"done"]
            reader = client.do_get(flight.Ticket(b"{}"))
            chunks = [reader.read_chunk() for _ in range(3)]
            assert [chunk.data.to_pylist() for chunk in chunks] == [
                [{"value": number}] for number in range(3)
            ]
            assert {chunk.app_metadata.to_pybytes() for chunk in chunks} == {b"m"}
            with pytest.raises(StopIteration):
                reader.read_chunk()
            traffic = proxy.traffic
        assert (traffic.calls, traffic.lost, traffic.repeated, traffic.delayed) == (3, 0, 0, 0)
        assert traffic.bytes_to_server >= 24
        assert traffic.bytes_from_server >= 24

    def test_an_error_keeps_its_kind_and_its_extra_info(self, server: FakeServer) -> None:
        with Proxy(server.address, Faults()) as proxy, flight.connect(proxy.address) as client:
            with pytest.raises(flight.FlightServerError, match="negative") as caught:
                put(client, -1)
            assert caught.value.extra_info == b"receipt"
            assert str(caught.value).count("negative") <= 2

    def test_a_lost_call_never_arrives(self, server: FakeServer) -> None:
        with (
            Proxy(server.address, Faults(lose=1)) as proxy,
            flight.connect(proxy.address) as client,
        ):
            with pytest.raises(flight.FlightUnavailableError, match="lost this call"):
                put(client, 1)
            with pytest.raises(flight.FlightUnavailableError, match="lost this call"):
                act(client, verb="join")
            with pytest.raises(flight.FlightUnavailableError, match="lost this call"):
                client.do_get(flight.Ticket(b"{}")).read_all()
            assert proxy.traffic.lost == 3
        assert server.seen == []

    def test_a_lost_answer_belongs_to_a_call_that_arrived(self, server: FakeServer) -> None:
        with (
            Proxy(server.address, Faults(lose_reply=1)) as proxy,
            flight.connect(proxy.address) as client,
        ):
            with pytest.raises(flight.FlightUnavailableError, match="lost the answer"):
                put(client, 1)
            with pytest.raises(flight.FlightUnavailableError, match="lost the answer"):
                client.do_get(flight.Ticket(b"{}")).read_all()
            assert proxy.traffic.replies_lost == 2
        assert server.seen == [("put", 1), ("get", b"{}")]

    def test_a_repeat_arrives_again_and_whole(self, server: FakeServer) -> None:
        faults = Faults(repeat=1, delay_seconds_max=0.01)
        with Proxy(server.address, faults) as proxy, flight.connect(proxy.address) as client:
            assert put(client, 4, 5) == [b"9", b"end"]
            act(client, verb="join")
            server.wait_for(lambda seen: seen.count(("put", 9)) == 2 and len(seen) == 4)
        assert proxy.traffic.repeated == 2

    def test_a_put_larger_than_the_memory_is_repeated_too(
        self, server: FakeServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("onefold.faults.streams._MEMORY_BYTES_MAX", 64)
        faults = Faults(repeat=1, delay_seconds_max=0.01)
        with Proxy(server.address, faults) as proxy, flight.connect(proxy.address) as client:
            put(client, *range(100))
            server.wait_for(lambda seen: seen == [("put", 4950)] * 2)

    def test_a_repeat_that_has_not_come_when_the_proxy_stops_never_comes(
        self, server: FakeServer
    ) -> None:
        faults = Faults(repeat=1, delay_seconds_max=1000)
        with Proxy(server.address, faults) as proxy, flight.connect(proxy.address) as client:
            put(client, 1)
        assert proxy.traffic.repeated == 0
        assert server.seen == [("put", 1)]

    def test_a_call_is_held_until_another_has_passed(self, server: FakeServer) -> None:
        faults = Faults(reorder=0.5, delay_seconds_max=BOUND_SECONDS)
        held = next(s for s in itertools.count() if faults.fate(Call("push", step=s)).reorder)
        free = next(s for s in itertools.count() if not faults.fate(Call("push", step=s)).reorder)
        with Proxy(server.address, faults) as proxy, flight.connect(proxy.address) as client:
            first = threading.Thread(target=put, args=(client, 1), kwargs={"step": held})
            first.start()
            while proxy.traffic.calls < 1:
                assert first.is_alive()
            put(client, 2, step=free)
            server.wait_for(lambda seen: len(seen) >= 1)
            # Had the first one not begun to wait when the second passed, it waits for this one.
            while first.is_alive():
                put(client, 2, step=free)
            assert proxy.traffic.reordered == 1
        assert server.seen[0] == ("put", 2)
        assert ("put", 1) in server.seen

    def test_a_held_call_is_let_go_when_nobody_comes(self, server: FakeServer) -> None:
        faults = Faults(reorder=1, delay_seconds_max=0.01)
        with Proxy(server.address, faults) as proxy, flight.connect(proxy.address) as client:
            assert put(client, 1) == [b"1", b"end"]
        assert proxy.traffic.reordered == 0

    def test_a_server_that_is_away_is_unavailable_until_it_is_back(
        self, server: FakeServer
    ) -> None:
        away = FakeServer()
        with Proxy(away.address, Faults()) as proxy, flight.connect(proxy.address) as client:
            assert put(client, 1)
            away.shutdown()
            with pytest.raises(flight.FlightUnavailableError):
                put(client, 2)
            assert proxy.traffic.unavailable == 1
            proxy.upstream = server.address
            assert put(client, 3) == [b"3", b"end"]

    def test_it_has_no_address_before_it_listens(self) -> None:
        with pytest.raises(RuntimeError, match="has not started"):
            _ = Proxy("grpc://127.0.0.1:1", Faults()).address
