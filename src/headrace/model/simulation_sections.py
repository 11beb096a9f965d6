"""What only a simulation reads: how tuples arrive, how long service takes, what happens when."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from headrace.model.section import NotNegative, Positive, Section, no_switch


class Arrivals(Section):
    """How tuples arrive before the spouts, at the rates that the spouts have."""

    kind: Literal["constant", "poisson", "on-off", "trace", "daily"] = Field(
        default="poisson",
        description="evenly, by chance, in bursts, as a curve says, or as the sun does",
    )
    on_s: Positive = Field(default=10.0, description="on-off: mean length of a burst")
    off_s: NotNegative = Field(default=10.0, description="on-off: mean length of a pause")
    points: tuple[tuple[NotNegative, NotNegative], ...] = Field(
        default=(), description="trace: [[seconds, tuples/s over all spouts], ..], held in between"
    )
    file: str | None = Field(
        default=None, description="trace: a CSV file with seconds,tuples/s in every line"
    )
    amplitude: Annotated[float, Field(ge=0, le=1), BeforeValidator(no_switch)] = Field(
        default=0.5, description="daily: share of the rate by which it rises and falls"
    )
    peak_s: NotNegative = Field(default=43200.0, description="daily: second of the day's peak")


class Service(Section):
    """How long a tuple's service takes, around its mean."""

    kind: Literal["constant", "exponential"] = "exponential"
    cv: NotNegative | None = Field(
        default=None, description="coefficient of variation, instead of a kind: a gamma law"
    )


class Latency(Section):
    """Milliseconds that a tuple travels, by the highest level that it crosses."""

    worker: NotNegative = Field(default=0.0, description="between workers of a node")
    node: NotNegative = Field(default=0.1, description="between nodes of a rack")
    rack: NotNegative = Field(default=0.5, description="between racks")


class Event(Section):
    """Something that happens while a plan runs: one of these at a moment."""

    at: NotNegative = Field(description="simulated second")
    rate: NotNegative | None = Field(default=None, description="factor of all given rates")
    plan: str | None = Field(default=None, description="a plan file to change to")
    lose: str | None = Field(default=None, description="a node that fails")
    join: str | None = Field(default=None, description="a node that comes back, empty")
    hot: str | None = Field(default=None, description="a task whose key becomes hot")
    share: Annotated[float, Field(gt=0, le=1), BeforeValidator(no_switch)] = Field(
        default=0.5, description="hot: share of its component's tuples that it gets"
    )
    cost: str | None = Field(
        default=None,
        description="with --adaptive: a component whose tuples cost other than profiled",
    )
    factor: Positive = Field(default=2.0, description="cost: factor of what the files say")
