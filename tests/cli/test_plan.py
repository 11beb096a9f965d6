"""`headrace plan`: all stages in one command, on a cluster or a catalog, with a plan or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace import planner
from headrace.cli import main
from headrace.model.read import read

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICKSTART = str(EXAMPLES / "quickstart.yaml")
CAO = [str(EXAMPLES / "cao" / name) for name in ("flight.yaml", "vm-types.yaml")]
NASIRI = [str(EXAMPLES / "nasiri" / name) for name in ("linear.yaml", "cluster-small.yaml")]

APP = """
format: headrace/1
topology:
  name: app
  components:
    source: {spout: true, rate: 100, bytes: 10}
    work: {inputs: {source: shuffle}, state_mb: 5, bytes: 10}
    sink: {inputs: {work: shuffle}}
profile:
  work: {"*": {cpu_ms: 10}}
  sink: {"*": {cpu_ms: 2.5}}
"""
SHOP = """
format: headrace/1
catalog:
  small: {price: 1, cpu: 100, memory_mb: 1000, available: 10}
  large: {price: 3.5, cpu: 400, memory_mb: 4000, available: 2}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, text in (("app.yaml", APP), ("shop.yaml", SHOP)):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / "app.yaml"), str(tmp_path / "shop.yaml")]


def as_json(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 1, result.output
    return json.loads(result.stdout)["error"]


def test_a_catalog_is_rented_for_the_rates_of_the_file_by_default(files: list[str]) -> None:
    # 100 tuples/s cost 100 + 25 points: two small machines, 2.0, are cheaper than one large.
    content = as_json("plan", *files)
    assert content["plan"]["machines"] == {"small": 2}
    assert content["report"]["cost"] == 2
    assert content["report"]["bound"]["of"] == "cost"
    assert content["report"]["bound"]["value"] == pytest.approx(2, rel=1e-6)
    assert content["report"]["max_rate"] >= 100 * (1 - 1e-6)
    assert content["stages"]["provision"] == "headrace"
    assert {row["from"] for row in content["explanation"]["streams"]} == {"source", "work"}


def test_a_budget_buys_the_most_and_a_rate_the_cheapest(files: list[str]) -> None:
    rich = as_json(
        "plan", *files, "--budget", "4"
    )  # one large machine: 400 / 1.25 points per tuple/s; or four small ones: the same
    assert rich["report"]["max_rate"] == pytest.approx(320, rel=0.01)
    assert rich["report"]["cost"] <= 4
    cheap = as_json("plan", *files, "--rate", "320")
    assert cheap["report"]["cost"] == pytest.approx(3.5)
    assert cheap["plan"]["machines"] == {"large": 1}


def test_refusals_name_the_least_budget_and_the_largest_rate_that_work(files: list[str]) -> None:
    poor = refused("plan", *files, "--budget", "0.5")
    assert poor["needed"] == 1
    assert as_json("plan", *files, "--budget", "1")["report"]["max_rate"] > 0
    fast = refused("plan", *files, "--rate", "5000")
    assert as_json("plan", *files, "--rate", str(fast["available"]))["report"]["feasible"]
    beyond = refused("plan", QUICKSTART, "--rate", "50000")
    assert beyond["resource"] == "rate"
    assert as_json("plan", QUICKSTART, "--rate", str(beyond["available"]))["report"]["feasible"]


@pytest.mark.parametrize(
    "asked", [["--rate", "0"], ["--rate", "-3"], ["--budget", "0"], ["--budget", "-1"]]
)
def test_rates_and_budgets_must_be_above_0(files: list[str], asked: list[str]) -> None:
    assert (
        f"the {asked[0][2:]} is {asked[1]}; it must be above 0"
        in refused("plan", *files, *asked)["message"]
    )
    if asked[0] == "--rate":
        assert "it must be above 0" in refused("plan", QUICKSTART, *asked)["message"]


def test_a_cluster_is_filled_for_the_largest_rate() -> None:
    content = as_json("plan", *NASIRI)
    alone = as_json("size", *NASIRI)
    assert content["report"]["max_rate"] >= alone["report"]["max_rate"] * (1 - 1e-6)
    assert content["report"]["inter_node_traffic"] <= alone["report"]["inter_node_traffic"]
    assert content["report"]["bound"]["kind"] == "fluid"
    assert content["stages"]["size"] == "headrace"


def test_enough_tasks_for_a_rate_are_few() -> None:
    content = as_json("plan", *NASIRI, "--rate", "600")
    assert content["report"]["max_rate"] >= 600
    assert (
        sum(content["plan"]["tasks"].values()) <= 8
    )  # 600 tuples/s are 2.1 threads of the fastest machines, 3 components and a source
    assert content["report"]["total_traffic"] == pytest.approx(3 * 600)
    assert content["report"]["bound"]["of"] == "inter_node_traffic"
    assert any(
        "no counts on this cluster sustain more than" in note for note in content["report"]["notes"]
    )


@pytest.mark.parametrize("by", ["nasiri", "ds2"])
def test_other_sizers_plan_for_a_rate_too(by: str) -> None:
    content = as_json("plan", *NASIRI, "--rate", "400", "--by", f"size={by}")
    assert content["stages"]["size"] == by
    assert content["report"]["max_rate"] >= 400
    assert content["report"]["feasible"]


def test_a_scheduler_can_be_asked_for_by_name() -> None:
    content = as_json("plan", QUICKSTART, "--rate", "3000", "--by", "place=storm-even")
    assert content["stages"]["place"] == "storm-even"
    kept = as_json("plan", QUICKSTART, "--rate", "3000")
    assert kept["report"]["inter_node_traffic"] <= content["report"]["inter_node_traffic"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([QUICKSTART, "--by", "plaice=tstorm"], "no stage `plaice` (did you mean `place`?)"),
        (
            [QUICKSTART, "--by", "place=tstrom"],
            "no scheduler `tstrom` in place (did you mean `tstorm`?)",
        ),
        (
            [QUICKSTART, "--by", "provision=botm"],
            "no machines are rented where the files give a cluster",
        ),
        ([QUICKSTART, "--budget", "3"], "no machines to rent: give a file with `catalog`"),
        ([*CAO, "--rate", "10", "--by", "size=nasiri"], "choose `provision=` instead"),
        ([*CAO, "--rate", "10", "--by", "place=tstorm"], "every task has a machine of its own"),
        ([CAO[0]], "no cluster"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str) -> None:
    assert message in refused("plan", *arguments)["message"]


def test_a_plan_file_of_chosen_counts_and_machines_stands_alone(
    files: list[str], tmp_path: Path
) -> None:
    for name, command in (
        ("a", ["plan", *files]),
        ("b", ["size", *NASIRI]),
        ("c", ["provision", *CAO, "--budget", "1.5"]),
    ):
        file = str(tmp_path / f"{name}.json")
        made = as_json(*command, "--out", file)
        judged = as_json("judge", file)
        assert judged["report"]["feasible"]
        for figure in (
            "total_traffic",
            "inter_node_traffic",
            "inter_worker_traffic",
            "nodes_used",
            "cost",
        ):
            assert judged["report"][figure] == pytest.approx(made["report"][figure]), (name, figure)
        assert judged["report"]["max_rate"] >= 1 - 1e-6


def test_a_current_plan_says_what_moves(files: list[str], tmp_path: Path) -> None:
    now = str(tmp_path / "now.json")
    as_json("plan", *files, "--out", now)
    same = as_json("plan", *files, now)
    assert same["moves"]["moved"] == []
    assert same["moves"]["added"] == same["moves"]["removed"] == {}
    more = as_json("plan", *files, now, "--rate-factor", "2")
    assert more["moves"]["added"]
    assert more["moves"]["figures"]["feasible"] == {"before": False, "after": True}
    assert more["moves"]["figures"]["cost"]["before"] == 2
    shown = (
        CliRunner()
        .invoke(main, ["plan", *files, now, "--rate-factor", "2"], catch_exceptions=False)
        .stdout
    )
    assert "From the current plan:" in shown


def test_a_node_of_the_current_plan_may_be_gone(tmp_path: Path) -> None:
    now = str(tmp_path / "now.json")
    made = as_json("plan", QUICKSTART, "--rate", "5000", "--out", now)
    assert "big-2" in {where["node"] for where in made["plan"]["assignment"].values()}
    content = as_json("plan", QUICKSTART, now, "--rate", "5000", "--without", "big-2")
    assert "big-2" not in {where["node"] for where in content["plan"]["assignment"].values()}
    assert {move["from"] for move in content["moves"]["moved"]} == {"big-2"}


def test_the_report_shows_the_curve_with_the_chosen_point(files: list[str], tmp_path: Path) -> None:
    for asked in (["--rate", "150"], ["--budget", "3"]):
        page = tmp_path / "plan.html"
        result = CliRunner().invoke(
            main, ["plan", *files, *asked, "--out", str(page)], catch_exceptions=False
        )
        assert result.exit_code == 0
        html = page.read_text()
        assert "Rate against cost" in html
        assert html.count('class="chosen"') == 1
        assert html.count('class="point"') >= 3
    without_prices = tmp_path / "cluster.html"
    CliRunner().invoke(
        main, ["plan", *NASIRI, "--out", str(without_prices)], catch_exceptions=False
    )
    assert "Rate against cost" not in without_prices.read_text()


def test_dearer_points_of_the_curve_are_faster_and_none_is_beyond_its_bound(
    files: list[str],
) -> None:
    inputs = read(files)
    chosen = planner.plan(inputs, rate=150)
    curve = planner.cost_curve(inputs, chosen)
    assert curve is not None
    assert len(curve.points) >= 4
    for a, b in zip(curve.points, curve.points[1:], strict=False):
        assert a.cost < b.cost
        assert a.rate < b.rate
    for cost, rate in curve.limits:
        assert not any(
            p.cost < cost * (1 - 1e-6) and p.rate >= rate * (1 + 1e-6) for p in curve.points
        )


def test_the_same_seed_gives_the_same_plan(files: list[str]) -> None:
    first, second = (as_json("plan", *files, "--rate", "150", "--seed", "4") for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_what_no_thread_can_carry_is_not_promised(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(
        "format: headrace/1\ntopology: {components: {s: {spout: true, rate: 10}, b: {inputs: {s: "
        "shuffle}, max_tasks: 1}}}\n"
        'profile: {b: {"*": {cpu_ms: 10}}}\ncluster: {nodes: {n: {cpu: 400}}}\n'
    )
    report = as_json("plan", str(file))["report"]
    assert report["max_rate"] == pytest.approx(100)
    assert report["bottleneck"] == "task b.1: one thread"
