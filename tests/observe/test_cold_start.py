"""Estimates come from what is most alike, and say so."""

from __future__ import annotations

import pytest

from headrace.errors import InvalidInput
from headrace.observe.cold_start import Wanted, estimates
from headrace.observe.fit import Fit


def fit(component: str, machine: str, cpu_ms: float, *, spout: bool = False) -> Fit:
    return Fit("words", component, machine, cpu_ms, 1.0, 0.99, 100, None, spout)


KNOWN = [
    fit("split", "i7", 0.5),
    fit("split", "i5", 1.0),
    fit("count", "i7", 0.2),
    fit("say", "i7", 0.01, spout=True),
]


def estimated(
    name: str, machine: str, *, spout: bool = False, ghz: dict[str, float] | None = None
) -> tuple[float, str]:
    found = estimates([Wanted(name, spout)], [machine], {}, KNOWN, ghz or {})[name][machine]
    assert found["estimated"]
    return found["cpu_ms"], found["flag"]


def test_the_same_component_of_another_topology_comes_first() -> None:
    assert estimated("split", "i5") == (1.0, "estimated from split on i5")
    assert estimated("other/split", "i7") == (0.5, "estimated from split on i7")


def test_another_machine_type_is_scaled_by_what_ran_on_both_or_by_the_clock() -> None:
    assert estimated("count", "i5") == (0.4, "estimated from count on i7")
    assert estimated("count", "i3", ghz={"i7": 3.0, "i3": 1.5})[0] == pytest.approx(0.4)
    assert estimated("count", "i3")[0] == 0.2


def test_a_name_alike_comes_before_all_of_the_same_role() -> None:
    assert estimated("splitter", "i7") == (0.5, "estimated from split on i7")
    assert estimated("rank", "i7") == (0.35, "estimated from count on i7 and 1 more")
    assert estimated("source", "i7", spout=True) == (0.01, "estimated from say on i7")


def test_what_was_measured_is_not_estimated() -> None:
    assert estimates(
        [Wanted("split", False)], ["i7", "i5"], {"split": {"i7": {}}}, KNOWN, {}
    ).keys() == {"split"}
    assert estimates([Wanted("split", False)], ["i7", "i5"], {"split": {"*": {}}}, KNOWN, {}) == {}
    with pytest.raises(InvalidInput, match="nothing to estimate from"):
        estimates([Wanted("split", False)], ["i7"], {}, [], {})
