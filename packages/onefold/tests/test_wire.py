"""What travels between client and server: every message survives, and nothing else is read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import onefold.errors as tree
from onefold import wire
from onefold.errors import (
    Damaged,
    Fenced,
    InvalidUpdate,
    OnefoldError,
    ProtocolError,
    Refused,
    SumOverflow,
    TransportError,
)
from onefold.ledger import Behind, Contributor, Excluded, Joined, StepClosed
from onefold.parts import Manifest, TensorManifest
from onefold.receipt import Receipt, Status
from onefold.status import OpenStepStatus, RunStatus
from onefold.update import TensorSpec
from onefold.wire import (
    COMMAND_BYTES_MAX,
    Answer,
    Command,
    decode_answer,
    decode_command,
    decode_failure,
    encode_answer,
    encode_command,
    encode_failure,
)

examples = settings(deadline=None, derandomize=True, max_examples=100)

# Every message once, beside its bytes, written by hand.

DIGEST = "0123456789abcdef" * 2
MANIFEST = Manifest(
    (
        TensorManifest("s", TensorSpec("sparse", "int64", (None, 3)), 2),
        TensorManifest("w", TensorSpec("dense", "bfloat16", (4, 5)), None),
    ),
    weight=2**53,
    digest=DIGEST,
    parts=("p", "q"),
)
MANIFEST_JSON = (
    '{"tensors":[{"name":"s","kind":"sparse","dtype":"int64","shape":[null,3],"entries":2},'
    '{"name":"w","kind":"dense","dtype":"bfloat16","shape":[4,5],"entries":null}],'
    f'"weight":9007199254740992,"digest":"{DIGEST}","parts":["p","q"]}}'
)
WHO = '"run":"r","worker":"ω","incarnation":3'

COMMANDS: list[tuple[Command, str]] = [
    (wire.Join("ω", "l", 2, 1), '"verb":"join","worker":"ω","life":"l","after":2,"try":1'),
    (wire.Leave("r", "ω", 3, 2), f'"verb":"leave",{WHO},"try":2'),
    (
        wire.Put("r", "ω", 3, -7, 5, 6, None, 4),
        f'"verb":"put",{WHO},"step":-7,"attempt":5,"part":6,"manifest":null,"try":4',
    ),
    (
        wire.Put("r", "ω", 3, 7, 5, 0, MANIFEST),
        f'"verb":"put",{WHO},"step":7,"attempt":5,"part":0,"manifest":{MANIFEST_JSON},"try":0',
    ),
    (
        wire.Commit("r", "ω", 3, 7, 5, MANIFEST, 1),
        f'"verb":"commit",{WHO},"step":7,"attempt":5,"manifest":{MANIFEST_JSON},"try":1',
    ),
    (
        wire.Pull("r", "ω", 3, 7, None, 0.5),
        f'"verb":"pull",{WHO},"step":7,"attempt":null,"wait_seconds":0.5,"try":0',
    ),
    (
        wire.Pull("r", "ω", 3, 7, 5, 2.0, 9),
        f'"verb":"pull",{WHO},"step":7,"attempt":5,"wait_seconds":2.0,"try":9',
    ),
    (wire.Get("r", "ω", 3, 7, 1, "p"), f'"verb":"get",{WHO},"step":7,"part":1,"name":"p","try":0'),
    (wire.GetStatus(8), '"verb":"status","try":8'),
    (wire.Join("ω", "l"), '"verb":"join","worker":"ω","life":"l","after":null,"try":0'),
]

RECEIPT = Receipt(Status.CLOSED, "why", 7, "ω", 3, 5, DIGEST, counted=False, counted_as=4)
RECEIPT_JSON = (
    '"status":"closed","reason":"why","step":7,"worker":"ω","incarnation":3,"attempt":5,'
    f'"digest":"{DIGEST}","counted":false,"counted_as":4'
)
CLOSED = StepClosed(
    7, "update", (Contributor("a", 1, 2, 3, DIGEST),), (Excluded("b", "late"),), 1.5
)
CLOSED_JSON = (
    '{"step":7,"outcome":"update","contributors":[{"worker":"a","incarnation":1,"attempt":2,'
    f'"weight":3,"digest":"{DIGEST}"}}],"excluded":[{{"worker":"b","reason":"late"}}],'
    '"closed_at":1.5}'
)
SKIPPED_JSON = '{"step":7,"outcome":"skipped","contributors":[],"excluded":[],"closed_at":0.0}'
STATUS = RunStatus(
    run="r",
    operation="mean",
    highest_closed=-1,
    open_steps=(OpenStepStatus(0, ("a",), ("b", "c"), 1, 2.5, "full"),),
    roster=("a", "b"),
    receipts={"accepted": 2},
    received_bytes=10,
    staged_bytes=20,
)
STATUS_JSON = (
    '"run":"r","operation":"mean","highest_closed":-1,"open_steps":[{"step":0,'
    '"contributed":["a"],"missing":["b","c"],"vacant":1,"deadline_at":2.5,"problem":"full"}],'
    '"roster":["a","b"],"receipts":{"accepted":2},"received_bytes":10,"staged_bytes":20'
)

ANSWERS: list[tuple[Answer, str]] = [
    (
        Joined("r", "ω", 3, ("a", "ω"), 1, -5, 4),
        f'"answer":"joined",{WHO},"roster":["a","ω"],"index":1,"first_open_step":-5,"size":4',
    ),
    (wire.Done(), '"answer":"done"'),
    (wire.Staged("7-p"), '"answer":"staged","part":"7-p"'),
    (RECEIPT, f'"answer":"receipt",{RECEIPT_JSON}'),
    (STATUS, f'"answer":"status",{STATUS_JSON}'),
    (wire.Open(), '"answer":"open"'),
    (wire.Resend(), '"answer":"resend"'),
    (
        wire.Closed(CLOSED, MANIFEST),
        f'"answer":"closed","closed":{CLOSED_JSON},"manifest":{MANIFEST_JSON}',
    ),
    (
        wire.Closed(StepClosed(7, "skipped", (), (), 0.0), None),
        f'"answer":"closed","closed":{SKIPPED_JSON},"manifest":null',
    ),
    (Behind("ω", 3), '"answer":"behind","worker":"ω","incarnation":3'),
]

INSIDE = f'"receipt":{{{RECEIPT_JSON}}},"coordinate":null'
FAILURES: list[tuple[OnefoldError, str]] = [
    (Damaged("gone"), '"error":"Damaged","message":"gone","receipt":null,"coordinate":null'),
    (
        Refused(RECEIPT),
        f'"error":"Refused","message":"worker \'ω\', step 7: closed: why",{INSIDE}',
    ),
]


def message(inside: str) -> bytes:
    """The bytes of a message of protocol 1."""
    return f'{{"protocol":1,{inside}}}'.encode()


def encode(value: Any) -> bytes:
    """A command, an answer or an error as bytes."""
    if isinstance(value, OnefoldError):
        return encode_failure(value)
    return encode_command(value) if hasattr(value, "retry") else encode_answer(value)


def any_answer(data: bytes) -> object:
    return decode_answer(data, object)


Decode = Any
ALL = [
    *((decode_command, message(text), f"command-{n}") for n, (_, text) in enumerate(COMMANDS)),
    *((any_answer, message(text), f"answer-{n}") for n, (_, text) in enumerate(ANSWERS)),
    *((decode_failure, message(text), f"failure-{n}") for n, (_, text) in enumerate(FAILURES)),
]
every_message = pytest.mark.parametrize(
    ("decode", "data"), [case[:2] for case in ALL], ids=[case[2] for case in ALL]
)


@pytest.mark.parametrize(("value", "text"), [*COMMANDS, *ANSWERS, *FAILURES])
def test_the_bytes_are_fixed(value: Any, text: str) -> None:
    """A message has the bytes written above, which peers of other releases read and send."""
    assert encode(value) == message(text)


# Whatever can be said survives.

counts = st.integers(0, 2**63 - 1)
steps = st.integers(-(2**63), 2**63 - 1)
seconds = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=8)
digests = st.text("0123456789abcdef", min_size=32, max_size=32)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


sizes = st.integers(0, 1000)
dtypes = st.sampled_from(["float16", "float64", "int8", "uint64", "bfloat16"])
dense = st.builds(TensorSpec, st.just("dense"), dtypes, tuples(sizes))
rows = st.tuples(maybe(sizes), sizes) | st.tuples(maybe(sizes))
sparse = st.builds(TensorSpec, st.just("sparse"), dtypes, rows)
tensors = st.builds(TensorManifest, texts, dense, st.none()) | st.builds(
    TensorManifest, texts, sparse, sizes
)
manifests = st.builds(
    Manifest,
    st.lists(tensors, min_size=1, max_size=3, unique_by=lambda tensor: tensor.name).map(
        lambda listed: tuple(sorted(listed, key=lambda tensor: tensor.name))
    ),
    st.integers(0, 2**53),
    digests,
    tuples(texts),
)
sender = (texts, texts, counts)
commands = st.one_of(
    st.builds(wire.Join, texts, texts, counts),
    st.builds(wire.Leave, *sender, counts),
    st.builds(wire.Put, *sender, steps, counts, counts, maybe(manifests), counts),
    st.builds(wire.Commit, *sender, steps, counts, manifests, counts),
    st.builds(wire.Pull, *sender, steps, maybe(counts), seconds.map(abs), counts),
    st.builds(wire.Get, *sender, steps, counts, texts, counts),
    st.builds(wire.GetStatus, counts),
)
receipts = st.builds(
    Receipt,
    *(st.sampled_from(Status), texts, steps, texts, maybe(counts), maybe(counts), texts),
    counted=maybe(st.booleans()),
    counted_as=maybe(counts),
)
closed_steps = st.builds(
    StepClosed,
    steps,
    st.sampled_from(["update", "skipped"]),
    tuples(st.builds(Contributor, texts, maybe(counts), maybe(counts), counts, texts)),
    tuples(st.builds(Excluded, texts, texts)),
    seconds,
)
open_steps = st.builds(
    OpenStepStatus, steps, tuples(texts), maybe(tuples(texts)), counts, maybe(seconds), maybe(texts)
)
answers = st.one_of(
    st.builds(Joined, texts, texts, counts, maybe(tuples(texts)), maybe(counts), steps),
    st.builds(wire.Staged, texts),
    receipts,
    st.builds(
        RunStatus,
        *(texts, texts, maybe(steps), tuples(open_steps), maybe(tuples(texts))),
        *(st.dictionaries(texts, counts, max_size=3), counts, counts),
    ),
    st.builds(wire.Closed, closed_steps, maybe(manifests)),
    st.sampled_from([wire.Done(), wire.Open(), wire.Resend()]),
)


@examples
@given(commands)
def test_a_command_survives(command: Command) -> None:
    """What is decoded is what was encoded, for every command with any values."""
    assert decode_command(encode_command(command)) == command


@examples
@given(answers)
def test_an_answer_survives(answer: Answer) -> None:
    """What is decoded is what was encoded, for every answer with any values."""
    again = decode_answer(encode_answer(answer), type(answer))
    assert again == answer
    assert type(again) is type(answer)


@pytest.mark.parametrize("answer", [answer for answer, _ in ANSWERS])
def test_another_answer_than_was_asked_for_is_refused(answer: Answer) -> None:
    """Where a receipt is expected nothing else passes; a pull takes any of its three."""
    data = encode_answer(answer)
    if isinstance(answer, wire.PullAnswer):
        assert decode_answer(data, wire.PullAnswer) == answer
    else:
        with pytest.raises(ProtocolError, match="expected the answer PullAnswer"):
            decode_answer(data, wire.PullAnswer)
    other = wire.Staged if isinstance(answer, Receipt) else Receipt
    with pytest.raises(ProtocolError, match=f"expected the answer {other.__name__}"):
        decode_answer(data, other)


# Nothing else is read.

Path = tuple[str | int, ...]


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    """The paths of all values within ``value``, itself included."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def objects(value: object) -> list[Path]:
    """The paths of all JSON objects within ``value``, itself included."""
    return [path for path in leaves(value) if isinstance(at(value, path), dict)]


def at(value: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def changed(data: bytes, path: Path, new: object) -> bytes:
    """The message with another value at ``path``."""
    value = json.loads(data)
    at(value, path[:-1])[path[-1]] = new
    return json.dumps(value).encode()


@every_message
def test_a_missing_field_is_named(decode: Decode, data: bytes) -> None:
    """Without any one of its fields, at any depth, a message is refused."""
    for path in objects(json.loads(data)):
        for name in at(json.loads(data), path):
            if path == ("receipts",):
                continue  # counts by name: none is needed
            value = json.loads(data)
            del at(value, path)[name]
            with pytest.raises(ProtocolError, match=name):
                decode(json.dumps(value).encode())


@every_message
def test_an_unknown_field_is_refused(decode: Decode, data: bytes) -> None:
    """With a field more, at any depth, a message is refused."""
    for path in objects(json.loads(data)):
        with pytest.raises(ProtocolError, match=r"unheard|receipts"):
            decode(changed(data, (*path, "unheard"), "of"))


WRONG: dict[type, list[object]] = {
    str: [1, True, 1.5, [], {}],
    int: ["1", True, False, 1.5, 1.0, [], {}, 2**63, -(2**63) - 1],
    float: ["1", True, [], {}, 10**400],
    bool: [0, 1, "true", [], {}],
    list: ["a", 1, True, {}],
    dict: ["a", 1, True, []],
}


@every_message
def test_a_value_of_another_type_is_refused(decode: Decode, data: bytes) -> None:
    """Every field takes its own type only; true is no integer, and 1.0 is none either."""
    value = json.loads(data)
    for path in leaves(value):
        here = at(value, path)
        if path in ((), ("protocol",)) or here is None:
            continue
        for new in WRONG[type(here)]:
            with pytest.raises(ProtocolError):
                decode(changed(data, path, new))


@every_message
def test_only_steps_and_coordinates_may_be_negative(decode: Decode, data: bytes) -> None:
    """Counts, sizes and ordinals begin at 0; steps reach down to the least integer of 64 bits."""
    signed = {"step", "first_open_step", "highest_closed"}
    for path in leaves(json.loads(data)):
        if type(at(json.loads(data), path)) is not int or path == ("protocol",):
            continue
        if path[-1] in signed:
            decode(changed(data, path, -(2**63)))
        else:
            with pytest.raises(ProtocolError):
                decode(changed(data, path, -1))


@every_message
def test_only_what_may_be_null_may_be_null(decode: Decode, data: bytes) -> None:
    """Null stands for "none" in the fields that are optional, and is refused in all others."""
    value = json.loads(data)
    optional = {"manifest", "attempt", "incarnation", "roster", "index", "counted", "counted_as"}
    optional |= {"highest_closed", "missing", "deadline_at", "problem", "receipt", "coordinate"}
    optional.add("size")
    if "verb" in value:
        nulls = {"pull": {"attempt"}, "put": {"manifest"}, "join": {"after"}}
        optional = nulls.get(value["verb"], set())
    elif value.get("answer") in ("joined", "behind"):
        optional -= {"incarnation"}
    elif value.get("error") == "Refused":
        optional -= {"receipt"}
    for path in leaves(value):
        if path in ((), ("protocol",)) or at(value, path) is None:
            continue
        if path[-1] in optional:
            decode(changed(data, path, None))
        else:
            with pytest.raises(ProtocolError):
                decode(changed(data, path, None))


@every_message
def test_half_a_character_is_refused(decode: Decode, data: bytes) -> None:
    """A lone surrogate, which no peer could write down again, is no text of a message."""
    value = json.loads(data)
    for path in leaves(value):
        if isinstance(at(value, path), str) and path != ("error",):
            with pytest.raises(ProtocolError):
                decode(changed(data, path, "\ud800"))


@pytest.mark.parametrize("version", [0, 2, -1, "1", None, True, 1.0, [1], {}])
@pytest.mark.parametrize("which", ["command", "answer", "failure"])
def test_another_version_is_refused(which: str, version: object) -> None:
    """Only the integer 1 is this protocol."""
    decode, data, _ = next(case for case in ALL if case[2].startswith(which))
    with pytest.raises(ProtocolError, match="expected protocol 1"):
        decode(changed(data, ("protocol",), version))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-0.001", "-1"])
def test_a_wait_is_a_finite_time(text: str) -> None:
    """What is no finite number of seconds from 0 cannot be waited for."""
    command = message(COMMANDS[5][1].replace("0.5", text))
    with pytest.raises(ProtocolError):
        decode_command(command)


DECODERS = [decode_command, any_answer, decode_failure]


@pytest.mark.parametrize("decode", DECODERS)
@examples
@given(data=st.binary(max_size=64))
def test_random_bytes_are_refused(decode: Decode, data: bytes) -> None:
    """Whatever bytes come, the error is a ProtocolError."""
    with pytest.raises(ProtocolError):
        decode(data)


@every_message
def test_a_cut_message_is_refused(decode: Decode, data: bytes) -> None:
    """No beginning of a message is a message."""
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(data[:size])


@every_message
def test_changed_bytes_raise_nothing_else(decode: Decode, data: bytes) -> None:
    """With one byte changed a message is another one, or a ProtocolError."""
    generator = random.Random(0)
    for _ in range(200):
        position, byte = generator.randrange(len(data)), generator.randrange(256)
        try:
            decode(data[:position] + bytes([byte]) + data[position + 1 :])
        except ProtocolError:
            continue


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"1", b'"verb"', b"[" * 10**6, b'{"a":' * 400, b"9" * 4000],
    ids=lambda data: repr(data[:6]),
)
def test_other_json_is_refused(decode: Decode, data: bytes) -> None:
    """JSON that is no object, nests without end or has endless digits is a ProtocolError."""
    with pytest.raises(ProtocolError):
        decode(data)


def test_the_size_of_a_command_is_checked_before_it_is_read() -> None:
    """A command of the greatest size is read; with one byte more it is not, and is told why."""
    short = message('"verb":"join","worker":"","life":"l","after":null,"try":0')
    name = b"w" * (COMMAND_BYTES_MAX - len(short))
    longest = short.replace(b'"worker":""', b'"worker":"%s"' % name)
    assert isinstance(decode_command(longest), wire.Join)
    with pytest.raises(ProtocolError, match=f"at most {COMMAND_BYTES_MAX} bytes"):
        decode_command(longest + b" ")
    with pytest.raises(ProtocolError):
        decode_command(None)


@pytest.mark.parametrize(
    ("decode", "text"),
    [
        (decode_command, '"verb":"destroy","try":0'),
        (any_answer, '"answer":"destroy"'),
        (any_answer, ANSWERS[3][1].replace('"closed"', '"destroy"')),
        (any_answer, ANSWERS[7][1].replace('"update"', '"destroy"')),
    ],
)
def test_unknown_words_are_refused(decode: Decode, text: str) -> None:
    """A verb, answer, status or outcome that nobody knows is named in the error."""
    with pytest.raises(ProtocolError, match="destroy"):
        decode(message(text))


# Failures.

PLAIN = sorted(set(tree.__all__) - {"Refused", "Fenced", "SumOverflow", "RowError"})


@pytest.mark.parametrize("name", PLAIN)
def test_an_error_arrives_as_it_was(name: str) -> None:
    """Class and message of every error that a server raises are the same at the client."""
    error = getattr(tree, name)('it\'s "broken"\n in ω')
    arrived = decode_failure(encode_failure(error))
    assert type(arrived) is type(error)
    assert str(arrived) == 'it\'s "broken"\n in ω'


@examples
@given(receipts, st.sampled_from([Refused, Fenced]))
def test_a_refusal_brings_its_receipt(receipt: Receipt, kind: type[Refused]) -> None:
    """Refused and Fenced arrive with every field of the receipt."""
    arrived = decode_failure(encode_failure(kind(receipt)))
    assert type(arrived) is kind
    assert isinstance(arrived, Refused)
    assert arrived.receipt == receipt
    assert str(arrived) == str(kind(receipt))


@pytest.mark.parametrize("coordinate", [0, 1, 2**63 - 1, -1, -(2**63)])
def test_an_overflow_says_where(coordinate: int) -> None:
    """The coordinate travels, also a negative one, and so does the message."""
    error = SumOverflow.at(coordinate, "300 does not fit int8", "w")
    arrived = decode_failure(encode_failure(error))
    assert isinstance(arrived, SumOverflow)
    assert arrived.coordinate == coordinate
    assert str(arrived) == f"tensor 'w', coordinate {coordinate}: 300 does not fit int8"


def test_an_overflow_says_why() -> None:
    """The reason travels: a documented field of the error, the message without the place."""
    arrived = decode_failure(encode_failure(SumOverflow.at(5, "300 does not fit int8", "w")))
    assert isinstance(arrived, SumOverflow)
    assert arrived.reason == "300 does not fit int8"


@example("\ud800", 600)
@examples
@given(st.text(max_size=50), st.integers(1, 100))
def test_a_failure_always_fits(text: str, times: int) -> None:
    """However long and odd a message, at most 4 KiB travel, and its beginning arrives."""
    error = InvalidUpdate(text * times)
    data = encode_failure(error)
    assert len(data) <= 4096
    arrived = decode_failure(data)
    assert type(arrived) is InvalidUpdate
    whole = (text * times).encode(errors="replace").decode()
    expected = whole if len(whole) <= 500 else f"{whole[:499]}…"
    assert str(arrived) == expected


def test_a_long_reason_is_cut() -> None:
    """A receipt whose reason is long arrives with the beginning of it; all else is whole."""
    receipt = Receipt(Status.MISMATCH, "x" * 1000, 7, "a", 1, 2, DIGEST)
    arrived = decode_failure(encode_failure(Refused(receipt)))
    assert isinstance(arrived, Refused)
    assert arrived.receipt == Receipt(Status.MISMATCH, "x" * 499 + "…", 7, "a", 1, 2, DIGEST)


def test_a_refusal_that_does_not_fit_is_still_told() -> None:
    """With a name too long to travel the receipt is left out; the message arrives all the same."""
    receipt = Receipt(Status.MISMATCH, "why", 7, "w" * 10_000, 1, 2, DIGEST)
    data = encode_failure(Refused(receipt))
    assert len(data) <= 4096
    arrived = decode_failure(data)
    assert isinstance(arrived, TransportError)
    assert str(arrived).startswith("worker 'wwww")


@pytest.mark.parametrize(
    "name", ["ValueError", "OnefoldErrors", "Receipt", "annotations", "RowError"]
)
def test_an_error_of_another_version_is_told(name: str) -> None:
    """What is no error of ours is a TransportError that says name and message."""
    arrived = decode_failure(message(FAILURES[0][1].replace("Damaged", name)))
    assert type(arrived) is TransportError
    assert name in str(arrived)
    assert "gone" in str(arrived)


def test_a_refusal_without_its_receipt_is_refused() -> None:
    """Refused without a receipt could not be handled by whoever catches it."""
    with pytest.raises(ProtocolError, match="without its receipt"):
        decode_failure(message(FAILURES[0][1].replace("Damaged", "Fenced")))


def test_a_failure_has_a_bounded_size() -> None:
    """More than 4 KiB cannot have come from a server of this version."""
    short, long = (message(FAILURES[0][1].replace("gone", "x" * size)) for size in (4000, 4096))
    assert isinstance(decode_failure(short), Damaged)
    with pytest.raises(ProtocolError, match="at most 4096 bytes"):
        decode_failure(long)
