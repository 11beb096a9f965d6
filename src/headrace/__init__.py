"""Plans stream-processing topologies: how many tasks, on which machines, which beside which.

    import headrace as hr
    case = hr.load("app.yaml", "cluster.yaml")
    plan = hr.place(case)
    plan.report.inter_node_traffic, plan.node_of["count.3"]

Every name below is loaded on first use, so that `import headrace` costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headrace.errors import HeadraceError, Infeasible, InvalidInput, Unsupported
    from headrace.library.advice import Advice, advise, attach
    from headrace.library.case import Case, Cluster, case, example, load
    from headrace.library.changes import diff, move, move_blocks, move_safely
    from headrace.library.comparison import Comparison
    from headrace.library.simulation import simulate
    from headrace.library.verbs import (
        compare,
        explain,
        judge,
        load_plan,
        place,
        plan,
        provision,
        schedulers,
        size,
        trade_off,
    )
    from headrace.model.problem import Assignment, Problem
    from headrace.model.request import Request
    from headrace.model.topology import Topology
    from headrace.planner.result import Plan, Refusal
    from headrace.planner.trade_off import TradeOff
    from headrace.simulate.result import Simulation

__all__ = [
    "Advice",
    "Assignment",
    "Case",
    "Cluster",
    "Comparison",
    "HeadraceError",
    "Infeasible",
    "InvalidInput",
    "Plan",
    "Problem",
    "Refusal",
    "Request",
    "Simulation",
    "Topology",
    "TradeOff",
    "Unsupported",
    "advise",
    "attach",
    "case",
    "compare",
    "diff",
    "example",
    "explain",
    "judge",
    "load",
    "load_plan",
    "move",
    "move_blocks",
    "move_safely",
    "place",
    "plan",
    "provision",
    "schedulers",
    "simulate",
    "size",
    "trade_off",
]

_HOMES = {
    "Advice advise attach": "headrace.library.advice",
    "Case Cluster case example load": "headrace.library.case",
    "Comparison": "headrace.library.comparison",
    "diff move move_blocks move_safely": "headrace.library.changes",
    "simulate": "headrace.library.simulation",
    "Simulation": "headrace.simulate.result",
    "HeadraceError Infeasible InvalidInput Unsupported": "headrace.errors",
    "Assignment Problem": "headrace.model.problem",
    "Request": "headrace.model.request",
    "Topology": "headrace.model.topology",
    "Plan Refusal": "headrace.planner.result",
    "TradeOff": "headrace.planner.trade_off",
}
_HOME = {name: home for names, home in _HOMES.items() for name in names.split()}


class _FrontDoor(ModuleType):
    """Keeps `headrace.place` the function, also once the folder `headrace/place` was imported.

    Importing a folder sets an attribute of that name on its package. Here the name is taken.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'headrace' has no attribute {name!r}")
        home = importlib.import_module(_HOME.get(name, "headrace.library.verbs"))
        value = getattr(home, name)
        super().__setattr__(name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _FrontDoor
