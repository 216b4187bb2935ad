"""The page on security: its certificates can be made, its example runs, its tests exist."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from secured import CERTIFICATES, serving

from onefold.server import Limits, Security

TESTS = Path(__file__).parent
PAGE = (TESTS.parents[2] / "docs" / "security.md").read_text()


def block(language: str) -> str:
    """What stands on the page in this language, all of it in one."""
    return "".join(re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))


def run_example(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    exec(compile(block("python"), "docs/security.md", "exec"), {})


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step over TLS with tokens; both refusals come, with what to do about them."""
    for name in ("ca.pem", "server.pem", "server.key"):
        shutil.copy(CERTIFICATES / name, tmp_path)
    run_example(tmp_path, monkeypatch)
    forbidden, unauthenticated = capsys.readouterr().out.splitlines()
    assert "worker 'a'" in forbidden
    assert "revoked" in unauthenticated


@pytest.mark.skipif(shutil.which("openssl") is None, reason="this machine has no openssl")
def test_the_certificates_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own commands make what the page's own example needs, and mutual TLS."""
    command = ["bash", "-euc", block("bash")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    run_example(tmp_path, monkeypatch)
    with serving(security=Security("server.pem", "server.key", "ca.pem")) as secured:
        shown = {"tls_ca": "ca.pem", "tls_cert": "a.pem", "tls_key": "a.key"}
        assert secured.client("a", **shown).joined.worker == "a"


def test_every_limit_is_on_the_page() -> None:
    """By its name."""
    for field in dataclasses.fields(Limits):
        assert f"`{field.name}`" in PAGE


def test_the_tests_that_it_names_exist() -> None:
    """Each claim's proof is where the page says."""
    code = "".join(path.read_text() for path in TESTS.glob("test_*.py"))
    column = "".join(line.rpartition(" | ")[2] for line in PAGE.splitlines() if "test_" in line)
    for name in re.findall(r"`(test_\w+|Test\w+)`", column):
        assert re.search(rf"(def|class) {name}\b", code), name
    for name in re.findall(r"`(test_\w+\.py)`", PAGE):
        assert (TESTS / name).exists(), name
