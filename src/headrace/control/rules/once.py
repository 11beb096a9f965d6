"""Run under the first plan for a while, then move once.

Source    L. Eskandari, PhD thesis, section 5.4: round-robin scheduling for 50 to 60 s, in which the
          traffic is measured, then one rescheduling.
Maturity  faithful
Guards    nothing beyond the loop's own: a plan that overloads takes no sound one's place.
"""

from headrace.control.choice import Choice, Decision


def once(choice: Choice, *, after_s: float = 60.0) -> Decision:
    """Move at the first decision after so many seconds, whatever that gains."""
    moved = [adopted for adopted in choice.adopted if adopted.by_rule]
    ran_s = choice.at_s - choice.started_s
    if moved:
        ago_s = choice.at_s - moved[0].at_s
        return Decision(False, f"the one move was {ago_s:g} s ago", {"ran_s": ran_s})
    if ran_s < after_s:
        words = f"measuring for {ran_s:g} s; the one move comes after {after_s:g} s"
        return Decision(False, words, {"ran_s": ran_s})
    words = (
        f"the one move, after {ran_s:g} s: traffic between nodes goes from "
        f"{choice.now.inter_node_traffic:g} to {choice.then.inter_node_traffic:g} tuples/s"
    )
    return Decision(True, words, {"ran_s": ran_s})
