"""From the lines of an event log to tables: events, stages, tasks, executors.

Every line is one event as JSON. Only the fields that are needed stand in the schema; all of it is
DataFrame functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STAGE_INFO = (
    "STRUCT<`Stage ID`: INT, `Stage Attempt ID`: INT, `Stage Name`: STRING, "
    "`Number of Tasks`: INT, `Parent IDs`: ARRAY<INT>, "
    "`RDD Info`: ARRAY<STRUCT<`RDD ID`: INT, Name: STRING, Scope: STRING>>, "
    "`Failure Reason`: STRING>"
)
TASK_INFO = (
    "STRUCT<`Task ID`: LONG, Index: INT, `Partition ID`: INT, `Launch Time`: LONG, "
    "`Finish Time`: LONG, `Executor ID`: STRING, Host: STRING, Failed: BOOLEAN, Killed: BOOLEAN>"
)
TASK_METRICS = (
    "STRUCT<`Executor Deserialize CPU Time`: LONG, `Executor Deserialize Time`: LONG, "
    "`Executor Run Time`: LONG, "
    "`Executor CPU Time`: LONG, `JVM GC Time`: LONG, `Peak Execution Memory`: LONG, "
    "`Memory Bytes Spilled`: LONG, `Disk Bytes Spilled`: LONG, "
    "`Shuffle Read Metrics`: STRUCT<`Remote Bytes Read`: LONG, `Local Bytes Read`: LONG, "
    "`Total Records Read`: LONG, `Fetch Wait Time`: LONG>, "
    "`Shuffle Write Metrics`: "
    "STRUCT<`Shuffle Bytes Written`: LONG, `Shuffle Records Written`: LONG>, "
    "`Input Metrics`: STRUCT<`Bytes Read`: LONG, `Records Read`: LONG>, "
    "`Output Metrics`: STRUCT<`Records Written`: LONG>>"
)
EVENT = (
    "`Spark Version` STRING, `App Name` STRING, `App ID` STRING, Timestamp LONG, "
    "`Spark Properties` MAP<STRING, STRING>, `Executor ID` STRING, "
    "`Executor Info` STRUCT<Host: STRING, `Total Cores`: INT, `Resource Profile Id`: INT>, "
    "`Removed Reason` STRING, `Resource Profile Id` INT, "
    "`Executor Resource Requests` MAP<STRING, STRUCT<Amount: LONG>>, `Job ID` INT, "
    f"`Stage Infos` ARRAY<{STAGE_INFO}>, `Stage Info` {STAGE_INFO}, "
    "Properties MAP<STRING, STRING>, `Stage ID` INT, `Stage Attempt ID` INT, "
    "`Task End Reason` STRUCT<Reason: STRING, `Class Name`: STRING, `Loss Reason`: STRING>, "
    f"`Task Info` {TASK_INFO}, `Task Metrics` {TASK_METRICS}, _corrupt_record STRING"
)
TASK_EVENT = "SparkListenerTaskEnd"
FACT_EVENTS = (
    "SparkListenerLogStart",
    "SparkListenerApplicationStart",
    "SparkListenerApplicationEnd",
    "SparkListenerEnvironmentUpdate",
    "SparkListenerExecutorAdded",
    "SparkListenerExecutorRemoved",
    "SparkListenerResourceProfileAdded",
)
STAGE_EVENTS = (
    "SparkListenerJobStart",
    "SparkListenerStageSubmitted",
    "SparkListenerStageCompleted",
)
PROGRESS_EVENT = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
NEEDED = (*FACT_EVENTS, *STAGE_EVENTS, TASK_EVENT)
# Nothing of these is needed. Any other event is one that this reader does not know, and is noted.
PASSED_OVER = (
    "SparkListenerTaskStart",
    "SparkListenerTaskGettingResult",
    "SparkListenerJobEnd",
    "SparkListenerUnpersistRDD",
    "SparkListenerBlockManagerAdded",
    "SparkListenerBlockManagerRemoved",
    "SparkListenerBlockUpdated",
    "SparkListenerExecutorMetricsUpdate",
    "SparkListenerStageExecutorMetrics",
    "SparkListenerSpeculativeTaskSubmitted",
    "SparkListenerUnschedulableTaskSetAdded",
    "SparkListenerUnschedulableTaskSetRemoved",
    "SparkListenerMiscellaneousProcessAdded",
    "SparkListenerExecutorExcluded",
    "SparkListenerExecutorExcludedForStage",
    "SparkListenerExecutorUnexcluded",
    "SparkListenerNodeExcluded",
    "SparkListenerNodeExcludedForStage",
    "SparkListenerNodeUnexcluded",
    "SparkListenerExecutorBlacklisted",
    "SparkListenerExecutorBlacklistedForStage",
    "SparkListenerExecutorUnblacklisted",
    "SparkListenerNodeBlacklisted",
    "SparkListenerNodeBlacklistedForStage",
    "SparkListenerNodeUnblacklisted",
)
SETTINGS = (
    "spark.driver.memory",
    "spark.executor.memory",
    "spark.executor.cores",
    "spark.task.cpus",
    "spark.master",
)
SPARKS_OWN = "org.apache.spark."  # SQL, streaming and Connect name events by their class


def name_lines(lines: DataFrame) -> DataFrame:
    """One row per line: the event's name, which Spark writes first (empty: none), and the line."""
    from pyspark.sql import functions as F

    beginning = F.substring("value", 1, 300)  # a line may be megabytes long
    name = F.regexp_extract(beginning, r'^\s*\{\s*"Event"\s*:\s*"([^"]*)"', 1)
    return lines.where(F.trim(beginning) != "").select(name.alias("event"), "value")


def kinds(named_lines: DataFrame) -> DataFrame:
    """One row per kind of event: how many there are, and how many of them are cut off."""
    from pyspark.sql import functions as F

    cut = ~F.col("value").endswith("}")
    return named_lines.groupBy("event").agg(
        F.count("*").alias("events"), F.count_if(cut).alias("cut")
    )


def parse_events(named_lines: DataFrame, events: tuple[str, ...]) -> DataFrame:
    """The events of some kinds that can be read, with the fields of EVENT."""
    from pyspark.sql import functions as F

    read = F.from_json(
        "value", EVENT, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt_record"}
    )
    rows = (
        named_lines.where(F.col("event").isin(*events))
        .select("event", read.alias("e"))
        .select("event", "e.*")
    )
    return rows.where(F.col("_corrupt_record").isNull()).drop("_corrupt_record")


def facts(events: DataFrame) -> DataFrame:
    """One row per event about the application and its executors, with the settings needed here."""
    from pyspark.sql import functions as F

    properties = F.col("Spark Properties")
    settings = F.create_map(*(part for key in SETTINGS for part in (F.lit(key), properties[key])))
    return events.select(
        "event",
        F.col("Spark Version").alias("version"),
        F.col("App Name").alias("app_name"),
        F.col("App ID").alias("app_id"),
        F.col("Timestamp").alias("at_ms"),
        settings.alias("settings"),
        F.col("Executor ID").alias("executor"),
        F.col("`Executor Info`.Host").alias("host"),
        F.col("`Executor Info`.`Total Cores`").alias("cores"),
        F.coalesce("Resource Profile Id", "`Executor Info`.`Resource Profile Id`").alias(
            "resource_profile"
        ),
        F.col("Removed Reason").alias("removed_reason"),
        F.col("Executor Resource Requests")["memory"]["Amount"].alias("memory_mb"),
        F.col("Executor Resource Requests")["offHeap"]["Amount"].alias("off_heap_mb"),
    )


def stages(events: DataFrame) -> DataFrame:
    """One row per stage: what it is, what it reads from, and in which query and run it belongs."""
    from pyspark.sql import functions as F

    info = F.explode(F.coalesce("Stage Infos", F.array("Stage Info")))
    rows = events.select("Job ID", "Properties", info.alias("s"))
    operator = F.transform(
        "s.RDD Info", lambda rdd: F.coalesce(F.get_json_object(rdd["Scope"], "$.name"), rdd["Name"])
    )
    described = rows.select(
        F.col("s.Stage ID").alias("stage_id"),
        F.col("s.Stage Name").alias("name"),
        F.col("s.Number of Tasks").alias("tasks"),
        F.col("s.Parent IDs").alias("parents"),
        F.col("s.RDD Info")[0]["RDD ID"].alias("output_rdd"),
        F.array_sort(F.array_distinct(operator)).alias("operators"),
        F.col("s.Failure Reason").alias("failure"),
        F.col("Job ID").alias("job"),
        F.col("Properties")["callSite.short"].alias("call_site"),
        F.col("Properties")["spark.sql.execution.id"].alias("execution"),
        F.col("Properties")["sql.streaming.queryId"].alias("query"),
        F.col("Properties")["streaming.sql.batchId"].alias("batch"),
        F.col("Properties")["spark.job.description"].alias("description"),
    )
    # The events of one stage say the same of it, so any of them will do: the largest is the same on
    # every run.
    merged = [F.max(c).alias(c) for c in described.columns if c not in ("stage_id", "job")]
    return (
        described.where("stage_id IS NOT NULL")
        .groupBy("stage_id")
        .agg(F.min("job").alias("job"), *merged)
    )


def tasks(events: DataFrame) -> DataFrame:
    """One row per attempt at a task that came to an end."""
    from pyspark.sql import functions as F

    def number(path: str) -> Column:
        return F.coalesce(F.col(f"`Task Metrics`.{path}"), F.lit(0))

    read, written = "`Shuffle Read Metrics`", "`Shuffle Write Metrics`"
    return events.select(
        F.col("Stage ID").alias("stage_id"),
        F.coalesce("`Task Info`.`Partition ID`", "`Task Info`.Index").alias("partition"),
        F.col("`Task Info`.`Executor ID`").alias("executor"),
        F.col("`Task Info`.`Launch Time`").alias("launch_ms"),
        F.col("`Task Info`.`Finish Time`").alias("finish_ms"),
        F.col("`Task End Reason`.Reason").alias("reason"),
        F.col("`Task End Reason`.`Class Name`").alias("error"),
        ((number("`Executor CPU Time`") + number("`Executor Deserialize CPU Time`")) / 1e6).alias(
            "cpu_ms"
        ),
        number("`Executor Run Time`").alias("run_ms"),
        number("`Executor Deserialize Time`").alias("deserialize_ms"),
        number("`JVM GC Time`").alias("gc_ms"),
        number("`Peak Execution Memory`").alias("peak_bytes"),
        number("`Memory Bytes Spilled`").alias("spilled_memory"),
        number("`Disk Bytes Spilled`").alias("spilled_disk"),
        number("`Input Metrics`.`Records Read`").alias("source_records"),
        number(f"{read}.`Total Records Read`").alias("shuffle_records"),
        number(f"{read}.`Remote Bytes Read`").alias("remote_bytes"),
        number(f"{read}.`Local Bytes Read`").alias("local_bytes"),
        number(f"{read}.`Fetch Wait Time`").alias("fetch_wait_ms"),
        number(f"{written}.`Shuffle Records Written`").alias("written_records"),
        number(f"{written}.`Shuffle Bytes Written`").alias("written_bytes"),
        number("`Output Metrics`.`Records Written`").alias("sink_records"),
    )


SUMMED = (
    "cpu_ms",
    "run_ms",
    "deserialize_ms",
    "gc_ms",
    "spilled_memory",
    "spilled_disk",
    "source_records",
    "shuffle_records",
    "remote_bytes",
    "local_bytes",
    "fetch_wait_ms",
    "written_records",
    "written_bytes",
    "sink_records",
)


def per_executor(placed: DataFrame) -> DataFrame:
    """One row per component and executor: what its tasks took and moved, and how many failed."""
    from pyspark.sql import functions as F

    ok = F.col("reason") == "Success"
    duration = F.col("finish_ms") - F.col("launch_ms")
    return placed.groupBy("component", "executor").agg(
        F.count_if(ok).alias("succeeded"),
        F.count_if(~ok & (F.col("reason") != "TaskKilled")).alias("failed"),
        F.count_if(F.col("reason") == "TaskKilled").alias("killed"),
        F.max(F.when(~ok, F.coalesce("error", "reason"))).alias("error"),
        F.sum(F.when(~ok, F.col("run_ms")).otherwise(0)).alias("wasted_ms"),
        F.sum(F.when(ok, F.col("peak_bytes") * duration / 1000).otherwise(0.0)).alias(
            "byte_seconds"
        ),
        *(F.sum(F.when(ok, F.col(c)).otherwise(0)).alias(c) for c in SUMMED),
    )


def per_stage(placed: DataFrame) -> DataFrame:
    """One row per stage: when it ran, how long its tasks took, and what the slowest one read."""
    from pyspark.sql import functions as F

    succeeded = placed.where(F.col("reason") == "Success")
    duration = F.col("finish_ms") - F.col("launch_ms")
    records = F.col("source_records") + F.col("shuffle_records")
    return succeeded.groupBy("component", "stage_id").agg(
        F.min("launch_ms").alias("first_ms"),
        F.max("finish_ms").alias("last_ms"),
        F.count("*").alias("succeeded"),
        F.max(duration).alias("slowest_ms"),
        F.median(duration).alias("median_ms"),
        # Of tasks that took equally long, the one that read most.
        F.max_by(records, F.struct(duration.alias("took"), records.alias("read"))).alias(
            "slowest_records"
        ),
        F.sum(records).alias("records"),
    )


def per_partition(placed: DataFrame) -> DataFrame:
    """One row per component and partition: the records it received through the shuffle."""
    from pyspark.sql import functions as F

    succeeded = placed.where(F.col("reason") == "Success")
    return succeeded.groupBy("component", "partition").agg(
        F.sum("shuffle_records").alias("records")
    )
