"""A fleet before anything is started: its machines, and what it refuses."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.run.addresses import check_reachable
from headrace.run.fleet import Fleet, local_fleet
from headrace.run.machines import machines_of
from headrace.run.supervisor import find_fleet, start_fleet, stop_fleet

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    big:   {cpu: 300, memory_mb: 768, type: i7}
    small: {cpu: 200, memory_mb: 512, type: i5}
"""


def test_machines_come_from_the_cluster_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    big, small = machines_of([file])
    assert (big.name, big.host, big.cores, big.memory_mb) == ("big", "127.0.0.2", 3, 768)
    assert (small.host, small.cores) == ("127.0.0.3", 2)
    file.write_text(CLUSTER.replace("512", "100"))
    with pytest.raises(Infeasible, match="node small has 100 MB; a Spark executor needs 512"):
        machines_of([file])


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    machines = machines_of([tmp_path / "cluster.yaml"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(Unsupported, match=f"port {port} of 127"),
            local_fleet(machines, tmp_path, port=port),
        ):
            pass
        with pytest.raises(Unsupported, match=f"port {port} of 127"):
            start_fleet([str(tmp_path / "cluster.yaml")], tmp_path / "fleet", port=port)
    assert find_fleet(tmp_path / "fleet") is None
    assert not stop_fleet(tmp_path / "fleet")


def test_a_master_that_cannot_be_reached_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(Unsupported, match=f"spark://127.0.0.1:{free} cannot be reached .*refused"):
        check_reachable(f"spark://127.0.0.1:{free}")
    with pytest.raises(InvalidInput, match="is no master"):
        check_reachable("spark://nowhere")


def test_without_java_the_fleet_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    monkeypatch.setattr("headrace.spark.places_of_java", lambda: iter(()))
    with (
        pytest.raises(Unsupported, match="needs Java 17"),
        local_fleet(machines_of([tmp_path / "cluster.yaml"]), tmp_path),
    ):
        pass


def test_a_session_on_the_fleet_knows_its_secret(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    machines = tuple(machines_of([tmp_path / "cluster.yaml"]))
    fleet = Fleet("spark://127.0.0.1:7077", "http://127.0.0.1:8080", machines, 1, secret="word")
    settings = fleet.settings()
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.authenticate.secret"] == "word"
