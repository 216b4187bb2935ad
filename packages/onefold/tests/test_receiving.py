"""An aggregate on its way from the server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onefold


def test_a_damaged_aggregate_is_named(tmp_path: Path) -> None:
    """What has rotted on the server's disk is refused by the client, with the step, at once."""
    values = np.arange(1.0, 9.0)
    with (
        onefold.Aggregator(tmp_path / "run", onefold.Policy(roster=["a"])) as aggregator,
        onefold.Server(aggregator) as server,
        onefold.connect(server.address, "a", spool_directory=tmp_path) as client,
    ):
        client.push(3, values)
        assert client.pull(3).tensor.tolist() == values.tolist()
        part = tmp_path / "run" / "aggregates" / "3" / "0.arrow"
        content = part.read_bytes()
        assert content.count(values.tobytes()) == 1
        part.write_bytes(content.replace(values.tobytes(), (values + 1).tobytes()))
        with pytest.raises(onefold.errors.Damaged, match="aggregate of step 3 is not what was"):
            client.pull(3)
