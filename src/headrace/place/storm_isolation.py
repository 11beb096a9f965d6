"""Storm's isolation scheduler: machines of their own for some topologies, the default for others.

Source    Apache Storm's IsolationScheduler (2.x).
Maturity  faithful
Guards    slots are never overcommitted, and a machine that is given to an isolated topology holds
          nothing else; CPU, memory, bandwidth, pins and separations may be violated (the scheduler
          does not look at them).
Differs   Storm takes machines at random: up to 2.8 it sorts them by slots and then shuffles them.
          Here the seed decides, and the report says so (option hosts=largest leaves out the
          shuffle, as later code of Storm does). A machine with too few slots for a share of the
          workers is passed over, where Storm gives up that share. Storm clears other topologies off
          the machines it isolates; here machines with a taken slot are passed over. Storm places no
          other topology while an isolated one finds no room; here that one alone is refused.
          Isolated topologies go by priority and tasks by Storm's numbering, where Storm follows the
          order of a hash table.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace.errors import Infeasible
from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Bools, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.slots import free_slots
from headrace.place.building_blocks.topologies import place_in_turn, slots_in_use
from headrace.place.storm_even import storm_even, storm_order

Hosts = Literal["random", "largest"]
RANDOM = "isolated topologies get machines at random, as in Storm"


def storm_isolation(
    problem: Problem, request: Request = DEFAULT_REQUEST, *, hosts: Hosts = "random"
) -> Assignment:
    """Isolated topologies first, by priority; then the others on the machines that are left."""
    order = np.lexsort((problem.priority, problem.isolated_machines == 0)).tolist()
    machines = order_machines(problem, hosts, request.seed)
    notes = (f"{RANDOM} (seed {request.seed})",) if hosts == "random" else ()
    return place_in_turn(
        problem,
        order,
        lambda alone: (
            place_isolated(alone, machines, notes)
            if alone.isolated_machines[0]
            else storm_even(alone)
        ),
        find_closed_slots,
    )


def order_machines(problem: Problem, hosts: Hosts, seed: int) -> Ints:
    """Machines as isolated topologies take them: at random, or those with most slots first, [N]."""
    if hosts == "random":
        return np.random.default_rng(seed).permutation(len(problem.nodes))
    return np.argsort(-problem.slots, kind="stable")


def find_closed_slots(problem: Problem, assignment: Assignment) -> Bools:
    """Slots that later topologies may not use: an isolated one closes whole machines."""
    in_use = slots_in_use(problem, assignment)
    return in_use | in_use.any(axis=1, keepdims=True) if problem.isolated_machines[0] else in_use


def place_isolated(problem: Problem, machines: Ints, notes: tuple[str, ...]) -> Assignment:
    """Deal tasks evenly over workers and workers evenly over machines that run nothing else."""
    workers = min(problem.worker_count(0), problem.task_count)
    share, more = divmod(workers, int(problem.isolated_machines[0]))
    wanted = [share + (i < more) for i in range(min(workers, int(problem.isolated_machines[0])))]
    unused = [n for n in machines.tolist() if 0 < problem.slots[n] == problem.free_slots[n]]
    chosen = choose_machines(problem, wanted, unused)
    room = np.array(
        [
            (n, s)
            for n, count in zip(chosen, wanted, strict=True)
            for s in free_slots(problem, n)[:count].tolist()
        ]
    )
    node, worker = (
        np.empty(problem.task_count, dtype=np.int64),
        np.empty(problem.task_count, dtype=np.int64),
    )
    order = storm_order(problem)
    node[order], worker[order] = room[np.arange(len(order)) % workers].T
    return Assignment(node, worker, notes=notes)


def choose_machines(problem: Problem, wanted: list[int], unused: list[int]) -> list[int]:
    """For each share of the workers, largest first, the next machine that has slots for it."""
    left = list(unused)
    chosen: list[int] = []
    for count in wanted:
        fitting = [n for n in left if problem.slots[n] >= count]
        if fitting:
            left.remove(fitting[0])
            chosen.append(fitting[0])
    refuse_without_machines(problem, wanted, len(chosen))
    return chosen


def refuse_without_machines(problem: Problem, wanted: list[int], found: int) -> None:
    """Raise unless every share of the workers, largest first, has a machine."""
    if found < len(wanted):
        slots = f"{wanted[0]} slot{'s' * (wanted[0] != 1)}"
        need = f"needs {len(wanted)} machines of its own with up to {slots} each"
        message = f"`{problem.topologies[0]}` {need}; the cluster has {found} unused"
        fix = (
            f"add {len(wanted) - found} machines with {slots}, "
            "or lower `isolated_machines` or `workers`"
        )
        raise Infeasible(
            message, resource="isolated machines", needed=len(wanted), available=found, fix=fix
        )
