"""A fork of a process that has used the network is told so, instead of waiting for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORK = """
import os, sys
import numpy as np
import onefold

def said(use):
    child = os.fork()
    if child == 0:
        try:
            use()
            print("done", flush=True)
        except onefold.OnefoldError as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)

policy = onefold.Policy(roster=["a", "b"])
one = np.ones(3)

def serve():
    with onefold.Aggregator(policy=policy) as other, onefold.Server(other):
        pass

if sys.argv[1] == "before":
    said(serve)
else:
    with onefold.Aggregator(policy=policy) as aggregator, onefold.Server(aggregator) as server:
        a = onefold.connect(server.address, "a")
        use = {
            "push": lambda: a.push(0, one),
            "status": a.status,
            "connect": lambda: onefold.connect(server.address, "b"),
            "serve": serve,
        }
        said(use[sys.argv[1]])
        a.push(0, one)
        with onefold.connect(server.address, "b") as b:
            b.push(0, one)
            assert a.pull(0).tensor.tolist() == [2, 2, 2]
        a.close()
"""


def child_of(how: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", FORK, how]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize("use", ["push", "status", "connect", "serve"])
def test_a_fork_is_told_and_its_parent_goes_on(use: str) -> None:
    """Whatever the child tries: the connection is its parent's, and as it was."""
    said = child_of(use)
    assert said.startswith("TransportError: process ")
    assert "start processes by 'spawn'" in said


def test_who_forks_before_may_serve() -> None:
    """Only what was used before the fork cannot be used after it."""
    assert child_of("before") == "done"
