"""Sources for spouts: functions that make a streaming DataFrame. Any such function will do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pandas.util import hash_array

from headrace.errors import Unsupported
from headrace.model.topology import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def files(
    folder: str,
    *,
    format: str = "parquet",
    schema: str | None = None,
    per_batch: int | None = None,
    **options: str,
) -> Source:
    """New files in a folder, in the order of their age; `per_batch` files make one batch."""

    def source(spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format(format).options(**options)
        if per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", per_batch)
        if schema is None:
            found = spark.read.format(format).options(**options).load(folder).schema
            return reader.schema(found).load(folder)
        return reader.schema(schema).load(folder)

    return source


def rate(rows_per_second: int) -> Source:
    """Numbers (`value`) with the time (`timestamp`), so many per second."""
    return lambda spark: (
        spark.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()
    )


def numbers(per_batch: int, *, partitions: int = 2) -> Source:
    """The numbers 0, 1, 2, .. (`value`), `per_batch` in each batch: a clock for generators."""
    return lambda spark: (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", per_batch)
        .option("numPartitions", partitions)
        .load()
    )


def draw(number: np.ndarray, column: int, seed: int) -> np.ndarray:
    """Evenly spread numbers in [0, 1) for seeded generators.

    A hash of seed, row and column, so that any row can be made anywhere, any number of times.
    """
    mixed = number.astype(np.uint64) * np.uint64(64) + np.uint64(
        (seed * 0xD1342543DE82EF95 + column) % 2**64
    )
    hashed = cast("Any", hash_array)(mixed)  # its type is not exported
    return (hashed >> np.uint64(11)) * 2.0**-53


def kafka(servers: str, topic: str, options: Mapping[str, str] | None = None) -> Source:
    """A Kafka topic, if Spark's connector is present."""

    def source(spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("kafka").options(**(options or {}))
        try:
            return (
                reader.option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
            )
        except Exception as error:
            if "kafka" in str(error) and "DATA_SOURCE" in str(error):
                connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
                raise Unsupported(
                    "Spark's Kafka connector is not there: "
                    f"set PYSPARK_SUBMIT_ARGS='--packages {connector} pyspark-shell'",
                    resource="kafka",
                ) from None
            raise

    return source
