"""The loop in a simulated world: three days of load, and many runs in which all goes wrong.

    python benchmarks/looping.py --runs 1000 --seed 0    # the runs alone, from a seed on
    python benchmarks/looping.py --days "two peaks"      # three days of one curve of `curves.py`
    python benchmarks/looping.py --days office --forecast

Days: the rate follows a curve up to three times its least and back, and the loop goes without a
forecast and with one. Hindsight rents, hour by hour,
the fewest nodes whose cores do the work of that hour's busiest minute; no plan can do with fewer.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from curves import CURVES, Curve
from measure import Row

from headrace.control.adaptive import Adaptive, simulate_adaptive
from headrace.control.choice import carries_load
from headrace.control.loop import step
from headrace.control.planning import LoopSettings, judge_plan
from headrace.control.simulated import Simulated
from headrace.control.truth import Truth
from headrace.errors import HeadraceError
from headrace.model.document import FORMAT
from headrace.model.problem import UNPLACED, Problem
from headrace.model.read import Inputs, validated
from headrace.model.simulation_sections import Event
from headrace.model.workload import Workload
from headrace.planner import place

HOURS, QUICK_HOURS = 72, 30
EVERY_S = 600.0
RUNS, QUICK_RUNS = 1000, 20
RATE, CORES = 40_000.0, 4
COST_MS = {"sentence": 0.05, "split": 0.2, "count": 0.05}
WORDS = 7
RIVALS = ("headrace", "storm-ras", "rstorm", "storm-even")  # any of them may have the plan


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    for name in ["daily"] if quick else CURVES:
        for forecast in (False, True):
            yield from days(name, QUICK_HOURS if quick else HOURS, forecast)
    yield from many_runs(QUICK_RUNS if quick else RUNS, 0)


def day_inputs(curve: Curve, hours: int) -> Inputs:
    """Word count on sixteen equal nodes, under a curve that is followed minute by minute."""
    components = {
        "sentence": {"spout": True, "tasks": 2, "rate": RATE, "bytes": 60},
        "split": {
            "tasks": 4,
            "inputs": {"sentence": "shuffle"},
            "selectivity": WORDS,
            "bytes": 20,
        },
        "count": {"tasks": 8, "inputs": {"split": {"grouping": "fields"}}, "state_mb": 5},
    }
    node = {"cpu": 100 * CORES, "cores": CORES, "slots": 2, "bandwidth_mbps": 1000}
    content = {
        "format": FORMAT,
        "topology": {"name": "word-count", "components": components},
        "cluster": {"nodes": {"n{1..16}": node}},
        "profile": {name: {"*": {"cpu_ms": cost}} for name, cost in COST_MS.items()},
        "arrivals": {
            "kind": "trace",
            "points": [[60.0 * m, RATE * curve(60.0 * m)] for m in range(hours * 60 + 1)],
        },
    }
    return validated(content, {})


def days(curve: str, hours: int, forecast: bool) -> Iterator[Row]:
    """Rate x 3 and back, day by day."""
    settings = LoopSettings(objective="nodes", interval_s=EVERY_S, resize=True, forecast=forecast)
    inputs = day_inputs(CURVES[curve], hours)
    done = simulate_adaptive(inputs, settings, seconds=hours * 3600.0)
    least = [hindsight_nodes(CURVES[curve], hour) for hour in range(hours)]
    core_hours = float(sum(least) * CORES)
    later = Adaptive(
        done.decisions, tuple(i for i in done.intervals if i.end_s > 24 * 3600), EVERY_S
    )
    ratio = done.core_hours / core_hours
    name = f"loop: {hours} h, curve `{curve}`{', forecast' if forecast else ''}"
    yield Row(f"{name}: intervals behind in a row after the first day", str(later.longest_behind),
              "1", later.longest_behind <= 1)  # fmt: skip
    yield Row(f"{name}: intervals behind in all", str(done.behind))
    yield Row(f"{name}: core-hours, of hindsight's {core_hours:,.0f}", f"{ratio:.3f}", "1.3",
              ratio <= 1.3)  # fmt: skip
    changes = sum(a != b for a, b in pairwise(least))
    yield Row(f"{name}: moves", str(done.moves), str(changes), done.moves <= changes)
    turns, best = count_turns([i.nodes for i in done.intervals]), count_turns(least)
    yield Row(f"{name}: turns between growing and shrinking", str(turns), str(best),
              turns <= best)  # fmt: skip


def count_turns(nodes: Sequence[int]) -> int:
    """How often machines that were taken are given back next, or the other way round."""
    steps = [b - a for a, b in pairwise(nodes) if a != b]
    return sum((a > 0) != (b > 0) for a, b in pairwise(steps))


def hindsight_nodes(curve: Curve, hour: int) -> int:
    """The fewest nodes whose cores do the work of the busiest minute of an hour."""
    factor = max(curve(hour * 3600.0 + 60 * m) for m in range(60))
    per_line_ms = COST_MS["sentence"] + COST_MS["split"] + WORDS * COST_MS["count"]
    return math.ceil(RATE * factor * per_line_ms / 1000 / CORES - 1e-9)


@dataclass(slots=True)
class Tally:
    """What happened in many runs."""

    runs: int = 0
    decisions: int = 0
    moves: int = 0
    failures: list[str] = field(default_factory=list[str])
    overloads: list[str] = field(default_factory=list[str])
    unexplained: int = 0


def many_runs(runs: int, seed: int) -> Iterator[Row]:
    """Runs with random rates, hot keys, losses, joins and wrong profiles."""
    tally = Tally()
    for one in range(seed, seed + runs):
        random_run(one, tally)
        if tally.runs % 50 == 0:
            print(f"{tally.runs} runs, {tally.moves} moves, {tally.failures + tally.overloads}",
                  file=sys.stderr, flush=True)  # fmt: skip
    for line in (tally.failures + tally.overloads)[:10]:
        print(line)
    name = f"loop: {tally.runs} random runs, {tally.decisions:,} decisions, {tally.moves:,} moves"
    failed, over = len(tally.failures), len(tally.overloads)
    yield Row(f"{name}: exceptions", str(failed), "0", failed == 0)
    yield Row(f"{name}: plans in force that overload where another does not", str(over), "0",
              over == 0)  # fmt: skip
    yield Row(f"{name}: decisions without a reason", str(tally.unexplained), "0",
              tally.unexplained == 0)  # fmt: skip


def random_run(seed: int, tally: Tally) -> None:
    """One run; what is wrong with it is noted."""
    random = Random(seed)
    tally.runs += 1
    try:
        inputs, events, seconds = random_world(random)
        settings = LoopSettings(
            objective=random.choice(("traffic", "rate", "nodes", "balance")),
            interval_s=60.0,
            resize=random.random() < 0.4,
        )
        workload = Workload(inputs)
        start = place(workload.problem(), "storm-even", bounded=False)
        world = Simulated(Truth(inputs), start, seconds, events, seed, resizable=settings.resize)
        while True:
            entry = step(world, settings)
            tally.decisions += 1
            tally.moves += entry.applied
            tally.unexplained += not entry.reason
            note_overload(seed, world, entry.at_s, entry.reason, tally)
            if not world.wait(settings.interval_s):
                break
    except Exception as error:  # noqa: BLE001 - any exception is what is looked for
        tally.failures.append(f"seed {seed}: {type(error).__name__}: {error}")


def note_overload(seed: int, world: Simulated, at_s: float, reason: str, tally: Tally) -> None:
    """Note a plan in force that does not carry its load, where a plan is found that does."""
    problem = world.look().problem
    running = problem.current
    assert running is not None
    whole = bool((running.node != UNPLACED).all())
    if whole and carries_load(judge_plan(problem, running, "rate"), "rate"):
        return
    rival = some_plan(problem)
    if rival is not None:
        tally.overloads.append(f"seed {seed}, {at_s:g} s: {rival} carries the load; {reason}")


def some_plan(problem: Problem) -> str | None:
    """A scheduler whose plan carries the load with the counts there are."""
    for name in RIVALS:
        for objective in ("traffic", "rate") if name == "headrace" else ("traffic",):
            try:
                found = place(problem, name, objective=objective, bounded=False)
            except HeadraceError:
                continue
            if carries_load(found.report, "rate"):
                return f"{name} ({objective})"
    return None


def random_world(random: Random) -> tuple[Inputs, list[Event], float]:
    """A topology, a cluster that mostly has room for it, and what happens on the way."""
    bolts = random.randint(2, 5)
    names = ["source", *(f"bolt{i}" for i in range(bolts))]
    components: dict[str, Any] = {
        "source": {"spout": True, "tasks": random.randint(1, 3), "rate": 1000.0, "bytes": 100}
    }
    for i, name in enumerate(names[1:]):
        grouping = random.choice(("shuffle", "fields", "fields"))
        components[name] = {
            "tasks": random.randint(1, 5),
            "inputs": {names[random.randint(0, i)]: grouping},
            "selectivity": random.choice((0.3, 1, 1, 2)),
            "bytes": random.choice((50, 200, 800)),
            "state_mb": random.choice((0, 0, 2, 10)),
            "memory_mb": random.choice((64, 256)),
        }
    nodes = {
        f"n{i}": {
            "cpu": random.choice((200, 400)),
            "memory_mb": 4096,
            "slots": random.randint(2, 4),
            "bandwidth_mbps": random.choice((100, 1000)),
        }
        for i in range(1, random.randint(3, 6) + 1)
    }
    profile = {name: {"*": {"cpu_ms": random.uniform(0.05, 0.5)}} for name in names}
    content = {
        "format": FORMAT,
        "topology": {"name": "any", "components": components},
        "cluster": {"nodes": nodes},
        "profile": profile,
        "arrivals": {"kind": random.choice(("constant", "on-off")), "on_s": 90, "off_s": 30},
    }
    inputs = validated(content, {})
    seconds = 15 * 60.0
    return inputs, random_events(random, components, list(nodes), seconds), seconds


def random_events(
    random: Random, components: dict[str, Any], nodes: list[str], seconds: float
) -> list[Event]:
    """What happens: rates, losses and joins (one node always stays), hot keys."""
    events: list[Event] = []
    keyed = [name for name, c in components.items() if "fields" in c.get("inputs", {}).values()]
    for name in components:
        if random.random() < 0.5:
            at = random.choice((0.0, 0.0, random.uniform(0, seconds)))
            events.append(Event(at=at, cost=name, factor=random.uniform(0.5, 1.8)))
    for _ in range(random.randint(1, 6)):
        at, what = random.uniform(0, seconds), random.random()
        if what < 0.4:
            events.append(Event(at=at, rate=random.choice((0.2, 0.5, 1.5, 2, 3))))
        elif what < 0.65:
            events.append(Event(at=at, lose=random.choice(nodes[1:])))
        elif what < 0.85:
            events.append(Event(at=at, join=random.choice(nodes[1:])))
        elif keyed:
            name = random.choice(keyed)
            task = random.randint(1, components[name]["tasks"])
            events.append(Event(at=at, hot=f"{name}.{task}", share=random.uniform(0.3, 0.8)))
    return events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=QUICK_RUNS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--days", choices=CURVES)
    parser.add_argument("--forecast", action="store_true")
    given = parser.parse_args()
    if given.days is not None:
        for row in days(given.days, HOURS, given.forecast):
            print(row, flush=True)
        return
    for row in many_runs(given.runs, given.seed):
        print(row)


if __name__ == "__main__":
    main()
