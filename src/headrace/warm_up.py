"""Compile every search kernel and module once, so that the first plan does not wait for it.

`make setup` runs `python -m headrace.warm_up`; after `pip install` the first plans do it unasked.
"""

from __future__ import annotations

import compileall
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import yaml

from headrace.errors import HeadraceError
from headrace.library.case import Case, case
from headrace.library.changes import move, move_safely
from headrace.library.simulation import simulate
from headrace.library.verbs import compare, place, provision, size
from headrace.model.starter import STARTER

CLUSTER = {
    "nodes": {
        "a{1..3}": {"type": "a", "cpu": 200, "memory_mb": 2048, "slots": 2, "bandwidth_mbps": 100},
        "b{1..2}": {"type": "b", "cpu": 300, "memory_mb": 3072, "slots": 2, "bandwidth_mbps": 100},
    }
}
CATALOG = {
    "a": {"price": 1, "cpu": 200, "memory_mb": 2048},
    "b": {"price": 1.4, "cpu": 300, "memory_mb": 3072},
}


def small(heap_mb: float | None = None, topologies: int = 1) -> Case:
    """A chain of three components, alone or several times, that does not fit on one node."""
    chain = {
        "in": {"spout": True, "tasks": 3, "rate": 300, "cpu": 25, "memory_mb": 256, "bytes": 90},
        "work": {"tasks": 4, "inputs": {"in": "shuffle"}, "cpu": 31, "memory_mb": 300, "bytes": 40},
        "out": {"tasks": 2, "inputs": {"work": "shuffle"}, "cpu": 37, "memory_mb": 200},
    }
    limit = {} if heap_mb is None else {"worker_max_heap_mb": heap_mb}
    named = [
        {"name": f"t{i}", "components": chain, "workers": 3, **limit} for i in range(topologies)
    ]
    return case({"topologies": named, "cluster": CLUSTER})


def rounds() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is compiled, and a call that compiles it."""
    plain = small()
    for objective in ("traffic", "network", "rate", "batch", "nodes", "balance"):
        yield objective, lambda objective=objective: place(plain, objective=objective)
    yield "heaps", lambda: place(small(heap_mb=600, topologies=2))
    yield "proofs", lambda: place(small(topologies=2), by="optimal", steps=20)
    yield "counts", lambda: size(plain)
    rented = {**plain.to_dict(), "catalog": CATALOG}
    del rented["cluster"]
    yield "machines", lambda: provision(case(rented), rate=400)
    yield "cuts", lambda: place(plain, by="p-scheduler-hard")
    before, after = place(plain, by="storm-even"), place(plain)
    yield "moves", lambda: (move(before, after), move_safely(before, after))
    change = [{"at": 0.5, "plan": after}, {"at": 0.7, "lose": "a1"}, {"at": 0.8, "join": "a1"}]
    yield "simulations", lambda: simulate(before, seconds=1, events=change)
    yield "fluids", lambda: simulate(before, seconds=1, detail="fluid")
    yield "all schedulers", lambda: compare(case(yaml.safe_load(STARTER)))


def warm_up(say: Callable[[str], None]) -> float:
    """Compile everything, and say what is at work; gives the seconds it took."""
    start = time.perf_counter()
    say("Compiling the search kernels, once:")
    compileall.compile_dir(Path(__file__).parent, quiet=2)  # imports may not write bytecode
    for name, compile_it in rounds():
        say(f" {name}")
        with suppress(HeadraceError):  # without METIS there is no cut to compile
            compile_it()
    took = time.perf_counter() - start
    say(f" ({took:.0f} s)\n")
    return took


if __name__ == "__main__":
    warm_up(lambda words: print(words, end="", flush=True, file=sys.stderr))
