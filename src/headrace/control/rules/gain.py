"""Move for a gain that outweighs the move: ours.

A plan that does not carry its load is left at once for one that does. Otherwise the figure asked
for must get better by a percentage, widened by what predictions were wrong by lately; what is saved
over a horizon must exceed what moving costs; and plans do not flap.

Source    ours
Maturity  ours
Guards    a plan stays for a while, and does not come back soon after it was left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from headrace.control.choice import (
    Adopted,
    Choice,
    Decision,
    all_of,
    check_not_negative,
    sustained,
    why_overloaded,
)
from headrace.control.rules.aniello import weigh_traffic
from headrace.errors import InvalidInput
from headrace.judge.report import FIGURES
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem


def gain(
    choice: Choice,
    *,
    improve_percent: float = 10.0,
    horizon_s: float = 600.0,
    dwell_s: float | None = None,
    intervals: int = 10,
    patience: float = 1.5,
) -> Decision:
    """Leave a plan that does not carry its load; else move for a gain that is worth it.

    A plan stays for `dwell_s` (absent: one interval), and one that was left does not come back
    within so many intervals. Where counts change, machines are given back once as much was spared
    too late as all of them do in `patience` intervals: a fall that does not last moves nothing, and
    one that goes on moves in few large steps.
    """
    if not choice.runs_well:
        return relieve(choice, improve_percent)
    asked = improve_percent + choice.error_percent
    return all_of(
        weigh_gain(choice, asked, horizon_s, patience),
        no_flapping(
            choice.plan,
            choice.adopted,
            choice.at_s,
            interval_s=choice.interval_s,
            intervals=intervals,
            dwell_s=choice.interval_s if dwell_s is None else dwell_s,
        ),
    )


def relieve(choice: Choice, improve_percent: float) -> Decision:
    """The running plan does not carry its load: the new one must, or come nearer to it."""
    a, b = sustained(choice.now), sustained(choice.then)
    words = f"the running plan does not carry its load ({why_overloaded(choice.now)})"
    if choice.would_run_well:
        return Decision(True, f"{words}; the new one does", {"now": a, "then": b})
    rises = 100 * (b / a - 1) if a > 0 else math.inf
    return Decision(
        rises > 0 and rises >= improve_percent,
        f"{words}; nor does the new one, which sustains {b:.3g} of the input instead of {a:.3g}",
        {"now": a, "then": b},
    )


def weigh_gain(choice: Choice, asked_percent: float, horizon_s: float, patience: float) -> Decision:
    """Whether the figure asked for gets better by enough, and pays for the move."""
    now, then, objective = choice.now, choice.then, choice.objective
    if objective == "batch" and now.batch_seconds is not None and then.batch_seconds is not None:
        return faster_batches(
            now.batch_seconds,
            then.batch_seconds,
            transfer_s=choice.transfer_s,
            horizon_s=horizon_s,
            improve_percent=asked_percent,
        )
    if objective == "rate":
        return faster_rate(choice, asked_percent)
    if objective == "nodes":
        return fewer_cores(choice, asked_percent, horizon_s, patience)
    figure = FIGURES[objective if objective != "batch" else "traffic"]
    before, after = float(getattr(now, figure)), float(getattr(then, figure))
    falls = weigh_traffic(before, after, improve_percent=asked_percent)
    if figure != "inter_node_traffic" or choice.transfer_s <= 0:
        return falls
    pays = worth_it(
        saved_per_s=max(0.0, before - after),
        horizon_s=horizon_s,
        input_per_s=choice.input_per_s,
        capacity_per_s=_finite(sustained(then)) * choice.input_per_s,
        lag=choice.lag,
        transfer_s=choice.transfer_s,
    )
    return all_of(falls, pays)


def _finite(factor: float) -> float:
    return factor if math.isfinite(factor) else 1e9


def faster_rate(choice: Choice, asked_percent: float) -> Decision:
    """Whether the rate that a plan sustains rises by enough."""
    a, b = sustained(choice.now), sustained(choice.then)
    rises = 100 * (b / a - 1) if math.isfinite(a) and a > 0 else 0.0
    words = (
        f"the sustained rate rises from {a:.4g} to {b:.4g} times the input, "
        f"by {rises:.3g} %; {asked_percent:g} % are asked"
    )
    numbers = {"rises_percent": rises, "transfer_s": choice.transfer_s}
    return Decision(rises > 0 and rises >= asked_percent, words, numbers)


def fewer_cores(
    choice: Choice, asked_percent: float, horizon_s: float, patience: float
) -> Decision:
    """Whether enough machines become free: their core-seconds against those of the transfer."""
    now = cores_in_use(choice.problem, choice.running)
    then = cores_in_use(choice.planned_for, choice.planned)
    falls = 100 * (now - then) / now if now > 0 else 0.0
    saved, cost = (now - then) * horizon_s, now * choice.transfer_s
    numbers = {"cores_now": now, "cores_then": then, "falls_percent": falls, "cost": cost}
    words = (
        f"{then:g} cores instead of {now:g} are in use, {falls:.3g} % less; "
        f"{asked_percent:g} % are asked"
    )
    if falls <= 0 or falls < asked_percent * (1 - 1e-12):
        return Decision(False, words, numbers)
    words += f": {saved:.3g} core-seconds in {horizon_s:g} s, against {cost:.3g} of transfer"
    price = patience * choice.interval_s * now
    if saved > cost and choice.spare_core_s is not None and choice.spare_core_s < price:
        words += (
            f"; since the last move {choice.spare_core_s:.3g} core-seconds were not needed, "
            f"and a smaller plan comes at {price:.3g}"
        )
        return Decision(False, words, numbers)
    return Decision(saved > cost, words, numbers)


def cores_in_use(problem: Problem, plan: Assignment) -> float:
    """Cores of the nodes that hold tasks; a node counts as 1 where its CPU is not known."""
    used = np.unique(plan.node[plan.node != UNPLACED])
    cores = problem.capacity[used, CPU] / 100
    return float(np.where(np.isfinite(cores), cores, 1.0).sum())


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
    check_not_negative(
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
    check_not_negative(now_s=now_s, then_s=then_s, transfer_s=transfer_s, horizon_s=horizon_s)
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
    check_not_negative(interval_s=interval_s, intervals=intervals, dwell_s=dwell_s)
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
