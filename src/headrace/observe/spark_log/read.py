"""An event log, read on Spark: DataFrames in, one frozen `Application` out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput
from headrace.observe.spark_log import events
from headrace.observe.spark_log.application import (
    SPARKS_DEFAULT_MEMORY_MB,
    Application,
    ComponentFigures,
    Executor,
    Run,
    TaskTotals,
    memory_in_mb,
    observed_seconds,
)
from headrace.observe.spark_log.components import Component, Stage, fold
from headrace.observe.spark_log.files import NEEDED, Log, text_files
from headrace.observe.spark_log.stream_events import progress_of
from headrace.observe.spark_log.trace import QueryProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_FAILURES = 5  # stages whose failure is noted in words
MOST_SHARES = 10_000  # target tasks; beyond, a stream counts as even


def read_application(spark: SparkSession, log: Log) -> Application:
    """What the log of one application says; what it fails to say is in the notes."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        texts, notes = text_files(spark, log, Path(folder))
        lines = events.name_lines(spark.read.text(texts))
        kinds = {
            row["event"]: (int(row["events"]), int(row["cut"]))
            for row in events.kinds(lines).collect()
        }
        if not kinds.keys() & set(events.NEEDED):
            raise InvalidInput(f"{log.files[0]}: holds none of Spark's events; {NEEDED}")
        notes += list(_odd_kinds(kinds))
        about = events.facts(events.parse_events(lines, events.FACT_EVENTS))
        facts = [row.asDict() for row in about.collect()]
        described = events.stages(events.parse_events(lines, events.STAGE_EVENTS))
        stages = [_stage(row.asDict()) for row in described.collect()]
        progress = _progress(lines, kinds)
        with _persist(events.tasks(events.parse_events(lines, (events.TASK_EVENT,)))) as tasks:
            components, measured = _measure(spark, tasks, stages, notes, log)
    executors = _executors(facts)
    streaming = any(component.query is not None for component in components)
    started = next((fact for fact in facts if fact["event"] == "SparkListenerApplicationStart"), {})
    ended = "SparkListenerApplicationEnd" in kinds
    running = (
        kinds.get("SparkListenerTaskStart", (0, 0))[0] - kinds.get(events.TASK_EVENT, (0, 0))[0]
    )
    if not ended:
        notes.append(
            "the application did not end: it was killed, or it still runs; "
            "what it had done until then is used"
        )
    if running > 0:
        notes.append(f"{running} tasks started but are not in the log as ended; they are left out")
    failed = [
        f"stage {s.id} failed: {s.failure.splitlines()[0][:200]}" for s in stages if s.failure
    ]
    notes += failed[:MOST_FAILURES]
    if len(failed) > MOST_FAILURES:
        notes.append(f"{len(failed) - MOST_FAILURES} more stages failed")
    return Application(
        id=started.get("app_id") or log.app,
        name=started.get("app_name") or log.app,
        version=next((fact["version"] for fact in facts if fact["version"]), "unknown"),
        ended=ended,
        executors=executors or _from_tasks(measured, notes),
        components=tuple(measured),
        seconds=observed_seconds([run for m in measured for run in m.runs], streaming),
        notes=tuple(notes),
        progress=progress,
    )


def _progress(lines: DataFrame, kinds: Mapping[str, tuple[int, int]]) -> tuple[QueryProgress, ...]:
    """The reports of streaming queries; there are few of them, one per micro-batch."""
    from pyspark.sql import functions as F

    if events.PROGRESS_EVENT not in kinds:
        return ()
    found: list[QueryProgress] = []
    for row in lines.where(F.col("event") == events.PROGRESS_EVENT).collect():
        with suppress(ValueError, KeyError, TypeError):  # cut off
            found.append(progress_of(json.loads(row["value"])["progress"]))
    return tuple(sorted(found, key=lambda p: (p.at_ms, p.query)))


@contextmanager
def _persist(table: DataFrame) -> Generator[DataFrame]:
    """A table that is read several times, parsed once."""
    table.persist()
    try:
        yield table
    finally:
        table.unpersist()


def _measure(
    spark: SparkSession, tasks: DataFrame, stages: Sequence[Stage], notes: list[str], log: Log
) -> tuple[list[Component], list[ComponentFigures]]:
    from pyspark.sql import functions as F

    succeeded = tasks.where(F.col("reason") == "Success")
    ran = {int(row["stage_id"]) for row in succeeded.select("stage_id").distinct().collect()}
    known = {stage.id for stage in stages}
    if ran - known:
        notes.append(
            f"{len(ran - known)} stages have tasks but no description in the log; they are left out"
        )
    components, folding_notes = fold(stages, ran & known)
    if not components:
        raise InvalidInput(
            f"{log.files[0]}: no task of a known stage came to its end in this log, "
            "so there is nothing to plan"
        )
    notes += folding_notes
    idle = sorted(stage.id for stage in stages if stage.id not in ran and stage.failure)
    if idle:
        notes.append(
            f"stages without one successful task are left out: {', '.join(map(str, idle[:10]))}"
        )
    number = {stage: i for i, component in enumerate(components) for stage in component.stages}
    which = spark.createDataFrame(list(number.items()), "stage_id INT, component INT")
    placed = tasks.join(F.broadcast(which), on="stage_id", how="inner")
    on: list[dict[str, TaskTotals]] = [{} for _ in components]
    for row in events.per_executor(placed).collect():
        values: dict[str, Any] = row.asDict()
        component, executor = values.pop("component"), values.pop("executor")
        on[component][executor] = TaskTotals(**values)
    runs: list[list[tuple[int, Run]]] = [[] for _ in components]
    for row in events.per_stage(placed).collect():
        values = row.asDict()
        component, stage = values.pop("component"), values.pop("stage_id")
        runs[component].append((stage, Run(**values)))
    shares = _partition_records(placed, components)
    measured = [
        ComponentFigures(
            component=component,
            work=reduce(add, on[i].values()),
            on=dict(sorted(on[i].items())),
            runs=tuple(run for _, run in sorted(runs[i], key=lambda numbered: numbered[0])),
            partition_records=shares.get(i, ()),
        )
        for i, component in enumerate(components)
    ]
    return components, measured


def _partition_records(
    placed: DataFrame, components: Sequence[Component]
) -> dict[int, tuple[float, ...]]:
    """Records by partition, for components whose partitions are the same in every run."""
    from pyspark.sql import functions as F

    comparable = [
        i
        for i, c in enumerate(components)
        if c.inputs and c.same_tasks and 1 < c.tasks <= MOST_SHARES
    ]
    found = {i: [0.0] * components[i].tasks for i in comparable}
    if not comparable:
        return {}
    for row in events.per_partition(placed.where(F.col("component").isin(comparable))).collect():
        if 0 <= row["partition"] < len(found[row["component"]]):
            found[row["component"]][row["partition"]] = float(row["records"])
    return {i: tuple(records) for i, records in found.items()}


def _stage(row: Mapping[str, Any]) -> Stage:
    return Stage(
        id=row["stage_id"],
        name=row["name"] or f"stage {row['stage_id']}",
        tasks=row["tasks"] or 1,
        parents=tuple(row["parents"] or ()),
        output_rdd=row["output_rdd"],
        operators=tuple(row["operators"] or ()),
        **{
            key: row[key]
            for key in ("job", "call_site", "execution", "query", "batch", "description", "failure")
        },
    )


def _executors(facts: Sequence[Mapping[str, Any]]) -> tuple[Executor, ...]:
    settings: dict[str, str] = {}
    profiles: dict[int, float] = {}
    for fact in facts:
        settings |= {
            key: value for key, value in (fact["settings"] or {}).items() if value is not None
        }
        if fact["event"] == "SparkListenerResourceProfileAdded" and fact["memory_mb"]:
            profiles[fact["resource_profile"]] = float(
                fact["memory_mb"] + (fact["off_heap_mb"] or 0)
            )
    removed = {
        fact["executor"]: fact for fact in facts if fact["event"] == "SparkListenerExecutorRemoved"
    }
    found: dict[str, Executor] = {}
    for fact in facts:
        if fact["event"] != "SparkListenerExecutorAdded":
            continue
        name = fact["executor"]
        stated = settings.get(
            "spark.driver.memory" if name == "driver" else "spark.executor.memory"
        )
        profile = None if name == "driver" else profiles.get(fact["resource_profile"])
        gone = removed.get(name, {})
        found[name] = Executor(
            id=name,
            host=fact["host"] or "unknown",
            cores=max(1, fact["cores"] or 1),
            memory_mb=profile or memory_in_mb(stated) or SPARKS_DEFAULT_MEMORY_MB,
            added_ms=fact["at_ms"] or 0,
            removed_ms=gone.get("at_ms"),
            removed_reason=gone.get("removed_reason"),
        )
    return tuple(sorted(found.values(), key=lambda e: (len(e.id), e.id)))


def _from_tasks(measured: Sequence[ComponentFigures], notes: list[str]) -> tuple[Executor, ...]:
    """Executors that are known by their tasks only, where the log's beginning is lost."""
    ids = sorted({executor for m in measured for executor in m.on})
    notes.append(
        f"the log does not say what its {len(ids)} executors have; "
        "each is taken to have 1 core and 1024 MB"
    )
    return tuple(Executor(i, "unknown", 1, SPARKS_DEFAULT_MEMORY_MB, added_ms=0) for i in ids)


def _odd_kinds(kinds: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Notes on lines that are no events, are cut off, or of a kind this reader does not know."""
    cut = sum(cut for _, cut in kinds.values())
    nameless = kinds.get("", (0, 0))
    if cut:
        yield f"{cut} {'line is' if cut == 1 else 'lines are'} cut off; passed over"
    if nameless[0] > nameless[1]:
        yield f"{nameless[0] - nameless[1]} lines are not events; passed over"
    for kind, (count, _) in sorted(kinds.items()):
        if (
            kind
            and kind not in (*events.NEEDED, *events.PASSED_OVER)
            and not kind.startswith(events.SPARKS_OWN)
        ):
            yield f"{count} events of a kind this version does not know, `{kind}`; passed over"
