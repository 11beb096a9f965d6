"""Counts that run fast: the largest rate, the shortest batch, or the evenest load.

Moves and swaps between two nodes, annealed. What a node can sustain depends on the counts of that
node alone: its CPU, and of every stream what it emits and what part of it it receives. So a step
looks at two nodes, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU, Problem
from headrace.solve.chance import Rng, pick, random_share, stream
from headrace.solve.classes import Classes
from headrace.solve.compiled import ZERO, kernel
from headrace.solve.least_traffic.fit import (
    State,
    Terms,
    empty_state,
    load_state,
    overload_after,
    put,
    terms_of,
)
from headrace.solve.least_traffic.chunks import chunk_of

RATE, BATCH, BALANCE = 0, 1, 2
MODES = {"rate": RATE, "batch": BATCH, "balance": BALANCE}
STEEP = 40.0  # how much the fullest node outweighs the others while searching
SCALE, SOFT, SHARES, SQUARES, SLOWEST, STAGES, OVER = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
)  # where `Live.sums` keeps what
OVER_PRICE = 1e6  # of a node that carries more than it can, where the rate is not the objective
PASSING_PRICE = 2.0  # the same while searching, in parts of the cost: the way to a good plan may lead through a bad one
FULL = 1e12  # ratio of a node whose fixed load alone exceeds it
# Part of the cost a step may lose, on average, at the start of each round.
HOT = {
    RATE: (0.03, 0.01, 0.02, 0.005),
    BATCH: (0.5, 0.1, 0.3, 0.03),
    BALANCE: (0.5, 0.1, 0.3, 0.03),
}
LEAST_STEPS = {RATE: 300_000, BATCH: 60_000, BALANCE: 60_000}
SLICE_STEPS = 10_000
MOST_PAIR_CELLS = 2_000_000  # measured pairs x nodes that are still counted one by one


class Costs(NamedTuple):
    """What tasks cost and streams carry, class by class."""

    grows: Floats  # [Y, C] CPU points of one task that grow with the rate
    fixed: Floats  # [Y, C] and that do not
    cpu: Floats  # [N] free points
    installed: Floats  # [N] points in all
    cores: Floats  # [N]
    bytes_per_s: Floats  # [N] bandwidth, each way
    send_points: float  # CPU points per tuple/s sent to another node
    stage: Ints  # [C]
    member_start: Ints  # [stages + 1] classes of a stage are member[..]
    member: Ints
    out_start: Ints  # [C + 1] streams a class emits on, and how many tuples/s one task emits
    out_stream: Ints
    out_amount: Floats
    in_start: (
        Ints  # [C + 1] streams a class receives from, and the copies of a tuple one task receives
    )
    in_stream: Ints
    in_amount: Floats
    into_start: Ints  # [stages + 1] streams into a stage
    into_stream: Ints
    target: Ints  # [S] stage
    size: Floats  # [S] bytes per tuple; 0 where unknown
    emitted: Floats  # [S] tuples/s in all
    copies: Floats  # [S] copies of a tuple in all


class Live(NamedTuple):
    """What follows from the counts, kept up to date."""

    grows: Floats  # [N]
    fixed: Floats  # [N]
    emits: Floats  # [N, S]
    receives: Floats  # [N, S]
    sending: Floats  # [N] CPU points spent on sending to other nodes
    ratio: Floats  # [N] load over room at the given rates
    stage_s: Floats  # [stages, N]
    slowest_s: Floats  # [stages]
    touched: Ints  # scratch: stages that changed
    sums: Floats  # what the cost is made of


class Flow(NamedTuple):
    """Tuples between classes: a stream, or a measured pair of tasks."""

    target: int  # component
    emitted: float  # tuples/s in all
    copies: float  # copies of a tuple in all
    size: float  # bytes per tuple; 0 where unknown
    emits: list[tuple[int, float]]  # class, tuples/s one task emits
    receives: list[tuple[int, float]]  # class, copies of a tuple one task receives


def flows_of(problem: Problem, classes: Classes) -> list[Flow]:
    """What is sent, class by class; measured pairs only as long as there are not too many of them."""
    owner, task = classes.component, classes.order[classes.first[:-1]]
    flows: list[Flow] = []
    for s in problem.streams:
        received = s.received(int(problem.tasks[s.target]))
        emits = [
            (int(c), float(s.tuples_per_s * problem.share[task[c]]))
            for c in np.flatnonzero(owner == s.source)
        ]
        receives = [
            (int(c), float(received[task[c] - problem.first[s.target]]))
            for c in np.flatnonzero(owner == s.target)
        ]
        flows.append(
            Flow(
                s.target,
                s.tuples_per_s,
                float(received.sum()),
                0.0 if np.isnan(s.bytes) else s.bytes,
                emits,
                receives,
            )
        )
    pairs = problem.pairs
    if len(pairs) * len(problem.nodes) <= MOST_PAIR_CELLS:
        class_of = np.empty(problem.task_count, dtype=np.int64)
        class_of[classes.order] = np.repeat(np.arange(len(owner)), np.diff(classes.first))
        rows = zip(
            class_of[pairs.source].tolist(),
            class_of[pairs.target].tolist(),
            pairs.tuples_per_s.tolist(),
            pairs.bytes_per_s.tolist(),
            strict=True,
        )
        for a, b, tuples, data in rows:
            size = data / tuples if tuples > 0 and data > 0 else 0.0
            flows.append(Flow(int(owner[b]), tuples, 1.0, size, [(a, tuples)], [(b, 1.0)]))
    return [flow for flow in flows if flow.emitted > 0]


def costs_of(problem: Problem, classes: Classes) -> Costs:
    """Read a problem's costs class by class."""
    owner, task = classes.component, classes.order[classes.first[:-1]]
    share = problem.share[task]
    stage, count = problem.stage[owner], int(problem.stage.max(initial=-1)) + 1
    member = np.argsort(stage, kind="stable")
    flows = flows_of(problem, classes)
    out_start, out_stream, out_amount = _by_class(
        [(c, k, v) for k, flow in enumerate(flows) for c, v in flow.emits], len(owner)
    )
    in_start, in_stream, in_amount = _by_class(
        [(c, k, v) for k, flow in enumerate(flows) for c, v in flow.receives], len(owner)
    )
    into_start, into_stream, _ = _by_class(
        [(int(problem.stage[flow.target]), k, 0.0) for k, flow in enumerate(flows)], count
    )
    price = problem.options.get("judge", {}).get("send_node_cpu_ms", 0)
    free = problem.capacity[:, CPU] - problem.taken[:, CPU]
    return Costs(
        grows=np.ascontiguousarray(
            (problem.demand[owner, CPU][:, None] + problem.cpu_rate[owner] * share[:, None]).T
        ),
        fixed=np.ascontiguousarray(problem.cpu_fixed[owner].T),
        cpu=free,
        installed=problem.capacity[:, CPU],
        cores=np.where(np.isfinite(free), np.maximum(1.0, np.floor(free / 100)), np.inf),
        bytes_per_s=problem.bandwidth_mbps * 1e6 / 8,
        send_points=float(str(price)) / 10,
        stage=stage,
        member_start=np.searchsorted(stage[member], np.arange(count + 1)).astype(np.int64),
        member=member.astype(np.int64),
        out_start=out_start,
        out_stream=out_stream,
        out_amount=out_amount,
        in_start=in_start,
        in_stream=in_stream,
        in_amount=in_amount,
        into_start=into_start,
        into_stream=into_stream,
        target=np.array([problem.stage[flow.target] for flow in flows], dtype=np.int64),
        size=np.array([flow.size for flow in flows]),
        emitted=np.array([flow.emitted for flow in flows]),
        copies=np.array([flow.copies for flow in flows]),
    )


def _by_class(rows: list[tuple[int, int, float]], count: int) -> tuple[Ints, Ints, Floats]:
    rows = sorted(rows)
    start = np.searchsorted([row[0] for row in rows], np.arange(count + 1)).astype(np.int64)
    return (
        start,
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.float64),
    )


def fast_counts(
    problem: Problem,
    classes: Classes,
    x: Ints,
    objective: Literal["rate", "batch", "balance"],
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    enough: float = np.inf,
) -> Ints:
    """Feasible counts [classes, N] at least as good for the objective as the feasible x given; ends early at a rate that is `enough`."""
    instance = classes.instance
    terms, costs = terms_of(instance), costs_of(problem, classes)
    state, live = empty_state(terms), _live(costs, len(instance.node_type))
    mode = MODES[objective]
    budget = (
        int(np.clip(300 * instance.allowed.size, LEAST_STEPS[mode], 1_000_000))
        if steps is None
        else steps
    )
    rng = stream(seed, 0x7654321)
    best = np.ascontiguousarray(x.T, dtype=np.int64)
    best_value = np.array([np.inf])
    for hot in HOT[mode]:
        load_state(terms, state, best.copy())
        done, each = 0, max(1, budget // len(HOT[mode]))
        while done < each:
            part = min(SLICE_STEPS, each - done)
            even_out(
                terms,
                state,
                costs,
                live,
                rng,
                best,
                best_value,
                part,
                mode,
                hot * (1 - done / each),
            )
            done += part
            reached = mode == RATE and best_value[0] <= 1.0 / enough
            if reached or (deadline is not None and deadline()):
                return np.ascontiguousarray(best.T)
    return np.ascontiguousarray(best.T)


def sustained(problem: Problem, classes: Classes, x: Ints) -> float:
    """The factor of the given rates that counts x[classes, N] sustain; inf if nothing limits it."""
    most = float(_loaded(problem, classes, x, RATE).ratio.max())
    return 1.0 / most if most > 0 else np.inf


def batch_time(problem: Problem, classes: Classes, x: Ints) -> float:
    """Seconds of a batch per second of input with counts x[classes, N]; more than any where a node carries more than it can."""
    return value_of(_loaded(problem, classes, x, BATCH), BATCH)


def _loaded(problem: Problem, classes: Classes, x: Ints, mode: int) -> Live:
    """What follows from counts x[classes, N]."""
    terms, costs = terms_of(classes.instance), costs_of(problem, classes)
    state, live = empty_state(terms), _live(costs, x.shape[1])
    load_state(terms, state, np.ascontiguousarray(x.T, dtype=np.int64))
    load_live(terms, state, costs, live, mode)
    return live


def _live(costs: Costs, nodes: int) -> Live:
    stages, streams = len(costs.member_start) - 1, len(costs.size)
    return Live(
        np.zeros(nodes), np.zeros(nodes), np.zeros((nodes, streams)), np.zeros((nodes, streams)), np.zeros(nodes), np.zeros(nodes),
        np.zeros((stages, nodes)), np.zeros(stages), np.zeros(stages + 1, np.int64), np.zeros(7),
    )  # fmt: skip


@kernel
def shift(terms: Terms, costs: Costs, live: Live, c: int, n: int, k: int) -> None:
    """Count k more tasks of class c on node n (k < 0: fewer)."""
    y = terms.node_type[n]
    live.grows[n] += k * costs.grows[y, c]
    live.fixed[n] += k * costs.fixed[y, c]
    for i in range(costs.out_start[c], costs.out_start[c + 1]):
        live.emits[n, costs.out_stream[i]] += k * costs.out_amount[i]
    for i in range(costs.in_start[c], costs.in_start[c + 1]):
        live.receives[n, costs.in_stream[i]] += k * costs.in_amount[i]


@kernel
def ratio_of(costs: Costs, live: Live, n: int) -> float:
    """Load of node n at the given rates over what it could carry: its reciprocal is the rate it sustains."""
    out = 0.0
    into = 0.0
    sent = 0.0
    for s in range(costs.size.shape[0]):
        leaves = live.emits[n, s] * max(0.0, costs.copies[s] - live.receives[n, s])
        sent += leaves
        out += costs.size[s] * leaves
        into += costs.size[s] * live.receives[n, s] * max(0.0, costs.emitted[s] - live.emits[n, s])
    ratio = max(out, into) / costs.bytes_per_s[n]
    live.sending[n] = sent * costs.send_points
    grows = live.grows[n] + live.sending[n]
    if grows > 1e-12 and costs.cpu[n] < np.inf:
        room = costs.cpu[n] - live.fixed[n]
        ratio = max(ratio, grows / room if room > 1e-9 * grows else FULL)
    return ratio


@kernel
def stage_of(terms: Terms, state: State, costs: Costs, live: Live, stage: int, n: int) -> float:
    """Seconds a stage's tasks keep node n busy per second of input: waves of tasks over cores, then its input."""
    y = terms.node_type[n]
    tasks = 0
    load = 0.0
    longest = 0.0
    for i in range(costs.member_start[stage], costs.member_start[stage + 1]):
        c = costs.member[i]
        k = state.x[n, c]
        if k > 0:
            points = costs.grows[y, c] + costs.fixed[y, c]
            tasks += k
            load += k * points
            longest = max(longest, points)
    seconds = 0.0
    if tasks > 0:
        waves = 1.0 if costs.cores[n] == np.inf else np.ceil(tasks / costs.cores[n])
        seconds = max(waves * load / tasks, longest) / 100
    into = 0.0
    out = 0.0
    for i in range(costs.into_start[stage], costs.into_start[stage + 1]):
        s = costs.into_stream[i]
        into += costs.size[s] * live.receives[n, s] * max(0.0, costs.emitted[s] - live.emits[n, s])
        out += costs.size[s] * live.emits[n, s] * max(0.0, costs.copies[s] - live.receives[n, s])
    return seconds + max(into, out) / costs.bytes_per_s[n]


@kernel
def load_live(terms: Terms, state: State, costs: Costs, live: Live, mode: int) -> None:
    """Work everything out from the counts, free of old rounding."""
    live.grows[:] = 0.0
    live.fixed[:] = 0.0
    live.emits[:] = 0.0
    live.receives[:] = 0.0
    live.sums[:] = 0.0
    nodes, classes = state.x.shape
    for n in range(nodes):
        for c in range(classes):
            if state.x[n, c] > 0:
                shift(terms, costs, live, c, n, state.x[n, c])
        live.ratio[n] = ratio_of(costs, live, n)
        live.sums[SCALE] = max(live.sums[SCALE], live.ratio[n])
    live.sums[SCALE] = max(live.sums[SCALE], 1e-30)
    for n in range(nodes):
        account(costs, live, n, mode, 1.0)
    for k in range(live.slowest_s.shape[0]):
        live.slowest_s[k] = 0.0
        for n in range(nodes):
            live.stage_s[k, n] = stage_of(terms, state, costs, live, k, n)
            live.slowest_s[k] = max(live.slowest_s[k], live.stage_s[k, n])
            live.sums[STAGES] += live.stage_s[k, n]
        live.sums[SLOWEST] += live.slowest_s[k]


@kernel
def touched_by(costs: Costs, live: Live, c: int, found: int) -> int:
    """Add the stages that depend on where class c is: its own, and those it sends to."""
    for i in range(costs.out_start[c] - 1, costs.out_start[c + 1]):
        k = costs.stage[c] if i < costs.out_start[c] else costs.target[costs.out_stream[i]]
        known = False
        for j in range(found):
            if live.touched[j] == k:
                known = True
        if not known:
            live.touched[found] = k
            found += 1
    return found


@kernel
def account(costs: Costs, live: Live, n: int, mode: int, sign: float) -> None:
    """Add (or take away) what node n contributes to the sums the cost is made of."""
    if mode == RATE:
        live.sums[SOFT] += sign * (live.ratio[n] / live.sums[SCALE]) ** STEEP
        return
    live.sums[OVER] += sign * max(0.0, live.ratio[n] - 1.0 - 1e-9)
    if mode == BALANCE:
        share = used_share(costs, live, n)
        live.sums[SHARES] += sign * share
        live.sums[SQUARES] += sign * share * share


@kernel
def restage(terms: Terms, state: State, costs: Costs, live: Live, k: int, n: int) -> None:
    """Work out stage k on node n anew, and with it the stage's slowest node."""
    was, now = live.stage_s[k, n], stage_of(terms, state, costs, live, k, n)
    live.stage_s[k, n] = now
    live.sums[STAGES] += now - was
    slowest = live.slowest_s[k]
    if now >= slowest:
        slowest = now
    elif was >= slowest:
        slowest = 0.0
        for i in range(live.ratio.shape[0]):
            slowest = max(slowest, live.stage_s[k, i])
    live.sums[SLOWEST] += slowest - live.slowest_s[k]
    live.slowest_s[k] = slowest


@kernel
def refresh(
    terms: Terms, state: State, costs: Costs, live: Live, n: int, m: int, found: int, mode: int
) -> None:
    """Work out nodes n and m anew; their old part of the sums has been taken away."""
    if mode == BATCH:
        for j in range(found):
            restage(terms, state, costs, live, live.touched[j], n)
            restage(terms, state, costs, live, live.touched[j], m)
    live.ratio[n] = ratio_of(costs, live, n)
    live.ratio[m] = ratio_of(costs, live, m)
    account(costs, live, n, mode, 1.0)
    account(costs, live, m, mode, 1.0)


@kernel
def used_share(costs: Costs, live: Live, n: int) -> float:
    """Part of node n's CPU in use, by us and by others."""
    if costs.installed[n] == np.inf or costs.installed[n] <= 0.0:
        return 0.0
    return (
        live.grows[n] + live.fixed[n] + live.sending[n] + costs.installed[n] - costs.cpu[n]
    ) / costs.installed[n]


@kernel
def cost_of(live: Live, mode: int) -> float:
    """What the search lowers: a soft maximum of the ratios, the batch's seconds, or the variance of the load."""
    nodes = live.ratio.shape[0]
    if mode == BATCH:  # of equally long batches, the one that leaves nodes idle
        return live.sums[SLOWEST] + 1e-3 * live.sums[STAGES] / nodes
    if mode == BALANCE:
        return max(0.0, live.sums[SQUARES] / nodes - (live.sums[SHARES] / nodes) ** 2)
    return max(0.0, live.sums[SOFT]) ** (1.0 / STEEP)


@kernel
def priced(live: Live, mode: int, scale: float) -> float:
    """The cost, with what is overloaded priced so that a search can pass through it."""
    return cost_of(live, mode) + PASSING_PRICE * scale * min(live.sums[OVER], 3.0)


@kernel
def value_of(live: Live, mode: int) -> float:
    """The objective itself, to be lowered."""
    if mode != RATE:
        return cost_of(live, mode) + (
            OVER_PRICE * live.sums[OVER] if live.sums[OVER] > 1e-9 else 0.0
        )
    most = 0.0
    for n in range(live.ratio.shape[0]):
        most = max(most, live.ratio[n])
    return most


@kernel
def keep(state: State, best: Ints) -> None:
    """Remember the counts."""
    nodes, classes = state.x.shape
    for n in range(nodes):
        for c in range(classes):
            best[n, c] = state.x[n, c]


@kernel
def even_out(
    terms: Terms,
    state: State,
    costs: Costs,
    live: Live,
    rng: Rng,
    best: Ints,
    best_value: Floats,
    steps: int,
    mode: int,
    heat: float,
) -> None:
    """Propose `steps` moves or swaps; a step may lose, on average, the part `heat` of the cost. The best counts end up in `best`."""
    nodes, classes = state.x.shape
    load_live(terms, state, costs, live, mode)
    scale = max(cost_of(live, mode), 1e-12)
    cost = priced(live, mode, scale)
    value = value_of(live, mode)
    if value < best_value[0] * (1 - 1e-12):
        best_value[0] = value
        keep(state, best)
    fullest = 0
    for step in range(steps):
        if step % 16 == 0:
            for n in range(nodes):
                if live.ratio[n] > live.ratio[fullest]:
                    fullest = n
        if mode == RATE and random_share(rng) < 0.5 and state.contents[fullest] > 0:
            n = fullest
            c = int(state.content[n, pick(rng, state.contents[n])])
        else:
            c = pick(rng, classes)
            if state.holders[c] == 0:
                continue
            n = int(state.holder[c, pick(rng, state.holders[c])])
        m = pick(rng, nodes)
        if m == n or not terms.allowed[m, c] or (terms.apart[c] and state.x[m, c] > 0):
            continue
        k = chunk_of(rng, state.x[n, c], 0.5)
        d = c
        k2 = ZERO
        if random_share(rng) < 0.4 and state.contents[m] > 0:
            d = int(state.content[m, pick(rng, state.contents[m])])
            if d == c or not terms.allowed[n, d] or (terms.apart[d] and state.x[n, d] > 0):
                continue
            k2 = chunk_of(rng, state.x[m, d], 0.5)
        if (
            overload_after(terms, state, m, c, k, d, -k2) > 0.0
            or overload_after(terms, state, n, c, -k, d, k2) > 0.0
        ):
            continue
        found = touched_by(costs, live, c, ZERO)
        if k2 > 0:
            found = touched_by(costs, live, d, found)
        exchange(terms, state, costs, live, c, n, m, k, d, k2, found, mode)
        now = priced(live, mode, scale)
        if now <= cost - heat * scale * np.log(1.0 - random_share(rng)):
            cost = now
            value = (
                value_of(live, mode)
                if mode != RATE or now < best_value[0] / live.sums[SCALE] * 1.5
                else np.inf
            )
            if value < best_value[0] * (1 - 1e-9):
                best_value[0] = value
                keep(state, best)
        else:
            exchange(terms, state, costs, live, c, m, n, k, d, k2, found, mode)


@kernel
def exchange(
    terms: Terms,
    state: State,
    costs: Costs,
    live: Live,
    c: int,
    n: int,
    m: int,
    k: int,
    d: int,
    k2: int,
    found: int,
    mode: int,
) -> None:
    """Move k tasks of class c from node n to node m, and k2 of class d back."""
    account(costs, live, n, mode, -1.0)
    account(costs, live, m, mode, -1.0)
    put(terms, state, c, n, -k)
    shift(terms, costs, live, c, n, -k)
    if k2 > 0:
        put(terms, state, d, m, -k2)
        shift(terms, costs, live, d, m, -k2)
        put(terms, state, d, n, k2)
        shift(terms, costs, live, d, n, k2)
    put(terms, state, c, m, k)
    shift(terms, costs, live, c, m, k)
    refresh(terms, state, costs, live, n, m, found, mode)
