"""What a client shows to a server, and by what it knows the server."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from onefold.certificates import check_pair, check_roots
from onefold.errors import InvalidInput

__all__ = ["Credentials", "is_loopback"]

_TOKEN = re.compile("[!-~]+")
_VARIABLES = {
    "tls_ca": "ONEFOLD_TLS_CA",
    "tls_cert": "ONEFOLD_TLS_CERT",
    "tls_key": "ONEFOLD_TLS_KEY",
    "token": "ONEFOLD_TOKEN",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """How client and server know each other.

    Args:
        tls_ca: Roots, PEM, one of which has signed the server's certificate; default: those that
            gRPC brings along, which know public servers.
        tls_cert: The client's certificate, PEM, for servers that ask for one.
        tls_key: Its private key, PEM, not encrypted.
        token: What ``onefold token new`` has printed.
        insecure: Send the token in the clear, even to another machine.

    Raises:
        InvalidInput: A certificate comes without its key, or the token is none.
    """

    tls_ca: Path | str | None = None
    tls_cert: Path | str | None = None
    tls_key: Path | str | None = None
    token: str | None = field(default=None, repr=False)
    insecure: bool = False

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInput("a client certificate needs its key: tls_cert and tls_key together")
        if self.token is not None and not (
            isinstance(self.token, str) and _TOKEN.fullmatch(self.token)
        ):
            raise InvalidInput(
                "a token is what `onefold token new` has printed, without spaces or line breaks"
            )

    def or_from(self, environment: Mapping[str, str]) -> Credentials:
        """What is not given here is taken from ``ONEFOLD_TLS_CA`` and the like."""
        found = {
            name: environment[variable]
            for name, variable in _VARIABLES.items()
            if environment.get(variable) and getattr(self, name) is None
        }
        return replace(self, **found)  # type: ignore[arg-type] # none of them is `insecure`

    def check_for(self, address: str) -> None:
        """Check that they can be shown at ``grpc://HOST:PORT`` or ``grpc+tls://HOST:PORT``.

        Raises:
            InvalidInput: The token could be read on the way, certificates have no use, or a file
                is none.
        """
        scheme, _, place = address.rpartition("://")
        if scheme == "grpc+tls":
            self._check_files()
            return
        given = [
            f.name for f in fields(self) if f.name.startswith("tls_") and getattr(self, f.name)
        ]
        if given:
            raise InvalidInput(
                f"{' and '.join(given)} need TLS, and {address} has none: say grpc+tls://{place} "
                "if the server has, or leave them out"
            )
        if self.token is not None and not self.insecure and not is_loopback(address):
            raise InvalidInput(
                f"the token could be read on its way to {address}: give the server TLS and say "
                f"grpc+tls://{place}, or Credentials(insecure=True) if nobody can listen in"
            )

    def flight_options(self) -> dict[str, object]:
        """What Flight's client is to be given for TLS."""
        options: dict[str, object] = {}
        if self.tls_ca is not None:
            options["tls_root_certs"] = Path(self.tls_ca).read_bytes()
        if self.tls_cert is not None and self.tls_key is not None:
            options["cert_chain"] = Path(self.tls_cert).read_bytes()
            options["private_key"] = Path(self.tls_key).read_bytes()
        return options

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with each call."""
        if self.token is None:
            return []
        return [(b"authorization", b"Bearer " + self.token.encode())]

    def _check_files(self) -> None:
        if self.tls_ca is not None:
            check_roots(self.tls_ca)
        if self.tls_cert is not None and self.tls_key is not None:
            check_pair(self.tls_cert, self.tls_key)


def is_loopback(address: str) -> bool:
    """Whether ``[SCHEME://]HOST:PORT``, as it is written, is this machine; nobody is asked."""
    host = address.rpartition("://")[2].rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
