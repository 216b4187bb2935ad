"""Whatever parses bytes of others gives a result or an error of ours, and keeps no half of either.

``make fuzz`` runs the same targets for as long as it is told to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import failuremap_targets
import onefold_targets
import pytest
from failuremap_targets import _archive
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutated_bytes, mutated_json, mutated_text
from target import Target, Violation

import onefold
from failuremap.archive import read_archive
from failuremap.errors import ArchiveError, ImportFailure, SplitError
from failuremap.importing.bundles import read_bundle
from failuremap.importing.documents import read_document
from failuremap.splits.lock import parse_lock
from failuremap.splits.ratios import parse_ratios
from onefold import wire
from onefold.client.assembly import Assembly
from onefold.errors import Damaged, InvalidInput, ProtocolError, TransportError
from onefold.faults import Call
from onefold.parts import Manifest
from onefold.server.ports import check_free
from onefold.store.rows import contribution_from, signature_from

TARGETS = [*onefold_targets.TARGETS, *failuremap_targets.TARGETS]
each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
TENSOR = {"name": "w", "kind": "dense", "dtype": "float32", "shape": [1], "entries": None}


@each_target
def test_what_is_valid_is_read(target: Target) -> None:
    """No target complains about an input that is as it should be."""
    for seed in target.seeds:
        target(seed)


@each_target
def test_what_is_changed_breaks_no_promise(target: Target) -> None:
    """Of random bytes, and of valid inputs changed in some places, each is read or refused."""

    @settings(
        max_examples=target.examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.integers(0, 2**64 - 1).map(target.input_of) | st.binary(max_size=100))
    def check(data: bytes) -> None:
        target(data)

    check()


@pytest.mark.parametrize("mutate", [mutated_bytes, mutated_text, mutated_json])
def test_a_seed_gives_an_input_again(mutate: Callable[[bytes, Random], bytes]) -> None:
    """So that what was found can be looked at, and inputs differ."""
    seed = json.dumps({"a": [1, 2, {"b": "text"}], "c": None}).encode()
    made = [mutate(seed, Random(n)) for n in range(50)]
    assert made == [mutate(seed, Random(n)) for n in range(50)]
    assert len(set(made)) > 25


def test_a_target_notices_memory() -> None:
    """What takes hundreds of megabytes for a few bytes is found."""
    kept: list[bytes] = []
    greedy = Target("greedy", lambda _: kept.append(b"\1" * (2 << 30)), [b""], mutated_bytes)
    with pytest.raises(Violation, match="bytes of memory"):
        greedy(b"")


def with_manifest(tensor: dict[str, object]) -> bytes:
    manifest = {"tensors": [TENSOR | tensor], "weight": 1, "digest": "0" * 32, "parts": []}
    words = json.loads(wire.encode_command(wire.Put("run", "a", 1, 3, 1)))
    return json.dumps(words | {"manifest": manifest}).encode()


class TestFound:
    """What these targets found once: each raised something else, took hours, or all memory."""

    @pytest.mark.timeout(60)
    def test_very_many_dimensions_take_no_time(self) -> None:
        """The product of a million sizes, to tell how large the tensor is, took hours."""
        with pytest.raises(ProtocolError, match="at most 64 dimensions"):
            wire.decode_command(with_manifest({"shape": [2**63] * 500_000}))

    def test_what_can_just_be_read_can_be_refused(self) -> None:
        """Lists nested so deep that they can be read here, and not shown further in."""
        receipt = json.loads(wire.encode_answer(onefold_targets._RECEIPT))
        joined = json.loads(wire.encode_answer(onefold_targets._ANSWERS[0]))
        for depth in range(900, 1000):
            nested = f"{'[' * depth}{']' * depth}"
            for fields, field in ((receipt, "incarnation"), (joined, "roster"), (joined, "size")):
                text = json.dumps(fields | {field: "?"}).replace('"?"', nested)
                with pytest.raises(ProtocolError):
                    wire.decode_answer(text.encode(), object)
            shape = with_manifest({"shape": "?"}).replace(b'"?"', f"[{nested}]".encode())
            with pytest.raises(ProtocolError):
                wire.decode_command(shape)

    @pytest.mark.parametrize("entries", [2**36, 2**54])
    def test_a_client_has_no_memory_for_what_a_server_states(self, entries: int) -> None:
        """It is an error of ours that names the tensor; or memory is had, and not touched."""
        tensor = TENSOR | {"kind": "sparse", "shape": [None, 8], "entries": entries}
        stated = {"tensors": [tensor], "weight": 1, "digest": "0" * 32, "parts": []}
        with pytest.raises(TransportError, match="'w'"):
            Assembly(Manifest.from_json(stated)).update()

    @pytest.mark.parametrize("port", ["9" * 5000, "٣", "99999", "-1", "", "8815\n"])
    def test_ports_of_other_digits(self, port: str) -> None:
        """More digits than Python makes a number of, and digits that gRPC does not know."""
        with pytest.raises(InvalidInput):
            onefold.connect(f"grpc://127.0.0.1:{port}", "a", timeout_seconds=1)
        with pytest.raises(InvalidInput):
            check_free(f"127.0.0.1:{port}")

    @pytest.mark.parametrize("host", ["\ud800", "a\0b", "h" * 100_000])
    def test_hosts_that_are_none(self, host: str) -> None:
        """Half a character, a zero byte, and more than a name can have."""
        with pytest.raises(InvalidInput):
            check_free(f"{host}:1")
        with pytest.raises(onefold.OnefoldError):
            onefold.connect(f"grpc://{host}:1", "a", timeout_seconds=0.1)

    def test_a_proxy_passes_on_what_is_nested_deep(self) -> None:
        """It is for the server to refuse."""
        assert Call.of(b"[" * 100_000, "put") == Call("put")

    @pytest.mark.parametrize("text", ["", "{", "[1]", "[[]]", "[" * 100_000, "[3, [[1]]]", "7"])
    def test_rows_that_are_damaged(self, text: str) -> None:
        """A ledger whose text is not what was written is damaged, and says so."""
        with pytest.raises(Damaged, match="the ledger is damaged"):
            signature_from(text)
        with pytest.raises(Damaged, match="the ledger is damaged"):
            contribution_from(("a", 1, 1, 1, "0" * 32, 1.0, text, None))

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("share", ["1e-9999999999", "1e999999999", "1E+99_999_999"])
    def test_shares_that_would_fill_the_memory(self, share: str) -> None:
        """An exponent is a few characters, and its power of ten is not."""
        with pytest.raises(SplitError):
            parse_ratios(f"train={share},test=0.5")
        text = failuremap_targets._lock_seed().replace(b"4/5", share.encode()).decode()
        with pytest.raises(SplitError):
            parse_lock(text)

    def test_locks_that_could_not_be_written_again(self) -> None:
        """JSON can say half of a character; UTF-8 cannot."""
        text = failuremap_targets._lock_seed().replace(b'"salt"', b'"\\ud800"', 1).decode()
        with pytest.raises(SplitError):
            parse_lock(text)
        text = failuremap_targets._lock_seed().replace(b': "salt"', b': "\\ud800"').decode()
        with pytest.raises(SplitError):
            parse_lock(text)

    @pytest.mark.parametrize(
        "line",
        [
            f"x = {'9' * 5000}",
            f"x = 0x{'f' * 5000}",
            f"x = {'[' * 5000}",
            "x = [{y = 0x" + "f" * 5000 + "}]",
        ],
        ids=["digits", "hexadecimal", "nested", "within"],
    )
    def test_tables_that_python_can_not_show(self, line: str) -> None:
        """Integers of more digits than Python prints, and lists nested too deep."""
        file = _archive() / "archive.toml"
        kept = file.read_text()
        try:
            file.write_text(f"{line}\n{kept}")
            with pytest.raises(ArchiveError, match=r"archive\.toml"):
                read_archive(_archive())
        finally:
            file.write_text(kept)

    def test_numbers_that_have_no_digest(self) -> None:
        """A document of our own form whose numbers canonical JSON cannot have."""
        document = json.loads(failuremap_targets.TARGETS[4].seeds[0])
        for value in ("9223372036854775808", "NaN", "1e999"):
            text = json.dumps(document | {"params": {"N": "?"}}).replace('"?"', value)
            with pytest.raises(ImportFailure):
                read_document(text, "it")

    def test_bundles_of_which_nothing_is_right(self) -> None:
        """Zips cut, shifted, packed in other ways or damaged within what is packed."""
        target = next(target for target in TARGETS if target.name == "bundle")
        stored, deflated, *others = target.seeds
        for seed in others:
            with pytest.raises(ImportFailure, match="unexpected file"):
                read_bundle(seed, "it")
        for cut in (1, 9, 1000):
            with pytest.raises(ImportFailure):
                read_bundle(stored[cut:], "it")
        torn = bytearray(deflated)
        torn[60:70] = bytes(10)
        with pytest.raises(ImportFailure):
            read_bundle(bytes(torn), "it")

    def test_records_nested_deep(self) -> None:
        """A record of observations that no JSON reader can take is an error that names its file."""
        root = _archive()
        (file,) = (root / "observations").glob("*/*.json")
        kept = file.read_text()
        try:
            for text in ("[" * 100_000, "[]", '{"digest": 1}', "null"):
                file.write_text(text)
                with pytest.raises(ArchiveError, match=Path(file).name):
                    _read_records(root)
        finally:
            file.write_text(kept)


def _read_records(root: Path) -> None:
    from failuremap.verify.observations import read_observations

    read_observations(read_archive(root).case("FA-00001"))
