"""Certificates and keys in files, checked before anybody connects: gRPC says little of them."""

from __future__ import annotations

import ssl
from pathlib import Path

from onefold.errors import InvalidInput

__all__ = ["check_pair", "check_roots"]


def check_pair(certificate: Path | str, key: Path | str) -> None:
    """Check that a certificate and a private key belong together.

    Raises:
        InvalidInput: They do not, or one of them is not there, no PEM, or encrypted.
    """

    def refuse() -> str:  # else OpenSSL would ask for a password at the terminal
        raise InvalidInput(
            f"the key {key} is encrypted; give one that is not, readable by you only"
        )

    for path in (certificate, key):
        _check_readable(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=refuse)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInput(
            f"{certificate} and {key} are not a certificate and its private key in PEM: {error}"
        ) from None


def check_roots(roots: Path | str) -> None:
    """Check that a file has certificates by which others are verified.

    Raises:
        InvalidInput: It has none, or is not there.
    """
    _check_readable(roots)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=roots)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInput(f"{roots} has no certificates in PEM: {error}") from None


def _check_readable(path: Path | str) -> None:
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
