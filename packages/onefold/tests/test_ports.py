"""Addresses to listen on: what is one, and what is told of what is none."""

from __future__ import annotations

import socket

import pytest

import onefold
from onefold.aggregator import Aggregator
from onefold.errors import InvalidInput
from onefold.policy import Policy
from onefold.server import Server
from onefold.testing.support import number, one

AB = Policy(roster=["a", "b"])


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("127.1:0", "four numbers"),
        ("2130706433:0", "four numbers"),
        ("0x7f.1:0", "four numbers"),
        ("::1", "in brackets"),
        ("::1:0", "in brackets"),
        ("[[127.0.0.1]]:0", "in brackets"),
        ("[127.0.0.1]:0", "in brackets"),
    ],
)
def test_a_host_is_one_that_grpc_takes_too(listen: str, said: str) -> None:
    """What only the system understands is told so, and is no port that is taken."""
    with Aggregator(None, AB) as aggregator, pytest.raises(InvalidInput, match=said):
        Server(aggregator, listen).start()


def test_an_ipv6_address_stands_in_brackets() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6; CI has")
    with Aggregator(None, AB) as aggregator, Server(aggregator, "[::1]:0") as server:
        aggregator.push(7, "a", one(2), attempt=0)
        with onefold.connect(server.address, "b") as b:
            b.push(7, one(5))
            assert number(b.pull(7)) == 7


def test_tls_is_not_left_out_in_silence() -> None:
    """What is to listen on grpc+tls:// needs a certificate."""
    with Aggregator(None, AB) as aggregator, pytest.raises(InvalidInput, match="tls_cert"):
        Server(aggregator, "grpc+tls://127.0.0.1:0")
