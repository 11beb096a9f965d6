"""The loop's world as a fluid: a day of load, lost nodes and wrong profiles in seconds.

What tuples truly cost, who is up and which key is hot is the truth, which the fluid follows. The
loop sees what it would see of a run: rates and costs as measured, with noise; costs of which
nothing was measured yet are those of the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headrace.control.history import Entry
from headrace.control.planning import View
from headrace.control.rules.gain import cores_in_use
from headrace.control.truth import Truth
from headrace.errors import InvalidInput
from headrace.model.arrays import Floats, totals
from headrace.model.nearest import nearest
from headrace.model.plan import counts_section
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.simulation_sections import Event
from headrace.model.what_if import multiply_rates
from headrace.model.workload import Workload
from headrace.move.change import carry_plan, volumes_between
from headrace.planner import Plan
from headrace.simulate.arrivals import mean_factor, rate_curve, with_factors
from headrace.simulate.events import check_event
from headrace.simulate.fluid import cells_of, pour
from headrace.solve.simulation.fluid import Fluid, flow

STEP_S = 1.0  # of the fluid, at most
SPAN_S = 60.0  # in which a rate counts as constant
BEHIND_S = 2.0  # of input that wait: more, and a plan is behind
FULL = 0.995  # of what is used most: above, it is not known what more a plan could do


@dataclass(frozen=True, slots=True)
class Interval:
    """What happened between two decisions."""

    end_s: float
    rate_per_s: float  # that came in
    lag_s: float  # seconds of input that wait at the end
    use: float  # of the busiest core, thread or link
    cores: float  # of the nodes in use
    nodes: int
    tasks: int
    plan_in_force: int  # how many plans came before it

    @property
    def behind(self) -> bool:
        """Whether what came in was not done by the end."""
        return self.lag_s > BEHIND_S


@dataclass(eq=False)
class Simulated:
    """A topology that runs as a fluid, and the loop's view of it."""

    truth: Truth
    start: Plan  # the first plan
    seconds: float
    events: Sequence[Event] = ()
    seed: int = 0
    noise: float = 0.02  # of what is measured
    resizable: bool = False
    clock: float = 0.0
    intervals: list[Interval] = field(default_factory=list[Interval])
    entries: list[Entry] = field(default_factory=list[Entry])
    lost: float = 0.0  # tuples, of any component

    def __post_init__(self) -> None:
        self._check_events()
        base = self.start.problem
        self.running: tuple[Problem, Assignment] = (base, self.start.assignment)
        self._random = np.random.default_rng(self.seed)
        self._curve = with_factors(
            rate_curve(base, self.seconds, self.seed),
            [(0.0, 1.0)]
            + [(e.at, e.rate) for e in sorted(self.events, key=_at) if e.rate is not None],
        )
        self._coming = sorted((e for e in self.events if e.rate is None), key=_at)
        self._paused: tuple[float, tuple[str, ...]] = (0.0, ())  # until when, which components
        self._measured: dict[str, float] = {}
        self._noticed: dict[str, float] = {}  # costs as measured; none yet
        self._last_rate = float(base.rate[base.spout].sum()) * self._curve[0][1]
        self._happen()
        self._pour(None)

    def _check_events(self) -> None:
        for event in self.events:
            if event.plan is not None:
                raise InvalidInput(f"events: at {event.at:g} s a plan comes; here the loop plans")
            if event.cost is None:
                check_event(self.start.problem, event)
            elif event.cost not in self.start.problem.components:
                near = nearest(event.cost, self.start.problem.components)
                raise InvalidInput(
                    f"events: at {event.at:g} s, there is no component `{event.cost}`{near}"
                )

    # What the loop asks.

    def now(self) -> float:
        return self.clock

    def history(self) -> Sequence[Entry]:
        return self.entries

    def keep(self, entry: Entry) -> None:
        self.entries.append(entry)

    def look(self) -> View:
        old, plan = self.running
        document = self.truth.document(counts_section(old), costs=self._noticed)
        given = float(old.rate[old.spout].sum())
        factor = max(self._last_rate / given, 1e-6)
        seen = self.truth.problem(counts_section(old), costs=self._noticed)
        current = carry_plan(old, plan, seen).plan
        problem = replace(seen.scaled(factor), current=current)
        workload = None
        if self.resizable:
            if self.truth.machines is not None:  # others may be rented
                document = document.model_copy(update={"cluster": None})
            inputs = replace(self.truth.inputs, document=multiply_rates(document, factor))
            workload = Workload(inputs)
        lag = self._lag_s() * self._last_rate
        return View(problem, workload, dict(self._measured), lag)

    def apply(self, planned: Plan) -> None:
        old, plan = self.running
        if planned.machines is not None:
            self.truth = self.truth.with_machines(planned.machines)
        new = self.truth.problem(planned.tasks)
        if new.nodes != planned.problem.nodes:
            raise InvalidInput("the nodes have changed meanwhile")
        over = carry_plan(old, plan, new)
        target = planned.assignment
        volumes = volumes_between(new, over.plan, target, holders=over.holders)
        moving = volumes.units.sum() > 0
        stateful = tuple(new.components[c] for c in np.flatnonzero(new.state_mb > 0).tolist())
        self._paused = (self.clock + volumes.bound, stateful if moving else ())
        waiting = self._waiting()
        self.running = (new, target)
        self._pour(waiting)

    def wait(self, seconds: float) -> bool:
        end = min(self.clock + seconds, self.seconds)
        begin, self._sums = self.clock, _Sums()
        while self.clock < end - 1e-9:
            stops = [end, self.clock + SPAN_S, *(e.at for e in self._coming[:1])]
            if self._paused[0] > self.clock:
                stops.append(self._paused[0])
            self._flow(min(stop for stop in stops if stop > self.clock + 1e-9))
            if self._paused[1] and self._paused[0] <= self.clock + 1e-9:
                self._paused = (0.0, ())
                self._pour(self._waiting())
            if self._happen():
                self._pour(self._waiting())
        if end > begin:
            self._note(begin, end)
        return self.clock < self.seconds - 1e-9

    # What happens.

    def _happen(self) -> bool:
        """Let the events happen whose time has come; True if there were any."""
        happened = False
        while self._coming and self._coming[0].at <= self.clock + 1e-9:
            self.truth = self.truth.after(self._coming.pop(0), self.running[0])
            happened = True
        if happened:
            old, plan = self.running
            new = self.truth.problem(counts_section(old))
            self.running = (new, carry_plan(old, plan, new).plan)
        return happened

    def _pour(self, waiting: Mapping[str, float] | None) -> None:
        """Start the fluid of the plan in force, with what waited before."""
        problem, plan = self.running
        cells = cells_of(problem, plan)
        fluid = pour(problem, plan, cells)
        if self._paused[1]:
            named = np.array(problem.components)[cells.component]
            fluid.most[np.isin(named, self._paused[1])] = 0.0
        for c, name in enumerate(problem.components):
            here = cells.component == c
            held = (waiting or {}).get(name, 0.0)
            share = float(fluid.share[here].sum())
            if share > 0:
                fluid.waiting[here] = held * fluid.share[here] / share
            else:
                self.lost += held
        self._fluid: Fluid = fluid
        self._step_s = 0.0

    def _waiting(self) -> dict[str, float]:
        """Tuples before the tasks of each component, with those on their way to them."""
        problem, fluid = self.running[0], self._fluid
        held = fluid.waiting + fluid.enters * self._step_s
        found = totals(fluid.component, held, len(problem.components))
        return dict(zip(problem.components, found.tolist(), strict=True))

    def _flow(self, until: float) -> None:
        span, fluid = until - self.clock, self._fluid
        steps = max(1, math.ceil(span / STEP_S))
        before = (fluid.started[0], fluid.passed.copy())
        self._step_s = span / steps
        flow(fluid, mean_factor(self._curve, self.clock, until), self._step_s, steps)
        problem = self.running[0]
        passed = fluid.passed - before[1]
        self._sums.arrived += float(fluid.started[0] - before[0])
        self._sums.use += span * _use(problem, fluid, passed / span)
        self._sums.paused_s += span if self._paused[1] else 0.0
        self.clock = until

    def _lag_s(self) -> float:
        """Seconds of input that wait before the component that is furthest behind."""
        problem, fluid = self.running[0], self._fluid
        waiting = totals(fluid.component, fluid.waiting, len(problem.components))
        factor = self._last_rate / float(problem.rate[problem.spout].sum())
        rate = problem.rate * factor
        return float(np.divide(waiting, rate, out=np.zeros(len(rate)), where=rate > 0).max())

    def _note(self, begin: float, end: float) -> None:
        """Write down the interval, and measure for the next decision."""
        problem, plan = self.running
        rate = self._sums.arrived / (end - begin)
        before = self.intervals[-1].lag_s if self.intervals else 0.0
        self._last_rate = max(rate * self._error(), 1e-9)
        lag_s = self._lag_s()
        use = self._sums.use / (end - begin)
        worked_s = max(end - begin - self._sums.paused_s, STEP_S)
        done = (end - begin - (lag_s - before)) / worked_s
        self._measured = {}
        if lag_s > BEHIND_S:  # all that the plan can do, it does
            self._measured["max_rate"] = max(done, 1e-3)
        elif before <= BEHIND_S and 0 < use < FULL:
            self._measured["max_rate"] = 1 / use
        self._noticed = {
            name: self.truth.cost.get(name, 1.0) * self._error() for name in problem.components
        }
        placed = plan.node != UNPLACED
        self.intervals.append(
            Interval(
                end,
                rate,
                lag_s,
                use,
                cores_in_use(problem, plan),
                len(np.unique(plan.node[placed])),
                int(placed.sum()),
                sum(entry.applied for entry in self.entries),
            )
        )

    def _error(self) -> float:
        return float(np.clip(1 + self.noise * self._random.standard_normal(), 0.5, 2.0))


@dataclass(slots=True)
class _Sums:
    """What is added up over an interval."""

    arrived: float = 0.0
    use: float = 0.0  # times seconds
    paused_s: float = 0.0  # in which state travelled


def _use(problem: Problem, fluid: Fluid, served: Floats) -> float:
    """The share of the busiest node's cores, thread or link that is in use."""
    cores = totals(fluid.node, served * fluid.work_s, len(problem.nodes))
    by_node = np.divide(cores, fluid.cores, out=np.zeros(len(cores)), where=fluid.cores > 0)
    by_thread = np.divide(served, fluid.most, out=np.zeros(len(served)), where=fluid.most > 0)
    links = np.concatenate([fluid.need[1] / fluid.mbps, fluid.need[2] / fluid.mbps])
    parts: list[Any] = [by_node, by_thread, links]
    return float(max(part.max(initial=0.0) for part in parts))


def _at(event: Event) -> float:
    return event.at
