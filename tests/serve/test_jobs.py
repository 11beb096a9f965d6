"""Work in processes of its own: limited, stoppable, and of no file but those it was given."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headrace.errors import InvalidInput
from headrace.serve import jobs
from headrace.serve.jobs import Busy, Jobs
from headrace.serve.work import answer_to, read_source, work
from tests.serve.apps import ACTS, client_of
from tests.serve.journals import COUNTS, NODES, SPREAD, WORDS, write_run

FILE = """
format: headrace/1
topology:
  name: words
  components:
    feed: {spout: true, tasks: 2, rate: 100}
    count: {tasks: 3, inputs: {feed: shuffle}, cpu: 20}
cluster:
  nodes:
    n{1..3}: {cpu: 100, slots: 2, memory_mb: 1000}
"""
ASKED: dict[str, Any] = {"by": ["storm-even"], "objective": "traffic", "seconds": 5}


def given(text: str, **facts: Any) -> dict[str, Any]:
    return {"files": [{"name": "app.yaml", "text": text}], **ASKED, **facts}


def test_a_file_is_planned_and_drawn() -> None:
    answer = work(given(FILE, simulate=True))
    assert answer["plans"][0]["plan"]["tasks"] == {"feed": 2, "count": 3}
    assert "Placement" in answer["html"]
    assert answer["simulations"][0]["summary"]["stable"]
    assert "tuples/s completed" in answer["simulation_html"]


def test_a_change_is_shown_beside_what_is_without_it() -> None:
    answer = work(given(FILE, change={"rate_factor": 2.0, "without": ["n1"]}))
    assert answer["changed"] == ["--rate-factor 2", "--without n1"]
    assert "Without and with it" in answer["html"]
    assert {
        run[0] for runs in answer["plans"][0]["plan"]["placement"].values() for run in runs
    } <= {
        "n2",
        "n3",
    }


def test_several_schedulers_are_compared() -> None:
    answer = work(given(FILE, by=["storm-even", "rstorm"], seconds=10))
    assert [one["scheduler"] for one in answer["plans"]] == ["storm-even", "rstorm"]


def live(**facts: Any) -> dict[str, Any]:
    run = {
        "document": {"format": "headrace/1", "topology": WORDS, "cluster": {"nodes": NODES}},
        "plan": {"tasks": COUNTS, "placement": SPREAD},
        "rates": {"sentence": 1000.0},
        "measured": {
            "streams": [
                {"from": "sentence", "to": "split", "tuples_per_s": 1000.0, "selectivity": 1.0,
                 "bytes": 40.0},
                {"from": "split", "to": "count", "tuples_per_s": 7000.0, "selectivity": 7.0,
                 "bytes": 12.0},
            ],
            "profile": {name: {"*": {"cpu_ms": 0.02}} for name in COUNTS},
        },
    }  # fmt: skip
    return {"run": run, **ASKED, **facts}


def test_what_if_is_beside_the_plan_in_force() -> None:
    answer = work(live(change={"rate_factor": 1.5}))
    assert "In force, and what if" in answer["html"]
    assert answer["sections"][0]["tasks"] == COUNTS
    report = answer["plans"][0]["report"]
    assert report["total_traffic"] == pytest.approx(1.5 * 8000)


def test_a_machine_like_one_that_is_there_can_be_added() -> None:
    answer = work(live(change={"add": {"like large": 2}}))
    assert answer["changed"] == ["--add like large=2"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("arrivals: {kind: trace, file: /etc/passwd}", "arrivals.file"),
        ("events: [{at: 1, plan: /etc/passwd}]", "events"),
    ],
)
def test_a_file_names_no_other_file(more: str, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        read_source(given(FILE + more))


@pytest.mark.parametrize(
    "text",
    ["", "x", "[1, 2]", "format: headrace/2", "{" * 5000, "a: &a [1]\nb: *nothing", "\x00",
     "- " * 3000, FILE + "topology: {}", FILE.replace("feed: shuffle", "nobody: shuffle")],
)  # fmt: skip
def test_a_broken_file_is_refused_in_words(text: str) -> None:
    import json

    answer = answer_to(json.dumps(given(text)))
    assert answer["error"]["kind"] in ("invalid-input", "infeasible")
    assert len(answer["error"]["message"]) < 2000


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(write_run(tmp_path / "words", batches=20, moved_at=None)) as found:
        yield found


def ask(client: TestClient, **facts: Any) -> Any:
    return client.post("/api/v1/jobs", json=facts, headers=ACTS)


def ended(client: TestClient, name: str, within_s: float = 60.0) -> Any:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        job = client.get(f"/api/v1/jobs/{name}").json()
        if job["state"] not in ("waiting", "working"):
            return job
        time.sleep(0.1)
    raise AssertionError(f"{name} did not end")


def test_an_uploaded_file_is_planned_in_a_process(client: TestClient) -> None:
    answer = ask(client, files=[{"name": "../../app.yaml", "text": FILE}], by=["storm-even"])
    assert answer.status_code == 202
    job = ended(client, answer.json()["id"])
    assert (job["state"], job["error"]) == ("done", None)
    assert job["answer"]["plans"][0]["scheduler"] == "storm-even"


def test_a_job_that_is_stopped_leaves_no_process(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "sys", _Sleeper)
    name = ask(client, files=[{"name": "a", "text": FILE}]).json()["id"]
    deadline = time.monotonic() + 10
    while not (found := _sleepers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == 1
    assert client.delete(f"/api/v1/jobs/{name}", headers=ACTS).json()["state"] == "stopped"
    assert _sleepers() == []
    assert client.get(f"/api/v1/jobs/{name}").json()["error"]["kind"] == "stopped"


def test_a_job_that_takes_too_long_is_ended(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "sys", _Sleeper)
    client.app.state.shelf.jobs.spare_s = 0.0  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
    name = ask(client, files=[{"name": "a", "text": FILE}], seconds=1).json()["id"]
    job = ended(client, name, 20)
    assert (job["state"], job["error"]["kind"]) == ("failed", "seconds")
    assert _sleepers() == []


class _Sleeper:
    """In the place of `sys`: a program that sleeps, whatever it is asked."""

    executable = str(Path(__file__).parent / "sleeper.sh")


def _sleepers() -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                said = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "sleep 98765" in said:
                found.append(said)
    return found


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"files": [{"name": "a", "text": FILE}], "example": "quickstart"},
        {"example": "quickstart", "by": ["os:system"]},
        {"example": "quickstart", "by": ["headrace.place.rstorm:rstorm"]},
        {"example": "quickstart", "by": []},
        {"example": "quickstart", "seconds": 1e9},
        {"example": "quickstart", "objective": "glory"},
        {"example": "quickstart", "strange": 1},
        {"example": "quickstart", "change": {"rate_factor": -1}},
        {"files": [{"name": "a", "text": FILE, "path": "/etc/passwd"}]},
    ],
)
def test_a_wrong_request_is_refused(client: TestClient, facts: dict[str, Any]) -> None:
    answer = ask(client, **facts)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


def test_too_many_jobs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def many() -> None:
        monkeypatch.setattr(jobs, "sys", _Sleeper)
        found = Jobs(at_once=1)
        for _ in range(jobs.MOST_WAITING):
            found.ask({"seconds": 60}, "")
        with pytest.raises(Busy, match="wait already"):
            found.ask({"seconds": 60}, "")
        await found.close()
        assert {job.state for job in found.jobs.values()} == {"stopped"}

    asyncio.run(many())


def test_an_answer_that_is_no_json_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        executable = "/bin/true"

    monkeypatch.setattr(jobs, "sys", Silent)
    answer = asyncio.run(jobs.answer_of({"seconds": 1}, 10))
    assert answer["error"]["kind"] == "failed"
