"""The problem every algorithm gets: frozen arrays, names only at its edge.

Letters used for shapes, here and everywhere: G topologies, C components, T tasks, S streams, P
measured task pairs, N nodes, Y machine types, K resources. Tasks of a component are consecutive;
component c owns `first[c] .. first[c + 1] - 1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from headrace.errors import HeadraceError, Unsupported
from headrace.model.arrays import Bools, Floats, Ints, distinct
from headrace.model.dynamics import Dynamics
from headrace.model.keys import Holding
from headrace.model.levels import levels

CPU, MEMORY = 0, 1  # positions in the resource axis
THREAD = 100.0  # CPU points: a task is one thread, so sizing never plans more for one
MOST_PAIRS = 20_000_000
UNPLACED = -1


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Tuples from one component to another."""

    source: int
    target: int
    name: str
    grouping: str
    tuples_per_s: float  # emitted by the whole source, before copying to several target tasks
    bytes: float  # per tuple; nan where unknown
    shares: Floats | None = None  # [tasks of target] as measured; None: as the grouping says
    fields: tuple[str, ...] = ()

    def received(self, tasks: int) -> Floats:
        """Copies of one emitted tuple that each of the target's tasks receives, [tasks]."""
        if self.grouping == "all":
            return np.ones(tasks)
        if self.shares is not None:
            return self.shares
        if self.grouping == "global":
            return np.eye(1, tasks)[0]
        return np.full(tasks, 1.0 / tasks)

    @property
    def by_place(self) -> bool:
        """Whether it depends on where tasks run who receives a tuple."""
        return self.grouping in ("local-or-shuffle", "load-aware") and self.shares is None

    @property
    def even(self) -> bool:
        """Whether every target task receives the same."""
        return self.grouping == "all" or (self.shares is None and self.grouping != "global")


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Traffic between single tasks."""

    source: Ints  # [P] task
    target: Ints  # [P] task
    tuples_per_s: Floats  # [P]
    bytes_per_s: Floats  # [P] nan where unknown

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class StatedProof:
    """What an algorithm says it has proven of its plan; the judge checks it before it counts."""

    of: str  # the figure of the report
    value: float  # no feasible plan is better
    steps: int  # of the solver that the proof took at most


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """A node and a worker for every task; UNPLACED for tasks of a refused topology."""

    node: Ints  # [T]
    worker: Ints  # [T] slot index on the node
    # Topology -> why it is not placed.
    refused: Mapping[str, HeadraceError] = field(default_factory=dict[str, HeadraceError])
    notes: tuple[str, ...] = ()  # what its scheduler assumed, for the report
    proof: StatedProof | None = None  # that no plan is better


@dataclass(frozen=True, eq=False)
class Problem:
    """Topologies to place on a cluster. All arrays are read-only."""

    topologies: tuple[str, ...]
    components: tuple[str, ...]  # as files and reports call them
    nodes: tuple[str, ...]
    types: tuple[str, ...]
    racks: tuple[str, ...]
    resources: tuple[str, ...]  # cpu, memory_mb, then any further ones

    # topologies
    workers: Ints  # [G] wanted worker processes; 0 where the file does not say
    priority: Ints  # [G] smaller is placed first
    bound_by: tuple[str, ...]  # [G]
    isolated_machines: Ints  # [G] 0 where the file does not say
    worker_heap_mb: Floats  # [G] inf where the file does not say

    # components
    tasks: Ints  # [C]
    topology: Ints  # [C]
    operator: Ints  # [C] bare tasks of one number are one operator; else the component itself
    spout: Bools  # [C]
    rate: Floats  # [C] tuples/s the component processes; of a spout, emits
    demand: Floats  # [C, K] of one task, whatever the machine; CPU here grows with the rate
    cpu_rate: Floats  # [C, Y] profiled points of the whole component at its rate, split by `share`
    cpu_fixed: Floats  # [C, Y] profiled points of one task at no load
    profiled: Bools  # [C] whether CPU comes from a profile
    state_mb: Floats  # [C] of one task
    holding: tuple[Holding, ...]  # [C] who holds that state
    allowed: Bools | None  # [C, N] nodes its tasks may use; None: all may use all
    apart: Bools  # [C] no two of its tasks on one node
    task_share: Floats | None  # [T] share of its component's tuples a task gets; None: all even
    bare: bool  # tasks are called by their component's name alone

    # traffic
    streams: tuple[Stream, ...]
    pairs: Pairs  # measured; components joined by measured pairs have no stream

    # nodes
    capacity: Floats  # [N, K] inf where the file does not say
    taken: Floats  # [N, K] used by others
    slots: Ints  # [N]
    slot_taken: Bools  # [N, most slots] used by others, or not there
    bandwidth_mbps: Floats  # [N] inf where the file does not say
    rack: Ints  # [N]
    network: tuple[float, float, float]  # price of a tuple between workers, nodes, racks
    uplink_mbps: Floats  # [racks] inf where the file does not say
    node_type: Ints  # [N]
    sockets: Floats  # [N] nan where the file does not say, as the next three
    cores: Floats  # [N]
    ghz: Floats  # [N]
    flops_per_cycle: Floats  # [N]
    price: Floats  # [Y] nan where there is no catalog

    options: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    # Resource, or bandwidth_mbps -> share of each node that plans leave free; the judge alone gets
    # it: algorithms get nodes that are smaller by it.
    headroom: Mapping[str, float] = field(default_factory=dict[str, float])
    dynamics: Dynamics = field(default_factory=Dynamics)  # what only a clock shows
    notes: tuple[str, ...] = ()  # overrides by measured sections, and what was assumed
    current: Assignment | None = None

    def __post_init__(self) -> None:
        pairs = (
            self.pairs.source,
            self.pairs.target,
            self.pairs.tuples_per_s,
            self.pairs.bytes_per_s,
        )
        for value in (*vars(self).values(), *pairs, *(stream.shares for stream in self.streams)):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @cached_property
    def first(self) -> Ints:
        """First task of each component, [C + 1]."""
        return np.concatenate([[0], np.cumsum(self.tasks)])

    @cached_property
    def stage(self) -> Ints:
        """Stage of each component in a micro-batch engine, [C].

        A stage is the components of a topology that are equally far from its spouts.
        """
        count = len(self.tasks)
        source, target = self.component_of[self.pairs.source], self.component_of[self.pairs.target]
        edges = {(s.source, s.target) for s in self.streams}
        edges |= {divmod(edge, count) for edge in distinct(source * count + target).tolist()}
        targets: dict[int, list[int]] = {c: [] for c in range(count)}
        for a, b in sorted(edges):
            targets[a].append(b)
        level, _ = levels(targets, set(np.flatnonzero(self.spout).tolist()))
        rows = np.stack([self.topology, np.array([level[c] for c in range(count)], dtype=np.int64)])
        return np.unique(rows, axis=1, return_inverse=True)[1].reshape(-1)

    @property
    def task_count(self) -> int:
        """T, the number of tasks."""
        return int(self.first[-1])

    @cached_property
    def component_of(self) -> Ints:
        """Component of each task, [T]."""
        return np.repeat(np.arange(len(self.tasks)), self.tasks)

    @cached_property
    def share(self) -> Floats:
        """Share of its component's tuples that each task handles, [T]."""
        return (
            np.repeat(1.0 / self.tasks, self.tasks) if self.task_share is None else self.task_share
        )

    @cached_property
    def free(self) -> Floats:
        """What is left for us on each node, [N, K]."""
        return np.maximum(self.capacity - self.taken, 0.0)

    @cached_property
    def free_slots(self) -> Ints:
        """Slots left for us on each node, [N]."""
        return (~self.slot_taken).sum(axis=1)

    def tasks_of(self, component: int) -> slice:
        """The tasks of a component."""
        return slice(int(self.first[component]), int(self.first[component + 1]))

    def task_name(self, task: int) -> str:
        """What files and reports call a task."""
        component = int(np.searchsorted(self.first, task, side="right")) - 1
        return (
            self.components[component]
            if self.bare
            else f"{self.components[component]}.{task - int(self.first[component]) + 1}"
        )

    def task_cpu(self, machine_type: int) -> Floats:
        """CPU points of every task on a machine of a type, [T]."""
        c = self.component_of
        by_rate = self.cpu_rate[c, machine_type] * self.share
        return self.demand[c, CPU] + self.cpu_fixed[c, machine_type] + by_rate

    def task_demand(self, machine_type: int) -> Floats:
        """What every task needs on a machine of a type, [T, K]."""
        demand = self.demand[self.component_of]
        demand[:, CPU] = self.task_cpu(machine_type)
        return demand

    @cached_property
    def mean_demand(self) -> Floats:
        """What every task needs as the mean over the nodes, [T, K].

        For schedulers that know one load per task.
        """
        weight = np.bincount(self.node_type, minlength=len(self.types)) / len(self.nodes)
        demand = self.demand[self.component_of]
        demand[:, CPU] = sum(
            (self.task_cpu(y) * weight[y] for y in range(len(self.types)) if weight[y]),
            np.zeros(self.task_count),
        )
        return demand

    def worker_count(self, topology: int) -> int:
        """Workers a topology asks for: as the file says, else min(tasks, nodes with free slots)."""
        if self.workers[topology]:
            return int(self.workers[topology])
        tasks = int(self.tasks[self.topology == topology].sum())
        return max(1, min(tasks, int((self.free_slots > 0).sum())))

    @cached_property
    def pair_count(self) -> int:
        """How many task pairs `task_pairs` would list."""
        return len(self.pairs) + sum(
            int(self.tasks[s.source] * self.tasks[s.target]) for s in self.streams
        )

    def task_pairs(self) -> Pairs:
        """All traffic between single tasks, directed: derived from streams, then measured.

        Local-or-shuffle and load-aware count as shuffle here: where tasks are is not known yet.
        Refused above 20,000,000 pairs.
        """
        if self.pair_count > MOST_PAIRS:
            message = f"needs {self.pair_count:,} task pairs; the most it takes is {MOST_PAIRS:,}"
            raise Unsupported(
                message,
                resource="task pairs",
                needed=self.pair_count,
                available=MOST_PAIRS,
                fix="use headrace or storm-even",
            )
        source, target, rate, data = (
            [self.pairs.source],
            [self.pairs.target],
            [self.pairs.tuples_per_s],
            [self.pairs.bytes_per_s],
        )
        for stream in reversed(self.streams):
            i = np.arange(self.first[stream.source], self.first[stream.source + 1])
            j = np.arange(self.first[stream.target], self.first[stream.target + 1])
            tuples = stream.tuples_per_s * np.outer(self.share[i], stream.received(len(j))).ravel()
            source.insert(0, np.repeat(i, len(j)))
            target.insert(0, np.tile(j, len(i)))
            rate.insert(0, tuples)
            data.insert(0, tuples * stream.bytes)
        return Pairs(
            np.concatenate(source),
            np.concatenate(target),
            np.concatenate(rate),
            np.concatenate(data),
        )

    def scaled(self, factor: float) -> Problem:
        """The same problem with all rates, and the CPU that grows with them, multiplied."""
        demand = self.demand.copy()
        demand[:, CPU] *= factor
        pairs = self.pairs
        return replace(
            self,
            rate=self.rate * factor,
            demand=demand,
            cpu_rate=self.cpu_rate * factor,
            streams=tuple(
                replace(stream, tuples_per_s=stream.tuples_per_s * factor)
                for stream in self.streams
            ),
            pairs=Pairs(
                pairs.source, pairs.target, pairs.tuples_per_s * factor, pairs.bytes_per_s * factor
            ),
        )

    def only(self, topology: int, taken: Floats, slot_taken: Bools) -> Problem:
        """The problem of one topology alone, on what the others leave."""
        keep = np.flatnonzero(self.topology == topology)
        new = np.full(len(self.tasks), -1, dtype=np.int64)
        new[keep] = np.arange(len(keep))
        mask = self.topology[self.component_of] == topology
        number = np.cumsum(mask) - 1
        kept = mask[self.pairs.source] if len(self.pairs) else np.zeros(0, bool)
        pairs = Pairs(
            number[self.pairs.source[kept]],
            number[self.pairs.target[kept]],
            self.pairs.tuples_per_s[kept],
            self.pairs.bytes_per_s[kept],
        )
        streams = tuple(
            replace(s, source=int(new[s.source]), target=int(new[s.target]))
            for s in self.streams
            if new[s.source] >= 0
        )
        current = self.current and Assignment(self.current.node[mask], self.current.worker[mask])
        return replace(
            self,
            topologies=(self.topologies[topology],),
            components=tuple(self.components[c] for c in keep),
            workers=self.workers[[topology]],
            priority=self.priority[[topology]],
            bound_by=(self.bound_by[topology],),
            isolated_machines=self.isolated_machines[[topology]],
            worker_heap_mb=self.worker_heap_mb[[topology]],
            tasks=self.tasks[keep],
            topology=np.zeros(len(keep), dtype=np.int64),
            operator=self.operator[keep],
            spout=self.spout[keep],
            rate=self.rate[keep],
            demand=self.demand[keep],
            cpu_rate=self.cpu_rate[keep],
            cpu_fixed=self.cpu_fixed[keep],
            profiled=self.profiled[keep],
            state_mb=self.state_mb[keep],
            holding=tuple(self.holding[c] for c in keep),
            allowed=None if self.allowed is None else self.allowed[keep],
            apart=self.apart[keep],
            task_share=None if self.task_share is None else self.task_share[mask],
            streams=streams,
            pairs=pairs,
            taken=taken,
            slot_taken=slot_taken,
            current=current,
        )
