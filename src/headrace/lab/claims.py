"""What a paper says, what comes out here, and whether the two agree.

A claim's status is written by hand in `claims.toml` and checked by the experiment: neither a claim
called reproduced that is not, nor one called not reproduced that is, passes.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headrace.errors import InvalidInput

Value = float | bool | str | list[Any]
Status = Literal["reproduced", "shape only", "not reproduced", "not testable"]
STATUSES: tuple[Status, ...] = ("reproduced", "shape only", "not reproduced", "not testable")
HOW = {
    "computed": "computed from the paper's own data with its own algorithm",
    "modelled": "computed by the judge's model instead of measured on the paper's hardware",
    "simulated": "simulated tuple by tuple instead of measured on the paper's hardware",
    "run": "run on Spark on this machine",
}
NEEDED = ("id", "where", "says", "value", "status", "how", "derivation")
KNOWN = (*NEEDED, "unit", "tolerance", "reason", "quick")


@dataclass(frozen=True, slots=True)
class Claim:
    """One published number, or one published ordering (value true)."""

    id: str
    where: str  # table, figure, section
    says: str
    value: Value
    status: Status
    how: str
    derivation: str  # how the experiment gets at it
    unit: str = ""
    tolerance: float = 0.0  # absolute, in the claim's unit
    reason: str = ""  # why it is not reproduced
    quick: bool = False  # also measured by the quick run


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out; `shape`: the claim's ordering or trend holds, where its number does not.

    Not `testable`: the answer hangs on something that the paper does not publish.
    """

    value: Value
    shape: bool | None = None
    note: str = ""
    testable: bool = True


@dataclass(frozen=True, slots=True)
class Paper:
    """A source document and its claims."""

    name: str
    reference: str
    words: str  # what the paper is about, and how its experiments were repeated
    claims: tuple[Claim, ...]


def read_paper(folder: Path) -> Paper:
    """The claims of a folder, checked for form."""
    file = folder / "claims.toml"
    with file.open("rb") as stream:
        content = tomllib.load(stream)
    claims: list[Claim] = []
    for entry in content["claim"]:
        where = f"{file}: claim `{entry.get('id', '?')}`"
        for key in NEEDED:
            if key not in entry:
                raise InvalidInput(f"{where}: `{key}` is missing")
        for key in entry:
            if key not in KNOWN:
                raise InvalidInput(f"{where}: unknown key `{key}`; there are: {', '.join(KNOWN)}")
        if entry["status"] not in STATUSES:
            raise InvalidInput(
                f"{where}: status `{entry['status']}`; there are: {', '.join(STATUSES)}"
            )
        if entry["how"] not in HOW:
            raise InvalidInput(f"{where}: how `{entry['how']}`; there are: {', '.join(HOW)}")
        if entry["status"] != "reproduced" and not entry.get("reason"):
            raise InvalidInput(f"{where}: a claim that is {entry['status']} needs a `reason`")
        claims.append(Claim(**entry))
    ids = [claim.id for claim in claims]
    for claim_id in ids:
        if ids.count(claim_id) > 1:
            raise InvalidInput(f"{file}: claim `{claim_id}` is there twice")
    return Paper(content["name"], content["reference"], content["words"], tuple(claims))


def verdict(claim: Claim, measured: Measured) -> Status:
    """What the experiment says of a claim, whatever its file says."""
    if not measured.testable:
        return "not testable"
    if agrees(claim.value, measured.value, claim.tolerance):
        return "reproduced"
    return "shape only" if measured.shape else "not reproduced"


def agrees(said: Value, found: Value, tolerance: float) -> bool:
    """Equal, numbers within the tolerance; lists element by element."""
    if isinstance(said, list) or isinstance(found, list):
        if not isinstance(said, list) or not isinstance(found, list) or len(said) != len(found):
            return False
        return all(agrees(a, b, tolerance) for a, b in zip(said, found, strict=True))
    if isinstance(said, bool | str) or isinstance(found, bool | str):
        return type(said) is type(found) and said == found
    return math.isfinite(found) and abs(said - found) <= tolerance + 1e-9 * max(1.0, abs(said))


def disagreements(claims: Sequence[Claim], measured: Mapping[str, Measured]) -> list[str]:
    """Claims whose status is not what the experiment shows, or that only one side knows."""
    wrong = [
        f"{claim.id}: no experiment measures it" for claim in claims if claim.id not in measured
    ]
    wrong += [
        f"{name}: measured, but there is no such claim"
        for name in measured
        if name not in {c.id for c in claims}
    ]
    for claim in claims:
        if claim.id in measured and (shown := verdict(claim, measured[claim.id])) != claim.status:
            found = measured[claim.id].value
            wrong.append(
                f"{claim.id}: called {claim.status}, but is {shown} "
                f"(published {claim.value}, measured {found})"
            )
    return wrong
