"""The file of tokens: what it holds, what it refuses, and when a change takes effect."""

from __future__ import annotations

import hmac
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from onefold import tokens
from onefold.errors import InvalidInput, StoreError, Unauthenticated
from onefold.testing.support import Clock
from onefold.tokens import Caller, Role, TokenFile, read_tokens, revoke, token_for

DAY_SECONDS = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the tokens are to be."""
    return tmp_path / "tokens.json"


class TestFile:
    def test_the_secret_is_not_in_it(self, path: Path) -> None:
        """The file has the id, the name and a hash; of the secret not even a piece."""
        text, token = token_for(path, "a")
        written = path.read_text()
        assert token.id in written
        assert '"a"' in written
        secret = text.partition(".")[2]
        assert len(secret) >= 43
        assert not any(secret[at : at + 8] in written for at in range(len(secret) - 8))

    def test_no_two_are_alike(self, path: Path) -> None:
        """Each token has a secret of its own, also of the same worker."""
        made = {token_for(path, "a")[0] for _ in range(50)}
        assert len({text.partition(".")[2] for text in made}) == 50
        assert len(read_tokens(path)) == 50

    @pytest.mark.parametrize("umask", [0o000, 0o077])
    def test_nobody_else_reads_it(self, path: Path, umask: int) -> None:
        """Mode 0600, when it is made and when it is changed, whatever the umask."""
        before = os.umask(umask)
        try:
            for name in "ab":
                token_for(path, name)
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
            revoke(path, "a")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        finally:
            os.umask(before)

    def test_nothing_is_left_beside_it(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where the change fails, and then the file is as it was."""
        token_for(path, "a")
        written = path.read_bytes()

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(StoreError, match="No space left"):
                token_for(path, "b")
        assert path.read_bytes() == written
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    def test_two_at_a_time_lose_nothing(self, path: Path) -> None:
        """Processes that add tokens at the same moment all find theirs in the file."""
        source = (
            "import sys; from pathlib import Path; from onefold.tokens import token_for\n"
            "for n in range(10): token_for(Path(sys.argv[1]), f'{sys.argv[2]}-{n}')"
        )
        started = [
            subprocess.Popen([sys.executable, "-c", source, str(path), name]) for name in "abcd"
        ]
        assert [process.wait(60) for process in started] == [0] * 4
        expected = {f"{name}-{number}" for name in "abcd" for number in range(10)}
        assert {token.name for token in read_tokens(path)} == expected

    def test_a_revoked_one_is_gone(self, path: Path) -> None:
        """By the name all of it, by the id one; what is not there is refused."""
        for name in "aab":
            token_for(path, name)
        first, *_ = read_tokens(path)
        assert revoke(path, first.id) == (first,)
        assert [token.name for token in read_tokens(path)] == ["a", "b"]
        revoke(path, "a")
        assert [token.name for token in read_tokens(path)] == ["b"]
        with pytest.raises(InvalidInput, match="onefold token list"):
            revoke(path, "a")

    @pytest.mark.parametrize("name", ["", "a\nb", "a" * 256, "\ud800"])
    def test_a_name_is_that_of_a_worker(self, path: Path, name: str) -> None:
        """What no worker can be called gets no token, and no file is made."""
        with pytest.raises(InvalidInput, match="worker"):
            token_for(path, name)
        assert not path.exists()

    @pytest.mark.parametrize("days", [0.0, -1.0, float("nan"), float("inf")])
    def test_days_are_more_than_none(self, path: Path, days: float) -> None:
        """A token that would be over at once, or at no time, is not made."""
        with pytest.raises(InvalidInput, match="days"):
            token_for(path, "a", expires_in_days=days)
        assert not path.exists()

    def test_a_place_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="No such file"):
            token_for(tmp_path / "nowhere" / "tokens.json", "a")
        with pytest.raises(InvalidInput, match="onefold token new"):
            read_tokens(tmp_path / "tokens.json")


TOKEN: dict[str, object] = {
    "id": "0" * 16,
    "name": "a",
    "role": "worker",
    "sha256": "0" * 64,
    "created_at": 1.5,
    "expires_at": None,
}
FILE: dict[str, object] = {"format": "onefold tokens", "version": 1, "tokens": [TOKEN]}


def without(values: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in values.items() if key != name}


CORRUPT: dict[str, object] = {
    "empty": b"",
    "cut short": json.dumps(FILE).encode()[:-5],
    "no UTF-8": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "a list": [],
    "another format": {**FILE, "format": "something"},
    "another version": {**FILE, "version": 2},
    "true for a version": {**FILE, "version": True},
    "no tokens": without(FILE, "tokens"),
    "more": {**FILE, "more": 1},
    "tokens by name": {**FILE, "tokens": {"a": TOKEN}},
    "twice the same id": {**FILE, "tokens": [TOKEN, TOKEN]},
    "a token that is none": {**FILE, "tokens": ["a"]},
    **{f"without {name}": {**FILE, "tokens": [without(TOKEN, name)]} for name in TOKEN},
    **{
        f"{name} {value!r}": {**FILE, "tokens": [{**TOKEN, name: value}]}
        for name, value in [
            ("id", 0),
            ("id", "g" * 16),
            ("id", "0" * 16 + "\n"),
            ("name", ""),
            ("name", None),
            ("role", "admin"),
            ("role", []),
            ("sha256", ""),
            ("sha256", None),
            ("created_at", "now"),
            ("expires_at", float("nan")),
            ("expires_at", True),
            ("expires_at", -1),
        ]
    },
}


class TestCorrupt:
    @pytest.mark.parametrize("fault", CORRUPT)
    def test_it_is_refused_with_its_name(self, path: Path, fault: str) -> None:
        """Whatever is wrong with it, the file is named, and nothing of it is used or changed."""
        content = CORRUPT[fault]
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(data)
        for use in (read_tokens, lambda path: token_for(path, "b"), lambda path: revoke(path, "a")):
            with pytest.raises(InvalidInput, match=path.name):
                use(path)
        with pytest.raises(InvalidInput, match=path.name):
            TokenFile(path).caller("0" * 16 + "." + "0" * 43)
        assert path.read_bytes() == data

    def test_a_right_one_is_read(self, path: Path) -> None:
        """The file that the faults above are made from has none."""
        path.write_text(json.dumps(FILE))
        (token,) = read_tokens(path)
        assert (token.name, token.role, token.expires_at) == ("a", Role.WORKER, None)


class TestCaller:
    def test_a_token_is_its_holders(self, path: Path) -> None:
        """Each token shows its own name and role."""
        a, b = token_for(path, "a")[0], token_for(path, "b", Role.OBSERVER)[0]
        file = TokenFile(path)
        assert file.caller(a) == Caller("a", Role.WORKER)
        assert file.caller(b) == Caller("b", Role.OBSERVER)

    def test_what_is_none_is_refused(self, path: Path) -> None:
        """No token, garbage, another's id or secret, one changed letter, the hash itself."""
        a, token = token_for(path, "a")
        b, _ = token_for(path, "b")
        name, _, secret = a.partition(".")
        wrong = [None, "", ".", a[:-1], f"{a} ", f" {a}", f"{a}\n", a.upper(), secret, name]
        wrong += [f"{name}.{b.partition('.')[2]}", f"{b.partition('.')[0]}.{secret}"]
        wrong += [f"{'0' * 16}.{secret}", f"{name}.{token.sha256}", f"{name}.{token.sha256[:43]}"]
        wrong += [f"{name}.{'B' if secret[0] == 'A' else 'A'}{secret[1:]}", "ä" * 43]
        file = TokenFile(path)
        for text in wrong:
            with pytest.raises(Unauthenticated, match="onefold token new"):
                file.caller(text)
        assert file.caller(a).name == "a"

    def test_it_ends_when_it_expires(self, path: Path) -> None:
        """Good to the last moment, refused from then on, with the reason."""
        text, token = token_for(path, "a", expires_in_days=2)
        assert token.expires_at is not None
        assert token.expires_at - token.created_at == pytest.approx(2 * DAY_SECONDS)
        clock = Clock(token.expires_at - 0.001)
        file = TokenFile(path, clock)
        assert file.caller(text).name == "a"
        clock.advance(0.001)
        with pytest.raises(Unauthenticated, match="expired"):
            file.caller(text)

    def test_changes_take_effect_at_the_next_call(self, path: Path) -> None:
        """What is added or revoked, and a file that is damaged and mended again."""
        a = token_for(path, "a")[0]
        file = TokenFile(path)
        assert file.caller(a).name == "a"
        b = token_for(path, "b")[0]
        assert file.caller(b).name == "b"
        revoke(path, "a")
        with pytest.raises(Unauthenticated, match="revoked"):
            file.caller(a)
        kept = path.read_bytes()
        path.write_bytes(b"nonsense")
        with pytest.raises(InvalidInput):
            file.caller(b)
        path.unlink()
        with pytest.raises(InvalidInput):
            file.caller(b)
        path.write_bytes(kept)
        assert file.caller(b).name == "b"

    def test_it_is_read_only_when_it_has_changed(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A call costs a look at the file, and no reading."""
        a = token_for(path, "a")[0]
        file = TokenFile(path)
        file.caller(a)
        monkeypatch.setattr(tokens, "read_tokens", None)
        assert file.caller(a).name == "a"

    @pytest.mark.parametrize("known", [True, False])
    def test_the_comparison_takes_the_same_time(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
    ) -> None:
        """Hashes are compared by hmac.compare_digest, whose answer decides, of any id."""
        text, token = token_for(path, "a")
        asked = text if known else f"{'0' * 16}.{text.partition('.')[2]}"
        compared: list[tuple[object, object]] = []

        def compare(left: object, right: object) -> bool:
            compared.append((left, right))
            return False

        monkeypatch.setattr(hmac, "compare_digest", compare)
        with pytest.raises(Unauthenticated):
            TokenFile(path).caller(asked)
        assert compared == [(token.sha256 if known else "0" * 64, token.sha256)]


def test_a_link_stays_and_its_file_changes(tmp_path: Path) -> None:
    """Who is revoked through a link is let in through neither name of the file."""
    (tmp_path / "etc").mkdir()
    real, link = tmp_path / "etc" / "real.json", tmp_path / "tokens.json"
    link.symlink_to(real)
    held, _ = token_for(link, "a")
    assert TokenFile(real).caller(held).name == "a"
    revoke(link, "a")
    assert link.is_symlink()
    for path in (real, link):
        with pytest.raises(Unauthenticated):
            TokenFile(path).caller(held)


def test_a_server_finds_its_tokens_wherever_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is that of the directory at the time."""
    monkeypatch.chdir(tmp_path)
    held, _ = token_for(Path("tokens.json"), "a")
    tokens = TokenFile(Path("tokens.json"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert tokens.caller(held).name == "a"
