"""Never move: what the first plan does, for comparison.

Source    ours
Maturity  ours
Guards    tasks whose node is lost start elsewhere all the same, as under every rule.
"""

from headrace.control.choice import Choice, Decision


def never(choice: Choice) -> Decision:
    """Stay, whatever there is to gain."""
    del choice
    return Decision(False, "the rule `never` keeps the first plan")
