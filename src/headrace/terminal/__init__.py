"""What commands print for people: tables, bars and sentences.

`terminal.show(terminal.plan(result))`: each function gives something that `show` prints. Only
commands that print for people import this, because it loads rich; `--json` does not need it.
"""

from headrace.terminal.changes import difference, what_if, who_moves
from headrace.terminal.console import remarks, show
from headrace.terminal.plans import plan
from headrace.terminal.reasons import explanation, stream_table, suggestions
from headrace.terminal.runs import live_run
from headrace.terminal.schedulers import comparison, scheduler_list
from headrace.terminal.simulations import simulation, simulations
from headrace.terminal.trade_off import trade_off
from headrace.terminal.transfers import class_tables, movers, moves, safe_order

__all__ = [
    "class_tables",
    "comparison",
    "difference",
    "explanation",
    "live_run",
    "movers",
    "moves",
    "plan",
    "remarks",
    "safe_order",
    "scheduler_list",
    "show",
    "simulation",
    "simulations",
    "stream_table",
    "suggestions",
    "trade_off",
    "what_if",
    "who_moves",
]
