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
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headrace.control.beside import background, decide_after_batches, decide_when_due
from headrace.control.history import Entry
from headrace.control.on_spark import OnSpark
from headrace.control.planning import LoopSettings
from headrace.control.several import Together
from headrace.errors import InvalidInput, Unsupported
from headrace.model.document import FORMAT, Node
from headrace.model.read import Inputs, validated
from headrace.model.topology import Topology
from headrace.registry import By
from headrace.run import engine
from headrace.run.addresses import check_reachable
from headrace.run.batches import BatchDone, Settings
from headrace.run.cluster import Executor, executors_by_host, settle_hosts, wait_for_hosts
from headrace.run.fleet import AGENTS, Fleet, Grow, local_fleet, temporary
from headrace.run.internals import SETTINGS
from headrace.run.leftovers import own_scratch, scratch_folder, sweep_scratch
from headrace.run.machines import machines_of
from headrace.run.placement import Placement, PlanInForce, check_cores, workers_per_node
from headrace.run.supervisor import clear_lost_fleet, find_fleet
from headrace.spark import is_local, session

BACK_WITHIN_S = 30  # a lost executor, or a new one, is there within seconds
SLOTS = 4  # of a node of which nothing is known, as Storm's supervisors have
BY_STREAMS = ("headrace", "optimal")  # schedulers that work on whole streams

Say = Callable[[str], None]
ByHost = Mapping[str, Sequence[Executor]]
# Executors per host -> nodes: where they are, and what they are.
FindMore = Callable[[ByHost], Mapping[str, tuple[str, Node]]]
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
    grow: Grow | None = None  # gives nodes a process for every worker; None: there are what are

    def cores(self) -> dict[str, int]:
        """The nodes that have executors, and their cores; a node that has joined is one of them.

        Where processes are made for workers, all of a node share its cores.
        """
        found = executors_by_host(self.spark)
        if self.hosts is not None and self.find_more is not None:
            for name, (host, node) in self.find_more(found).items():
                if name not in self.hosts:
                    self.hosts[name], self.more[name] = host, node
        total = sum if self.grow is None else max
        cores = {host: total(one.cores for one in some) for host, some in found.items()}
        return {node: cores[host] for node, host in (self.hosts or {}).items() if host in cores}

    def have_workers(self, placement: Placement) -> None:
        """See to it that the workers of a plan have processes; which do not is seen in batches."""
        if self.hosts is None:
            return
        wanted = workers_per_node(placement)
        if self.grow is not None:
            self.grow(wanted)
        else:
            wanted = dict.fromkeys(wanted, 1)
        counts = {self.hosts[node]: n for node, n in wanted.items() if node in self.hosts}
        with suppress(Unsupported):
            wait_for_hosts(self.spark, counts, seconds=BACK_WITHIN_S)

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
            self.have_workers(placement)  # a node that does not come back is named below
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
            for name, (_, node) in host_nodes(executors_by_host(self.spark)).items()
        }
        return validated({"format": FORMAT, "cluster": {"nodes": nodes or {"this": {}}}}, {})

    def run(self, topology: Topology, plan: PlanInForce, settings: Settings) -> engine.RunDone:
        """Run a topology until its sources end or the batches are done."""
        return engine.run(self.spark, topology, plan, replace(settings, hosts=self.hosts))

    def run_together(
        self,
        runs: Mapping[str, tuple[Topology, PlanInForce, Settings]],
        ended: Callable[[str], None] = keep_quiet,
    ) -> dict[str, engine.RunDone]:
        """Run topologies beside each other until all have ended; if one fails, all stop."""
        running: dict[str, engine.Running] = {}
        try:
            for name, (topology, plan, settings) in runs.items():
                here = replace(settings, hosts=self.hosts)
                running[name] = engine.Running(self.spark, topology, plan, here)
            with ThreadPoolExecutor(len(running)) as threads:
                waiting = {threads.submit(one.wait): name for name, one in running.items()}
                try:
                    for done in as_completed(waiting):
                        done.result()
                        ended(waiting[done])
                finally:
                    for one in running.values():
                        one.stop()
                return {name: done.result() for done, name in waiting.items()}
        finally:
            for one in running.values():
                one.stop()


@contextmanager
def fleet_for(cluster: str | os.PathLike[str], folder: Path, say: Say) -> Generator[Fleet]:
    """The fleet that is up in a folder, if it has the cluster's machines, else one for this run."""
    clear_lost_fleet(folder)
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
    with scratch_folder() as scratch, local_fleet(machines, scratch) as fleet:
        yield fleet


@contextmanager
def on_fleet(
    fleet: Fleet, app: str, conf: Mapping[str, str] = {}, *, folder: Path | None = None
) -> Generator[Site]:
    """A fleet with a session on it, once every worker has an executor.

    Workers may join and leave a fleet that is up in a folder.
    """

    def find_more(up: ByHost) -> dict[str, tuple[str, Node]]:
        now = find_fleet(folder) if folder is not None else None
        joined = {} if now is None else now.nodes
        hosts = {} if now is None else now.hosts
        return {
            name: (hosts[name], Node.model_validate(facts))
            for name, facts in joined.items()
            if hosts[name] in up
        }

    with open_session(app, fleet.master, {**conf, **fleet.settings()}) as spark:
        wait_for_hosts(spark, fleet.hosts.values())
        agents = folder and folder / AGENTS
        yield Site(spark, fleet.hosts, find_more, agents=agents, grow=fleet.grow)


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
            hosts = {host: host for host in settle_hosts(spark)}
        yield Site(spark, hosts or None, host_nodes if discover else None)


def host_nodes(up: ByHost) -> dict[str, tuple[str, Node]]:
    """Hosts as nodes: all that is known of them is their executors, and what cores those have.

    A host with one executor has as many slots as one of which nothing is known: its workers share.
    """
    found: dict[str, tuple[str, Node]] = {}
    for host, some in up.items():
        own, slots = sum(one.cores for one in some), len(some) if len(some) > 1 else SLOTS
        found[host] = (host, Node(cpu=100.0 * own, cores=own, slots=slots))
    return found


@contextmanager
def open_session(app: str, master: str | None, conf: Mapping[str, str]) -> Generator[SparkSession]:
    """A session that places tasks; it ends with the `with`, unless it was there before."""
    if master is not None:
        check_reachable(master)
    ours = SparkSession.getActiveSession() is None
    sweep_scratch()
    # A killed driver leaves its files behind. Java outlives the session, and so does its folder.
    scratch, java = str(own_scratch()), "spark.driver.extraJavaOptions"
    local = {"spark.local.dir": scratch, java: f"{conf.get(java, '')} {temporary(scratch)}".strip()}
    try:
        spark = session(app=app, master=master, conf={**SETTINGS, **conf, **local})
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
def decide_together(
    world: Together,
    settings: LoopSettings,
    report: Callable[[Entry], None],
    listen: Callable[[str, BatchDone], None],
) -> Generator[Callable[[str], Listen]]:
    """Listeners by topology, after whose batches the loop decides for all, in the background."""
    parts = {part.topology.name: part for part in world.parts}
    with background() as do:
        decide = decide_when_due(world, settings, report, do)

        def listener_of(name: str) -> Listen:
            def both(done: BatchDone) -> None:
                listen(name, done)
                parts[name].add_batch(done)
                decide()

            return both

        yield listener_of


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
