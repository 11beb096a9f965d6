"""The one front door to the algorithms: choose one, run it, time it, judge the result.

No algorithm times, scores or logs itself. The library, the loop, the lab and Spark's fan-out all
come through here.

    result.py     a plan, or the refusal in its place
    placing.py    place, judge a plan that is given
    sizing.py     size and provision: counts and machines, for absolute rates
    comparing.py  the same question to many algorithms
    stages.py     all stages, and what moves from the current plan
    trade_off.py  rate against traffic: the plans between both objectives
    cost_curve.py rate against cost around a plan
    suggesting.py what would have to change for a better plan
"""

from headrace.judge.report import FIGURES
from headrace.planner.comparing import (
    Yardstick,
    best,
    breaks_headroom,
    compare,
    compare_counts,
    standing,
    yardstick,
)
from headrace.planner.cost_curve import CostCurve, Point, cost_curve
from headrace.planner.placing import DEFAULT, judge_current, place
from headrace.planner.result import Outcome, Plan, Refusal
from headrace.planner.sizing import provision, size
from headrace.planner.stages import plan
from headrace.planner.trade_off import TradeOff, trade_off

OBJECTIVES = tuple(FIGURES)

__all__ = [
    "DEFAULT",
    "FIGURES",
    "OBJECTIVES",
    "CostCurve",
    "Outcome",
    "Plan",
    "Point",
    "Refusal",
    "TradeOff",
    "Yardstick",
    "best",
    "breaks_headroom",
    "compare",
    "compare_counts",
    "cost_curve",
    "judge_current",
    "place",
    "plan",
    "provision",
    "size",
    "standing",
    "trade_off",
    "yardstick",
]
