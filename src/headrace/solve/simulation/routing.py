"""Which tuples follow from one, and to whom they go."""

# An array at a place that is itself an element of an array has no known type.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from headrace.solve.chance import pick, random_share
from headrace.solve.compiled import inlined
from headrace.solve.simulation.state import BY_SHARE, EVEN, EVERY, NOBODY, Run
from headrace.solve.simulation.trees import new_tuple


@inlined
def put_out(run: Run, task: int, tree: int, to: int, via: int) -> float:
    """A tuple to send once there is room; gives the CPU seconds that sending it takes."""
    found = new_tuple(run, tree, to, via)
    run.open[tree] += 1
    if run.out_head[task] == NOBODY:
        run.out_head[task] = found
    else:
        run.next[run.out_tail[task]] = found
    run.out_tail[task] = found
    if run.worker[task] == run.worker[to]:
        return 0.0
    return run.send_s[0] if run.node[task] == run.node[to] else run.send_s[1]


@inlined
def choose(run: Run, route: int) -> int:
    """The task that a tuple goes to."""
    way = run.way[route]
    if way == EVEN:
        return run.target[route] + pick(run.rng, run.targets[route])
    if way == BY_SHARE:
        chance = random_share(run.rng) * run.targets[route]
        i = run.table[route] + int(chance)
        return run.choice[i] if chance - int(chance) < run.accept[i] else run.other[i]
    return run.target[route]


@inlined
def make_outputs(run: Run, task: int) -> float:
    """All tuples that follow from the one a task has served; CPU seconds that sending takes."""
    tree = run.tree[run.serving[task]]
    cost = 0.0
    for at in range(run.route_first[task], run.route_first[task + 1]):
        route = run.route[at]
        gain = run.gain[route]
        count = int(gain)
        if gain > count and random_share(run.rng) < gain - count:
            count += 1
        for _ in range(count):
            if run.way[route] == EVERY:
                for to in range(run.target[route], run.target[route] + run.targets[route]):
                    cost += put_out(run, task, tree, to, route)
            else:
                cost += put_out(run, task, tree, choose(run, route), route)
    return cost
