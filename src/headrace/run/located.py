"""Spark tasks on chosen hosts, with nothing but what the pip package has.

A shuffled RDD has no say in where its partitions are read. Zipped with one that has (Spark's
`ParallelCollectionRDD` takes preferred locations), it follows: the scheduler takes the location of
any parent that has one. Zipping wants the same number of elements on both sides, so every task
sends exactly one chunk to every partition of the next stage. Preferred locations are hints: the
settings make Spark wait for the host, and every batch is checked afterwards.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from pyspark import RDD
from pyspark.serializers import NoOpSerializer, pack_long

SETTINGS = {
    "spark.locality.wait": "30s",
    "spark.shuffle.reduceLocality.enabled": "false",  # Spark's own wishes would mix with ours
    "spark.speculation": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "headrace.run.daemon",
}


def send_to_hosts(records: RDD[tuple[int, Any]], hosts: Sequence[str | None]) -> RDD[bytes]:
    """Records sent to partitions by their first element; partition i is on host i (None: anywhere).

    A partition holds pickled lists of what came.
    """
    partitions, context = len(hosts), cast(Any, records.context)

    def chunks(_: int, mine: Iterable[tuple[int, Any]]) -> Iterator[bytes]:
        by_target: list[list[Any]] = [[] for _ in range(partitions)]
        for target, record in mine:
            by_target[target].append(record)
        for target, found in enumerate(by_target):
            yield pack_long(target)
            yield pickle.dumps(found, protocol=5)

    keyed = cast(Any, records.mapPartitionsWithIndex(chunks, preservesPartitioning=True))
    keyed._bypass_serializer = True  # Spark's own partitionBy hands its pairs over in this way
    jvm = context._jvm
    pairs = jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()
    shuffled = jvm.PythonRDD.valueOfPair(pairs.partitionBy(jvm.PythonPartitioner(partitions, 0)))
    if any(host is not None for host in hosts):
        shuffled = _located(context, hosts, records.getNumPartitions()).zip(shuffled)
    chunks_and_fillers: RDD[bytes] = RDD(shuffled, records.context, NoOpSerializer())
    # Zipped chunks come in turn with empty elements.
    return chunks_and_fillers.filter(lambda chunk: len(chunk) > 0)


def _located(context: Any, hosts: Sequence[str | None], elements: int) -> Any:
    """A Java RDD of empty byte arrays, so many in each partition, one partition per host."""
    jvm = context._jvm
    convert, wishes = jvm.scala.jdk.javaapi.CollectionConverters, jvm.java.util.HashMap()
    for number, host in enumerate(hosts):
        where = jvm.java.util.ArrayList()
        if host is not None:
            where.add(host)
        wishes.put(number, convert.asScala(where).toSeq())
    fillers = convert.asScala(
        jvm.java.util.Collections.nCopies(len(hosts) * elements, bytearray())
    ).toSeq()
    kind = _object(jvm.scala.reflect, "ClassTag$").apply(jvm.java.lang.Class.forName("[B"))
    by_number = getattr(_object(jvm.scala.collection.immutable, "Map$"), "from")(
        convert.asScala(wishes)
    )
    return jvm.org.apache.spark.rdd.ParallelCollectionRDD(
        context._jsc.sc(), fillers, len(hosts), by_number, kind
    ).toJavaRDD()


def _object(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(package, name).__getattr__("MODULE$")


def forget_shuffles(rdd: RDD[Any]) -> None:
    """Remove the shuffle files of a batch that is over; Spark would wait for Java's collector."""
    cast(Any, rdd)._jrdd.rdd().cleanShuffleDependencies(False)
