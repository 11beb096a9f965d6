"""Storm's answers, in the form of Storm 2: saved, and asked from a server."""

from __future__ import annotations

import copy
import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.read import read
from headrace.observe.storm import storm

ID = "word-count-3-1700000000"


def counts(*rows: tuple[str, ...] | tuple[str, Any] | tuple[str, str, Any]) -> list[dict[str, Any]]:
    """`(stream, value)` or `(component, stream, value)`."""
    return [
        dict(
            zip(
                ("component_id", "stream_id", "value") if len(row) == 3 else ("stream_id", "value"),
                row,
                strict=True,
            )
        )
        for row in rows
    ]


PAGE: dict[str, Any] = {
    "id": ID, "encodedId": ID, "name": "word-count", "owner": "ann", "status": "ACTIVE",
    "uptime": "29m 19s", "uptimeSeconds": 1759,
    "workersTotal": 2, "executorsTotal": 8, "tasksTotal": 10, "window": "600",
    "windowHint": "10m 0s", "msgTimeout": 30,
    "schedulerDisplayResource": True, "requestedCpu": 80.0,
    "workers": [
        {"topologyId": ID, "supervisorId": "aaaa1111-x", "host": "node-a", "port": 6700,
         "executorsTotal": 5, "assignedCpu": 60.0,
         "assignedMemOnHeap": 500.0, "assignedMemOffHeap": 12.0,
         "componentNumTasks": {"sentence": 2, "split": 3}},
        {"topologyId": ID, "supervisorId": "bbbb2222-x", "host": "node-b", "port": 6700,
         "executorsTotal": 3, "assignedCpu": 30.0,
         "assignedMemOnHeap": 256.0, "assignedMemOffHeap": 0.0, "componentNumTasks": {"count": 3}},
    ],
    "topologyStats": [{"windowPretty": "10m 0s", "window": "600", "emitted": 720000,
        "transferred": 600000}],
    "spouts": [{"spoutId": "sentence", "encodedSpoutId": "sentence", "executors": 2, "tasks": 4,
        "emitted": 60600, "transferred": 60600,
                "completeLatency": "12.345", "acked": 60000, "failed": 0, "lastError": "",
                "errorTime": None,
                "requestedMemOnHeap": 128.0, "requestedMemOffHeap": 0.0, "requestedCpu": 10.0}],
    "bolts": [
        {"boltId": "split", "executors": 3, "tasks": 3, "emitted": 420000, "transferred": 420000,
         "executed": 60000,
         "executeLatency": "0.100", "processLatency": "0.120", "capacity": "0.003", "acked": 60000,
         "failed": 0,
         "requestedMemOnHeap": 128.0, "requestedMemOffHeap": 64.0, "requestedCpu": 10.0},
        {"boltId": "count", "executors": 3, "tasks": 3, "emitted": 0, "transferred": 0,
         "executed": 300600, "executeLatency": "4.000",
         "processLatency": "4.100", "capacity": "0.912", "acked": 300000, "failed": 7,
         "requestedMemOnHeap": 128.0, "requestedMemOffHeap": 0.0, "requestedCpu": 10.0},
    ],
    "configuration": {"topology.priority": 10, "topology.worker.max.heap.size.mb": 768.0,
        "storm.id": ID},
}  # fmt: skip
METRICS: dict[str, Any] = {
    "window": "600", "windowHint": "10m 0s",
    "spouts": [{"id": "sentence", "emitted": counts(("default", 60000), ("tick", 600),
        ("__ack_init", 60000), ("__system", 20)),
                "transferred": counts(("default", 60000)), "acked": counts(("default", 60000)),
                "failed": [],
                "complete_ms_avg": counts(("default", "12.345"))}],
    "bolts": [
        {"id": "split", "emitted": counts(("default", 420000), ("__ack_ack", 60000)),
         "transferred": counts(("default", 420000)),
         "executed": counts(("sentence", "default", 60000)),
         "executed_ms_avg": counts(("sentence", "default", "0.100")),
         "process_ms_avg": counts(("sentence", "default", "0.120")), "acked": [], "failed": []},
        {"id": "count", "emitted": [], "transferred": [],
         "executed": counts(("split", "default", 300000), ("sentence", "tick", 1800), ("__system",
             "__tick", 600)),
         "executed_ms_avg": counts(("split", "default", "4.000"), ("sentence", "tick", "1.000"),
             ("__system", "__tick", "9.000")),
         "process_ms_avg": [], "acked": [], "failed": []},
    ],
}  # fmt: skip


def drawn(kind: str, *inputs: tuple[str, str, str]) -> dict[str, Any]:
    return {
        ":type": kind, ":capacity": 0, ":latency": None, ":transferred": {"default": 1},
        ":link": "/component.html",
        ":stats": [{":host": "node-a", ":port": 6700, ":uptime_secs": 1700,
            ":transferred": {"600": {"default": 1}}}],
        ":inputs": [{":component": c, ":stream": s, ":sani-stream": s, ":grouping": g} for c, s,
            g in inputs],
    }  # fmt: skip


VISUALIZATION: dict[str, Any] = {
    "sentence": drawn("spout", ("__acker", "__ack_ack", "direct")),
    "split": drawn("bolt", ("sentence", "default", "local_or_shuffle")),
    "count": drawn("bolt", ("split", "default", "fields"), ("sentence", "tick", "all")),
}
SUPERVISORS: dict[str, Any] = {
    "schedulerDisplayResource": True,
    "supervisors": [
        {"id": "aaaa1111-x", "host": "node-a", "uptimeSeconds": 9000, "slotsTotal": 4,
         "slotsUsed": 3, "slotsFree": 1, "totalMem": 4096.0,
         "totalCpu": 400.0, "usedMem": 1024.0, "usedCpu": 160.0},
        {"id": "bbbb2222-x", "host": "node-b", "uptimeSeconds": 9000, "slotsTotal": 4,
         "slotsUsed": 1, "slotsFree": 3, "totalMem": 4096.0,
         "totalCpu": 400.0, "usedMem": 256.0, "usedCpu": 30.0},
    ],
}  # fmt: skip
CLUSTER: dict[str, Any] = {
    "stormVersion": "2.6.0",
    "supervisors": 2,
    "slotsTotal": 8,
    "slotsUsed": 4,
    "topologies": 1,
}
# What Storm 2 answers instead of METRICS; all executors are as old as the window, or older.
COMPONENTS: dict[str, dict[str, Any]] = {
    metrics["id"]: {
        "id": metrics["id"], "window": "600", "componentType": kind,
        "outputStats": [{"stream": row["stream_id"], "emitted": row["value"]}
            for row in metrics["emitted"]],
        "inputStats": [{"component": row["component_id"], "stream": row["stream_id"],
            "executed": row["value"], "executeLatency": took["value"]} for row, took
            in zip(metrics.get("executed", []), metrics.get("executed_ms_avg", []), strict=True)],
        "executorStats": [{"id": f"[{i}-{i}]", "uptimeSeconds": 1700, "host": "node-a",
            "port": 6700, "emitted": sum(row["value"] for row in metrics["emitted"]) / count,
            "executed": sum(row["value"] for row in metrics.get("executed", [])) / count}
            for i in range(1, count + 1)],
    }
    for kind, metrics, count in (("spout", METRICS["spouts"][0], 2),
        ("bolt", METRICS["bolts"][0], 3), ("bolt", METRICS["bolts"][1], 3))
}  # fmt: skip
ALL = {
    "topology": PAGE,
    "metrics": METRICS,
    "visualization": VISUALIZATION,
    "supervisors": SUPERVISORS,
    "cluster": CLUSTER,
}


def saved(folder: Path, parts: dict[str, Any]) -> str:
    file = folder / "storm.json"
    file.write_text(json.dumps(parts))
    return str(file)


def test_a_topology_with_its_groupings_rates_and_resources(tmp_path: Path):
    document, _ = storm(saved(tmp_path, ALL))
    assert document["topology"] == {
        "name": "word-count",
        "workers": 2,
        "priority": 10,
        "worker_max_heap_mb": 768.0,
        "components": {
            "sentence": {"spout": True, "tasks": 2, "rate": 101.0, "cpu": 10.0, "memory_mb": 128.0},
            "split": {
                "tasks": 3, "inputs": {"sentence": [{"stream": "default",
                    "grouping": "local-or-shuffle"}]}, "cpu": 10.0, "memory_mb": 192.0,
            },
            "count": {
                "tasks": 3,
                "inputs": {"split": [{"stream": "default", "grouping": "fields"}],
                    "sentence": [{"stream": "tick", "grouping": "all"}]},
                "cpu": 10.0,
                "memory_mb": 128.0,
            },
        },
    }  # fmt: skip


def test_streams_carry_what_was_emitted_in_the_window(tmp_path: Path):
    streams = {(s["from"], s["to"]): s for s in storm(saved(tmp_path, ALL))[0]["streams"]}
    assert streams["sentence", "split"]["tuples_per_s"] == 100.0  # 60,000 in 600 s
    assert streams["split", "count"]["tuples_per_s"] == 700.0
    assert streams["split", "count"]["selectivity"] == 7.0  # of 60,000 executed
    assert streams["sentence", "count"] == {
        "from": "sentence", "to": "count", "stream": "tick", "tuples_per_s": 1.0,
        "selectivity": pytest.approx(600 / 60600, rel=1e-5),
    }  # fmt: skip


def test_a_bolts_cost_is_its_latency_weighed_by_what_it_executed(tmp_path: Path):
    profile = storm(saved(tmp_path, ALL))[0]["profile"]
    assert profile["split"]["*"]["cpu_ms"] == 0.1
    # Storm's own tick tuples are not of the topology: (300,000 * 4 + 1,800 * 1) / 301,800
    assert profile["count"]["*"]["cpu_ms"] == pytest.approx(3.98211, rel=1e-5)
    assert "sentence" not in profile


def test_capacity_stands_in_where_the_latency_is_rounded_to_nothing(tmp_path: Path):
    parts = copy.deepcopy({key: part for key, part in ALL.items() if key != "metrics"})
    parts["topology"]["bolts"][0]["executeLatency"] = "0.000"
    document, notes = storm(saved(tmp_path, parts))
    # 0.003 of the time of 3 executors over 600 s, for 60,000 tuples
    assert document["profile"]["split"]["*"]["cpu_ms"] == pytest.approx(0.003 * 3 * 600_000 / 60000)
    assert any(note.startswith("no /component pages") for note in notes)
    # 60,600 emitted, on two streams, of which the page does not tell which
    assert {s["tuples_per_s"] for s in document["streams"] if s["from"] == "sentence"} == {50.5}


def test_what_others_use_is_taken_and_what_the_topology_uses_is_not(tmp_path: Path):
    nodes = storm(saved(tmp_path, ALL))[0]["cluster"]["nodes"]
    assert nodes == {
        "node-a": {
            "slots": 4,
            "cpu": 400.0,
            "memory_mb": 4096.0,
            "taken": {"slots": [1, 2], "cpu": 100.0, "memory_mb": 512.0},  # ours is 6700
        },
        "node-b": {"slots": 4, "cpu": 400.0, "memory_mb": 4096.0},
    }


def test_without_the_resource_aware_scheduler_only_slots_are_known(tmp_path: Path):
    parts = copy.deepcopy(ALL)
    parts["topology"]["schedulerDisplayResource"] = parts["supervisors"][
        "schedulerDisplayResource"
    ] = False
    for supervisor in parts["supervisors"]["supervisors"]:
        supervisor |= {"host": "node-a", "usedCpu": 0.0, "usedMem": 0.0}
    document, notes = storm(saved(tmp_path, parts))
    assert document["cluster"]["nodes"] == {
        "node-a-aaaa1111": {"slots": 4, "taken": {"slots": [1, 2]}},
        "node-a-bbbb2222": {"slots": 4},
    }
    assert "cpu" not in document["topology"]["components"]["split"]
    assert any("resource-aware scheduler is off" in note for note in notes)


def test_notes_say_what_is_full_fails_and_falls_behind(tmp_path: Path):
    _, notes = storm(saved(tmp_path, ALL))
    assert "count is at 91% of its capacity: it needs more executors, or a faster node" in notes
    assert "count failed 7 tuples" in notes
    assert "count worked off 71% of what split sent on `default`: it falls behind" in notes
    assert not any(
        "split" in note and "falls behind" in note and note.startswith("split") for note in notes
    )


def test_a_young_topology_is_counted_over_its_own_life(tmp_path: Path):
    parts = copy.deepcopy(ALL)
    parts["topology"]["uptimeSeconds"] = 60
    assert storm(saved(tmp_path, parts))[0]["topology"]["components"]["sentence"]["rate"] == 1010.0
    parts["topology"]["uptimeSeconds"] = 6000
    parts["metrics"]["window"] = ":all-time"
    assert storm(saved(tmp_path, parts))[0]["topology"]["components"]["sentence"]["rate"] == 10.1


def test_a_folder_of_answers_is_read_whatever_the_files_are_called(tmp_path: Path):
    folder = tmp_path / "answers"
    folder.mkdir()
    for number, part in enumerate(ALL.values()):
        (folder / f"{number}.json").write_text(json.dumps(part))
    assert storm(str(folder)) == storm(saved(tmp_path, ALL))


def test_the_document_can_be_checked_and_placed(tmp_path: Path):
    out = tmp_path / "word-count.yaml"
    result = CliRunner().invoke(main, ["import", "storm", saved(tmp_path, ALL), "--out", str(out)])
    assert result.exit_code == 0, result.output
    problem = build(read([out]))
    assert problem.task_count == 8
    assert dict(zip(problem.components, problem.rate, strict=True)) == {
        "sentence": 101.0,
        "split": 100.0,
        "count": 703.0,
    }
    placed = CliRunner().invoke(main, ["place", str(out), "--by", "storm-even", "--json"])
    assert placed.exit_code == 0, placed.output


@contextmanager
def served(answers: dict[str, Any]) -> Generator[str]:
    """A server on this machine that answers paths; an unknown one as Storm does, with 500."""

    class Ui(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path.removeprefix("/api/v1")
            body = answers.get(path)
            self.send_response(200 if body is not None else 500)
            self.end_headers()
            self.wfile.write(
                body
                if isinstance(body, bytes)
                else json.dumps(body or {"error": "Internal Server Error"}).encode()
            )

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Ui) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def ui(*topologies: str) -> dict[str, Any]:
    page = f"/topology/{ID}"
    return {
        "/topology/summary": {"topologies": [{"id": i, "name": i.rsplit("-", 2)[0],
            "status": "ACTIVE"} for i in topologies]},
        page: PAGE, f"{page}/metrics": PAGE, f"{page}/visualization": VISUALIZATION,
        **{f"{page}/component/{c}": part for c, part in COMPONENTS.items()},
        "/supervisor/summary": SUPERVISORS, "/cluster/summary": CLUSTER,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_running_ui_is_asked(tmp_path: Path):
    expected = storm(saved(tmp_path, ALL))
    with served(ui(ID)) as url:
        assert storm(url) == expected
        assert storm(f"{url}/") == expected
        assert storm(f"{url}/api/v1/topology/summary") == expected
    with served(ui("other-1-1", ID)) as url:
        assert storm(url, "word-count") == expected
        assert storm(url, ID) == expected


def test_a_topology_that_does_not_run_is_named_with_the_nearest():
    with served(ui("other-1-1", ID)) as url:
        with pytest.raises(
            InvalidInput,
            match=r"no topology `word-cuont` runs there \(did you mean `word-count`\?\)",
        ):
            storm(url, "word-cuont")
        with pytest.raises(InvalidInput, match=f"2 topologies run there: other-1-1, {ID}"):
            storm(url)
    with served(ui()) as url, pytest.raises(InvalidInput, match="no topology runs there"):
        storm(url)


def test_what_is_not_storm_is_said():
    with (
        served({"/topology/summary": b"<html>hello</html>"}) as url,
        pytest.raises(InvalidInput, match="is not JSON"),
    ):
        storm(url)
    with (
        served({"/topology/summary": {"hello": 1}}) as url,
        pytest.raises(InvalidInput, match="not as Storm's UI does"),
    ):
        storm(url)
    with served({}) as url, pytest.raises(InvalidInput, match="answers 500"):
        storm(url)


def test_nobody_there_is_said():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(InvalidInput, match="cannot be reached"):
            storm(url)
        free.listen()  # takes the connection, and never answers
        with pytest.raises(InvalidInput, match=r"no answer|timed out"):
            storm(url, timeout_s=0.2)
    with pytest.raises(InvalidInput, match="ftp is not asked"):
        storm("ftp://127.0.0.1/storm")


def test_files_that_are_not_answers_are_said(tmp_path: Path):
    with pytest.raises(InvalidInput, match="no such file"):
        storm(str(tmp_path / "none.json"))
    with pytest.raises(InvalidInput, match=r"has no \.json file"):
        storm(str(tmp_path))
    with pytest.raises(InvalidInput, match="holds no topology page"):
        storm(saved(tmp_path, {"cluster": CLUSTER}))
    with pytest.raises(InvalidInput, match="/api/v1/topology/ID/visualization"):
        storm(saved(tmp_path, PAGE))
    broken = copy.deepcopy(ALL)
    broken["topology"]["bolts"][0]["executors"] = "many"
    with pytest.raises(InvalidInput, match=r"topology: bolts.0.executors: .*not how Storm answers"):
        storm(saved(tmp_path, broken))
    with pytest.raises(InvalidInput, match=f"is of the topology `{ID}`, not `words`"):
        storm(saved(tmp_path, ALL), "words")


STORM_2 = {
    "topology": PAGE,
    "visualization": VISUALIZATION,
    "supervisors": SUPERVISORS,
    "cluster": CLUSTER,
    **COMPONENTS,
}


def test_component_pages_say_what_metrics_said_before_storm_2(tmp_path: Path):
    assert storm(saved(tmp_path, STORM_2)) == storm(saved(tmp_path, ALL))


def test_each_executor_counts_over_its_own_life(tmp_path: Path):
    # After a reschedule: one spout is 100 s old with 5,000 tuples, the other 300 s with 15,000.
    parts = copy.deepcopy(STORM_2)
    page = parts["sentence"]
    page["outputStats"] = [{"stream": "default", "emitted": 20000}]
    for row, (age_s, emitted) in zip(
        page["executorStats"], ((100, 5000), (300, 15000)), strict=True
    ):
        row |= {"uptimeSeconds": age_s, "emitted": emitted}
    document, _ = storm(saved(tmp_path, parts))
    assert document["topology"]["components"]["sentence"]["rate"] == 100.0


def test_the_resource_aware_scheduler_is_seen_where_its_flag_is_off(tmp_path: Path):
    parts = copy.deepcopy(ALL)
    parts["topology"]["schedulerDisplayResource"] = False
    parts["supervisors"]["schedulerDisplayResource"] = False
    assert storm(saved(tmp_path, parts))[0] == storm(saved(tmp_path, ALL))[0]


def test_workers_and_ackers_are_those_asked_for(tmp_path: Path):
    parts = copy.deepcopy(ALL)
    parts["topology"] |= {"workersTotal": 2, "executorsTotal": 12}
    parts["topology"]["configuration"] |= {"topology.workers": 3, "topology.acker.executors": None}
    document, notes = storm(saved(tmp_path, parts))
    assert (document["topology"]["workers"], document["topology"]["ackers"]) == (3, 3)
    assert any(note.startswith("1 of 12 executors are not among the components") for note in notes)
    parts["topology"]["configuration"]["topology.acker.executors"] = 0
    assert "ackers" not in storm(saved(tmp_path, parts))[0]["topology"]


def test_shuffle_is_load_aware_unless_it_is_turned_off(tmp_path: Path):
    parts = copy.deepcopy(ALL)
    parts["visualization"]["split"] = drawn("bolt", ("sentence", "default", "shuffle"))

    def grouping() -> str:
        components = storm(saved(tmp_path, parts))[0]["topology"]["components"]
        return components["split"]["inputs"]["sentence"][0]["grouping"]

    assert grouping() == "load-aware"
    parts["topology"]["configuration"]["topology.disable.loadaware.messaging"] = True
    assert grouping() == "shuffle"
    del parts["topology"]["configuration"]["topology.disable.loadaware.messaging"]
    parts["cluster"]["stormVersion"] = "1.2.3"
    assert grouping() == "shuffle"


def test_slots_of_ports_that_the_settings_name(tmp_path: Path):
    parts = copy.deepcopy(ALL)
    parts["topology"]["workers"][0]["port"] = 16731
    ports = [16730, 16731, 16732, 16733]
    parts["topology"]["configuration"]["supervisor.slots.ports"] = ports
    nodes = storm(saved(tmp_path, parts))[0]["cluster"]["nodes"]
    assert nodes["node-a"]["taken"]["slots"] == [0, 2]
