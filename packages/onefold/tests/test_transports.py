"""The contract of transports, in the process and over the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from onefold.aggregator import Aggregator
from onefold.policy import Policy
from onefold.testing import Cluster, InProcessCluster, MakeCluster, TransportContract, Worker


class TestInProcess(TransportContract):
    """Workers that call the aggregator."""

    @pytest.fixture
    def make_cluster(self) -> Iterator[MakeCluster]:
        with ExitStack() as stack:

            def make(policy: Policy) -> Cluster:
                return InProcessCluster(stack.enter_context(Aggregator(None, policy)))

            yield make


class NetworkCluster:
    """Clients of one server, closed with the stack."""

    def __init__(self, address: str, spool: Path, stack: ExitStack) -> None:
        self._address, self._spool, self._stack = address, spool, stack

    def connect(self, worker: str) -> Worker:
        from onefold.client import connect

        client = connect(self._address, worker, timeout_seconds=60, spool_directory=self._spool)
        return self._stack.enter_context(client)


class TestNetwork(TransportContract):
    """Clients of a server over Arrow Flight."""

    @pytest.fixture(params=["memory", "directory"])
    def make_cluster(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeCluster]:
        from onefold.server import Server

        spool = tmp_path / "spool"
        spool.mkdir()
        with ExitStack() as stack:

            def make(policy: Policy) -> Cluster:
                directory = None if request.param == "memory" else tmp_path / "run"
                aggregator = stack.enter_context(Aggregator(directory, policy))
                running = stack.enter_context(Server(aggregator, listen="127.0.0.1:0"))
                return NetworkCluster(running.address, spool, stack)

            yield make
