"""Who may connect to a server, and how the two sides know each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onefold.certificates import check_pair, check_roots
from onefold.errors import InvalidInput
from onefold.server.ports import is_loopback
from onefold.tokens import read_tokens

__all__ = ["Security"]


@dataclass(frozen=True, slots=True)
class Security:
    """What a server asks of who connects, and shows them.

    Without ``tokens`` and ``tls_ca`` anybody who reaches the port may do everything, so such a
    server listens on the loopback interface only. With ``tls_ca`` alone whoever holds a
    certificate may do everything, as any worker: only ``tokens`` tell workers apart.

    Args:
        tls_cert: The server's certificate and those between it and a root, PEM.
        tls_key: Its private key, PEM, not encrypted.
        tls_ca: Roots, PEM: every client must then show a certificate that one of them has signed.
        tokens: The file that ``onefold token`` keeps; every call must then come with a token.
        insecure: Listen anywhere whatever is missing, and take tokens that travel in the clear.

    Raises:
        InvalidInput: A path is none, or one is missing that others need.
    """

    tls_cert: Path | str | None = None
    tls_key: Path | str | None = None
    tls_ca: Path | str | None = None
    tokens: Path | str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInput("TLS needs both the certificate and its key: tls_cert and tls_key")
        if self.tls_ca is not None and self.tls_cert is None:
            raise InvalidInput(
                "tls_ca, by which clients are verified, needs a certificate of the server: "
                "tls_cert and tls_key"
            )

    @property
    def scheme(self) -> str:
        """How addresses of the server begin."""
        return "grpc" if self.tls_cert is None else "grpc+tls"

    def check_scheme(self, listen: object) -> None:
        """Check that what is asked for with ``grpc+tls://`` is not served in the clear.

        Raises:
            InvalidInput: There is no certificate.
        """
        if self.tls_cert is None and str(listen).startswith("grpc+tls:"):
            raise InvalidInput(
                f"{listen} needs a certificate and its key: tls_cert and tls_key; without TLS say "
                "grpc:// or nothing before HOST:PORT"
            )

    def check_listen(self, listen: str) -> None:
        """Check that who can reach an address is asked who they are.

        Args:
            listen: ``HOST:PORT``.

        Raises:
            InvalidInput: It is not on the loopback interface, and nobody is asked.
        """
        if self.insecure or is_loopback(listen):
            return
        if self.tokens is None and self.tls_ca is None:
            raise InvalidInput(
                f"whoever can reach {listen} could push as any worker, so a server without "
                "authentication listens on 127.0.0.1 only: give workers tokens (--tokens FILE, "
                "with --tls-cert and --tls-key) or certificates (--tls-ca FILE, likewise), or say "
                "--insecure if only those who may can connect"
            )
        if self.tls_cert is None:
            raise InvalidInput(
                f"tokens sent to {listen} could be read on the way: encrypt with --tls-cert and "
                "--tls-key, or say --insecure if nobody can listen in"
            )

    def check_files(self) -> None:
        """Read all that is named, so that what is wrong is told before anybody connects.

        Raises:
            InvalidInput: A file is missing or is none of its kind, or key and certificate do not
                belong together.
        """
        if self.tls_cert is not None and self.tls_key is not None:
            check_pair(self.tls_cert, self.tls_key)
        if self.tls_ca is not None:
            check_roots(self.tls_ca)
        if self.tokens is not None:
            read_tokens(Path(self.tokens))

    def flight_options(self) -> dict[str, object]:
        """What Flight's server is to be given for TLS."""
        if self.tls_cert is None or self.tls_key is None:
            return {}
        pair = (Path(self.tls_cert).read_bytes(), Path(self.tls_key).read_bytes())
        options: dict[str, object] = {"tls_certificates": [pair]}
        if self.tls_ca is not None:
            options |= {"verify_client": True, "root_certificates": Path(self.tls_ca).read_bytes()}
        return options
