"""What the API says of runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headrace.control.history import keep
from headrace.control.verdicts import LOOP, verdicts
from headrace.serve.app import OPERATIONS, style
from headrace.serve.saved import SCRIPTS, bundle, saved_page
from tests.serve.apps import ACTS, client_of
from tests.serve.journals import (
    COUNTS,
    NODES,
    START_S,
    TOGETHER,
    WORDS,
    decision,
    write_large_run,
    write_run,
)

HOSTILE = (
    "<script>alert(1)", "..\\<b>evil", "\u202egnp.exe", '"><img src=x>/../../etc/passwd', "x" * 400,
)  # fmt: skip


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(write_run(tmp_path / "words")) as found:
        yield found


def get(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_run_in_short(client: TestClient) -> None:
    run = get(client, "runs")["runs"][0]
    assert (run["id"], run["name"], run["state"]) == ("words", "word-count", "ended")
    assert (run["batches"], run["plan"], run["decisions"]) == (120, "plan-1", 1)
    assert [plan["name"] for plan in run["plans"]] == ["storm-even", "plan-1"]
    assert (run["waiting"], run["takes_plans"]) == (None, False)


def test_series_cover_the_time_in_so_many_points(client: TestClient) -> None:
    found = get(client, "runs/words/series", points=10)
    assert len(found["at_s"]) == 10
    assert found["at_s"][-1] == START_S + 120
    assert set(found["nodes"]) == set(NODES)
    remote, everything = found["totals"]["remote_mbps"], found["totals"]["total_mbps"]
    assert remote[0] / everything[0] == pytest.approx(0.6, rel=0.01)
    assert remote[-1] / everything[-1] == pytest.approx(0.15, rel=0.01)
    assert found["plan"][0] == 0
    assert found["plan"][-1] == 1
    part = get(client, "runs/words/series", from_s=START_S + 100, points=1000)
    assert len(part["at_s"]) == 21


def test_a_moment_has_its_own_plan(client: TestClient) -> None:
    early = get(client, "runs/words/moment", at_s=START_S + 10.2)
    assert (early["batch"], early["plan"], early["live"]) == (10, "storm-even", False)
    newest = get(client, "runs/words/moment", tasks=True)
    assert (newest["batch"], newest["plan"], newest["live"]) == (119, "plan-1", True)
    assert newest["figures"]["cpu:large"] > newest["figures"]["cpu:small-1"]
    assert "telemetry" in newest["detail"]["note"]


def test_the_picture_is_the_reports_drawing_to_be_filled_in(client: TestClient) -> None:
    found = get(client, "runs/words/picture")
    assert found["plan"] == "plan-1"
    assert found["cards"].count("<article") == 3
    assert found["cards"].count('class="task ') == 10
    assert 'data-meter="cpu" data-limit="400"' in found["cards"]
    assert found["letters"] == {"A": "sentence", "B": "split", "C": "count"}
    assert found["topology"].count('class="stream"') == 2
    other = get(client, "runs/words/picture", plan="storm-even")
    assert other["cards"] != found["cards"]


def test_a_thousand_nodes_are_a_map_to_enter(tmp_path: Path) -> None:
    folder = write_large_run(tmp_path / "large", nodes=1000, tasks=2000, racks=20, batches=2)
    with client_of(folder) as client:
        found = get(client, "runs/large/picture")
        assert found["cards"] == ""
        assert found["map"].count("<rect") == 1000
        assert found["map"].count("data-rack=") == 20
        rack = get(client, "runs/large/picture", rack="r3")
        assert rack["cards"].count("<article") == 50
        assert get(client, "runs/large/series")["nodes"] == {}


def test_decisions_come_with_what_was_predicted(client: TestClient) -> None:
    one = get(client, "runs/words/decisions")["decisions"][0]
    assert (one["number"], one["applied"], one["waiting"]) == (0, True, False)
    assert one["after"]["batch_seconds"] == 0.49
    assert "plans" not in one
    change = get(client, "runs/words/decisions/0/change")
    assert {(m["task"], m["from"], m["to"]) for m in change["change"]["moved"]} >= {
        ("split.3", "small-1", "large"),
        ("count.4", "small-2", "small-1"),
    }
    assert "What would change" in change["html"]


@pytest.mark.parametrize(
    "path",
    ["runs/nothing", "runs/words/decisions/7/change", "runs/words/decisions/-1/change",
     "runs/words/decisions/0x1/change", "jobs/job-9", "examples/none", "advice/none", "nothing"],
)  # fmt: skip
def test_what_is_not_there_is_404_and_says_so(client: TestClient, path: str) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "query",
    [{"points": 0}, {"points": 4001}, {"points": "x"}, {"from_s": "nan"}, {"from_s": "inf"},
     {"strange": 1}, {"to_s": "1e999"}],
)  # fmt: skip
def test_a_wrong_query_is_refused_by_its_name(client: TestClient, query: dict[str, Any]) -> None:
    answer = client.get("/api/v1/runs/words/series", params=query)
    assert answer.status_code == 422
    assert next(iter(query)) in answer.json()["error"]["message"]


def wait_for_verdict(tmp_path: Path) -> Path:
    """A run that waits for somebody's word on a plan."""
    folder = write_run(tmp_path / "words", batches=20, moved_at=None, ended=False)
    import os

    (folder / LOOP).write_text(json.dumps({"pid": os.getpid(), "advise": True}))
    keep(folder, decision(START_S + 10, applied=False, plan="a" * 16, proposed="b" * 16))
    return folder


def test_a_plan_that_waits_is_accepted_once(tmp_path: Path) -> None:
    folder = wait_for_verdict(tmp_path)
    with client_of(folder) as client:
        assert get(client, "runs/words")["waiting"] == 0
        path = "/api/v1/runs/words/decisions/0"
        said = client.post(path, json={"verdict": "accept", "reason": "looks good"}, headers=ACTS)
        assert said.json() == {"verdict": "accept", "plan": "b" * 16}
        (verdict,) = verdicts(folder)
        assert (verdict.plan, verdict.accept, verdict.reason) == ("b" * 16, True, "looks good")
        deadline = time.monotonic() + 5
        while get(client, "runs/words")["waiting"] is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert get(client, "runs/words/decisions")["decisions"][0]["verdict"] == "accepted"
        assert client.post(path, json={"verdict": "refuse"}, headers=ACTS).status_code == 422
        assert len(verdicts(folder)) == 1


def test_a_plan_of_a_job_goes_only_to_a_run_that_listens(tmp_path: Path) -> None:
    folder = wait_for_verdict(tmp_path)
    section = {"tasks": COUNTS, "placement": TOGETHER}
    away = {"tasks": COUNTS, "placement": {**TOGETHER, "sentence": [["elsewhere", 0, 1, 2]]}}
    with client_of(folder) as client:
        shelf = client.app.state.shelf  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
        from headrace.serve.jobs import Job

        answer = {"sections": [section, None, away]}
        request = {"of_run": "words", "by": ["headrace"]}
        shelf.jobs.jobs["job-1"] = Job("job-1", request, "", 0.0, "done", answer)

        def post(number: int) -> Any:
            asked = {"job": "job-1", "number": number}
            return client.post("/api/v1/runs/words/plan", json=asked, headers=ACTS)

        assert [post(n).status_code for n in (1, 2, 3)] == [422, 422, 422]
        assert verdicts(folder) == []
        assert post(0).status_code == 200
        assert verdicts(folder)[0].section == section
        (folder / LOOP).write_text(json.dumps({"pid": 0, "advise": True}))
        time.sleep(0.5)
        assert post(0).status_code == 422


def hostile_run(tmp_path: Path) -> Path:
    names = {"sentence": HOSTILE[0], "split": HOSTILE[1], "count": HOSTILE[2]}
    components = json.loads(json.dumps(WORDS["components"]))
    for facts in components.values():
        if "inputs" in facts:
            facts["inputs"] = {names[k]: v for k, v in facts["inputs"].items()}
    components = {names[name]: facts for name, facts in components.items()}
    nodes = {
        HOSTILE[3]: {"cpu": 400, "slots": 4, "rack": HOSTILE[0]},
        HOSTILE[4]: {"cpu": 100, "slots": 4},
    }
    folder = tmp_path / "hostile"
    from headrace.run.journal import Journal

    journal = Journal(folder)
    topology = {"name": HOSTILE[0], "components": components}
    journal.begin({"topology": topology, "cluster": {"nodes": nodes}}, telemetry=HOSTILE[1])
    counts = {names[name]: count for name, count in COUNTS.items()}
    placement = {name: [[HOSTILE[3], 0, 1, count]] for name, count in counts.items()}
    journal.add_plan(HOSTILE[0], counts, placement)
    line = {
        "batch": 0, "at_s": START_S, "seconds": 1.0, "plan": HOSTILE[0], "tuples": 1,
        "remote_bytes": 0, "total_bytes": 0, "misplaced": 0, "failure": HOSTILE[0],
        "nodes": {HOSTILE[3]: [1.0, 1.0, 0.0, 0.0]}, "components": {HOSTILE[0]: [1, 1, 1.0]},
        "streams": [[HOSTILE[0], HOSTILE[1], 1, 1, 0]],
    }  # fmt: skip
    journal.add(line)
    journal.end(HOSTILE[0])
    keep(folder, decision(START_S, reason=HOSTILE[0], by=HOSTILE[3], plans={}, left="", plan=""))
    return folder


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    with client_of(hostile_run(tmp_path)) as client:
        found = get(client, "runs/hostile/picture")
        for html in (found["topology"], found["cards"], found["legend"]):
            assert "<script" not in html
            assert "<img" not in html
        assert "&lt;script&gt;" in found["topology"]
        assert get(client, "runs")["runs"][0]["name"] == HOSTILE[0]
        assert get(client, "runs/hostile/decisions")["decisions"][0]["reason"] == HOSTILE[0]
        detail = get(client, "runs/hostile/moment", tasks=True)["detail"]
        assert detail["tasks"] == {}
        metrics = client.get("/metrics").text
        assert '\\"><img' in metrics
        assert all(line.startswith(("#", "headrace_")) for line in metrics.splitlines())


def test_a_saved_page_holds_its_answers_and_nothing_hostile(tmp_path: Path) -> None:
    page = saved_page(hostile_run(tmp_path))
    data = page.split('id="saved">')[1].split("</script>")[0]
    assert "<" not in data
    held = json.loads(data)
    assert {"runs", "runs/hostile", "runs/hostile/decisions", "runs/hostile/moment"} <= set(held)
    assert "import {" not in bundle()
    assert "\nexport " not in bundle()
    assert style() in page


def test_modules_share_no_names() -> None:
    """They become one script in a saved page, where a name can be used once."""
    import re

    from headrace.serve.app import static_names, static_text

    named: list[str] = []
    for script in SCRIPTS:
        text = static_text(script)
        named += re.findall(r"^(?:export )?(?:async )?(?:function|class) (\w+)", text, re.MULTILINE)
        for found in re.findall(r"^(?:export )?(?:const|let) ([^=;]+)=", text, re.MULTILINE):
            named += re.findall(r"\w+", found)
    assert sorted(named) == sorted(set(named))
    assert set(SCRIPTS) == {name for name in static_names() if name.endswith(".js")}


def test_the_description_has_every_operation(client: TestClient) -> None:
    found = get(client, "openapi.json")
    assert found["openapi"].startswith("3.1")
    for operation in OPERATIONS:
        described = found["paths"][operation.path][operation.method.lower()]
        assert ("security" in described) == operation.acts
        assert ("requestBody" in described) == (operation.body is not None)


def test_metrics_say_what_a_run_does(client: TestClient) -> None:
    text = client.get("/metrics").text
    assert 'headrace_run_batches_total{run="words",topology="word-count"} 120' in text
    assert 'headrace_node_cpu_points{run="words",topology="word-count",node="large"}' in text
    names = [line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[0] != "#"]
    assert len([n for i, n in enumerate(names) if i and n != names[i - 1]]) + 1 == len(set(names))
