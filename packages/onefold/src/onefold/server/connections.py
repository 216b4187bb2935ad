"""Ending a connection that gRPC would keep for ever.

Flight's server in Python has no limit of time of its own, and no way to end a call whose client
neither goes on nor goes away: the thread that reads from it waits in C++. So the socket is looked
up among those of this process, by its two ends, and shut down; gRPC then finds the client gone,
and all calls of that connection come to their end. A client that is there makes them again.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

__all__ = ["end_connection"]

_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")


def end_connection(peer: str, port: int) -> bool:
    """Shut down the connection of a peer to a port of this process; whether there was one.

    Args:
        peer: As gRPC writes it: ``ipv4:192.0.2.1:50000`` or ``ipv6:%5B::1%5D:50000``.
        port: The port that it has connected to.
    """
    address = _address_of(peer)
    if address is None:
        return False
    for descriptor in _descriptors():
        own = _own_socket(descriptor)
        if own is None:
            continue
        with closing(own):
            try:
                if own.getsockname()[1] == port and _plain(*own.getpeername()[:2]) == address:
                    own.shutdown(socket.SHUT_RDWR)
                    return True
            except (OSError, IndexError, ValueError):  # not connected, or none of the internet
                continue
    return False


def _own_socket(descriptor: int) -> socket.socket | None:
    """A socket by a descriptor of our own, which cannot become another's before we act."""
    try:
        copy = os.dup(descriptor)
    except OSError:  # closed meanwhile
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:  # no socket
        os.close(copy)
        return None


def _address_of(peer: str) -> tuple[str, int] | None:
    kind, _, place = unquote(peer).partition(":")
    host, _, port = place.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return _plain(host.strip("[]"), int(port))


def _plain(host: str, port: int) -> tuple[str, int]:
    """An address in one form: what came by IPv4 to a socket of IPv6 is written in either."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address), port


def _descriptors() -> list[int]:
    for directory in _DESCRIPTORS:
        if Path(directory).is_dir():
            return [int(path.name) for path in Path(directory).iterdir() if path.name.isdecimal()]
    return []
