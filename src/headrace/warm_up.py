"""Compile the search kernels that most plans need, so that the first one does not wait for them.

`make setup` runs `python -m headrace.warm_up`, which compiles on all cores; after `pip install` the
first plans do it unasked.
"""

from __future__ import annotations

import compileall
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import yaml

from headrace.errors import HeadraceError
from headrace.library.case import Case, case
from headrace.library.changes import move, move_safely
from headrace.library.simulation import simulate
from headrace.library.verbs import compare, place, provision, size
from headrace.model.starter import STARTER
from headrace.solve import compiled

NODE = {"slots": 2, "bandwidth_mbps": 100}
CATALOG = {
    "a": {"price": 1, "cpu": 200, "memory_mb": 2048},
    "b": {"price": 1.4, "cpu": 300, "memory_mb": 3072},
}
MOST_PROCESSES = 4  # more would compile the kernels that rounds share again and again


def small(heap_mb: float | None = None, topologies: int = 1, nodes: int = 3) -> Case:
    """A chain of three components, alone or several times, that does not fit on one node."""
    cluster = {
        f"a{{1..{nodes}}}": {**NODE, "type": "a", "cpu": 200, "memory_mb": 2048},
        f"b{{1..{nodes - 1}}}": {**NODE, "type": "b", "cpu": 300, "memory_mb": 3072},
    }
    chain = {
        "in": {"spout": True, "tasks": 3, "rate": 300, "cpu": 25, "memory_mb": 256, "bytes": 90},
        "work": {"tasks": 4, "inputs": {"in": "shuffle"}, "cpu": 31, "memory_mb": 300, "bytes": 40},
        "out": {"tasks": 2, "inputs": {"work": "shuffle"}, "cpu": 37, "memory_mb": 200},
    }
    limit = {} if heap_mb is None else {"worker_max_heap_mb": heap_mb}
    named = [
        {"name": f"t{i}", "components": chain, "workers": 3, **limit} for i in range(topologies)
    ]
    return case({"topologies": named, "cluster": {"nodes": cluster}})


def place_for(objective: str) -> None:
    """A plan for an objective."""
    place(small(), objective=objective)


def rent() -> None:
    """Machines for a rate."""
    rented = {**small().to_dict(), "catalog": CATALOG}
    del rented["cluster"]
    provision(case(rented), rate=400)


def order_moves() -> None:
    """The way from one plan to another."""
    before, after = place(small(), by="storm-even"), place(small())
    move(before, after)
    move_safely(before, after)


def simulate_tuples() -> None:
    """A plan that changes, a node that is lost and one that joins."""
    before, after = place(small(), by="storm-even"), place(small(), by="storm-ras")
    change = [{"at": 0.5, "plan": after}, {"at": 0.7, "lose": "a1"}, {"at": 0.8, "join": "a1"}]
    simulate(before, seconds=1, events=change)


# What is compiled, and a call that compiles it; what takes longest first.
ROUNDS: dict[str, Callable[[], object]] = {
    "traffic": lambda: place_for("traffic"),
    "counts": lambda: size(small()),
    "simulations": simulate_tuples,
    "network": lambda: place_for("network"),
    "rate": lambda: place_for("rate"),
    "batch": lambda: place_for("batch"),
    "nodes": lambda: place_for("nodes"),
    "balance": lambda: place_for("balance"),
    "heaps": lambda: place(small(heap_mb=600, topologies=2)),
    "bounds": lambda: place(small(topologies=8, nodes=9)),
    "proofs": lambda: place(small(topologies=2), by="optimal", steps=20),
    "machines": rent,
    "cuts": lambda: place(small(), by="p-scheduler-hard"),
    "moves": order_moves,
    "fluids": lambda: simulate(place(small(), by="storm-even"), seconds=1, detail="fluid"),
    "all schedulers": lambda: compare(case(yaml.safe_load(STARTER))),
}


def compile_round(name: str) -> str:
    """Compile one round; gives its name."""
    with suppress(HeadraceError):  # without METIS there is no cut to compile
        ROUNDS[name]()
    return name


def keep_quiet() -> None:
    """Leave it to the first process to say what the wait is about."""
    compiled.announce = lambda: None


def warm_up(say: Callable[[str], None], processes: int | None = None) -> float:
    """Compile everything on all cores, and say what is done; gives the seconds it took."""
    start = time.perf_counter()
    say("Compiling the search kernels, once:")
    compileall.compile_dir(Path(__file__).parent, quiet=2)  # imports may not write bytecode
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    many = processes or min(cores or 1, MOST_PROCESSES)
    context = get_context("spawn")
    with ProcessPoolExecutor(many, mp_context=context, initializer=keep_quiet) as pool:
        for done in as_completed([pool.submit(compile_round, name) for name in ROUNDS]):
            say(f" {done.result()}")
    took = time.perf_counter() - start
    say(f" ({took:.0f} s)\n")
    return took


if __name__ == "__main__":
    warm_up(lambda words: print(words, end="", flush=True, file=sys.stderr))
