"""All that headrace uses of PySpark's inside: what its documentation does not promise.

    arrow_messages   DataFrame._jdf.toArrowBatchRdd: a batch without a Python object per row
    partition_tags   StreamExecution.lastExecution, SparkPlan: whose rows a partition holds
    read_at_hosts    ParallelCollectionRDD, JavaRDD.zip: partitions of a source on chosen hosts
    send_to_hosts    the same, PairwiseRDD, PythonPartitioner, valueOfPair: blocks to chosen hosts
    forget_shuffles  RDD.cleanShuffleDependencies: disks that do not fill up
    name_stage       JavaSparkContext.setCallSite: stages with names in Spark's UI
    executors        SparkContext.statusStore: ids, hosts and cores, with the UI off
    place_on         ExecutorCacheTaskLocation: the words that name an executor as a place
    stage_bytes      SparkContext.statusStore, listenerBus: Spark's own count of shuffled bytes
    send_by_value    pyspark.cloudpickle: an application's code, which workers cannot import
    daemon.py        pyspark.daemon, pyspark.worker: workers that start with everything imported

A shuffled RDD has no say in where its partitions are read. Zipped with one that has (Spark's
`ParallelCollectionRDD` takes preferred locations), it follows: the scheduler takes the location of
any parent that has one. Zipping wants the same number of elements on both sides, so every task
sends exactly one chunk to every partition of the next stage, and a source partition becomes one
list. Preferred locations are hints: the settings make Spark wait for the host, and every batch is
checked afterwards.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError
from pyspark import RDD, cloudpickle
from pyspark.serializers import AutoBatchedSerializer, CPickleSerializer, NoOpSerializer, pack_long
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.errors import Unsupported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SETTINGS = {
    "spark.locality.wait": "30s",
    "spark.shuffle.reduceLocality.enabled": "false",  # Spark's own wishes would mix with ours
    "spark.speculation": "false",
    # Executors of one host read from each other by sockets, as workers of a node do, and not the
    # files of the other (decision 0008).
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "headrace.run.daemon",
}


def arrow_messages(rows: DataFrame) -> tuple[Any, pa.Schema]:
    """A Java RDD with an Arrow message per few thousand rows, and their schema."""
    # PySpark 4.0 has UTC anyway, and no way to ask for it.
    asked = "timezone" in inspect.signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if asked else {}
    schema = to_arrow_schema(rows.schema, **zone)
    return cast(Any, rows)._jdf.toArrowBatchRdd().toJavaRDD(), schema


def partition_tags(query: StreamingQuery, column: str) -> list[str]:
    """What a column holds in each partition of the batch that runs, a union of streams.

    Each stream has a constant there. Spark leaves out streams without news and flattens those that
    are unions themselves, so the batch's own plan is asked.
    """
    plan = cast(Any, query)._jsq.streamingQuery().lastExecution().executedPlan()
    return [constant for constant, count in _branches(plan, column) for _ in range(count)]


def _branches(root: Any, column: str) -> Iterator[tuple[str, int]]:
    """The constant and the number of partitions of each branch below a plan's node."""
    node = root
    while (constant := _constant_of(node, column)) is None:
        children = _children_of(node)
        if node.nodeName() == "Union":
            for child in children:
                yield from _branches(child, column)
            return
        if len(children) != 1:
            break
        node = children[0]
    partitions = root.execute().getNumPartitions()
    if constant is None and partitions:
        raise Unsupported(
            f"Spark plans {node.nodeName()} where the streams of several spouts come together, "
            "so their partitions cannot be told apart",
            fix="make one stream of these sources, and divide it in the first bolt",
        )
    yield constant or "", partitions


def _children_of(node: Any) -> list[Any]:
    """The nodes below one of a plan; a plan that adapts hides them."""
    match node.nodeName():
        case "AdaptiveSparkPlan":
            return [node.executedPlan()]
        case "ResultQueryStage":
            return [node.plan()]
        case _:
            return [node.children().apply(i) for i in range(node.children().size())]


def _constant_of(node: Any, column: str) -> str | None:
    """The constant that a node of a plan gives to a column."""
    if node.nodeName() != "Project":
        return None
    entries = (node.projectList().apply(i) for i in range(node.projectList().size()))
    constants = (e.child() for e in entries if e.name() == column and e.children().size())
    return next((str(c.toString()) for c in constants if c.foldable()), None)


def read_at_hosts(
    context: SparkContext, messages: Any, hosts: Sequence[str | None]
) -> RDD[Sequence[bytes]]:
    """Messages as a list per partition, which is read on host i (None: anywhere)."""
    jvm = cast(Any, context)._jvm
    lists = messages.glom()
    if any(host is not None for host in hosts):
        lists = _located(context, hosts, 1).zip(lists).values()
    pickled = jvm.SerDeUtil.javaToPython(lists)
    return RDD(pickled, context, AutoBatchedSerializer(CPickleSerializer()))


def seats_at_hosts(context: SparkContext, hosts: Sequence[str | None]) -> RDD[Any]:
    """Partitions that hold one empty element each, on the hosts."""
    return RDD(_located(context, hosts, 1), context, NoOpSerializer())


def send_by_value(module: ModuleType) -> None:
    """Send a module's code itself to Spark's workers, which cannot import its file."""
    cloudpickle.register_pickle_by_value(module)


def name_stage(context: SparkContext, name: str | None) -> None:
    """What Spark's UI calls the stages that are made from now on; None: as Spark would."""
    java = cast(Any, context)._jsc
    if name is None:
        java.clearCallSite()
    else:
        java.setCallSite(name)


def executors(context: SparkContext) -> list[tuple[str, str, int]]:
    """Id, host and cores of the executors that are up, without the driver."""
    found = cast(Any, context)._jsc.sc().statusStore().executorList(True)
    every = [found.apply(i) for i in range(found.size())]
    return [
        (str(e.id()), str(e.hostPort()).rpartition(":")[0], int(e.totalCores()))
        for e in every
        if e.id() != "driver"
    ]


def place_on(host: str, executor: str) -> str:
    """An executor as a preferred location."""
    return f"executor_{host}_{executor}"


def stage_bytes(context: SparkContext, stages: Iterable[int]) -> tuple[int, int]:
    """Bytes that some stages have read from shuffles by Spark's count: from other hosts, in all."""
    spark = cast(Any, context)._jsc.sc()
    spark.listenerBus().waitUntilEmpty()  # figures reach the store by events
    store, remote, total = spark.statusStore(), 0, 0
    for stage in stages:
        try:
            data = store.lastStageAttempt(stage)
        except Py4JJavaError:  # never tried, or forgotten
            continue
        remote += int(data.shuffleRemoteBytesRead())
        total += int(data.shuffleReadBytes())
    return remote, total


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
    return _located_once(context, tuple(hosts), elements)


@lru_cache(maxsize=64)  # the same in every batch of a plan; making it takes some 50 calls to Java
def _located_once(context: Any, hosts: tuple[str | None, ...], elements: int) -> Any:
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
    java = getattr(rdd, "_prev_jrdd", None)  # of what Python only maps: its parent
    (cast(Any, rdd)._jrdd if java is None else java).rdd().cleanShuffleDependencies(False)
