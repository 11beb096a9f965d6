"""`headrace advise` from the command line, its page, and exports of logs."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

import headrace as hr
from headrace.cli import main
from tests.advise.builders import two_stage_app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_the_answer_has_the_fields_of_the_contract(tmp_path: Path) -> None:
    log = two_stage_app().save(tmp_path / "log")
    answer = json.loads(run("advise", log, "--json").stdout)
    assert {"application", "log", "replay", "curve", "settings", "findings", "unknown"} <= set(
        answer
    )
    assert set(answer["log"]) >= {"wall_s", "core_hours", "executors", "cores"}
    assert answer["replay"] == {"wall_s": 7.0, "core_hours": round(28 / 3600, 6)}
    keys = {"executors", "cores", "wall_s", "core_hours", "cost"}
    assert all(set(point) == keys for point in answer["curve"])
    assert all(set(s) == {"name", "value", "reason"} for s in answer["settings"])
    assert all({"kind", "stage", "seconds", "evidence"} <= set(f) for f in answer["findings"])


def test_deadline_budget_and_catalog(tmp_path: Path) -> None:
    log = two_stage_app().save(tmp_path / "log")
    slow = json.loads(run("advise", log, "--json", "--deadline", "1m").stdout)
    assert slow["chosen"]["executors"] == 1
    (tmp_path / "prices.yaml").write_text(
        "format: headrace/1\ncatalog: {m: {price: 3.6, cpu: 200, memory_mb: 8192}}\n"
    )
    rich = run("advise", log, "--json", "--catalog", tmp_path / "prices.yaml", "--budget", "1")
    assert json.loads(rich.stdout)["chosen"]["cost"] is not None
    assert run("advise", log, "--deadline", "3s").exit_code == 1
    assert run("advise", log, "--deadline", "soon").exit_code == 2


def test_what_ifs_are_answered_beside_the_advice(tmp_path: Path) -> None:
    log = two_stage_app().save(tmp_path / "log")
    answer = json.loads(run("advise", log, "--json", "--executors", "1").stdout)
    assert answer["what_if"]["wall_s"] == 11.0
    shown = run("advise", log, "--executors", "1", "--no-stragglers").stdout
    assert "what if executors 1, no stragglers True: 11 s instead of 7 s" in shown


def test_several_logs_are_several_results(tmp_path: Path) -> None:
    logs = [two_stage_app().save(tmp_path / name) for name in ("a", "b")]
    assert len(json.loads(run("advise", *logs, "--json").stdout)["results"]) == 2


def test_the_page_draws_the_curve_and_the_timeline(tmp_path: Path) -> None:
    log = two_stage_app().save(tmp_path / "log")
    assert run("advise", log, "--out", tmp_path / "a.html").exit_code == 0
    page = (tmp_path / "a.html").read_text()
    assert page.count("<svg") == 2
    assert "Time against cost" in page
    assert "stage 1 (collect at app.py:1), replayed: 3 s to 5 s" in page
    advice = hr.advise(log)
    assert advice.html() == hr.advise(log).html()
    assert "<svg" in advice._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_names_from_a_log_cannot_become_markup(tmp_path: Path) -> None:
    book = two_stage_app()
    book.events[1]["App Name"] = "<script>alert(1)</script>"
    page = hr.advise(book.save(tmp_path / "log")).html()
    assert "<script>alert" not in page


def test_exports_answer_from_the_log(tmp_path: Path) -> None:
    log = two_stage_app().save(tmp_path / "log")
    settings = yaml.safe_load(run("export", "spark", log).stdout)
    assert settings["conf"]["spark.executor.instances"] == "2"
    assert settings["expected"]["wall_s"] == 7.0
    (pod,) = yaml.safe_load_all(run("export", "kubernetes", log).stdout)
    assert "affinity" not in pod["spec"]


IMPORTED = """
format: headrace/1
topology:
  name: app
  components:
    scan: {spout: true, tasks: 2, rate: 10}
    sum:  {tasks: 2, inputs: {scan: shuffle}, cpu: 10, memory_mb: 100}
cluster:
  nodes:
    executor-1: {type: 2-core-1024-mb, rack: h1, cpu: 200, memory_mb: 1024, slots: 1}
    executor-2: {type: 2-core-1024-mb, rack: h2, cpu: 200, memory_mb: 1024, slots: 1}
plan:
  assignment:
    scan.1: {node: executor-1, worker: 0}
    scan.2: {node: executor-1, worker: 0}
    sum.1:  {node: executor-2, worker: 0}
    sum.2:  {node: executor-2, worker: 0}
"""


def test_a_plan_of_executors_is_not_exported_as_if_they_were_machines(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(IMPORTED)
    refused = run("export", "spark", tmp_path / "plan.yaml")
    assert refused.exit_code == 1
    assert "export spark LOG" in refused.stderr
    for pod in yaml.safe_load_all(run("export", "kubernetes", tmp_path / "plan.yaml").stdout):
        assert "executor-" not in json.dumps(pod)
