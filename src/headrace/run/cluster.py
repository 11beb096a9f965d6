"""The executors of the Spark cluster that a session runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.errors import Unsupported
from headrace.run.internals import executors, place_on
from headrace.run.placement import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Executor:
    """A process of Spark's that runs tasks: a worker of the plan."""

    id: str
    host: str
    cores: int


def executors_by_host(spark: SparkSession) -> dict[str, tuple[Executor, ...]]:
    """The executors that are up, in the order in which they came."""
    found: dict[str, list[Executor]] = {}
    for one in executors(spark.sparkContext):
        found.setdefault(one[1], []).append(Executor(*one))
    return {host: tuple(sorted(some, key=_age)) for host, some in found.items()}


def _age(executor: Executor) -> tuple[int, str]:
    return len(executor.id), executor.id  # numbers, in most clusters


def locate(
    place: Place | None, hosts: Mapping[str, str], up: Mapping[str, Sequence[Executor]]
) -> str | None:
    """Where Spark is to run a task of a place; None: anywhere.

    Worker w of a node is its executor number w, in turn where there are fewer. For a host that is
    lost Spark would wait as long as for one that is busy, in every stage.
    """
    if place is None:
        return None
    node, worker = place
    there = up.get(hosts.get(node, node), ())
    if not there:
        return None
    one = there[worker % len(there)]
    return place_on(one.host, one.id)


def wait_for_hosts(
    spark: SparkSession,
    hosts: Mapping[str, int] | Iterable[str],
    *,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until every host has its executors: as many as are asked for, else one."""
    wanted = dict(hosts) if isinstance(hosts, Mapping) else dict.fromkeys(hosts, 1)
    deadline = clock() + seconds
    while True:
        up = executors_by_host(spark)
        missing = sorted(host for host, count in wanted.items() if len(up.get(host, ())) < count)
        if not missing:
            return
        if clock() > deadline:
            there = ", ".join(f"{host} ({len(some)})" for host, some in sorted(up.items()))
            raise Unsupported(
                f"no executor on {', '.join(missing)} after {seconds:g} s; "
                f"there are executors on {there or 'no host'}",
                fix="name the plan's nodes as the cluster's executors are named",
            )
        time.sleep(0.2)


def settle_hosts(
    spark: SparkSession,
    *,
    seconds: float = 60.0,
    settled_s: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """The hosts of executors, once there are some and no other came for a while."""
    deadline, since, up = clock() + seconds, clock(), executors_by_host(spark)
    while clock() < deadline:
        found = executors_by_host(spark)
        if found != up:
            up, since = found, clock()
        if up and clock() - since >= settled_s:
            break
        time.sleep(0.2)
    if not up:
        raise Unsupported(f"no executor came up within {seconds:g} s")
    return list(up)
