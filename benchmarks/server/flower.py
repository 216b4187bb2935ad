"""Rounds of Flower's FedAvg: ``python flower.py ROUNDS CLIENTS ELEMENTS``, with any Python.

It needs flwr and NumPy and nothing of ours. The server and clients that keep a stream open are
Flower's quickest way; its newer ones (SuperLink) ask for work every few seconds. Prints JSON:
seconds from the beginning of each round to that of the next.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import socket
import subprocess
import sys
import time

import flwr
import numpy as np


class Client(flwr.client.NumPyClient):
    """Has nothing to do but to send what it got."""

    def fit(self, parameters: list[np.ndarray], config: dict) -> tuple:
        """What came, as one example."""
        del config
        return [each * np.float32(0.5) for each in parameters], 1, {}


class Timing(flwr.server.strategy.FedAvg):
    """FedAvg that notes when rounds begin."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(**arguments)
        self.begun_at: list[float] = []

    def configure_fit(self, *arguments: object, **named: object) -> list:
        """As FedAvg does."""
        self.begun_at.append(time.monotonic())
        return super().configure_fit(*arguments, **named)


def main() -> None:
    """The server, or with an address as the argument a client."""
    logging.disable(logging.CRITICAL)
    if len(sys.argv) == 2:
        flwr.client.start_client(server_address=sys.argv[1], client=Client().to_client())
        return
    rounds, clients, elements = map(int, sys.argv[1:])
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, address]
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(clients)
    ]
    model = [np.full(elements, 0.5, np.float32)]
    strategy = Timing(
        fraction_evaluate=0.0,
        min_fit_clients=clients,
        min_available_clients=clients,
        initial_parameters=flwr.common.ndarrays_to_parameters(model),
    )
    try:
        flwr.server.start_server(
            server_address=address,
            config=flwr.server.ServerConfig(num_rounds=rounds),
            strategy=strategy,
        )
    finally:
        for process in processes:
            process.kill()
    seconds = np.diff(strategy.begun_at).tolist()
    print(json.dumps({"version": importlib.metadata.version("flwr"), "seconds": seconds}))


if __name__ == "__main__":
    main()
