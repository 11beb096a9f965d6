"""Event logs that Spark wrote, read back; tests/integration does the same with fresh ones."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.errors import InvalidInput
from headrace.observe.spark_log import Imported, spark_log
from headrace.observe.spark_log.files import find_logs
from tests.observe.spark_log.reading import messages, problem_of, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_stages_become_components_with_the_figures_of_the_log(
    imported: dict[str, Imported], logs: dict[str, Path], tmp_path: Path
) -> None:
    result = imported["shuffle-job"]
    document = result.document
    first, second = document["topology"]["components"].items()
    assert first[0].startswith("collect-applications-")
    assert first[1]["spout"]
    assert first[1]["tasks"] == 4
    assert second[1]["inputs"] == {first[0]: "shuffle"}

    # An independent reading: plain JSON, task by task.
    cpu_ms: dict[int, float] = defaultdict(float)
    records: dict[int, int] = defaultdict(int)
    for line in logs["shuffle-job"].read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            metrics = event["Task Metrics"]
            kind = 0 if event["Task Type"] == "ShuffleMapTask" else 1
            cpu_ms[kind] += (
                metrics["Executor CPU Time"] + metrics["Executor Deserialize CPU Time"]
            ) / 1e6
            records[kind] += (
                metrics["Input Metrics"]["Records Read"]
                + metrics["Shuffle Read Metrics"]["Total Records Read"]
            )
    assert records == {0: 80000, 1: 800}
    seconds = result.application.seconds
    assert first[1]["rate"] == pytest.approx(80000 / seconds, rel=1e-4)
    assert document["profile"][first[0]]["*"]["cpu_ms"] == pytest.approx(
        cpu_ms[0] / 80000, rel=1e-4
    )
    assert document["profile"][second[0]]["*"]["cpu_ms"] == pytest.approx(cpu_ms[1] / 800, rel=1e-4)
    (stream,) = document["streams"]
    assert stream["tuples_per_s"] == pytest.approx(800 / seconds, rel=1e-4)
    assert stream["selectivity"] == 0.01

    problem = problem_of(result, tmp_path)
    total_points = sum(cpu_ms.values()) / seconds / 10
    assert problem.cpu_rate.sum() == pytest.approx(total_points, rel=1e-3)
    assert problem.nodes == ("driver",)
    assert document["cluster"]["nodes"]["driver"]["cpu"] == 200
    assert not any("did not end" in note for note in result.notes)


def test_a_loop_is_folded(imported: dict[str, Imported]) -> None:
    assert [len(m.component.stages) for m in imported["shuffle-job"].application.components] == [
        2,
        2,
    ]


def test_a_skewed_join_is_told(imported: dict[str, Imported], tmp_path: Path) -> None:
    result = imported["skewed-join"]
    components = result.document["topology"]["components"]
    (join,) = (name for name, c in components.items() if len(c.get("inputs", ())) == 2)
    assert join.startswith("collect-applications-")
    shares = next(s["shares"] for s in result.document["streams"] if s["to"] == join)
    assert max(shares) > 0.9
    skewed = [message for message in messages(result, "skew") if message.startswith(f"{join}: ")]
    assert len(skewed) == 1
    assert "keys are skewed" in skewed[0]
    problem = problem_of(result, tmp_path)
    assert problem.task_share is not None
    assert problem.task_share.max() > 0.9


def test_micro_batches_are_folded_into_the_steps_of_the_query(
    imported: dict[str, Imported],
) -> None:
    result = imported["clicks"]
    assert list(result.document["topology"]["components"]) == ["per-key-1", "per-key-2"]
    source, counting = result.application.components
    assert len(source.runs) >= 3
    assert counting.component.inputs == ("per-key-1",)
    assert source.work.records_in % 1000 == 0
    assert source.work.records_in >= 3000
    first, last = result.application.span_ms
    assert result.application.seconds == pytest.approx((last - first) / 1000)
    assert result.document["topology"]["components"]["per-key-1"]["rate"] == pytest.approx(
        source.work.records_in / result.application.seconds, rel=1e-4
    )


def test_an_application_that_died_is_read_as_far_as_it_came(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "doomed.yaml"
    said = run("import", "spark-log", str(logs["doomed"]), "--out", str(out))
    assert "note: the application did not end" in said
    assert "1 topologies, 2 components, 5 tasks, 1 nodes, 1 streams" in run("check", str(out))
    report = json.loads(run("place", str(out), "--by", "storm-even", "--json"))["report"]
    assert report["feasible"]


def test_a_truncated_plain_log_loses_one_line(
    spark: SparkSession, logs: dict[str, Path], tmp_path: Path
) -> None:
    text = logs["shuffle-job"].read_bytes()
    ends = [
        i
        for i, line in enumerate(text.splitlines(keepends=True))
        if b'"SparkListenerTaskEnd"' in line[:40]
    ]
    lines = text.splitlines(keepends=True)
    cut = tmp_path / "local-1"
    cut.write_bytes(
        b"".join(lines[: ends[6]]) + lines[ends[6]][:300]
    )  # in the middle of the seventh task's end
    result = spark_log(spark, str(cut))
    assert "1 line is cut off; passed over" in result.notes
    assert any("did not end" in note for note in result.notes)
    assert sum(m.work.succeeded for m in result.application.components) == 6


def test_a_truncated_packed_log_is_used_up_to_the_break(
    spark: SparkSession, imported: dict[str, Imported], logs: dict[str, Path], tmp_path: Path
) -> None:
    whole = imported["clicks"].application.components[0]
    data = logs["clicks"].read_bytes()
    cut = tmp_path / f"local-2{logs['clicks'].suffix}"
    cut.write_bytes(data[: len(data) * 2 // 3])
    result = spark_log(spark, str(cut))
    assert any(f"{cut.name} breaks off" in note for note in result.notes)
    assert 0 < result.application.components[0].work.records_in < whole.work.records_in


def test_events_nobody_knows_are_passed_over_and_told(
    spark: SparkSession, logs: dict[str, Path], tmp_path: Path
) -> None:
    odd = tmp_path / "local-3.inprogress"
    odd.write_text(
        logs["shuffle-job"].read_text()
        + '{"Event":"com.acme.Lunch","at":12}\nnot json at all\n{"Event":"SparkListenerTaskEnd"}\n'
    )
    result = spark_log(spark, str(odd))
    assert (
        "1 events of a kind this version does not know, `com.acme.Lunch`; passed over"
        in result.notes
    )
    assert result.application.components[0].work.succeeded == 8


def test_a_folder_of_many_is_listed_and_one_is_chosen(
    spark: SparkSession, logs: dict[str, Path]
) -> None:
    folder = str(logs["clicks"].parent)
    (doomed,) = (
        line for line in run("import", "spark-log", folder).splitlines() if "  doomed  " in line
    )
    assert doomed.endswith("in progress)")
    chosen = find_logs(spark, str(logs["clicks"]))[0].app
    answer = json.loads(run("import", "spark-log", folder, "--app", chosen, "--json"))
    assert answer["application"]["name"] == "clicks"
    assert {"stage"} <= {finding["kind"] for finding in answer["diagnosis"]}
    refused = json.loads(
        run("import", "spark-log", folder, "--app", f"{chosen}9", "--json", exit_code=1)
    )
    assert f"did you mean `{chosen}`?" in refused["error"]["message"]


def test_compacted_and_missing_parts_of_a_rolling_log(
    spark: SparkSession, logs: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "eventlog_v2_app-7"
    folder.mkdir()
    for name in (
        "events_1_app-7",
        "events_2_app-7.compact",
        "events_2_app-7",
        "events_3_app-7",
        "events_5_app-7",
        "appstatus_app-7",
    ):
        shutil.copy(logs["shuffle-job"], folder / name)
    (log,) = find_logs(spark, str(folder))
    assert [file.rpartition("/")[2] for file in log.files] == [
        "events_2_app-7.compact",
        "events_3_app-7",
        "events_5_app-7",
    ]
    assert any("part 4 of 1 to 5 is missing" in note for note in log.notes)
    assert any("compacted" in note for note in log.notes)


def test_what_is_no_event_log_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file or folder"):
        spark_log(spark, str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="a folder without event logs"):
        spark_log(spark, str(tmp_path))
    (tmp_path / "notes.txt").write_text("buy milk\n")
    with pytest.raises(InvalidInput, match="none of Spark's events"):
        spark_log(spark, str(tmp_path / "notes.txt"))
    (tmp_path / "local-0").write_text('{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}\n')
    with pytest.raises(InvalidInput, match="nothing to plan"):
        spark_log(spark, str(tmp_path / "local-0"))
