"""The documented way, --describe, place, run --plan: the engine never refuses the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import Infeasible
from headrace.run import Settings, Topology, rehearse
from headrace.run.apps import examples, load, topology_of
from headrace.run.machines import machines_of
from headrace.run.placement import check_cores, read_placement
from headrace.run.stages import stages

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    large: {cpu: 400, memory_mb: 4096}
    small-{1..3}: {cpu: 190, memory_mb: 2048}
"""


APPS: list[tuple[str, dict[str, str]]] = [
    *((file.stem.replace("_", "-"), {}) for file in sorted(examples().glob("*.py"))),
    ("micro", {"shape": "diamond"}),
    ("micro", {"shape": "star"}),
]


def describe(app: str, folder: Path, **options: str) -> Path:
    """What `run APP --describe` prints, in a file."""
    chosen = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    shown = CliRunner().invoke(main, ["run", app, "--describe", *chosen])
    assert shown.exit_code == 0, shown.output
    (folder / "app.yaml").write_text(shown.stdout)
    return folder / "app.yaml"


@pytest.mark.parametrize(("app", "options"), APPS)
def test_a_plan_of_what_is_described_can_run(
    app: str, options: dict[str, str], tmp_path: Path
) -> None:
    topology = topology_of(load(app), options)
    most = max(
        sum(topology.components[name].tasks for name in level)
        for level in stages(topology.components).levels
    )
    file, cluster = describe(app, tmp_path, **options), tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER.replace("{1..3}", f"{{1..{max(3, most - 4)}}}"))  # just enough
    plan = tmp_path / "plan.json"
    placed = CliRunner().invoke(main, ["place", str(file), str(cluster), "--out", str(plan)])
    assert placed.exit_code == 0, placed.output
    cores = {machine.name: machine.cores for machine in machines_of([cluster])}
    assert sum(cores.values()) == max(7, most)
    check_cores(topology, read_placement(plan, topology), cores)


def test_without_the_rule_one_node_would_get_more_tasks_than_cores(tmp_path: Path) -> None:
    content = yaml.safe_load(describe("word-count", tmp_path).read_text())
    assert content["topology"].pop("core_per_task") is True
    file, cluster = tmp_path / "bare.yaml", tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    cluster.write_text(CLUSTER.replace("400", "300"))
    plan = tmp_path / "plan.json"
    CliRunner().invoke(main, ["place", str(file), str(cluster), "--out", str(plan)])
    topology = topology_of(load("word-count"), {})
    cores = {machine.name: machine.cores for machine in machines_of([cluster])}
    with pytest.raises(Infeasible, match="tasks at once on node"):
        check_cores(topology, read_placement(plan, topology), cores)


def test_what_the_documents_import_is_there() -> None:
    assert rehearse.__module__ == "headrace.run.rehearsal"
    assert Settings.__module__ == "headrace.run.batches"
    assert Topology.__module__ == "headrace.model.topology"
