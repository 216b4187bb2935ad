"""What of onefold parses bytes that others made: each a function that raises on a broken promise.

The promise is: a result, or an error of our own tree. Where there is a result, it can be written
down and read again. Whatever keeps state is afterwards as it was, unless it says that it took
something.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from mutations import mutated_bytes, mutated_json, mutated_text, mutating_framed, unframed
from streams import UPDATES, file_seeds, update_seeds
from target import Target, Violation, no_other_error

from onefold import Aggregator, ExactPartial, Policy, Sparse, wire
from onefold.client.assembly import Assembly
from onefold.client.channel import _whole_address
from onefold.errors import OnefoldError, ProtocolError, Refused, SumOverflow
from onefold.exact.warming import warm_up_steps
from onefold.faults import Call, Faults
from onefold.ledger import Contributor, Excluded, Joined, StepClosed
from onefold.parts import Manifest, Payload, malformed, manifest_of, read_part
from onefold.receipt import RECORDED, Receipt, Status
from onefold.server.ports import host_and_port
from onefold.status import OpenStepStatus, RunStatus
from onefold.store.rows import contribution_from, signature_from

__all__ = ["TARGETS"]

_MANIFESTS = [manifest_of(update, ["0"]) for update in UPDATES]
_RECEIPT = Receipt(Status.ACCEPTED, "it counts", 3, "a", 1, 1, "0" * 32)
_COMMANDS: list[wire.Command] = [
    wire.Join("a", "life"),
    wire.Leave("run", "a", 1),
    wire.Put("run", "a", 1, 3, 1, 0, _MANIFESTS[0]),
    wire.Put("run", "a", 1, 3, 1, 4),
    wire.Commit("run", "a", 1, -3, 1, _MANIFESTS[4]),
    wire.Pull("run", "a", 1, 3, None, 2.5),
    wire.Get("run", "a", 1, 3, 0, "0"),
    wire.GetStatus(),
]
_CLOSED = StepClosed(
    3, "update", (Contributor("a", 1, 1, 1, "0" * 32),), (Excluded("b", "?"),), 1.5
)
_OPEN = OpenStepStatus(3, ("a",), ("b",), 0, 1.5, None)
_ANSWERS: list[wire.Answer] = [
    Joined("run", "a", 1, ("a", "b"), 0, 3, 2),
    wire.Done(),
    wire.Staged("3-" + "0" * 32),
    _RECEIPT,
    RunStatus("run", "sum", 3, (_OPEN,), ("a", "b"), {"accepted": 1}, 5, 0),
    wire.Open(),
    wire.Resend(),
    wire.Closed(_CLOSED, _MANIFESTS[4]),
]
_FAILURES: list[OnefoldError] = [
    ProtocolError("no"),
    Refused(_RECEIPT),
    SumOverflow.at(-3, "it does not fit", "w"),
]


def command(data: bytes) -> None:
    """What a server is asked."""
    with suppress(ProtocolError):
        read = wire.decode_command(data)
        _same(wire.decode_command(wire.encode_command(read)), read)


def answer(data: bytes) -> None:
    """What a client is answered."""
    with suppress(ProtocolError):
        read = wire.decode_answer(data, object)
        _same(wire.decode_answer(wire.encode_answer(read), object), read)  # type: ignore[arg-type]


def failure(data: bytes) -> None:
    """An error of a server's."""
    with suppress(ProtocolError):
        read = wire.decode_failure(data)
        if not isinstance(read, OnefoldError):
            raise Violation(f"{read!r} is none of our errors")
        again = wire.decode_failure(wire.encode_failure(read))
        if not isinstance(again, OnefoldError):
            raise Violation(f"{again!r} is none of our errors")


def manifest(data: bytes) -> None:
    """What an update consists of, as a store finds it."""
    with suppress(ProtocolError, ValueError, RecursionError):
        value = json.loads(data)
        with no_other_error(ProtocolError):
            read = Manifest.from_json(value)
            _same(Manifest.from_json(json.loads(json.dumps(read.to_json()))), read)


def payload(data: bytes) -> None:
    """Record batches beside the manifest of what they should make up, as the server reads them."""
    with suppress(OnefoldError):
        stated, batches = _manifest_and_batches(data)
        read = Payload(stated, [batches])
        digest = read.digest()
        read.first_nonfinite()
        update = read.update()
        if digest != update.digest():
            raise Violation(f"the parts have digest {digest}, their update {update.digest()}")


def assembly(data: bytes) -> None:
    """The same as a client reads it: what Payload would refuse must not come out of it."""
    with suppress(OnefoldError):
        stated, batches = _manifest_and_batches(data)
        with suppress(ProtocolError):
            stated = replace(stated, digest=Payload(stated, [batches]).digest())
        assembled = Assembly(stated)
        assembled.begin_part()
        for batch in batches:
            assembled.add(batch)
        update = assembled.update()
        if update.digest() != stated.digest or update.signature != stated.signature:
            raise Violation(f"{update} is not what {stated} states")


def part_file(data: bytes) -> None:
    """A file of a part, whatever happened to it."""
    stated, content = unframed(data)
    path = _scratch() / "part.arrow"
    path.write_bytes(content)
    with suppress(OnefoldError):
        _, batches = read_part(path)
        Payload(_manifest(stated), [batches]).update()


def commit(data: bytes) -> None:
    """A part staged and committed: refused, and nothing has changed; or taken, and it is summed."""
    stated, content = unframed(data)
    aggregator = _fresh()
    before = _state(aggregator)
    step = None
    with suppress(OnefoldError):
        step = _contribute(aggregator, stated, content)
    if step is None:
        if _state(aggregator) != before:
            raise Violation(f"refused, and {before} became {_state(aggregator)}")
        return
    _KEPT.clear()
    with aggregator, suppress(OnefoldError):
        closed = aggregator.close(step)
        with no_other_error():
            _pull(aggregator, step, closed.tensors)


def partial(data: bytes) -> None:
    """A partial sum."""
    with suppress(OnefoldError):
        read = ExactPartial.from_bytes(data)
        if ExactPartial.from_bytes(read.to_bytes()).to_bytes() != read.to_bytes():
            raise Violation("a partial sum is another once it has been written and read")
        read.mean()


def address(data: bytes) -> None:
    """The address of a server, to connect to and to listen on."""
    text = data.decode(errors="surrogateescape")
    with suppress(OnefoldError):
        _whole_address(text)
    with suppress(OnefoldError):
        host_and_port(text)


def faults(data: bytes) -> None:
    """Faults on a command line, and the words of a call that a proxy reads."""
    with suppress(OnefoldError):
        read = Faults.parse(data.decode(errors="replace"), seed=1)
        _same(Faults.parse(str(read), seed=1).any, read.any)
        str(read)
    Faults(repeat=0.5).fate(Call.of(data, "put"))


def rows(data: bytes) -> None:
    """What a ledger keeps as text: a contribution's manifest, and a signature."""
    text = data.decode(errors="replace")
    with suppress(OnefoldError):
        contribution_from(("a", 1, 1, 1, "0" * 32, 1.0, text, None))
    with suppress(OnefoldError):
        signature_from(text)


def _manifest(data: bytes) -> Manifest:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(str(error)) from None
    return Manifest.from_json(value)


def _manifest_and_batches(data: bytes) -> tuple[Manifest, list[pa.RecordBatch]]:
    stated, content = unframed(data)
    return _manifest(stated), list(_batches(content))


def _batches(content: bytes) -> Iterator[pa.RecordBatch]:
    """As the server reads them, to whom a size for which there is no memory is an error, too."""
    try:
        with malformed(ProtocolError, "no stream"), pa.ipc.open_stream(content) as reader:
            for batch in reader:
                batch.validate()
                yield batch
    except pa.ArrowException as error:
        raise ProtocolError(str(error)) from None


def _contribute(aggregator: Aggregator, stated: bytes, content: bytes) -> int | None:
    """Stage and commit as a server does; the step for which it counts, if any.

    The digest is right where it can be, so that all else is looked at.
    """
    manifest = _manifest(stated)
    with suppress(ProtocolError):
        digest = Payload(manifest, [list(_batches(content))]).digest()
        manifest = replace(manifest, digest=digest)
    with malformed(ProtocolError, "no stream"):
        schema = pa.ipc.open_stream(content).schema
    for step in _STEPS:
        part = aggregator.stage(step, schema, _batches(content), worker="a")
        receipt = aggregator.commit(step, "a", manifest.with_parts([part]))
        if receipt.status is not Status.MISMATCH:
            return step if receipt.status in RECORDED else None
    return None


def _pull(aggregator: Aggregator, step: int, tensors: Mapping[str, object]) -> None:
    """What has closed can be pulled, too."""
    found = aggregator.wait(step, 0.0)
    assert found is not None
    assert found.manifest is not None
    assembled = Assembly(found.manifest)
    for part in found.manifest.parts:
        assembled.begin_part()
        for batch in aggregator.read_part(step, part)[1]:
            assembled.add(batch)
    assert assembled.update().tensors.keys() == tensors.keys()


def _fresh() -> Aggregator:
    """An aggregator in which one worker's update stands, the same as long as nothing changes it."""
    if not _KEPT:
        _KEPT.append(Aggregator(policy=Policy(operation="mean")).open())
        _KEPT[0].push(_STEPS[0], "b", UPDATES[0])
    return _KEPT[0]


def _state(aggregator: Aggregator) -> object:
    """All that a refused part must leave as it was; what came is counted, refused or not."""
    unnamed = {part for one in aggregator._unnamed._sendings.values() for part in one.parts}
    return replace(aggregator.status(), received_bytes=0, receipts={}), sorted(unnamed)


def _same(again: object, first: object) -> None:
    if again != first:
        raise Violation(f"written and read again, {first!r} is {again!r}")


@cache
def _scratch() -> Path:
    """A directory for files, in memory if there is one."""
    memory = Path("/dev/shm")
    return Path(
        tempfile.mkdtemp(prefix="onefold-hostile-", dir=memory if memory.is_dir() else None)
    )


_STEPS = (3, 4)
"""For the first another worker has sent an update; what does not go with it goes to the second."""
_KEPT: list[Aggregator] = []


def _partials() -> list[bytes]:
    dense = ExactPartial.dense((3,), "float32")
    dense.add(np.array([1, 2**-60, 3], np.float32), 2)
    dense.add(np.array([2**80, 1, np.nan], np.float32))
    sparse = ExactPartial.sparse("int16")
    sparse.add(Sparse([-1, 4], np.array([7, 8], np.int16)))
    return [dense.to_bytes(), sparse.to_bytes(), ExactPartial.sparse("float64").to_bytes()]


def _compile_kernels() -> None:
    for _, step in warm_up_steps():
        step()


_FRAMED = mutating_framed(mutated_json, mutated_bytes)
_STREAMS = update_seeds()
_TEXTS = [json.dumps(each.to_json()).encode() for each in _MANIFESTS]
_PUT = wire.encode_command(_COMMANDS[3])
_SIGNATURE = b'[3, [["w", "dense", "float64", [2, 3]], ["s", "sparse", "int8", [null, 2]]]]'
TARGETS = (
    Target("command", command, [wire.encode_command(each) for each in _COMMANDS], mutated_json),
    Target("answer", answer, [wire.encode_answer(each) for each in _ANSWERS], mutated_json),
    Target("failure", failure, [wire.encode_failure(each) for each in _FAILURES], mutated_json),
    Target("manifest", manifest, _TEXTS, mutated_json),
    Target("payload", payload, _STREAMS, _FRAMED, 3, 600),
    Target("assembly", assembly, _STREAMS, _FRAMED, 2, 600),
    Target("part-file", part_file, file_seeds(), _FRAMED, 2, 600),
    Target("commit", commit, _STREAMS, _FRAMED, 3, 400, _compile_kernels),
    Target("partial", partial, _partials(), mutated_bytes),
    Target(
        "address", address, [b"grpc://127.0.0.1:8815", b"[::1]:1", b"host:0"], mutated_text, 0.5
    ),
    Target("faults", faults, [b"repeat=0.2,lose=0.1,delay_seconds_max=1", _PUT], mutated_text, 0.5),
    Target("rows", rows, [*_TEXTS, _SIGNATURE], mutated_json),
)
