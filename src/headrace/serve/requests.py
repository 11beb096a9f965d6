"""What requests may hold: the models behind validation and behind the API's description."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from headrace.judge.report import FIGURES

MOST_POINTS = 4000
Name = Annotated[str, Field(min_length=1, max_length=300)]
Text = Annotated[str, Field(max_length=4_000_000)]
Amount = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Objective = Literal["traffic", "network", "rate", "batch", "nodes", "balance", "latency"]

assert set(Objective.__args__) == set(FIGURES)


class Strict(BaseModel):
    """Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid")


class SeriesQuery(Strict):
    """Which time, and how finely."""

    from_s: Seconds | None = Field(default=None, description="seconds since 1970; absent: all")
    to_s: Seconds | None = Field(default=None, description="seconds since 1970; absent: until now")
    points: int = Field(default=600, ge=1, le=MOST_POINTS, description="at most so many")


class MomentQuery(Strict):
    """Which moment."""

    at_s: Seconds | None = Field(default=None, description="seconds since 1970; absent: the newest")
    tasks: bool = Field(default=False, description="also what every task did")


class PictureQuery(Strict):
    """Which plan."""

    plan: str | None = Field(
        default=None, max_length=300, description="name or fingerprint; absent: the one in force"
    )
    rack: str | None = Field(default=None, max_length=300, description="only the cards of a rack")


class NoQuery(Strict):
    """Nothing."""


class File(Strict):
    """A file by its text; the name is for messages only."""

    name: Name
    text: Text


class Change(Strict):
    """What is different: as the options of `headrace place`."""

    rate_factor: Amount | None = None
    without: list[Name] = Field(default=[], max_length=1000, description="nodes that are gone")
    add: dict[Name, Annotated[int, Field(ge=1, le=10_000)]] = Field(
        default={}, max_length=100, description="machine type of the catalog -> how many more"
    )
    set: dict[Name, float | bool | Annotated[str, Field(max_length=1000)]] = Field(
        default={}, max_length=100, description="path in the file -> value"
    )


class JobRequest(Strict):
    """What to plan: files, an example or a run; with what change, and by which schedulers."""

    files: list[File] | None = Field(default=None, min_length=1, max_length=20)
    example: Name | None = None
    run: Name | None = Field(default=None, description="the live problem of a run")
    change: Change = Change()
    by: list[Name] = Field(default=["headrace"], min_length=1, max_length=60)
    objective: Objective = "traffic"
    simulate: bool = False
    rate: Amount | None = Field(default=None, description="tuples/s, where machines are rented")
    budget: Amount | None = Field(default=None, description="where machines are rented")
    catalog: Text | None = Field(default=None, description="a file with machine types, for `add`")
    seconds: float = Field(default=20.0, ge=1.0, le=60.0, description="for the search")


class VerdictRequest(Strict):
    """A person's word on a plan that waits."""

    verdict: Literal["accept", "refuse"]
    reason: Annotated[str, Field(max_length=500)] = ""


class PlanRequest(Strict):
    """A plan of a job, to be put in force."""

    job: Name
    number: int = Field(default=0, ge=0, le=1000, description="which of its plans")


class AdviceRequest(Strict):
    """An application with something different."""

    executors: int | None = Field(default=None, ge=1, le=100_000)
    cores: int | None = Field(default=None, ge=1, le=10_000)
    partitions: int | None = Field(default=None, ge=1, le=1_000_000)
    speed: float = Field(default=1.0, gt=0, le=1000)
    no_stragglers: bool = False
