"""Four Spark applications whose event logs the tests read; run as a program, it writes them.

python -m tests.observe.spark_log.applications FOLDER

A shuffle (plain text), a skewed join (zstd, rolling), a stream (lz4), and one that waits to be
killed (zstd, rolling), one after another.
"""

from __future__ import annotations

import sys
import time
from threading import Thread
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headrace.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOT = "hot keys"  # marks the line of the skewed join
READY = "ready to die"


def write_logs(folder: str) -> None:
    shuffle_twice(start(folder, "shuffle-job", eventLog_compress="false"))
    join_skewed(
        start(
            folder,
            "skewed-join",
            eventLog_compression_codec="zstd",
            eventLog_rolling_enabled="true",
            sql_adaptive_enabled="false",
            sql_autoBroadcastJoinThreshold="-1",
        )
    )
    count_stream(start(folder, "clicks", eventLog_compression_codec="lz4"), folder)
    work_until_killed(
        start(folder, "doomed", eventLog_compression_codec="zstd", eventLog_rolling_enabled="true")
    )


def start(folder: str, name: str, **conf: str) -> SparkSession:
    """A session of its own that keeps a log in the folder."""
    return session(
        app=name,
        master="local[2]",
        conf={
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder}",
            "spark.eventLog.compress": "true",
            "spark.eventLog.rolling.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            **{f"spark.{key.replace('_', '.')}": value for key, value in conf.items()},
        },
    )


def shuffle_twice(spark: SparkSession) -> None:
    """A loop: the same stages twice."""
    for _ in range(2):
        spark.range(0, 40000, 1, 4).groupBy((F.col("id") % 100).alias("key")).count().collect()
    spark.stop()


def join_skewed(spark: SparkSession) -> None:
    """19 of 20 rows have one key, and every joined row costs something."""
    key = F.when(F.col("id") % 20 < 19, F.lit(7)).otherwise(F.col("id") % 1000)
    heavy = spark.range(0, 400000, 1, 4).select(key.alias("key"))
    light = spark.range(0, 1000, 1, 2).select(
        F.col("id").alias("key"), (F.col("id") * 2).alias("value")
    )
    slow = F.sha2(F.sha2(F.concat_ws("-", "key", "value", F.rand(1)), 512), 512)
    heavy.join(light, "key").select(slow.alias("hash")).agg(F.max("hash")).collect()  # hot keys
    spark.stop()


def count_stream(spark: SparkSession, folder: str) -> None:
    """At least three micro-batches of 1000 rows each."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).load()
    counts = source.groupBy((F.col("value") % 5).alias("key")).count()
    query = counts.writeStream.queryName("per key").outputMode("complete").format("noop")
    running = query.option("checkpointLocation", f"{folder}-checkpoint").start()
    while (running.lastProgress or {"batchId": 0})["batchId"] < 3:
        time.sleep(0.1)
    running.stop()
    spark.stop()


def work_until_killed(spark: SparkSession) -> None:
    """Two whole stages, then one that does not end."""
    spark.range(0, 40000, 1, 4).groupBy((F.col("id") % 100).alias("key")).count().collect()

    def never_ends(rows: Any) -> Any:
        time.sleep(600)
        return rows

    def work() -> None:
        spark.sparkContext.parallelize(range(4), 4).mapPartitions(never_ends).count()

    Thread(target=work, daemon=True).start()
    while not spark.sparkContext.statusTracker().getActiveStageIds():
        time.sleep(0.1)
    time.sleep(0.5)  # its first tasks start
    print(READY, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    write_logs(sys.argv[1])
