"""How powerful a node is, as Muhammad's schedulers rank nodes.

The equations take what a node does not give as 1 (a factor) or 0 (a summand), and cores as its CPU
points over 100. To rank nodes by that would put the one that does not give its GHz last for no
reason, so the schedulers rank by the facts that are known of every node with a free slot, and their
notes name the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU, MEMORY, Problem

GFLOPS_FACTS = ("cores", "ghz", "flops_per_cycle")  # eq. 3.1
COMPUTATION_FACTS = (*GFLOPS_FACTS, "memory_mb")  # eq. 3.2
NODE_FACTS = (*COMPUTATION_FACTS, "bandwidth_mbps")  # eq. 3.3


def read_fact(problem: Problem, fact: str) -> Floats:
    """A fact of every node; nan where it is not known, [N].

    Cores are those of all sockets; a file that names no sockets means one.
    """
    if fact == "cores":
        cpu = problem.capacity[:, CPU]
        stated = problem.cores * np.where(np.isnan(problem.sockets), 1.0, problem.sockets)
        points = np.where(np.isfinite(cpu), cpu / 100, np.nan)
        return np.where(np.isnan(stated), points, stated)
    value = problem.capacity[:, MEMORY] if fact == "memory_mb" else getattr(problem, fact)
    return np.where(np.isfinite(value), value, np.nan)


def find_gaps(problem: Problem, fact: str) -> Ints:
    """Nodes with a free slot of which a fact is not known."""
    return np.flatnonzero(np.isnan(read_fact(problem, fact)) & (problem.free_slots > 0))


def keep_common_facts(problem: Problem) -> Problem:
    """The problem as nodes are ranked: no node has a fact that one with a free slot lacks."""
    missing = [fact for fact in NODE_FACTS if find_gaps(problem, fact).size]
    unknown = np.full(len(problem.nodes), np.nan)
    capacity = problem.capacity.copy()
    capacity[:, CPU] = np.inf if "cores" in missing else capacity[:, CPU]
    capacity[:, MEMORY] = np.inf if "memory_mb" in missing else capacity[:, MEMORY]
    return replace(
        problem,
        capacity=capacity,
        **{
            fact: unknown
            for fact in ("cores", "ghz", "flops_per_cycle", "bandwidth_mbps")
            if fact in missing
        },
    )


def list_missing_facts(problem: Problem, facts: Sequence[str]) -> tuple[str, ...]:
    """For the report: the facts by which nodes cannot be ranked, and whose they are."""
    notes: list[str] = []
    usable = int((problem.free_slots > 0).sum())
    for fact in facts:
        gaps = [problem.nodes[n] for n in find_gaps(problem, fact).tolist()]
        if gaps:
            more = f" and {len(gaps) - 1} more do" if len(gaps) > 1 else " does"
            who = "no node gives" if len(gaps) == usable else f"`{gaps[0]}`{more} not give"
            notes.append(f"node power leaves out `{fact}` for all nodes: {who} it")
    return tuple(notes)


def known_or(problem: Problem, fact: str, unknown: float) -> Floats:
    """A fact of every node; `unknown` where the node does not give it, [N]."""
    value = read_fact(problem, fact)
    return np.where(np.isnan(value), unknown, value)


def gflops(problem: Problem) -> Floats:
    """eq. 3.1 with the sockets of algorithm 3: sockets x cores x GHz x flops per cycle, [N]."""
    cores, ghz, flops_per_cycle = (known_or(problem, fact, 1.0) for fact in GFLOPS_FACTS)
    return cores * ghz * flops_per_cycle


def ram_gb(problem: Problem) -> Floats:
    """Installed memory in GB, [N]."""
    return known_or(problem, "memory_mb", 0.0) / 1024


def computation_power(problem: Problem, alpha: float) -> Floats:
    """eq. 3.2: alpha x GFLOPS + (1 - alpha) x RAM; swapped for a memory-bound topology, [N]."""
    if not 0 <= alpha <= 1:
        raise InvalidInput(f"option alpha is {alpha}; it must lie between 0 and 1")
    weight = 1 - alpha if problem.bound_by[0] == "memory" else alpha
    return weight * gflops(problem) + (1 - weight) * ram_gb(problem)


def bandwidth_mbps(problem: Problem) -> Floats:
    """Bandwidth in Mbit/s, [N]."""
    return known_or(problem, "bandwidth_mbps", 0.0)


def node_power(problem: Problem, bound_weight: float, other_weight: float) -> Floats:
    """eq. 3.3: GFLOPS, GB of RAM and Mbit/s, by weight, [N].

    Algorithm 9: what bounds the topology has the larger weight.
    """
    alpha, beta, gamma = (
        bound_weight if problem.bound_by[0] == kind else other_weight
        for kind in ("cpu", "memory", "network")
    )
    return alpha * gflops(problem) + beta * ram_gb(problem) + gamma * bandwidth_mbps(problem)


def rank_nodes(problem: Problem, power: Floats) -> Ints:
    """Nodes with a free slot: most powerful first, then most free slots, then file order."""
    ranked = np.lexsort((np.arange(len(power)), -problem.free_slots, -power))
    return ranked[problem.free_slots[ranked] > 0]
