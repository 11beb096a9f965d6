"""Event logs written by hand, a few lines per application: a person can redo the figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.observe.spark_log.read_trace import trace_of_lines
from headrace.observe.spark_log.trace import Trace

START = 1_000_000
SHARED = Path(__file__).parents[3] / "shared" / "data" / "spark_logs"


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"Event": f"SparkListener{name}", **fields}


class LogBook:
    """Events of one application; times are seconds after its start."""

    def __init__(self, version: str = "3.5.0", settings: Mapping[str, str] | None = None) -> None:
        self.events: list[dict[str, Any]] = [
            event("LogStart", **{"Spark Version": version}),
            event("ApplicationStart", **{"App Name": "app", "App ID": "app-1", "Timestamp": START}),
            event("EnvironmentUpdate", **{"Spark Properties": dict(settings or {})}),
        ]
        self.task = 0

    def executor(
        self, name: str, cores: int, at: float = 0.0, until: float | None = None, reason: str = ""
    ) -> None:
        info = {"Host": f"host-{name}", "Total Cores": cores}
        added = {"Timestamp": ms(at), "Executor ID": name, "Executor Info": info}
        self.events.append(event("ExecutorAdded", **added))
        if until is not None:
            gone = {"Timestamp": ms(until), "Executor ID": name, "Removed Reason": reason}
            self.events.append(event("ExecutorRemoved", **gone))

    def job(
        self,
        number: int,
        first: float,
        last: float,
        stages: Mapping[int, Sequence[int]],
        properties: Mapping[str, str] | None = None,
    ) -> None:
        infos = [{"Stage ID": s, "Parent IDs": list(p)} for s, p in stages.items()]
        fields = {"Job ID": number, "Submission Time": ms(first), "Stage Infos": infos}
        more = {"Stage IDs": list(stages), "Properties": dict(properties or {})}
        self.events.append(event("JobStart", **fields, **more))
        ended = {"Completion Time": ms(last), "Job Result": {"Result": "JobSucceeded"}}
        self.events.append(event("JobEnd", **{"Job ID": number}, **ended))

    def stage(
        self,
        number: int,
        first: float,
        last: float,
        tasks: Iterable[tuple[float, float]],
        *,
        parents: Sequence[int] = (),
        records: Sequence[int] | None = None,
        executor: str | Sequence[str] = "1",
        attempt: int = 0,
        kinds: Mapping[int, str] | None = None,
        metrics: Mapping[str, Any] | None = None,
        name: str = "collect at app.py:1",
        operators: Sequence[str] = (),
    ) -> None:
        """A stage and its tasks, given as (launch, finish)."""
        spans = list(tasks)
        rdds = [{"Name": operator} for operator in operators]
        info = {
            "Stage ID": number,
            "Stage Attempt ID": attempt,
            "Stage Name": name,
            "Number of Tasks": len(spans),
            "Parent IDs": list(parents),
            "RDD Info": rdds,
            "Submission Time": ms(first),
            "Completion Time": ms(last),
        }
        self.events.append(event("StageCompleted", **{"Stage Info": info}))
        for i, (launch, finish) in enumerate(spans):
            where = executor if isinstance(executor, str) else executor[i]
            size = records[i] if records is not None else 100
            figures: dict[str, Any] = {
                "Executor Run Time": round(1000 * (finish - launch)),
                "Executor CPU Time": round(0.9e9 * (finish - launch)),
                "JVM GC Time": 0,
                "Disk Bytes Spilled": 0,
                "Shuffle Read Metrics": {
                    "Total Records Read": size if parents else 0,
                    "Remote Bytes Read": 0,
                    "Local Bytes Read": 100 * size if parents else 0,
                    "Fetch Wait Time": 0,
                },
                "Input Metrics": {"Records Read": 0 if parents else size, "Bytes Read": 100 * size},
                **(metrics or {}),
            }
            self.task += 1
            task = {
                "Task ID": self.task,
                "Index": i,
                "Attempt": attempt,
                "Launch Time": ms(launch),
                "Finish Time": ms(finish),
                "Executor ID": where,
                "Host": f"host-{where}",
                "Locality": "PROCESS_LOCAL",
                "Speculative": False,
            }
            reason = {"Reason": (kinds or {}).get(i, "Success")}
            fields = {"Stage ID": number, "Stage Attempt ID": attempt, "Task End Reason": reason}
            more = {"Task Info": task, "Task Metrics": figures}
            self.events.append(event("TaskEnd", **fields, **more))

    def end(self, at: float) -> None:
        self.events.append(event("ApplicationEnd", Timestamp=ms(at)))

    def lines(self) -> list[bytes]:
        return [json.dumps(e).encode() for e in self.events]

    def save(self, file: Path) -> Path:
        file.write_bytes(b"\n".join(self.lines()) + b"\n")
        return file

    def trace(self) -> Trace:
        return trace_of_lines(self.lines(), "test")


def ms(seconds: float) -> int:
    return START + round(1000 * seconds)


def waves(count: int, slots: int, takes: float, start: float) -> list[tuple[float, float]]:
    """Tasks of one length, wave after wave."""
    firsts = [start + (i // slots) * takes for i in range(count)]
    return [(first, first + takes) for first in firsts]


def two_stage_app(settings: Mapping[str, str] | None = None) -> LogBook:
    """2 executors of 2 cores; 8 tasks of 1 s, then 4 of 2 s; 1 s of driver before, 2 s after."""
    book = LogBook(settings=settings)
    book.executor("1", 2)
    book.executor("2", 2)
    where = [str(1 + (i % 4) // 2) for i in range(8)]
    book.job(0, 1, 5, {0: [], 1: [0]})
    book.stage(0, 1, 3, waves(8, 4, 1, 1), executor=where)
    book.stage(1, 3, 5, waves(4, 4, 2, 3), parents=[0], executor=where[:4])
    book.end(7)
    return book
