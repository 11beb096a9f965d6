"""Who may receive the tuples that a task makes, and by which chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.load_aware import settle
from headrace.model.problem import UNPLACED, Assignment, Problem, Stream
from headrace.simulate.options import options_of
from headrace.solve.simulation import state as at
from headrace.solve.simulation.state import NOBODY, Bytes


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """The routes of all tasks, as the kernel reads them."""

    first: Ints  # [T + 1]
    route: Ints
    gain: Floats
    way: Bytes
    target: Ints
    targets: Ints
    table: Ints
    megabits: Floats
    joins: Ints
    accept: Floats
    choice: Ints
    other: Ints
    zip_first: Ints  # [T]
    zip_count: Ints  # [T]
    partners: int
    most_outputs: int


@dataclass(slots=True)
class _Builder:
    """Routes while they are collected."""

    gain: list[float] = field(default_factory=list[float])
    way: list[int] = field(default_factory=list[int])
    target: list[int] = field(default_factory=list[int])
    targets: list[int] = field(default_factory=list[int])
    table: list[int] = field(default_factory=list[int])
    megabits: list[float] = field(default_factory=list[float])
    joins: list[int] = field(default_factory=list[int])
    accept: list[Floats] = field(default_factory=list[Floats])
    choice: list[Ints] = field(default_factory=list[Ints])
    other: list[Ints] = field(default_factory=list[Ints])
    rows: int = 0

    def add(
        self, gain: float, way: int, target: int, targets: int, megabits: float, joins: int
    ) -> int:
        """A route that needs no table."""
        self.gain.append(gain)
        self.way.append(way)
        self.target.append(target)
        self.targets.append(targets)
        self.table.append(self.rows)
        self.megabits.append(0.0 if np.isnan(megabits) else megabits)
        self.joins.append(joins)
        return len(self.gain) - 1

    def add_table(
        self, gain: float, tasks: Ints, shares: Floats, megabits: float, joins: int
    ) -> int:
        """A route that chooses among tasks by their shares."""
        found = self.add(gain, at.BY_SHARE, int(tasks[0]), len(tasks), megabits, joins)
        accept, other = alias_table(shares)
        self.accept.append(accept)
        self.choice.append(tasks)
        self.other.append(tasks[other])
        self.rows += len(tasks)
        return found


def routes_of(problem: Problem, assignment: Assignment, worker: Ints) -> Routes:
    """The routes of every task; those of one stream are shared unless places matter."""
    problem = settle(problem, assignment)
    built = _Builder()
    of_task: list[list[int]] = [[] for _ in range(problem.task_count)]
    zipped, inputs = _zipped(problem)
    for s, stream in enumerate(problem.streams):
        if assignment.node[problem.first[stream.source]] == UNPLACED:
            continue
        senders = range(*problem.tasks_of(stream.source).indices(problem.task_count))
        joins = inputs[s] if stream.target in zipped else 0
        for t, route in _stream_routes(problem, stream, joins, worker, senders, built):
            of_task[t].append(route)
    for t, route in _pair_routes(problem, assignment, built):
        of_task[t].append(route)
    first = np.concatenate([[0], np.cumsum([len(r) for r in of_task])]).astype(np.int64)
    flat = [r for routes in of_task for r in routes]
    zip_first, zip_count, partners = _partners(problem, zipped, inputs)
    return Routes(
        first=first,
        route=np.array(flat or [0], np.int64),
        gain=np.array(built.gain or [0.0]),
        way=np.array(built.way or [0], np.int8),
        target=np.array(built.target or [0], np.int64),
        targets=np.array(built.targets or [0], np.int64),
        table=np.array(built.table or [0], np.int64),
        megabits=np.array(built.megabits or [0.0]),
        joins=np.array(built.joins or [0], np.int64),
        accept=np.concatenate(built.accept) if built.rows else np.zeros(1),
        choice=np.concatenate(built.choice) if built.rows else np.zeros(1, np.int64),
        other=np.concatenate(built.other) if built.rows else np.zeros(1, np.int64),
        zip_first=zip_first,
        zip_count=zip_count,
        partners=partners,
        most_outputs=_most_outputs(built, of_task),
    )


def shares_of(problem: Problem, stream: Stream) -> Floats | None:
    """The share of each target task; None: all alike. Keys may be skewed by an option."""
    if stream.shares is not None:
        return stream.shares
    options = options_of(problem)
    if stream.grouping != "fields" or options.key_skew == 0:
        return None
    return zipf_shares(int(problem.tasks[stream.target]), options.key_skew, int(options.keys))


def task_shares(problem: Problem) -> Floats:
    """The share of its component's tuples that each task gets, skewed keys counted, [T]."""
    if options_of(problem).key_skew == 0:
        return problem.share
    received = np.zeros(problem.task_count)
    for stream in problem.streams:
        tasks = problem.tasks_of(stream.target)
        shares = shares_of(problem, stream)
        if shares is None:
            shares = stream.received(tasks.stop - tasks.start)
        received[tasks] += stream.tuples_per_s * shares
    total = totals(problem.component_of, received, len(problem.tasks))[problem.component_of]
    return np.where(total > 0, received / np.where(total > 0, total, 1.0), problem.share)


def zipf_shares(tasks: int, skew: float, keys: int) -> Floats:
    """Shares of tasks where the k-th most frequent of many keys comes as often as k^-skew.

    Keys are dealt to tasks by a fixed mixing of their rank.
    """
    weight = np.arange(1, keys + 1) ** -skew
    mixed = np.arange(1, keys + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    task = ((mixed >> np.uint64(33)) % np.uint64(tasks)).astype(np.int64)
    shares = np.bincount(task, weights=weight, minlength=tasks)
    return shares / shares.sum()


def _stream_routes(
    problem: Problem,
    stream: Stream,
    joins: int,
    worker: Ints,
    senders: Sequence[int],
    built: _Builder,
) -> list[tuple[int, int]]:
    """Task and route for every sender of a stream."""
    rate = float(problem.rate[stream.source])
    gain = stream.tuples_per_s / rate if rate > 0 else 0.0
    megabits = stream.bytes * 8 / 1e6
    first, count = int(problem.first[stream.target]), int(problem.tasks[stream.target])
    receivers = np.arange(first, first + count)
    shares = shares_of(problem, stream)
    if stream.grouping == "all":
        shared = built.add(gain, at.EVERY, first, count, megabits, joins)
    elif shares is not None:
        shared = built.add_table(gain, receivers, shares, megabits, joins)
    elif stream.grouping == "global":
        shared = built.add(gain, at.FIRST, first, count, megabits, joins)
    else:
        shared = built.add(gain, at.EVEN, first, count, megabits, joins)
    if stream.grouping != "local-or-shuffle" or shares is not None:
        return [(t, shared) for t in senders]
    local: dict[int, int] = {}
    for home in dict.fromkeys(worker[list(senders)].tolist()):
        beside = receivers[worker[receivers] == home]
        local[home] = (
            built.add_table(gain, beside, np.ones(len(beside)), megabits, joins)
            if len(beside)
            else shared
        )
    return [(t, local[int(worker[t])]) for t in senders]


def _pair_routes(
    problem: Problem, assignment: Assignment, built: _Builder
) -> list[tuple[int, int]]:
    """Task and route for measured pairs: one for each task and component that it sends to."""
    pairs = problem.pairs
    found: list[tuple[int, int]] = []
    if not len(pairs):
        return found
    group = pairs.source * len(problem.tasks) + problem.component_of[pairs.target]
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        t = int(pairs.source[rows[0]])
        own = float(problem.rate[problem.component_of[t]] * problem.share[t])
        sent = float(pairs.tuples_per_s[rows].sum())
        if own <= 0 or sent <= 0 or assignment.node[t] == UNPLACED:
            continue
        data = float(np.nan_to_num(pairs.bytes_per_s[rows]).sum())
        weights = pairs.tuples_per_s[rows] / sent
        megabits = data / sent * 8 / 1e6
        found.append((t, built.add_table(sent / own, pairs.target[rows], weights, megabits, 0)))
    return found


def _zipped(problem: Problem) -> tuple[set[int], dict[int, int]]:
    """Components that join one tuple of each input, and the number of each of their streams."""
    entering: dict[int, list[int]] = {}
    for s, stream in enumerate(problem.streams):
        entering.setdefault(stream.target, []).append(s)
    zipped: set[int] = set()
    for c, streams in entering.items():
        total = sum(
            problem.streams[s].tuples_per_s
            * (float(problem.tasks[c]) if problem.streams[s].grouping == "all" else 1.0)
            for s in streams
        )
        if len(streams) > 1 and problem.rate[c] < total * (1 - 1e-9):
            zipped.add(c)
    return zipped, {s: i for c in zipped for i, s in enumerate(entering[c])}


def _partners(problem: Problem, zipped: set[int], inputs: dict[int, int]) -> tuple[Ints, Ints, int]:
    """Where each joining task keeps its counts, how many, and how many there are in all."""
    width = np.zeros(len(problem.tasks), np.int64)
    for s, i in inputs.items():
        target = problem.streams[s].target
        width[target] = max(int(width[target]), i + 1)
    count = width[problem.component_of]
    first = np.concatenate([[0], np.cumsum(count)])
    return np.where(count > 0, first[:-1], NOBODY), count, int(first[-1])


def _most_outputs(built: _Builder, of_task: list[list[int]]) -> int:
    """Tuples that one served tuple makes at most."""
    most = 0
    for routes in {tuple(r) for r in of_task}:
        each = (
            (int(built.gain[r]) + 1) * (built.targets[r] if built.way[r] == at.EVERY else 1)
            for r in routes
        )
        most = max(most, sum(each))
    return most


def alias_table(shares: Floats) -> tuple[Floats, Ints]:
    """Walker's tables: keep the i-th choice with this chance, else take the other (Vose 1991)."""
    count = len(shares)
    scaled = shares / shares.sum() * count
    accept, other = np.ones(count), np.arange(count)
    small = [i for i in range(count) if scaled[i] < 1]
    large = [i for i in range(count) if scaled[i] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        accept[low], other[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    return accept, other
