"""Tokens, certificates and limits on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from secured import BOUND_SECONDS, CERTIFICATES

import onefold
from onefold.cli.options import OPTION_OF
from onefold.faults import Faults
from onefold.launch import Job
from onefold.launch.plan import worker_environment
from onefold.testing.support import one

CA = CERTIFICATES / "ca.pem"
TLS = ("--tls-cert", CERTIFICATES / "server.pem", "--tls-key", CERTIFICATES / "server.key")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "onefold", *map(str, arguments)]


def call(*arguments: object, **environment: object) -> subprocess.CompletedProcess[str]:
    variables = {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        command(*arguments),
        check=False,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        env={**os.environ, "COLUMNS": "100", **variables},
    )


@contextmanager
def serving(*arguments: object) -> Iterator[str]:
    """The address of a server process."""
    with subprocess.Popen(command("serve", *arguments), stdout=subprocess.PIPE, text=True) as it:
        try:
            assert it.stdout is not None
            yield it.stdout.readline().split()[-1]
        finally:
            it.kill()


def made(tokens: Path, *arguments: object) -> str:
    result = call("token", "new", *arguments, "--tokens", tokens)
    assert result.returncode == 0, result.stderr
    (text,) = result.stdout.splitlines()
    return text


class TestToken:
    def test_new_list_revoke(self, tmp_path: Path) -> None:
        """The token alone on standard output; in no other output is any of its secret."""
        tokens = tmp_path / "tokens.json"
        a = made(tokens, "a", "--expires-in", 30)
        made(tokens, "a")
        made(tokens, "eye", "--observer")
        listed = call("token", "list", "--tokens", tokens).stdout
        assert listed.count("of worker 'a'") == 2
        assert listed.count("of observer 'eye', never expires") == 1
        assert listed.count("expires 2") == 1
        identity, _, secret = a.partition(".")
        assert secret not in listed
        assert identity in listed
        revoked = call("token", "revoke", identity, "--tokens", tokens)
        assert revoked.returncode == 0
        assert identity in revoked.stdout
        assert call("token", "list", "--tokens", tokens).stdout.count("'a'") == 1

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            (("list",), "there is no file of tokens"),
            (("revoke", "a"), "there is no file of tokens"),
            (("new", ""), "non-empty"),
            (("new", "a", "--expires-in", 0), "more than 0 days"),
            (("new", "a", "--expires-in", 1e300), "less than a million"),
        ],
    )
    def test_what_is_wrong_is_one_line(
        self, tmp_path: Path, arguments: tuple[object, ...], match: str
    ) -> None:
        result = call("token", *arguments, "--tokens", tmp_path / "tokens.json")
        assert result.returncode == 2
        assert match in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_another_file_is_not_to_be_removed(self) -> None:
        """Whoever gives the wrong file is told so, and not to make it anew."""
        result = call("token", "list", "--tokens", CERTIFICATES / "ca.pem")
        assert result.returncode == 2
        assert "ca.pem is no file of tokens" in result.stderr
        assert "remove" not in result.stderr

    def test_what_has_expired_and_what_is_empty_is_told(self, tmp_path: Path) -> None:
        tokens = tmp_path / "tokens.json"
        identity = made(tokens, "a", "--expires-in", 30).partition(".")[0]
        kept = json.loads(tokens.read_text())
        kept["tokens"][0]["expires_at"] = 86_400.0
        tokens.write_text(json.dumps(kept))
        assert "expired 1970-01-02" in call("token", "list", "--tokens", tokens).stdout
        call("token", "revoke", identity, "--tokens", tokens)
        listed = call("token", "list", "--tokens", tokens)
        assert listed.stdout == ""
        assert listed.stderr == f"{tokens} has no tokens\n"

    def test_a_token_that_nobody_has_read_is_none(self, tmp_path: Path) -> None:
        """Where it cannot be printed, one line says so, and the file is as it was."""
        tokens = tmp_path / "tokens.json"
        made(tokens, "a")
        kept = json.loads(tokens.read_text())
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                command("token", "new", "b", "--tokens", tokens),
                check=False,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=BOUND_SECONDS,
            )
        assert done.returncode == 1
        assert done.stderr.startswith("onefold: the output could not be written: ")
        assert done.stderr.count("\n") == 1
        assert json.loads(tokens.read_text()) == kept

    def test_options_have_the_names_that_messages_are_given(self) -> None:
        """Whatever a message of the library is translated to can be typed."""
        commands = "".join(call(command, "--help").stdout for command in ("serve", "status"))
        for name in OPTION_OF.values():
            assert f"{name} " in commands

    @pytest.mark.parametrize("name", ["new", "revoke", "list"])
    def test_every_command_has_an_example(self, name: str) -> None:
        assert f"onefold token {name} " in call("token", name, "--help").stdout


class TestServe:
    @pytest.mark.parametrize("more", [(), TLS])
    def test_another_address_needs_authentication(
        self, tmp_path: Path, more: tuple[object, ...]
    ) -> None:
        """A usage error that names the ways out, before anything is made."""
        arguments = (tmp_path / "run", "--workers", 1, "--listen", "0.0.0.0:0", *more)
        result = call("serve", *arguments)
        assert result.returncode == 2
        assert len(result.stderr.splitlines()) == 1
        assert {"--tokens", "--tls-ca", "--insecure"} <= set(
            result.stderr.replace("(", " ").replace(",", " ").split()
        )
        with serving(*arguments, "--insecure") as address:
            port = address.rpartition(":")[2]
            assert (
                call(
                    "status",
                    f"grpc{'+tls' if more else ''}://127.0.0.1:{port}",
                    *(("--tls-ca", CA) if more else ()),
                ).returncode
                == 0
            )

    def test_tokens_that_are_none_are_told(self, tmp_path: Path) -> None:
        (tmp_path / "tokens.json").write_text("{}")
        result = call(
            "serve", tmp_path / "run", "--workers", 1, "--tokens", tmp_path / "tokens.json"
        )
        assert result.returncode == 2
        assert "no file of tokens" in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_a_run_with_everything(self, tmp_path: Path) -> None:
        """TLS both ways and tokens; the status by options, by variables, and refused."""
        tokens = tmp_path / "tokens.json"
        a, eye = made(tokens, "a"), made(tokens, "eye", "--observer")
        client = (
            "--tls-cert",
            CERTIFICATES / "client.pem",
            "--tls-key",
            CERTIFICATES / "client.key",
        )
        arguments = (*TLS, "--tls-ca", CA, "--tokens", tokens, "--part-bytes", 10_000)
        with serving(tmp_path / "run", "--roster", "a", *arguments) as address:
            assert address.startswith("grpc+tls://127.0.0.1:")
            credentials = onefold.Credentials(CA, client[1], client[3], a)
            with onefold.connect(address, "a", credentials=credentials) as worker:
                assert worker.push(0, one(1)).stands
                with pytest.raises(onefold.OverLimit, match="at most 10000 bytes"):
                    worker.push(1, np.zeros(2000))
            given = ("--tls-ca", CA, *client)
            answer = call("status", address, "--json", *given, "--token", eye)
            assert json.loads(answer.stdout)["highest_closed"] == 0
            variables = {
                "ONEFOLD_ADDRESS": address,
                "ONEFOLD_TLS_CA": CA,
                "ONEFOLD_TLS_CERT": client[1],
                "ONEFOLD_TLS_KEY": client[3],
            }
            assert call("status", **variables, ONEFOLD_TOKEN=a).returncode == 0
            refused = call("status", **variables)
            assert refused.returncode == 1
            assert "onefold token new" in refused.stderr
            assert len(refused.stderr.splitlines()) == 1


class TestRun:
    def test_it_shows_nobody_what_is_for_others(self) -> None:
        """Workers of a job on this machine get no token or certificate of servers elsewhere."""
        job = Job(command=("x",), workers=1, faults=Faults())
        given = {"ONEFOLD_TOKEN": "t", "ONEFOLD_TLS_CA": "c", "PATH": "p"}
        environment = worker_environment(given, "0", job, "grpc://127.0.0.1:1")
        assert environment["PATH"] == "p"
        assert not {"ONEFOLD_TOKEN", "ONEFOLD_TLS_CA"} & environment.keys()

    def test_it_goes_on_working(self) -> None:
        """Also where variables for other servers are set."""
        source = "import onefold\nwith onefold.connect() as c: print(c.joined.size)"
        variables = {"ONEFOLD_TOKEN": "t", "ONEFOLD_TLS_CA": CA}
        result = call("run", "--workers", 2, "--", sys.executable, "-c", source, **variables)
        assert result.returncode == 0, result.stderr
        assert result.stdout == "2\n2\n"
