"""Eskandari's model, literally, beside ours: the same optima where it finishes in a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from instances import CLUSTERS, microbenchmark
from measure import Row

from headrace.solve.proof.exact import Proof, least_crossing
from headrace.solve.proof.task_by_task import least_crossing_by_task

SECONDS, QUICK_SECONDS = 60.0, 5.0
SIZES = range(10, 34, 2)
GIVE_UP = 2  # sizes in a row that did not finish: larger ones are not tried


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    limit = QUICK_SECONDS if quick else SECONDS
    least_crossing(microbenchmark("linear", 10, "HOM"))  # warm-up
    ours: dict[tuple[str, int, str], tuple[Proof, float]] = {}
    literal: dict[tuple[str, int, str], tuple[Proof, float]] = {}
    for layout in ("linear", "diamond", "star"):
        for cluster in CLUSTERS:
            unfinished = 0
            for size in SIZES:
                case = (layout, size, cluster)
                start = time.perf_counter()
                ours[case] = least_crossing(microbenchmark(*case)), time.perf_counter() - start
                if unfinished == GIVE_UP:
                    continue
                start = time.perf_counter()
                proof = least_crossing_by_task(microbenchmark(*case), seconds=limit)
                took = time.perf_counter() - start
                say(f"{layout}-{size} {cluster}: {took:.1f} s, {proof.stopped}")
                if proof.proven:
                    literal[case], unfinished = (proof, took), 0
                else:
                    unfinished += 1
    done = sum(proof.proven for proof, _ in ours.values())
    yield Row("optima of our model, of 72", f"{done}", "72", done == 72)
    what = f"  of them found by the thesis' model in {limit:g} s, and the same"
    same = sum(abs(p.bound - ours[case][0].bound) <= 1e-6 for case, (p, _) in literal.items())
    yield Row(what, f"{same} of {len(literal)}", "all", same == len(literal))
    largest = max(case[1] for case in literal)
    yield Row("  the largest of them", f"{largest} tasks")
    slower = sum(t for _, t in literal.values()) / sum(ours[case][1] for case in literal)
    yield Row("  time of the thesis' model against ours on these", f"{slower:.0f} x")


def say(words: str) -> None:
    """Progress, for whoever waits: a minute per case."""
    print(words, file=sys.stderr, flush=True)
