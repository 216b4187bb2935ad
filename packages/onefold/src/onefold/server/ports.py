"""Whether an address is free, asked before gRPC is.

gRPC tells no reason when it cannot listen, writes to standard error on its own, and is content when
one of several addresses of a host is free.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket

from onefold.checks import show
from onefold.errors import AddressInUse, InvalidInput

__all__ = ["check_free", "host_and_port", "is_loopback"]


def host_and_port(listen: object) -> str:
    """``HOST:PORT``, also from the address that clients are given.

    That is ``grpc://HOST:PORT``, or ``grpc+tls://HOST:PORT``.

    Raises:
        InvalidInput: It is no string.
    """
    if not isinstance(listen, str):
        raise InvalidInput(f"an address to listen on is HOST:PORT, a string, not {show(listen)}")
    return listen.removeprefix("grpc://").removeprefix("grpc+tls://")


def is_loopback(listen: str) -> bool:
    """Whether only this machine can reach ``HOST:PORT``, by all of the addresses of the host.

    Raises:
        InvalidInput: ``listen`` is no ``HOST:PORT`` that can be found.
    """
    hosts = {str(address[0]) for *_, address in _found(listen)}
    return all(ipaddress.ip_address(host.partition("%")[0]).is_loopback for host in hosts)


def check_free(listen: str) -> None:
    """Bind each address of ``HOST:PORT`` for a moment.

    Raises:
        AddressInUse: The port is taken.
        InvalidInput: ``listen`` is no ``HOST:PORT`` of this machine.
    """
    found = _found(listen)
    try:
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(
                f"cannot listen on {listen}: the port is taken; "
                "stop what listens there, or choose another port (0 takes a free one)"
            ) from error
        raise InvalidInput(f"cannot listen on {listen}: {error.strerror}") from error


def _found(listen: str) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise InvalidInput(f"an address to listen on is HOST:PORT, not {listen!r}")
    _check_host(host, listen)
    try:
        return socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)  # type: ignore[return-value] # always of the internet
    except OSError as error:
        raise InvalidInput(f"cannot listen on {listen}: {error.strerror}") from error
    except ValueError as error:  # half a character, a zero byte, a name of too many letters
        raise InvalidInput(f"an address to listen on is HOST:PORT, not {show(listen)}") from error


def _check_host(host: str, listen: str) -> None:
    """Refuse what the system understands and gRPC does not."""
    if ":" in host or "[" in host or "]" in host:
        try:
            bracketed = re.fullmatch(r"\[([^\[\]]+)\]", host)
            ipaddress.IPv6Address(bracketed[1] if bracketed else "")
        except ValueError:
            raise InvalidInput(
                f"an address to listen on is HOST:PORT, with an IPv6 address in brackets, as in "
                f"[::1]:7000, not {listen!r}"
            ) from None
        return
    try:
        socket.inet_aton(host)  # takes 127.1, 0x7f.1 and plain numbers for addresses
    except (OSError, ValueError):  # it is no number; or has half a character, or a zero byte
        return
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        raise InvalidInput(
            f"an IPv4 address has four numbers up to 255, as in 127.0.0.1:7000, not {listen!r}"
        ) from None
