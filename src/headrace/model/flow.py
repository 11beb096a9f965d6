"""How many tuples pass: the rates of a topology's components, cycles included."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any

import numpy as np

from headrace.model.arrays import Floats, Ints

ROUNDING = 1e-12
LOOPS_LOOKED_AT = 10_000  # their number can be exponential


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream as the rates see it."""

    source: int
    target: int
    gain: float  # tuples emitted on the stream per tuple the source processes
    copies: float  # tuples received per tuple emitted: the target's tasks under `all`, else 1
    measured: float | None = None  # tuples emitted per second, where known


@dataclass(frozen=True, slots=True)
class Link:
    """A stream before tasks are counted: what it carries may depend on their number."""

    source: int
    target: int
    gain: float  # tuples emitted per tuple the source processes, over all that share them
    copied: bool  # every task of the target receives every tuple
    sharing: tuple[int, ...] = ()  # components by whose tasks the output is divided; (): it is not
    measured: float | None = None
    to_first: bool = False  # the first task of the target receives all of it

    def at(self, tasks: Ints) -> Flow:
        """The flow with so many tasks of every component [C]."""
        gain = self.gain
        if self.sharing:
            gain *= float(tasks[self.target]) / float(tasks[list(self.sharing)].sum())
        copies = float(tasks[self.target]) if self.copied else 1.0
        return Flow(self.source, self.target, gain, copies, self.measured)


@dataclass(frozen=True, slots=True, eq=False)
class FlowByCounts:
    """All that rates follow from, but for the number of tasks."""

    spout_rate: Floats  # [C]
    links: tuple[Link, ...]
    zipped: tuple[int, ...]

    @property
    def depends(self) -> bool:
        """Whether rates depend on the number of tasks."""
        return any(link.copied or link.sharing for link in self.links)

    @property
    def uneven(self) -> tuple[int, ...]:
        """Components whose first task gets more than the others: some inputs go to it alone."""
        first = {link.target for link in self.links if link.to_first}
        return tuple(sorted(first & {link.target for link in self.links if not link.to_first}))

    def rates(self, tasks: Ints) -> tuple[Floats, Floats]:
        """Tuples/s each component processes [C] and each stream carries, for so many tasks [C]."""
        return rates(self.spout_rate, [link.at(tasks) for link in self.links], self.zipped)


class Amplifies(Exception):
    """A loop returns as many tuples as it is given, or more, so its rate grows without end.

    It does so alone, or together with loops that it shares components with.
    """

    def __init__(self, loop: Sequence[int], factor: float) -> None:
        super().__init__("a loop amplifies without end")
        self.loop = tuple(loop)
        self.factor = factor  # tuples this loop returns for each one it is given

    @property
    def alone(self) -> bool:
        """Whether this loop amplifies by itself."""
        return self.factor >= 1 - ROUNDING


def rates(
    spout_rate: Floats, flows: Sequence[Flow], zipped: Sequence[int]
) -> tuple[Floats, Floats]:
    """Tuples/s each component processes [C] and each stream carries [S].

    Inputs add up. A zipped component takes one tuple of every input at a time, so it runs at the
    slowest input's rate. Components on common cycles are solved as one linear system, and these
    groups follow each other in the order of the flow.
    """
    processed = spout_rate.copy()
    emitted = np.array(
        [np.nan if flow.measured is None else flow.measured for flow in flows], dtype=np.float64
    )
    into: list[list[int]] = [[] for _ in spout_rate]
    for s, flow in enumerate(flows):
        into[flow.target].append(s)
    for piece in group_in_flow_order(len(spout_rate), flows):
        inside = {c: i for i, c in enumerate(piece)}
        matrix, given = np.zeros((len(piece), len(piece))), processed[piece]
        for c in piece:
            inputs: list[float] = []
            for s in into[c]:
                flow = flows[s]
                if flow.measured is None and flow.source in inside:
                    matrix[inside[c], inside[flow.source]] += flow.gain * flow.copies
                else:
                    emitted[s] = (
                        processed[flow.source] * flow.gain
                        if flow.measured is None
                        else flow.measured
                    )
                    inputs.append(float(emitted[s]) * flow.copies)
            if inputs:
                given[inside[c]] += min(inputs) if c in zipped else sum(inputs)
        if matrix.any():
            if (
                not np.isfinite(matrix).all()
                or np.abs(np.linalg.eigvals(matrix)).max() >= 1 - ROUNDING
            ):
                raise Amplifies(*_loop(piece, matrix))
            given = np.linalg.solve(np.eye(len(piece)) - matrix, given)
        processed[piece] = given
        for s in (
            s
            for c in piece
            for s in into[c]
            if flows[s].measured is None and flows[s].source in inside
        ):
            emitted[s] = processed[flows[s].source] * flows[s].gain
    return processed, emitted


def components_on_cycles(count: int, flows: Sequence[Flow]) -> set[int]:
    """Components that lie on a cycle of derived streams."""
    pieces = group_in_flow_order(count, flows)
    loops = {flow.source for flow in flows if flow.source == flow.target and flow.measured is None}
    return loops | {c for piece in pieces if len(piece) > 1 for c in piece}


def group_in_flow_order(count: int, flows: Sequence[Flow]) -> list[list[int]]:
    """Groups of components that lie on common cycles of derived streams, sources first.

    A measured stream waits for nobody.
    """
    feeds: dict[int, set[int]] = {c: set() for c in range(count)}
    for flow in flows:
        if flow.measured is None:
            feeds[flow.target].add(flow.source)
    try:
        return [[c] for c in TopologicalSorter(feeds).static_order()]
    except CycleError:
        import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((flow.source, flow.target) for flow in flows if flow.measured is None)
    condensed: Any = nx.condensation(graph)
    return [sorted(condensed.nodes[piece]["members"]) for piece in nx.topological_sort(condensed)]


def _loop(piece: Sequence[int], matrix: Floats) -> tuple[list[int], float]:
    """The cycle that amplifies most, and the tuples it returns for each one it is given."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from((source, target) for target, source in np.argwhere(matrix > 0).tolist())

    def returned(loop: Sequence[int]) -> float:
        return math.prod(
            float(matrix[b, a]) for a, b in zip(loop, (*loop[1:], loop[0]), strict=True)
        )

    loops: Iterator[list[int]] = islice(nx.simple_cycles(graph), LOOPS_LOOKED_AT)
    loop = max(loops, key=returned)
    start = loop.index(min(loop))
    return [piece[c] for c in loop[start:] + loop[:start]], returned(loop)
