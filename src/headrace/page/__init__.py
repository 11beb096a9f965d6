"""Plans as HTML: one page, or fragments for notebooks.

No network, no framework, readable without script and on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import headrace
from headrace.errors import HeadraceError, InvalidInput
from headrace.page.change import what_if
from headrace.page.comparison import comparison
from headrace.page.cost_curve import cost_curve
from headrace.page.explanation import explanation
from headrace.page.headline import headline
from headrace.page.markup import Html, join
from headrace.page.notebook import comparison_fragment, plan_fragment, problem_fragment
from headrace.page.parts import footer
from headrace.page.placement import placement
from headrace.page.sheet import sheet
from headrace.page.topology import topology
from headrace.page.trade_off import trade_off as trade_off_section
from headrace.page.view import View
from headrace.planner import CostCurve, TradeOff, Yardstick
from headrace.planner.result import Outcome

__all__ = ["comparison_fragment", "page", "plan_fragment", "problem_fragment", "sections"]

# In reading order. A section that has nothing to say gives nothing.
SECTIONS: tuple[Callable[[View], Html], ...] = (
    headline,
    what_if,
    topology,
    placement,
    comparison,
    trade_off_section,
    cost_curve,
    explanation,
)


def page(
    results: Sequence[Outcome],
    *,
    title: str | None = None,
    command: str | None = None,
    curve: CostCurve | None = None,
    yardstick: Yardstick | None = None,
    trade_off: TradeOff | None = None,
    before: Sequence[Outcome] | HeadraceError | None = None,
) -> str:
    """One HTML document about plans of one problem; the same results give the same bytes.

    `before` is what the same command gives without the change that was tried.
    """
    if not results:
        raise InvalidInput("no result to show: a page needs at least one plan or refusal")
    if title is None:
        problem = next((result.problem for result in results if result.problem is not None), None)
        title = ", ".join(problem.topologies[:3]) if problem is not None else "headrace"
    view = View.of(results, title, command, curve, yardstick, trade_off, before)
    first = view.results[0]
    made = f"headrace {headrace.__version__}, objective {first.objective}, seed {first.seed}."
    return sheet(title, sections(view), footer(made, command))


def sections(view: View) -> Html:
    """All that a page says of its results, for a page that says more."""
    return join(section(view) for section in SECTIONS)
