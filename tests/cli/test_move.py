"""`headrace move` and `headrace diff` as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from headrace.cli import main

APP = "examples/muhammad/word-count-busy.yaml"
CLUSTER = "examples/muhammad/cluster.yaml"
ROOT = Path(__file__).resolve().parents[2]


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def as_json(*words: str | Path) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A running plan and a better one."""
    folder = tmp_path_factory.mktemp("plans")
    for name in ("storm-even", "headrace"):
        assert (
            run(
                "place", ROOT / APP, ROOT / CLUSTER, "--by", name, "--out", folder / f"{name}.yaml"
            ).exit_code
            == 0
        )
    return folder / "storm-even.yaml", folder / "headrace.yaml"


def changed(plan: Path, to: Path, change: Any) -> Path:
    content = yaml.safe_load(plan.read_text())
    change(content)
    to.write_text(yaml.safe_dump(content, sort_keys=False))
    return to


def test_steps_megabytes_pause_and_gain_add_up(plans: tuple[Path, Path]) -> None:
    found, change = as_json("move", *plans), as_json("diff", *plans)["diff"]
    report = found["report"]
    assert report["makespan"] == report["bound"] == pytest.approx(change["transfer"]["seconds"])
    assert (
        report["units"]
        == sum(t["units"] for s in found["steps"] for t in s["transfers"])
        == change["transfer"]["mb"]
    )
    assert report["units"] <= change["moved_mb"]  # alike nodes swap roles
    figures = change["figures"]["inter_node_traffic"]
    assert sum(found["gains"]) == pytest.approx(figures["before"] - figures["after"])
    assert 0 < report["longest_pause_s"] <= report["makespan"]


def test_a_mover_takes_options(plans: tuple[Path, Path]) -> None:
    quick, slow = (
        as_json("move", *plans, "--by", "drain-checkpoint", "--option", f"drain_s={s}")["report"]
        for s in (0, 30)
    )
    assert slow["makespan"] == pytest.approx(quick["makespan"] + 30)
    assert slow["longest_pause_s"] == slow["makespan"]
    assert "has no option" in run("move", *plans, "--option", "drain_s=3").stderr


def test_a_safe_order_moves_no_more_than_asked(plans: tuple[Path, Path]) -> None:
    whole, part = as_json("move", "--safe", *plans), as_json("move", "--max-moves", "5", *plans)
    assert whole["report"]["complete"]
    assert len(part["moves"]) <= 5
    assert part["report"]["traffic_after"] < part["report"]["traffic_before"]
    assert as_json("move", "--max-mb", "40", *plans)["report"]["mb"] <= 40


def test_the_picture_shows_every_transfer(plans: tuple[Path, Path], tmp_path: Path) -> None:
    steps = as_json("move", *plans)["steps"]
    assert run("move", *plans, "--out", tmp_path / "move.html").exit_code == 0
    pattern = r"<title>step (\d+): (\S+) sends ([\d.,]+) MB to (\S+)</title>"
    said = re.findall(pattern, (tmp_path / "move.html").read_text())
    drawn = {(int(k), a, b, float(units.replace(",", ""))) for k, a, units, b in said}
    assert drawn == {
        (k, t["from"], t["to"], t["units"])
        for k, step in enumerate(steps, 1)
        for t in step["transfers"]
    }


def test_classes_and_superclasses_on_request() -> None:
    found = as_json("move", "--blocks", "16x7:16x11", "--by", "ro-mod", "--tables")
    assert [c["units"] for c in found["classes"]] == [
        7,
        7,
        7,
        7,
        7,
        6,
        5,
        4,
        3,
        2,
        2,
        2,
        3,
        4,
        5,
        6,
    ]
    assert {
        "superclass": 12,
        "offset": 4,
        "chain": [{"class": k, "units": u} for k, u in ((12, 3), (3, 7), (10, 1))],
    } in found["superclasses"]
    assert "classes" not in as_json("move", "--blocks", "16x7:16x11")


def test_a_lost_node_loses_its_state_and_says_so(plans: tuple[Path, Path], tmp_path: Path) -> None:
    def without_node_f(content: dict[str, Any]) -> None:
        nodes = content["made_from"]["cluster"]["nodes"]
        assert nodes.pop("node-f") is not None

    smaller = changed(plans[1], tmp_path / "smaller.yaml", without_node_f)
    result = run("move", plans[0], smaller)
    assert result.exit_code == 0, result.output
    assert "node node-f no longer exists" in result.stdout
    assert "their state is lost" in result.stdout


def test_plans_with_other_counts_move_keyed_state(plans: tuple[Path, Path], tmp_path: Path) -> None:
    # 12 tasks of 20 MB become 16: 240 MB are divided again, as the engine divides them.
    more = tmp_path / "more.yaml"
    sixteen = ("--set", "topology.components.count.tasks=16")
    files = (ROOT / APP, ROOT / CLUSTER, "--by", "storm-even", *sixteen, "--out", more)
    assert run("place", *files).exit_code == 0
    found, by_range = (as_json("move", plans[0], more, "--by", by) for by in ("optimal", "ro-mod"))
    assert "count: 12 tasks become 16" in found["notes"][0]
    assert not any("without" in note for note in found["notes"])
    assert 0 < found["report"]["units"] < 240
    for change in (found, by_range):
        moved = sum(r["mb"] for r in change["ranges"])
        assert change["report"]["units"] == pytest.approx(moved)
    steps = [r for step in by_range["steps"] for r in step["ranges"]]
    assert sorted(map(str, steps)) == sorted(map(str, by_range["ranges"]))
    assert by_range["report"]["longest_pause_s"] == max(s["cost"] for s in by_range["steps"])
    compared = as_json("diff", plans[0], more)["diff"]
    assert compared["transfer"]["mb"] == pytest.approx(found["report"]["units"])
    assert compared["moved_mb"] == pytest.approx(compared["divided"]["count"])
    assert "divided again" in run("diff", plans[0], more).stdout
    shown = run("move", plans[0], more, "--by", "ro-mod").stdout
    assert "ranges of key groups" in shown
    first = steps[0]
    assert f"{first['from_task']} -> {first['to_task']} {first['groups'][0]}-" in shown


def test_plans_for_different_topologies_are_refused_by_name(
    plans: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    assert run("place", ROOT / "examples/quickstart.yaml", "--out", other).exit_code == 0
    result = run("move", plans[0], other)
    assert result.exit_code == 1
    assert "the plans are for different topologies" in result.stderr
    assert run("diff", plans[0], other).exit_code == 0  # the figures can still be compared


def test_negative_state_is_refused_with_file_and_key(
    plans: tuple[Path, Path], tmp_path: Path
) -> None:
    def negative(content: dict[str, Any]) -> None:
        content["made_from"]["topology"]["components"]["count"]["state_mb"] = -1

    result = run("move", plans[0], changed(plans[1], tmp_path / "negative.yaml", negative))
    assert result.exit_code == 1
    assert "state_mb" in result.stderr


def test_no_bandwidth_is_refused_by_node(plans: tuple[Path, Path], tmp_path: Path) -> None:
    def silent(content: dict[str, Any]) -> None:
        for facts in content["made_from"]["cluster"]["nodes"].values():
            facts["bandwidth_mbps"] = 0

    result = run("move", plans[0], changed(plans[1], tmp_path / "silent.yaml", silent))
    assert result.exit_code == 1
    assert "bandwidth" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("move",),
        ("move", "only-one.yaml"),
        ("move", "a.yaml", "b.yaml", "--tables"),
        ("move", "--blocks", "2x2:2x2", "--safe"),
    ],
)
def test_wrong_words_are_usage_errors(words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2


@pytest.mark.parametrize(
    ("blocks", "says"),
    [("16x7", "16x7"), ("0x1:1x1", "at least 1"), ("99991x99989:99971x99961", "pieces")],
)
def test_wrong_blocks_are_refused(blocks: str, says: str) -> None:
    result = run("move", "--blocks", blocks)
    assert result.exit_code == 1
    assert says in result.stderr
