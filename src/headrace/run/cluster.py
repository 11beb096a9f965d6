"""The executors of the Spark cluster that a session runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace.errors import Unsupported
from headrace.run.internals import executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def executor_cores(spark: SparkSession) -> dict[str, int]:
    """Cores per host, over all executors that are up."""
    cores: dict[str, int] = {}
    for host, own in executors(spark.sparkContext):
        cores[host] = cores.get(host, 0) + own
    return cores


def wait_for_hosts(
    spark: SparkSession,
    hosts: Iterable[str],
    *,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, int]:
    """Wait until every host has an executor; gives cores per host."""
    wanted, deadline = set(hosts), clock() + seconds
    while True:
        cores = executor_cores(spark)
        missing = wanted - cores.keys()
        if not missing:
            return cores
        if clock() > deadline:
            raise Unsupported(
                f"no executor on {', '.join(sorted(missing))} after {seconds:g} s; "
                f"there are executors on {', '.join(sorted(cores)) or 'no host'}",
                fix="name the plan's nodes as the cluster's executors are named",
            )
        time.sleep(0.2)


def settled_hosts(
    spark: SparkSession,
    *,
    seconds: float = 60.0,
    settled_s: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, int]:
    """Cores per host, once there are executors and no other came for a while."""
    deadline, since, cores = clock() + seconds, clock(), executor_cores(spark)
    while clock() < deadline:
        found = executor_cores(spark)
        if found != cores:
            cores, since = found, clock()
        if cores and clock() - since >= settled_s:
            break
        time.sleep(0.2)
    if not cores:
        raise Unsupported(f"no executor came up within {seconds:g} s")
    return cores
