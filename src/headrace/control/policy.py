"""Is it worth moving? Pure rules, each a decision with its reason in numbers.

The caller brings the clock and the measurements.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from headrace.errors import InvalidInput
from headrace.judge.report import Report
from headrace.model.problem import CPU, Assignment, Problem


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to move, why in words, and the numbers behind it."""

    move: bool
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


def all_of(*decisions: Decision) -> Decision:
    """Move only if every rule says so; the reason is the first objection, or all reasons."""
    for decision in decisions:
        if not decision.move:
            return decision
    numbers = {name: value for decision in decisions for name, value in decision.numbers.items()}
    return Decision(True, "; ".join(decision.reason for decision in decisions), numbers)


def worth_it(
    *,
    saved_per_s: float,
    horizon_s: float,
    input_per_s: float,
    capacity_per_s: float,
    capacity_now_per_s: float = math.inf,
    lag: float = 0.0,
    restart_s: float = 0.0,
    transfer_s: float = 0.0,
    delay_price: float = 1.0,
) -> Decision:
    """Gain over a horizon against pause, transfer and catch-up.

    Nothing is processed for restart + transfer seconds. Then the lag, and what came in meanwhile,
    is worked off at the rate the new plan can do beyond its input: lag / catch-up + input x stop /
    catch-up seconds. From then on, tuples/s that no longer cross between nodes count as gain; every
    tuple that came in before is late and costs `delay_price` such tuples. A running plan that
    cannot keep up with its input is left wherever that means less lag at the horizon, whatever it
    saves. Rates are tuples/s, the lag is in tuples.
    """
    _check_not_negative(
        horizon_s=horizon_s,
        input_per_s=input_per_s,
        capacity_per_s=capacity_per_s,
        capacity_now_per_s=capacity_now_per_s,
        lag=lag,
        restart_s=restart_s,
        transfer_s=transfer_s,
        delay_price=delay_price,
    )
    stop_s = restart_s + transfer_s
    if capacity_now_per_s < input_per_s:
        return _behind(horizon_s, input_per_s, capacity_now_per_s, capacity_per_s, lag, stop_s)
    catch_up_per_s = capacity_per_s - input_per_s
    if catch_up_per_s <= 0:
        reason = (
            f"the new plan does {capacity_per_s:g} tuples/s and {input_per_s:g} come in: "
            "it would never catch up"
        )
        return Decision(False, reason, {"stop_s": stop_s, "catch_up_per_s": catch_up_per_s})
    catch_up_s = lag / catch_up_per_s + input_per_s * stop_s / catch_up_per_s
    disturbed_s = stop_s + catch_up_s
    gain = saved_per_s * max(0.0, horizon_s - disturbed_s)
    cost = delay_price * input_per_s * disturbed_s
    numbers = {
        "stop_s": stop_s,
        "catch_up_s": catch_up_s,
        "disturbed_s": disturbed_s,
        "gain": gain,
        "cost": cost,
    }
    times = f"{stop_s:g} s stop and {catch_up_s:g} s catch-up"
    if disturbed_s >= horizon_s:
        return Decision(False, f"{times} are no less than the horizon of {horizon_s:g} s", numbers)
    words = (
        f"{saved_per_s:g} tuples/s saved over {horizon_s:g} s come to {gain:g} tuples; "
        f"{times} delay {cost:g}"
    )
    return Decision(gain > cost, words, numbers)


def _behind(
    horizon_s: float,
    input_per_s: float,
    now_per_s: float,
    then_per_s: float,
    lag: float,
    stop_s: float,
) -> Decision:
    """The running plan cannot keep up: compare the lag at the horizon."""
    stays = lag + (input_per_s - now_per_s) * horizon_s
    stopped_s = min(stop_s, horizon_s)
    moves = max(
        0.0, lag + input_per_s * stopped_s - (then_per_s - input_per_s) * (horizon_s - stopped_s)
    )
    reason = (
        f"the running plan does {now_per_s:g} of {input_per_s:g} tuples/s; "
        f"in {horizon_s:g} s the lag is {stays:g} tuples if it stays, {moves:g} if it moves"
    )
    return Decision(
        moves < stays, reason, {"lag_if_stays": stays, "lag_if_moves": moves, "stop_s": stop_s}
    )


def faster_batches(
    now_s: float,
    then_s: float,
    *,
    transfer_s: float = 0.0,
    horizon_s: float = 600.0,
    improve_percent: float = 10.0,
) -> Decision:
    """For micro-batches: seconds of batch time saved over a horizon against seconds of transfer.

    A new plan stops nothing there. Batches follow one another without a break, so the
    horizon holds horizon / now of them.
    """
    _check_not_negative(now_s=now_s, then_s=then_s, transfer_s=transfer_s, horizon_s=horizon_s)
    falls = 100 * (now_s - then_s) / now_s if now_s > 0 else 0.0
    saved = (now_s - then_s) * horizon_s / now_s if now_s > 0 else 0.0
    numbers = {
        "now_s": now_s,
        "then_s": then_s,
        "falls_percent": falls,
        "saved_s": saved,
        "transfer_s": transfer_s,
    }
    words = f"a batch takes {then_s:.3g} s instead of {now_s:.3g} s, {falls:.3g} % less"
    if falls <= 0 or falls < improve_percent * (1 - 1e-12):
        return Decision(False, f"{words}; {improve_percent:g} % are asked", numbers)
    words += f": {saved:.3g} s saved in {horizon_s:g} s, against {transfer_s:.3g} s of transfer"
    return Decision(saved > transfer_s, words, numbers)


def aniello_threshold(
    current: float,
    best: float,
    *,
    improve_percent: float = 10.0,
    since_last_s: float = math.inf,
    min_interval_s: float = 180.0,
    relieves_overload: bool = False,
) -> Decision:
    """Aniello's rule: traffic falls by a percentage, or the load of an overloaded node falls.

    And the last move is long enough ago. Source: Aniello et al. 2013 as its authors' code has it,
    except that the threshold is not cut down to a whole number: that would never let a plan with
    less than one tuple/s between nodes be improved.
    """
    _check_not_negative(current=current, best=best, min_interval_s=min_interval_s)
    if not 0 <= improve_percent <= 100:
        raise InvalidInput(f"improve_percent is {improve_percent:g}; it must be between 0 and 100")
    falls = 100 * (current - best) / current if current > 0 else 0.0
    numbers = {
        "current": current,
        "best": best,
        "falls_percent": falls,
        "since_last_s": since_last_s,
    }
    if since_last_s < min_interval_s:
        return Decision(
            False,
            f"the last move was {since_last_s:g} s ago; {min_interval_s:g} s must pass",
            numbers,
        )
    if relieves_overload:
        return Decision(True, "the load of an overloaded node falls", numbers)
    words = (
        f"traffic between nodes falls from {current:g} to {best:g} tuples/s, "
        f"by {falls:.3g} %; {improve_percent:g} % are asked"
    )
    return Decision(falls > 0 and falls >= improve_percent * (1 - 1e-12), words, numbers)


@dataclass(frozen=True, slots=True)
class Levels:
    """Traffic by how far it goes, in tuples/s, and the resources in use."""

    inter_node: float
    inter_slot: float  # between slots of one node
    inter_executor: float  # between executors of one slot
    nodes_used: int
    busiest: float  # largest utilisation of a node's CPU; 0 where no capacity is known

    @staticmethod
    def of(problem: Problem, report: Report) -> Levels:
        """The levels of a judged plan."""
        busiest = 0.0
        for n, name in enumerate(problem.nodes):
            used, capacity = report.nodes.get(name), float(problem.capacity[n, CPU])
            if used is not None and math.isfinite(capacity) and capacity > 0:
                busiest = max(
                    busiest, (float(used["cpu"] or 0) + float(used["cpu_taken"] or 0)) / capacity
                )
        node, worker, total = (
            report.inter_node_traffic,
            report.inter_worker_traffic,
            report.total_traffic,
        )
        return Levels(node, worker - node, total - worker, report.nodes_used, busiest)

    @property
    def way(self) -> float:
        """Tuples/s times how far they go: 2 to another node, 1 to another slot, 0 within one."""
        return 2 * self.inter_node + self.inter_slot


def muhammad_tune(
    now: Levels, then: Levels, *, improve_percent: float = 5.0, most_busy: float = 1.0
) -> Decision:
    """Tune Scheduling: move if tuples go less far on no more nodes, or if a node is overloaded.

    Source: Muhammad 2023, section 3.1, which says what is looked at (traffic at node, slot and
    executor level, resources used) but not the rule. Ours: traffic counts by how far it goes; the
    new plan must not use more nodes, nor load its busiest node above `most_busy` and above now.
    """
    falls = 100 * (now.way - then.way) / now.way if now.way > 0 else 0.0
    numbers = {"falls_percent": falls, "busiest_now": now.busiest, "busiest_then": then.busiest}
    figures = (
        f"node {now.inter_node:g} -> {then.inter_node:g}, "
        f"slot {now.inter_slot:g} -> {then.inter_slot:g}, "
        f"executor {now.inter_executor:g} -> {then.inter_executor:g} tuples/s "
        f"({falls:.3g} % less way to go); nodes {now.nodes_used} -> {then.nodes_used}, "
        f"busiest {100 * now.busiest:.3g} % -> {100 * then.busiest:.3g} %"
    )
    if now.busiest > most_busy and then.busiest < now.busiest:
        return Decision(True, f"an overloaded node is relieved: {figures}", numbers)
    if then.busiest > most_busy and then.busiest > now.busiest:
        return Decision(False, f"a node would be overloaded: {figures}", numbers)
    if then.nodes_used > now.nodes_used:
        return Decision(False, f"more nodes would be used: {figures}", numbers)
    return Decision(
        falls > 0 and falls >= improve_percent * (1 - 1e-12),
        f"{figures}; {improve_percent:g} % are asked",
        numbers,
    )


@dataclass(frozen=True, slots=True)
class Adopted:
    """A plan that was put into force, and when."""

    plan: str
    at_s: float


def fingerprint(plan: Assignment) -> str:
    """A short name for a plan: the same for the same places of all tasks."""
    return hashlib.sha256(
        np.stack([plan.node, plan.worker]).astype(np.int64).tobytes()
    ).hexdigest()[:16]


def no_flapping(
    plan: str,
    history: Sequence[Adopted],
    now_s: float,
    *,
    interval_s: float = 60.0,
    intervals: int = 10,
    dwell_s: float = 60.0,
) -> Decision:
    """Stay with a plan for `dwell_s`, and do not return to one left in the last `intervals`.

    The history is in the order of time; its last plan is in force.
    """
    _check_not_negative(interval_s=interval_s, intervals=intervals, dwell_s=dwell_s)
    if not history:
        return Decision(True, "no plan was changed before")
    if (
        any(later.at_s < earlier.at_s for earlier, later in pairwise(history))
        or now_s < history[-1].at_s
    ):
        raise InvalidInput("the history of plans is not in the order of time")
    held_s, window_s = now_s - history[-1].at_s, intervals * interval_s
    numbers = {"held_s": held_s, "dwell_s": dwell_s, "window_s": window_s}
    if plan == history[-1].plan:
        return Decision(False, f"this plan is in force already, for {held_s:g} s", numbers)
    if held_s < dwell_s:
        return Decision(
            False, f"the plan in force is {held_s:g} s old; it stays for {dwell_s:g} s", numbers
        )
    for adopted, following in reversed(list(pairwise(history))):
        left_s = now_s - following.at_s
        if adopted.plan == plan and left_s < window_s:
            reason = (
                f"this plan was left {left_s:g} s ago; "
                f"it does not come back within {intervals} intervals of {interval_s:g} s"
            )
            return Decision(False, reason, {**numbers, "left_s": left_s})
    return Decision(
        True,
        f"the plan in force is {held_s:g} s old, "
        f"and this one was not in force in the last {window_s:g} s",
        numbers,
    )


def _check_not_negative(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise InvalidInput(f"{name} is {value:g}; it must be 0 or more")
