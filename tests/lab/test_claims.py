"""Claims: a status that the experiment does not show is found, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import InvalidInput
from headrace.lab.claims import Claim, Measured, agrees, disagreements, read_paper, verdict


def claim(**given: object) -> Claim:
    fields = {
        "id": "a",
        "where": "table 1",
        "says": "it is 10",
        "value": 10.0,
        "status": "reproduced",
        "how": "computed",
        "derivation": ".",
    }
    return Claim(**{**fields, **given})  # pyright: ignore[reportArgumentType]


def test_a_number_within_its_tolerance_is_reproduced() -> None:
    assert verdict(claim(tolerance=0.5), Measured(10.5)) == "reproduced"
    assert verdict(claim(tolerance=0.5), Measured(10.6)) == "not reproduced"
    assert verdict(claim(tolerance=0.5), Measured(10.6, shape=True)) == "shape only"
    assert verdict(claim(tolerance=0.5), Measured(float("nan"))) == "not reproduced"


def test_what_hangs_on_something_unpublished_is_neither_reproduced_nor_refuted() -> None:
    open_question = Measured(10.0, shape=True, testable=False)
    assert verdict(claim(), open_question) == "not testable"
    called = claim(status="not testable", reason="the load is not published")
    assert disagreements([called], {"a": open_question}) == []
    assert disagreements([called], {"a": Measured(10.0)}) == [
        "a: called not testable, but is reproduced (published 10.0, measured 10.0)"
    ]


def test_true_is_not_one_and_lists_agree_element_by_element() -> None:
    assert not agrees(True, 1.0, 0.0)
    assert agrees([1.0, 2.0], [1.0, 2.1], 0.2)
    assert not agrees([1.0, 2.0], [1.0], 0.2)
    assert agrees("vt1", "vt1", 0.0)


def test_a_wrong_status_is_found_in_both_directions() -> None:
    boasts = claim()
    hides = claim(id="b", status="not reproduced", reason="x")
    wrong = disagreements([boasts, hides], {"a": Measured(11.0), "b": Measured(10.0)})
    assert wrong == [
        "a: called reproduced, but is not reproduced (published 10.0, measured 11.0)",
        "b: called not reproduced, but is reproduced (published 10.0, measured 10.0)",
    ]


def test_what_nobody_measures_or_claims_is_found() -> None:
    assert disagreements([claim()], {"c": Measured(1.0)}) == [
        "a: no experiment measures it",
        "c: measured, but there is no such claim",
    ]


GOOD = """
name = "A paper"
reference = "Somebody, 2020"
words = "."
[[claim]]
id = "a"
where = "table 1"
says = "it is 10"
value = 10
status = "reproduced"
how = "computed"
derivation = "."
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('where = "table 1"\n', "", "claim `a`: `where` is missing"),
        ('"reproduced"', '"proved"', "status `proved`; there are: reproduced"),
        ('"reproduced"', '"not reproduced"', "needs a `reason`"),
        ('how = "computed"', 'how = "guessed"', "how `guessed`"),
        ("value = 10", "value = 10\nvalu = 3", "unknown key `valu`"),
    ],
)
def test_a_malformed_claim_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    (tmp_path / "claims.toml").write_text(GOOD)
    assert read_paper(tmp_path).claims[0].value == 10
    (tmp_path / "claims.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(InvalidInput, match=says):
        read_paper(tmp_path)
