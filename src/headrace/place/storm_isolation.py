"""Storm's isolation scheduler: machines of their own for some topologies, the default for others.

Source    Apache Storm's IsolationScheduler (2.x).
Maturity  faithful
Guards    slots are never overcommitted, and a machine that is given to an isolated topology holds
          nothing else; CPU, memory, bandwidth, pins and separations may be violated (the scheduler
          does not look at them).
Differs   Storm clears other topologies off the machines it isolates; here machines with a taken
          slot are passed over. Storm places no other topology while an isolated one finds no room;
          here that one alone is refused. Isolated topologies go by priority and tasks by Storm's
          numbering, where Storm follows the order of a hash table.
"""

from __future__ import annotations

import numpy as np

from headrace.errors import Infeasible
from headrace.model.problem import Assignment, Bools, Problem
from headrace.place.building_blocks.slots import free_slots
from headrace.place.building_blocks.topologies import place_in_turn, slots_in_use
from headrace.place.storm_even import storm_even, storm_order


def storm_isolation(problem: Problem) -> Assignment:
    """Isolated topologies first, by priority; then the others on the machines that are left."""
    order = np.lexsort((problem.priority, problem.isolated_machines == 0)).tolist()
    return place_in_turn(
        problem,
        order,
        lambda alone: place_isolated(alone) if alone.isolated_machines[0] else storm_even(alone),
        find_closed_slots,
    )


def find_closed_slots(problem: Problem, assignment: Assignment) -> Bools:
    """Slots that later topologies may not use: an isolated one closes whole machines."""
    in_use = slots_in_use(problem, assignment)
    return in_use | in_use.any(axis=1, keepdims=True) if problem.isolated_machines[0] else in_use


def place_isolated(problem: Problem) -> Assignment:
    """Deal tasks evenly over workers and workers evenly over the machines with most slots."""
    workers = min(problem.worker_count(0), problem.task_count)
    share, more = divmod(workers, int(problem.isolated_machines[0]))
    wanted = [share + (i < more) for i in range(min(workers, int(problem.isolated_machines[0])))]
    whole = np.flatnonzero((problem.free_slots == problem.slots) & (problem.slots > 0))
    machines = whole[np.argsort(-problem.slots[whole], kind="stable")].tolist()
    refuse_without_machines(problem, wanted, machines)
    room = np.array(
        [
            (n, s)
            for n, count in zip(machines, wanted, strict=False)
            for s in free_slots(problem, n)[:count].tolist()
        ]
    )
    node, worker = (
        np.empty(problem.task_count, dtype=np.int64),
        np.empty(problem.task_count, dtype=np.int64),
    )
    order = storm_order(problem)
    node[order], worker[order] = room[np.arange(len(order)) % workers].T
    return Assignment(node, worker)


def refuse_without_machines(problem: Problem, wanted: list[int], machines: list[int]) -> None:
    """Raise unless every share of the workers has a machine; both lists are largest first."""
    fitting = sum(
        int(problem.slots[n]) >= count for n, count in zip(machines, wanted, strict=False)
    )
    if fitting < len(wanted):
        slots = f"{wanted[0]} slot{'s' * (wanted[0] != 1)}"
        need = f"needs {len(wanted)} machines of its own with up to {slots} each"
        message = f"`{problem.topologies[0]}` {need}; the cluster has {fitting} unused"
        fix = (
            f"add {len(wanted) - fitting} machines with {slots}, "
            "or lower `isolated_machines` or `workers`"
        )
        raise Infeasible(
            message, resource="isolated machines", needed=len(wanted), available=fitting, fix=fix
        )
