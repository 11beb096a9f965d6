"""Move if traffic between nodes falls by a percentage, and not sooner than a time-out.

Source    L. Aniello et al., DEBS 2013, as its authors' code has it.
Maturity  faithful
Guards    nothing beyond the loop's own: a plan that overloads takes no sound one's place.
Differs   the threshold is not cut down to a whole number: that would never let a plan with less
          than one tuple/s between nodes be improved; load is counted, which the code forgets.
"""

import math

from headrace.control.choice import Choice, Decision, check_not_negative, sustained
from headrace.errors import InvalidInput


def aniello(choice: Choice, *, improve_percent: float = 10.0, timeout_s: float = 180.0) -> Decision:
    """Aniello's rule: traffic falls by a percentage, or the load of an overloaded node falls."""
    last = choice.adopted[-1].at_s if choice.adopted else -math.inf
    return weigh_traffic(
        choice.now.inter_node_traffic,
        choice.then.inter_node_traffic,
        improve_percent=improve_percent,
        since_last_s=choice.at_s - last,
        timeout_s=timeout_s,
        relieves_overload=sustained(choice.now) < min(1.0, sustained(choice.then)),
    )


def weigh_traffic(
    current: float,
    best: float,
    *,
    improve_percent: float = 10.0,
    since_last_s: float = math.inf,
    timeout_s: float = 180.0,
    relieves_overload: bool = False,
) -> Decision:
    """The rule in figures: traffic now and then, and seconds since the last move."""
    check_not_negative(current=current, best=best, timeout_s=timeout_s)
    if not 0 <= improve_percent <= 100:
        raise InvalidInput(f"improve_percent is {improve_percent:g}; it must be between 0 and 100")
    falls = 100 * (current - best) / current if current > 0 else 0.0
    numbers = {
        "current": current,
        "best": best,
        "falls_percent": falls,
        "since_last_s": since_last_s,
    }
    if since_last_s < timeout_s:
        words = f"the last move was {since_last_s:g} s ago; {timeout_s:g} s must pass"
        return Decision(False, words, numbers)
    if relieves_overload:
        return Decision(True, "the load of an overloaded node falls", numbers)
    words = (
        f"traffic between nodes falls from {current:g} to {best:g} tuples/s, "
        f"by {falls:.3g} %; {improve_percent:g} % are asked"
    )
    return Decision(falls > 0 and falls >= improve_percent * (1 - 1e-12), words, numbers)
