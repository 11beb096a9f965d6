"""What tuples cost on a node of each machine type: an application profiled under a CPU quota.

A task is one thread: a node gives it a core, or all its CPU if that is less. CPU per tuple does not
change with a quota; the rate that a thread reaches by the clock does. Where nodes state `ghz`, the
fastest type stands for this machine, and the others get a share of it: work that took 1 ms of CPU
here is 2 ms on cores of half the clock.

`python -m headrace.control.profiling_by_type FOLDER` is the process that is held to the quota. It
finds in its folder what to do, and leaves there what it found, or why not.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.control.profiling import Cost, Ramp, profile_ramp
from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.model.document import Node
from headrace.model.nearest import nearest
from headrace.run.fleet import enter_room
from headrace.run.leftovers import scratch_folder, sweep_scratch
from headrace.run.limits import Bounds, Room, make_rooms

CORE = 100.0  # CPU points
LEAST_CPU = 1.0  # the kernel holds nothing to less
ANY = "*"  # what a profile calls nodes without a type
RAMP, FOUND, LOG = "ramp.pickle", "found.pickle", "profile.log"


@dataclass(frozen=True, slots=True)
class ThreadLimit:
    """What a node of a machine type gives one thread."""

    machine_type: str
    cpu: float  # points of its own cores
    ghz: float | None = None
    fastest_ghz: float | None = None  # of all types: of this machine, as far as files know

    @property
    def speed(self) -> float:
        """What one of its cores does, as a share of what one of this machine's does."""
        return 1.0 if not self.ghz or not self.fastest_ghz else self.ghz / self.fastest_ghz

    @property
    def points(self) -> float:
        """The same in points of this machine's cores."""
        return self.cpu * self.speed

    def convert(self, cost: Cost) -> Cost:
        """A cost that was measured here, in CPU of the node's own cores."""
        if self.speed == 1:
            return cost
        slower = 1 / self.speed
        clock = f"CPU of {self.fastest_ghz:g} GHz counted as of {self.ghz:g} GHz"
        return replace(
            cost,
            cpu_ms=cost.cpu_ms.times(slower),
            batch_ms=cost.batch_ms.times(slower),
            flag="; ".join(filter(None, (cost.flag, clock))),
        )


def thread_limits(nodes: Mapping[str, Node], wanted: Sequence[str] = ()) -> list[ThreadLimit]:
    """The limits of some machine types, or of all; of nodes that differ, the weakest counts."""
    by_type: dict[str, list[Node]] = {}
    for node in nodes.values():
        by_type.setdefault(node.type or ANY, []).append(node)
    for name in wanted:
        if name not in by_type:
            raise InvalidInput(
                f"the cluster has no machine type `{name}`{nearest(name, list(by_type))}; "
                f"there are: {', '.join(by_type)}"
            )
    fastest = max((node.ghz for node in nodes.values() if node.ghz is not None), default=None)
    found: list[ThreadLimit] = []
    for name in dict.fromkeys(wanted or by_type):
        limits = [
            ThreadLimit(name, CORE if n.cpu is None else min(CORE, n.cpu), n.ghz, fastest)
            for n in by_type[name]
        ]
        weakest = min(limits, key=lambda limit: limit.points)
        if weakest.points < LEAST_CPU:
            raise InvalidInput(
                f"a thread on machine type `{name}` has {weakest.points:g} points of CPU; "
                f"a process is held to {LEAST_CPU:g} or more"
            )
        found.append(weakest)
    return found


def profile_types(
    ramp: Ramp, limits: Sequence[ThreadLimit], say: Callable[[ThreadLimit], None]
) -> Generator[tuple[ThreadLimit, list[Cost]]]:
    """Each machine type with its costs, one after another; `say` is called before each."""
    sweep_scratch()
    with ExitStack() as ending:
        try:
            bounds = [Bounds(cpu=limit.points) for limit in limits]
            ground = ending.enter_context(make_rooms(bounds, ["cpu"]))
        except Unsupported as refusal:
            raise Unsupported(
                refusal.message,
                resource=refusal.resource,
                fix="run as root, or leave --fleet out: this machine is then measured as it is",
            ) from None
        for limit, room in zip(limits, ground.rooms, strict=True):
            say(limit)
            yield limit, [limit.convert(cost) for cost in profile_in_room(ramp, room)]


def profile_in_room(ramp: Ramp, room: Room) -> list[Cost]:
    """The costs as a process in a room measures them; it ends with this one."""
    with scratch_folder() as folder:
        (folder / RAMP).write_bytes(pickle.dumps(ramp))
        own = [sys.executable, "-m", "headrace.control.profiling_by_type", str(folder)]
        with (folder / LOG).open("wb") as log:
            subprocess.run(
                [*enter_room(room), *own],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if not (folder / FOUND).exists():
            lines = (folder / LOG).read_text(errors="replace").strip().splitlines()
            raise InvalidInput(
                f"profiling {ramp.app} ended early: {lines[-1] if lines else 'it said nothing'}"
            )
        found: list[Cost] | HeadraceError = pickle.loads((folder / FOUND).read_bytes())
    if isinstance(found, HeadraceError):
        raise found
    return found


def main(folder: Path) -> None:
    """Profile what the folder says."""
    ramp: Ramp = pickle.loads((folder / RAMP).read_bytes())
    try:
        found: list[Cost] | HeadraceError = profile_ramp(ramp, folder / "run")
    except HeadraceError as refusal:
        found = refusal
    (folder / FOUND).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
