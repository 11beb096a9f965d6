"""What a stage of a batch is made of, and what its tasks report: data that travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from headrace.model.document import Input
from headrace.model.topology import Code, EventTime, PartWriter, task_name
from headrace.run.state import Carried
from headrace.run.state_files import StateFile

Role = Literal["work", "wait", "replay"]


class Packet(NamedTuple):
    """A block on its way."""

    component: str  # the receiver
    number: int  # of the receiving task, from 0
    input: int  # which of the receiver's inputs
    sender: int  # number of the sending task
    rows: int
    block: bytes
    order: bytes  # the runs of its rows

    @property
    def size(self) -> int:
        return len(self.block) + len(self.order)


@dataclass(frozen=True, slots=True)
class Target:
    """A subscription, seen from the sender."""

    component: str
    input: int
    how: Input
    tasks: int
    back: bool  # delivers in the next batch
    rowwise: bool = False  # each row keeps a position of its own


@dataclass(frozen=True, slots=True)
class Seat:
    """One partition of a stage, in one of three roles.

    work: a task of this stage; wait: a task of a later stage, whose input is on the way; replay: a
    task whose last output is delivered now.
    """

    role: Role
    component: str
    number: int  # from 0
    # Receivers in the same worker, by component.
    beside: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    groups: tuple[int, int] = (0, 0)  # key groups [first, end) whose state the task holds
    state: tuple[StateFile, ...] = ()
    carried: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A sink that a task writes to."""

    output: int  # which of the topology's outputs
    stream: str
    folder: str
    writer: PartWriter


@dataclass(frozen=True, slots=True)
class Stage:
    """What all seats of a level share."""

    batch: int
    folder: str  # of the run
    seats: tuple[Seat, ...]
    code: Mapping[str, Code]
    sources: Mapping[str, tuple[tuple[str, Input], ...]]  # component -> its inputs
    targets: Mapping[str, tuple[Target, ...]]
    parts: Mapping[str, tuple[Part, ...]]
    next_seat: Mapping[tuple[str, int], int]  # task -> partition of the next stage
    # Components whose output reaches a fields grouping: there the order of rows matters.
    ordered: frozenset[str] = frozenset()
    times: Mapping[str, EventTime] = field(default_factory=dict[str, EventTime])
    watermark: int | None = None  # microseconds since 1970, as is the first there was
    first_watermark: int | None = None

    @property
    def components(self) -> tuple[str, ...]:
        """Those whose tasks work here."""
        return tuple(dict.fromkeys(seat.component for seat in self.seats if seat.role == "work"))


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task did in a batch."""

    role: str
    component: str
    number: int
    where: tuple[str, ...]  # names of the machine it ran on
    ended: float
    tuples_in: int = 0
    tuples_out: int = 0
    cpu_ms: float = 0.0
    memory_mb: float = 0.0
    edges: tuple[tuple[str, int, int, int], ...] = ()  # (component, number, tuples, bytes)
    state: tuple[StateFile, ...] = ()
    carried: tuple[Carried, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()  # (output, file)
    latest: int | None = None  # event time, of a component that has one
    failure: str | None = None
    storage: bool = False  # what failed is not the component: a file of the run
    began: float = 0.0  # seconds since 1970, as is its end
    process: int = 0  # the executor it ran in, by a number that is its own on its machine

    @property
    def task(self) -> str:
        return task_name(self.component, self.number + 1)


# By batch, role, component, number and, of a spout, the source partition that was read (else -1):
# one that comes twice counts once.
Reports = Mapping[tuple[int, str, str, int, int], TaskReport]
