"""A live run, wired in one place: machines, a session on them, the first plan, loop and engine.

    with fleet_for("cluster.yaml", folder, say) as fleet, on_fleet(fleet, "words") as site:
        plan = site.put_in_force(topology, plan_first(topology, nodes, "storm-even"))
        site.run(topology, plan, settings)

What happens after a batch is the caller's: `settings.listen` is called then, and `decide_beside`
makes a listener that also runs the loop.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headrace.control.history import Entry
from headrace.control.on_spark import OnSpark, background, decide_after_batches
from headrace.control.planning import LoopSettings
from headrace.errors import InvalidInput, Unsupported
from headrace.model.document import FORMAT, Node
from headrace.model.read import Inputs, validated
from headrace.model.topology import Topology
from headrace.registry import By
from headrace.run import engine
from headrace.run.addresses import check_reachable
from headrace.run.batches import BatchDone, Settings
from headrace.run.cluster import executor_cores, settled_hosts, wait_for_hosts
from headrace.run.fleet import AGENTS, Fleet, local_fleet
from headrace.run.internals import SETTINGS
from headrace.run.machines import machines_of
from headrace.run.placement import Placement, PlanInForce, check_cores
from headrace.run.supervisor import find_fleet
from headrace.spark import is_local, session

BACK_WITHIN_S = 20  # a lost executor comes back within seconds
SLOTS = 4  # of a node of which nothing is known, as Storm's supervisors have
BY_STREAMS = ("headrace", "optimal")  # schedulers that work on whole streams

Say = Callable[[str], None]
# Cores per host that has an executor -> nodes: where they are, and what they are.
FindMore = Callable[[Mapping[str, int]], Mapping[str, tuple[str, Node]]]
Listen = Callable[[BatchDone], None]


def keep_quiet(message: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where topologies run: a Spark session, and the hosts of the nodes that plans speak of."""

    spark: SparkSession
    hosts: dict[str, str] | None = None  # node -> host; None: places are not looked at
    find_more: FindMore | None = None  # nodes that may have joined since
    more: dict[str, Node] = field(default_factory=dict[str, Node])  # those that have
    agents: Path | None = None  # the folder of what nodes say about themselves

    def cores(self) -> dict[str, int]:
        """The nodes that have an executor, and its cores; a node that has joined is one of them."""
        found = executor_cores(self.spark)
        if self.hosts is not None and self.find_more is not None:
            for name, (host, node) in self.find_more(found).items():
                if name not in self.hosts:
                    self.hosts[name], self.more[name] = host, node
        return {node: found[host] for node, host in (self.hosts or {}).items() if host in found}

    def put_in_force(
        self,
        topology: Topology,
        start: Placement | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
        crowded: bool = False,
        say: Say = keep_quiet,
    ) -> PlanInForce:
        """The plan of a run here, at first `start` or what the file holds.

        A plan with more tasks of a stage on a node than the node has cores is refused, unless
        `crowded`: then they queue.
        """

        def check(placement: Placement) -> None:
            if self.hosts is None:
                return
            wanted = {self.hosts[n] for n, _ in placement.places.values() if n in self.hosts}
            with suppress(Unsupported):  # what does not come back is named below
                wait_for_hosts(self.spark, wanted, seconds=BACK_WITHIN_S)
            cores = self.cores()
            check_cores(
                topology, placement, dict.fromkeys(cores, sys.maxsize) if crowded else cores
            )

        return PlanInForce(topology, start, file=file, check=check, say=say)

    def watch(
        self,
        topology: Topology,
        plan: PlanInForce,
        cluster: Inputs,
        telemetry: Path,
        store: Path,
        *,
        window_s: int = 5,
        by: By = "headrace",
        clock: Callable[[], float] = time.time,
    ) -> OnSpark:
        """A run here as the loop sees it; decisions are kept in `store`.

        `by` is the scheduler to come: only ours is better off with streams than with pairs.
        """
        return OnSpark(
            self.spark,
            topology,
            cluster,
            plan,
            telemetry,
            store,
            lambda: set(self.cores()),
            window_s=window_s,
            clock=clock,
            pairs=by not in BY_STREAMS,
            joined=lambda: self.more,
            agents=self.agents,
        )

    def describe(self) -> Inputs:
        """The nodes as files would have them: what their executors have of cores."""
        nodes = {
            name: node.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for name, (_, node) in host_nodes(self.cores()).items()
        }
        return validated({"format": FORMAT, "cluster": {"nodes": nodes or {"this": {}}}}, {})

    def run(self, topology: Topology, plan: PlanInForce, settings: Settings) -> engine.RunDone:
        """Run a topology until its sources end or the batches are done."""
        return engine.run(self.spark, topology, plan, replace(settings, hosts=self.hosts))


@contextmanager
def fleet_for(cluster: str | os.PathLike[str], folder: Path, say: Say) -> Generator[Fleet]:
    """The fleet that is up in a folder, if it has the cluster's machines, else one for this run."""
    machines, running = machines_of([cluster]), find_fleet(folder)
    if running is not None:
        if not running.has_machines(machines):
            raise InvalidInput(
                f"the fleet that is up ({folder}) has other machines than {cluster}; "
                "end it with headrace fleet down"
            )
        yield running
        return
    say(f"starting a fleet of {len(machines)} workers for this run ..")
    with (
        tempfile.TemporaryDirectory(prefix="headrace-fleet-") as scratch,
        local_fleet(machines, Path(scratch)) as fleet,
    ):
        yield fleet


@contextmanager
def on_fleet(
    fleet: Fleet, app: str, conf: Mapping[str, str] = {}, *, folder: Path | None = None
) -> Generator[Site]:
    """A fleet with a session on it, once every worker has an executor.

    Workers may join and leave a fleet that is up in a folder.
    """

    def find_more(cores: Mapping[str, int]) -> dict[str, tuple[str, Node]]:
        now = find_fleet(folder) if folder is not None else None
        joined = {} if now is None else now.nodes
        hosts = {} if now is None else now.hosts
        return {
            name: (hosts[name], Node.model_validate(facts))
            for name, facts in joined.items()
            if hosts[name] in cores
        }

    with open_session(app, fleet.master, {**conf, **fleet.settings()}) as spark:
        wait_for_hosts(spark, fleet.hosts.values())
        yield Site(spark, fleet.hosts, find_more, agents=folder and folder / AGENTS)


@contextmanager
def on_master(
    master: str | None, app: str, nodes: Iterable[str] = (), *, discover: bool = False
) -> Generator[Site]:
    """A Spark cluster whose hosts are called as the plan's nodes; None: this machine alone.

    `discover`: the nodes are the hosts that have executors.
    """
    remote = master is not None and not is_local(master)
    hosts = {node: node for node in nodes} if remote else {}
    with open_session(app, master, {}) as spark:
        if hosts:
            wait_for_hosts(spark, hosts.values())
        elif remote and discover:
            hosts = {host: host for host in settled_hosts(spark)}
        yield Site(spark, hosts or None, host_nodes if discover else None)


def host_nodes(cores: Mapping[str, int]) -> dict[str, tuple[str, Node]]:
    """Hosts as nodes: all that is known of them is what cores their executors have."""
    return {
        host: (host, Node(cpu=100.0 * own, cores=own, slots=SLOTS)) for host, own in cores.items()
    }


@contextmanager
def open_session(app: str, master: str | None, conf: Mapping[str, str]) -> Generator[SparkSession]:
    """A session that places tasks; it ends with the `with`, unless it was there before."""
    if master is not None:
        check_reachable(master)
    ours = SparkSession.getActiveSession() is None
    try:
        spark = session(app=app, master=master, conf={**SETTINGS, **conf})
    except Py4JError as error:
        if master is None or is_local(master):
            raise
        raise Unsupported(  # Spark's own words are a stack trace about its last step
            f"Spark could not start on {master}; what answers there may be no Spark master, "
            f"or one of another version than {pyspark.__version__}"
        ) from error
    try:
        yield spark
    finally:
        if ours:
            # Executors that go away while the session ends are no news.
            spark.sparkContext.setLogLevel("OFF")
            spark.stop()


@contextmanager
def decide_beside(
    world: OnSpark, settings: LoopSettings, report: Callable[[Entry], None], listen: Listen
) -> Generator[Listen]:
    """A listener that also has the loop decide, in the background: no batch waits for it."""
    with background() as do:
        decide = decide_after_batches(world, settings, report, do)

        def both(done: BatchDone) -> None:
            listen(done)
            decide(done)

        yield both
