"""The wiring of a live run, as far as it can be seen without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.control import live
from headrace.control.live import Site, fleet_for
from headrace.errors import Infeasible, InvalidInput
from headrace.run.cluster import Executor
from headrace.run.fleet import Fleet
from headrace.run.machines import Machine, machines_of
from headrace.run.placement import Placement
from tests.run.topologies import places, word_count

CLUSTER = "format: headrace/1\ncluster:\n  nodes:\n    n{1..2}: {cpu: 200, memory_mb: 1024}\n"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def start(*_: object) -> None:
        pytest.fail("a fleet was started")

    monkeypatch.setattr(live, "local_fleet", start)
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return file


def fleet(machines: Sequence[Machine]) -> Fleet:
    return Fleet("spark://127.0.0.1:7077", "http://127.0.0.1:8080/json/", tuple(machines), pid=1)


def test_the_fleet_that_is_up_is_used_if_it_has_the_machines(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = fleet(machines_of([cluster]))
    monkeypatch.setattr(live, "find_fleet", lambda _: running)  # pyright: ignore[reportUnknownLambdaType]
    said: list[str] = []
    with fleet_for(cluster, cluster.parent, said.append) as found:
        assert found is running
    assert not said


def test_a_fleet_of_other_machines_is_refused(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = fleet(machines_of([cluster])[:1])
    monkeypatch.setattr(live, "find_fleet", lambda _: running)  # pyright: ignore[reportUnknownLambdaType]
    with (
        pytest.raises(InvalidInput, match=r"has other machines than .*headrace fleet down"),
        fleet_for(cluster, cluster.parent, print),
    ):
        pass


def test_a_plan_is_checked_against_the_executors_that_are_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[set[str]] = []

    def up(spark: object) -> dict[str, tuple[Executor, ...]]:
        return {"h1": (Executor("0", "h1", 2),)}

    def wait(spark: object, hosts: Mapping[str, int], *, seconds: float) -> None:
        waited.append(set(hosts))

    monkeypatch.setattr(live, "executors_by_host", up)
    monkeypatch.setattr(live, "wait_for_hosts", wait)
    topology, tasks = word_count(), {"sentence": 2, "split": 3, "count": 2}
    site = Site(cast(Any, None), {"n1": "h1", "n2": "h2"})
    assert site.cores() == {"n1": 2}
    crowd = Placement("crowd", tasks, places(tasks, ["n1"]))
    with pytest.raises(Infeasible, match=r"runs 3 tasks at once on node n1 .*which has 2 cores"):
        site.put_in_force(topology, crowd)
    assert site.put_in_force(topology, crowd, crowded=True).current() is crowd
    with pytest.raises(Infeasible, match="on node n2, which is not there; there are: n1"):
        site.put_in_force(topology, Placement("lost", tasks, places(tasks, ["n1", "n2"])))
    assert waited[-1] == {"h1", "h2"}
    # In local mode places are not looked at.
    assert Site(cast(Any, None)).put_in_force(topology, crowd).current() is crowd


def test_a_node_gets_a_process_for_every_worker_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[dict[str, int]] = []
    asked: list[dict[str, int]] = []

    def up(spark: object) -> dict[str, tuple[Executor, ...]]:
        return {"h1": (Executor("0", "h1", 2), Executor("3", "h1", 2))}

    def wait(spark: object, hosts: Mapping[str, int], *, seconds: float) -> None:
        waited.append(dict(hosts))

    monkeypatch.setattr(live, "executors_by_host", up)
    monkeypatch.setattr(live, "wait_for_hosts", wait)
    topology, tasks = word_count(), {"sentence": 1, "split": 2, "count": 2}
    where = {(name, number): ("n1", number) for name, n in tasks.items() for number in range(n)}
    plan = Placement("two", tasks, where)
    site = Site(cast(Any, None), {"n1": "h1"}, grow=lambda wanted: asked.append(dict(wanted)))
    assert site.put_in_force(topology, plan).current() is plan
    assert asked == [{"n1": 2}]
    assert waited == [{"h1": 2}]
    # The processes of a fleet's node share its cores; those of others have cores of their own.
    assert site.cores() == {"n1": 2}
    assert Site(cast(Any, None), {"n1": "h1"}).cores() == {"n1": 4}
