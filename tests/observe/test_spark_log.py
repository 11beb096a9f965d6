"""Event logs that Spark itself wrote, read back; run as a program, this file writes them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.read import read
from headrace.observe.diagnosis import diagnose
from headrace.observe.spark_log import Imported, spark_log
from headrace.observe.spark_log.application import (
    Application,
    ComponentFigures,
    Executor,
    Run,
    TaskTotals,
    executors_at_peak,
    memory_in_mb,
    observed_seconds,
)
from headrace.observe.spark_log.components import Component, Stage, fold
from headrace.observe.spark_log.files import find_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOT = "hot keys"  # marks the line of the skewed join
READY = "ready to die"


def write_logs(folder: str) -> None:
    """Four applications one after another: a shuffle, a skewed join, a stream, and one that waits to be killed."""
    from pyspark.sql import functions as F

    from headrace.spark import session

    def application(name: str, **conf: str) -> SparkSession:
        return session(
            app=name,
            master="local[2]",
            conf={
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": f"file://{folder}",
                "spark.eventLog.rolling.enabled": "false",
                "spark.sql.shuffle.partitions": "4",
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                **{f"spark.{key.replace('_', '.')}": value for key, value in conf.items()},
            },
        )

    spark = application("shuffle-job", eventLog_compress="false")
    for _ in range(2):  # a loop: the same stages twice
        spark.range(0, 40000, 1, 4).groupBy((F.col("id") % 100).alias("key")).count().collect()
    spark.stop()

    spark = application("skewed-join", eventLog_compress="true", eventLog_compression_codec="zstd", eventLog_rolling_enabled="true",
                        sql_adaptive_enabled="false", sql_autoBroadcastJoinThreshold="-1")  # fmt: skip
    key = F.when(F.col("id") % 20 < 19, F.lit(7)).otherwise(F.col("id") % 1000)
    heavy = spark.range(0, 400000, 1, 4).select(key.alias("key"))
    light = spark.range(0, 1000, 1, 2).select(
        F.col("id").alias("key"), (F.col("id") * 2).alias("value")
    )
    slow = F.sha2(
        F.sha2(F.concat_ws("-", "key", "value", F.rand(1)), 512), 512
    )  # so that records cost something
    heavy.join(light, "key").select(slow.alias("hash")).agg(F.max("hash")).collect()  # hot keys
    spark.stop()

    spark = application("clicks", eventLog_compress="true", eventLog_compression_codec="lz4")
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).load()
    counts = source.groupBy((F.col("value") % 5).alias("key")).count()
    query = counts.writeStream.queryName("per key").outputMode("complete").format("noop")
    running = query.option("checkpointLocation", f"{folder}-checkpoint").start()
    while (running.lastProgress or {"batchId": 0})["batchId"] < 3:
        time.sleep(0.1)
    running.stop()
    spark.stop()

    spark = application(
        "doomed",
        eventLog_compress="true",
        eventLog_compression_codec="zstd",
        eventLog_rolling_enabled="true",
    )
    spark.range(0, 40000, 1, 4).groupBy((F.col("id") % 100).alias("key")).count().collect()

    def never_ends(rows: Any) -> Any:
        time.sleep(600)
        return rows

    from threading import Thread

    Thread(
        target=lambda: (
            spark.sparkContext.parallelize(range(4), 4).mapPartitions(never_ends).count()
        ),
        daemon=True,
    ).start()
    while not spark.sparkContext.statusTracker().getActiveStageIds():
        time.sleep(0.1)
    time.sleep(0.5)  # its first tasks start
    print(READY, flush=True)
    time.sleep(600)


@pytest.fixture(scope="session")
def writing(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """The program that writes the logs, running while the tests' own session starts."""
    folder = tmp_path_factory.mktemp("spark-logs")
    program = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield folder, program
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


@pytest.fixture(scope="session")
def logs(writing: tuple[Path, subprocess.Popen[str]], spark: SparkSession) -> dict[str, Path]:
    """The logs by application name; the last application was killed, Python and Java, with -9."""
    folder, program = writing
    assert program.stdout is not None
    assert any(READY in line for line in program.stdout), "the applications did not run"
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    found: dict[str, Path] = {}
    for row in json.loads(run("import", "spark-log", str(folder), "--json"))["applications"]:
        (found[row["name"]],) = folder.glob(f"*{row['id']}*")
    return found


@pytest.fixture(scope="session")
def imported(spark: SparkSession, logs: dict[str, Path]) -> dict[str, Imported]:
    """Those that several tests look at, each read once."""
    return {
        name: spark_log(spark, str(logs[name])) for name in ("shuffle-job", "skewed-join", "clicks")
    }


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def problem_of(result: Imported, folder: Path) -> Problem:
    """What `headrace check` and `headrace place` see."""
    file = folder / "imported.json"
    file.write_text(json.dumps(result.document))
    return build(read([file]))


def messages(result: Imported, kind: str) -> list[str]:
    return [
        f"{finding.where}: {finding.message}"
        for finding in result.diagnosis
        if finding.kind == kind
    ]


def test_stages_become_components_with_the_figures_of_the_log(
    imported: dict[str, Imported], logs: dict[str, Path], tmp_path: Path
):
    result = imported["shuffle-job"]
    document = result.document
    first, second = document["topology"]["components"].items()
    assert first[0].startswith("collect-test_spark_log-")
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


def test_a_loop_is_folded(imported: dict[str, Imported]):
    assert [len(m.component.stages) for m in imported["shuffle-job"].application.components] == [
        2,
        2,
    ]


def test_a_skewed_join_is_told(imported: dict[str, Imported], tmp_path: Path):
    result = imported["skewed-join"]
    components = result.document["topology"]["components"]
    (join,) = (name for name, c in components.items() if len(c.get("inputs", ())) == 2)
    line = next(
        i
        for i, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith(f"# {HOT}")
    )
    assert join.startswith(f"collect-test_spark_log-{line}-")
    shares = next(s["shares"] for s in result.document["streams"] if s["to"] == join)
    assert max(shares) > 0.9
    skewed = [message for message in messages(result, "skew") if message.startswith(f"{join}: ")]
    assert len(skewed) == 1
    assert "keys are skewed" in skewed[0]
    problem = problem_of(result, tmp_path)
    assert problem.task_share is not None
    assert problem.task_share.max() > 0.9


def test_micro_batches_are_folded_into_the_steps_of_the_query(imported: dict[str, Imported]):
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


def test_an_application_that_died_is_read_as_far_as_it_came(logs: dict[str, Path], tmp_path: Path):
    out = tmp_path / "doomed.yaml"
    said = run("import", "spark-log", str(logs["doomed"]), "--out", str(out))
    assert "note: the application did not end" in said
    assert "1 topologies, 2 components, 5 tasks, 1 nodes, 1 streams" in run("check", str(out))
    report = json.loads(run("place", str(out), "--by", "storm-even", "--json"))["report"]
    assert report["feasible"]


def test_a_truncated_plain_log_loses_one_line(
    spark: SparkSession, logs: dict[str, Path], tmp_path: Path
):
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
):
    whole = imported["clicks"].application.components[0]
    data = logs["clicks"].read_bytes()
    cut = tmp_path / "local-2.lz4"
    cut.write_bytes(data[: len(data) * 2 // 3])
    result = spark_log(spark, str(cut))
    assert any("local-2.lz4 breaks off" in note for note in result.notes)
    assert 0 < result.application.components[0].work.records_in < whole.work.records_in


def test_events_nobody_knows_are_passed_over_and_told(
    spark: SparkSession, logs: dict[str, Path], tmp_path: Path
):
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


def test_a_folder_of_many_is_listed_and_one_is_chosen(spark: SparkSession, logs: dict[str, Path]):
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
):
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


def test_what_is_no_event_log_is_refused(spark: SparkSession, tmp_path: Path):
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


def stage(number: int, *parents: int, rdd: int | None = None, **given: Any) -> Stage:
    return Stage(
        number,
        given.pop("name", "collect at app.py:3"),
        2,
        parents,
        number if rdd is None else rdd,
        given.pop("operators", ()),
        **given,
    )


def test_a_skipped_stage_is_the_one_that_ran_before():
    stages = [
        stage(0, job=0),
        stage(1, rdd=0, job=1),
        stage(2, 1, job=1),
    ]  # 1 was skipped: its output was there
    (first, second), notes = fold(stages, {0, 2})
    assert (first.stages, second.stages) == ((0,), (2,))
    assert second.inputs == (first.name,)
    assert not notes


def test_twins_in_one_run_stay_two_components():
    stages = [
        stage(0, job=0),
        stage(1, job=0),
        stage(2, 0, 1, job=0),
        stage(3, job=1),
        stage(4, job=1),
        stage(5, 3, 4, job=1),
    ]
    components, _ = fold(stages, set(range(6)))
    assert [c.stages for c in components] == [(0, 3), (1, 4), (2, 5)]
    assert components[2].inputs == ("collect-app-3-1", "collect-app-3-2")


def test_a_reader_of_a_lost_stage_is_a_source():
    (only,), notes = fold([stage(4, 3)], {4})
    assert only.inputs == ()
    assert notes == [
        "stage 3: read from, but the log has no finished task of it; its readers count as sources"
    ]


def test_queries_and_lines_give_names():
    described = "clicks per key\nid = 1\nrunId = 2\nbatch = 0"
    java = "start at NativeMethodAccessorImpl.java:0"
    stages = [
        stage(0, job=0, name=java, query="a", batch="0", description=described),
        stage(
            1, job=1, name=java, query="b", batch="0", description="id = 5\nrunId = 6\nbatch = 0"
        ),
        stage(2, job=2, name=java, query="c", batch="0", description="<br/>id = 7<br/>batch = 0"),
        stage(3, job=3, name="save at NativeMethodAccessorImpl.java:0"),
        stage(
            4,
            job=4,
            name="$anonfun$run$1 at FutureTask.java:264",
            execution="9",
            call_site="count at /opt/jobs/my app.py:40",
        ),
    ]
    components, _ = fold(stages, set(range(5)))
    assert [c.name for c in components] == [
        "clicks-per-key",
        "stream1",
        "stream2",
        "save",
        "count-my-app-40",
    ]


def test_time_is_what_a_batch_worked_and_what_a_stream_lasted():
    runs = [
        Run(0, 1000, 1, 1, 1, 0, 0),
        Run(500, 2000, 1, 1, 1, 0, 0),
        Run(10000, 11000, 1, 1, 1, 0, 0),
    ]
    assert observed_seconds(runs, streaming=False) == 3.0
    assert observed_seconds(runs, streaming=True) == 11.0


def test_the_cluster_is_as_large_as_it_was_at_one_moment():
    a, b, c = (
        Executor("1", "h", 2, 1024, 0, removed_ms=50),
        Executor("2", "h", 2, 1024, 10),
        Executor("3", "h", 2, 1024, 60),
    )
    assert executors_at_peak([a, b, c]) == (a, b)


def test_memory_settings_are_read():
    assert [memory_in_mb(text) for text in ("4g", "512m", "1GB", "2t", "700", None, "lots")] == [
        4096,
        512,
        1024,
        2097152,
        700,
        None,
        None,
    ]


def measured(name: str, on: dict[str, TaskTotals], run: Run) -> ComponentFigures:
    total = TaskTotals()
    for work in on.values():
        total += work
    return ComponentFigures(Component(name, (0,), (), 4, True, (), None), total, on, (run,), ())


def test_the_diagnosis_names_the_executor_and_the_numbers():
    even = Run(0, 10_000, 4, 1000, 900, 25, 100)
    work = {
        "1": TaskTotals(
            succeeded=2,
            run_ms=19_000,
            cpu_ms=8000,
            gc_ms=4000,
            remote_bytes=3e6,
            local_bytes=1e6,
            spilled_disk=5e6,
            spilled_memory=9e6,
        ),
        "2": TaskTotals(succeeded=2, failed=1, error="ValueError", wasted_ms=500, run_ms=1000),
    }
    executors = (
        Executor("1", "a", 2, 1024, 0),
        Executor("2", "b", 2, 1024, 0, removed_ms=8000, removed_reason="heartbeat"),
    )
    application = Application(
        "x", "x", "4", True, executors, (measured("s", work, even),), 10.0, ()
    )
    said = {f"{finding.kind} {finding.where}": finding for finding in diagnose(application)}
    assert set(said) == {
        "stage s", "waiting s", "remote application", "remote s", "spill s", "failed s", "gc executor-1", "lost executor-2", "idle executor-2",
        "overloaded executor-1",
    }  # fmt: skip
    assert said["remote s"].numbers["share"] == 0.75
    assert said["waiting s"].numbers["share"] == 0.6
    assert said["overloaded executor-1"].numbers["busy"] == 0.95
    assert said["idle executor-2"].numbers["busy"] == 1500 / 16000
    assert (
        said["failed s"].message == "1 of 5 task attempts failed (ValueError), 0.5 s of work lost"
    )
    assert "heartbeat" in said["lost executor-2"].message


def test_an_even_stage_is_not_called_skewed():
    executors = (Executor("1", "a", 2, 1024, 0),)
    on = {"1": TaskTotals(succeeded=4, run_ms=15_000, cpu_ms=12_000)}

    def kinds(run: Run) -> set[str]:
        return {
            finding.kind
            for finding in diagnose(
                Application("x", "x", "4", True, executors, (measured("s", on, run),), 10.0, ())
            )
        }

    even = Run(0, 10_000, 4, 1000, 900, 25, 100)
    assert kinds(even) == {"stage"}
    assert kinds(replace(even, slowest_ms=2000, slowest_records=70)) == {"stage", "skew"}
    assert kinds(replace(even, slowest_ms=99, median_ms=9)) == {"stage"}  # nobody would feel it


if __name__ == "__main__":
    write_logs(sys.argv[1])
