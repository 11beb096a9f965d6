"""How powerful a node is, as Muhammad's schedulers rank nodes."""

from __future__ import annotations

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats, Ints
from headrace.model.problem import MEMORY, Problem


def gflops(problem: Problem) -> Floats:
    """eq. 3.1 with the sockets of algorithm 3: sockets x cores x GHz x flops per cycle, [N].

    Where the file does not say, sockets, GHz and flops per cycle are 1, and cores are the node's
    CPU points over 100.
    """
    cpu = problem.capacity[:, 0]
    cores = np.where(
        np.isnan(problem.cores), np.where(np.isfinite(cpu), cpu / 100, 1.0), problem.cores
    )
    known = [
        np.where(np.isnan(fact), 1.0, fact)
        for fact in (problem.sockets, problem.ghz, problem.flops_per_cycle)
    ]
    return known[0] * cores * known[1] * known[2]


def ram_gb(problem: Problem) -> Floats:
    """Installed memory in GB; nothing where the file does not say, [N]."""
    memory = problem.capacity[:, MEMORY]
    return np.where(np.isfinite(memory), memory / 1024, 0.0)


def computation_power(problem: Problem, alpha: float) -> Floats:
    """eq. 3.2: alpha x GFLOPS + (1 - alpha) x RAM; swapped for a memory-bound topology, [N]."""
    if not 0 <= alpha <= 1:
        raise InvalidInput(f"option alpha is {alpha}; it must lie between 0 and 1")
    weight = 1 - alpha if problem.bound_by[0] == "memory" else alpha
    return weight * gflops(problem) + (1 - weight) * ram_gb(problem)


def bandwidth_mbps(problem: Problem) -> Floats:
    """Bandwidth in Mbit/s; nothing where the file does not say, [N]."""
    return np.where(np.isfinite(problem.bandwidth_mbps), problem.bandwidth_mbps, 0.0)


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
