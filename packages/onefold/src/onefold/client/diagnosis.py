"""What stands behind a connection that does not come about, as far as another try will not help.

gRPC says in words what went wrong in a handshake, and of a server that hangs up only that.
"""

from __future__ import annotations

import re
import socket
import ssl

from onefold.client.credentials import Credentials
from onefold.errors import ProtocolError, TransportError, Unauthenticated

__all__ = ["hint", "lasting_failure", "plain"]

_NOT_WHO_IT_SHOULD_BE = (
    "certificate verify failed",
    "is not in peer certificate",
    "hostname verification check failed",
)
_NO_TLS = ("wrong version number", "wrong_version_number")
_HUNG_UP = ("socket closed", "connection reset")
_PROBE_SECONDS = 2.0


def lasting_failure(error: Exception, address: str) -> TransportError | None:
    """What is to be told of ``error`` at once; None where the server may be there at another try.

    Args:
        error: What a call has ended with.
        address: ``grpc://HOST:PORT`` or ``grpc+tls://HOST:PORT``.
    """
    text = str(error).lower()
    scheme, _, place = address.partition("://")
    if any(words in text for words in _NOT_WHO_IT_SHOULD_BE):
        return Unauthenticated(
            f"{address} has not shown that it is the server which it should be "
            f"({plain(error)}); give by tls_ca the roots that have signed its "
            "certificate, and call it by a name that stands there"
        )
    if scheme == "grpc+tls" and any(words in text for words in _NO_TLS):
        return ProtocolError(
            f"what answers at {place} has no TLS: give the server a certificate and its key, or "
            f"say grpc://{place} if nobody can listen in"
        )
    if scheme == "grpc" and any(words in text for words in _HUNG_UP) and _has_tls(place):
        return ProtocolError(f"the server at {place} has TLS: say grpc+tls://{place}")
    return None


def hint(address: str, credentials: Credentials) -> str:
    """Of a server that wants another certificate no more is seen than that it hangs up."""
    if not address.startswith("grpc+tls:"):
        return ""
    if credentials.tls_cert is None:
        return " (a server that wants certificates hangs up on who shows none: tls_cert)"
    return " (a server hangs up on who shows a certificate that its roots have not signed)"


def plain(error: Exception) -> str:
    """What happened, without what gRPC says about itself."""
    text = re.split(r"\.? (?:Detail|gRPC client debug context|Client context): ", str(error))[0]
    text = re.sub(r"^Flight returned .*?, with message: ", "", text)
    return f"{type(error).__name__}: {text[:300]}"


def _has_tls(place: str) -> bool:
    """Whether a handshake with ``HOST:PORT`` comes to its end; who is there does not matter."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host, _, port = place.rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except (OSError, ValueError):  # a host that is no name at all is a ValueError
        return False
