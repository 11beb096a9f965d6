"""Batch jobs to predict, one application each: `python advised_jobs.py JOB MASTER CORES LOGS`.

A shuffle, a join with one heavy key, a Python function, and tasks that wait. All figures are
computed, none is read: what a job takes is the same on any machine's disk.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 24
SHUFFLED = 24_000_000
JOINED = 4_800_000
CALLED = 2_400_000
WAIT_S = 1.0


def shuffle(spark: SparkSession) -> None:
    """Rows by key, twice."""
    rows = spark.range(0, SHUFFLED, numPartitions=TASKS)
    keyed = rows.selectExpr("id % 1000003 AS k", "hash(id) AS v", "sha1(string(id)) AS s")
    sums = keyed.groupBy("k").agg({"v": "sum", "s": "max"})
    sums.selectExpr("k % 1000 AS g", "`max(s)` AS s").groupBy("g").count().collect()


def skewed_join(spark: SparkSession) -> None:
    """A quarter of the facts have one key."""
    facts = spark.range(0, JOINED, numPartitions=TASKS).selectExpr(
        "IF(id % 4 = 0, 7, id % 50021) AS k", "sha2(string(id), 256) AS fact"
    )
    names = spark.range(0, 50021, numPartitions=4).selectExpr("id AS k", "string(id) AS name")
    joined = facts.join(names, "k").selectExpr("length(concat(name, fact)) AS l", "sha1(fact) AS f")
    joined.agg({"l": "sum", "f": "max"}).collect()


def python_function(spark: SparkSession) -> None:
    """Every row through Python."""
    from pyspark.sql import functions as F

    def digits(number: int) -> int:
        return sum(int(digit) for digit in str(number * number))

    rows = spark.range(0, CALLED, numPartitions=TASKS)
    counted = rows.select(F.udf(digits, "int")("id").alias("d")).groupBy("d").count()
    counted.collect()


def waiting(spark: SparkSession) -> None:
    """Tasks that hold a slot and compute nothing, as those that ask a database do."""

    def ask(number: int, rows: Iterable[int]) -> Iterable[int]:
        time.sleep(WAIT_S * (0.4 + 0.2 * (number % 7)))
        return rows

    asked = spark.sparkContext.parallelize(range(1000), 48).mapPartitionsWithIndex(ask)
    asked.map(lambda number: (number % 8, number)).reduceByKey(max, 8).collect()


JOBS: dict[str, Callable[[SparkSession], None]] = {
    "shuffle": shuffle,
    "skewed-join": skewed_join,
    "python-function": python_function,
    "waiting": waiting,
}
CONF = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": str(TASKS),
    # What the jobs are about is slots: the number of tasks is the same on every fleet.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.executor.memory": "640m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}


def main() -> None:
    job, master, cores, logs = sys.argv[1:5]
    given = dict(pair.split("=", 1) for pair in sys.argv[5:])
    from headrace.spark import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = {**CONF, "spark.eventLog.dir": f"file://{logs}", "spark.cores.max": cores, **given}
    if secret := os.environ.get("HEADRACE_SECRET"):
        conf |= {"spark.authenticate": "true", "spark.authenticate.secret": secret}
    spark = session(app=f"{job}-{cores}", master=master, conf=conf)
    JOBS[job](spark)
    spark.stop()


if __name__ == "__main__":
    main()
