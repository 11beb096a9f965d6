"""Deciding beside the batches: when it is due, one at a time, and no batch waits for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from headrace.control.history import Entry
from headrace.control.loop import World, step
from headrace.control.on_spark import OnSpark
from headrace.control.planning import LoopSettings
from headrace.control.verdicts import carry_out, listens, newest_accepted, verdicts
from headrace.run.batches import BatchDone

Action = Callable[[], None]


def do_at_once(action: Action) -> bool:
    """Do it while the caller waits."""
    action()
    return True


@contextmanager
def background() -> Generator[Callable[[Action], bool]]:
    """Do things one at a time while the caller goes on; False: the one before is not over yet.

    What one of them raises is raised at the next, or at the end.
    """
    last: list[Future[None]] = []
    with ThreadPoolExecutor(1) as thread:

        def start(action: Action) -> bool:
            if last and not last[0].done():
                return False
            while last:
                last.pop().result()
            last.append(thread.submit(action))
            return True

        yield start
        while last:
            last.pop().result()


def decide_after_batches(
    world: OnSpark,
    settings: LoopSettings,
    report: Callable[[Entry], None],
    do: Callable[[Action], bool] = do_at_once,
) -> Callable[[BatchDone], None]:
    """A listener that decides after the first batch of every interval, or when a person has.

    A new plan holds from the next batch on; if decided in the `background`, from the one after.
    """
    decide = decide_when_due(world, settings, report, do)
    seen = len(verdicts(world.store))
    listens(world.store, settings, os.getpid())

    def listen(done: BatchDone) -> None:
        nonlocal seen
        world.add_batch(done)
        said = verdicts(world.store)
        accepted = newest_accepted(said, seen)
        if accepted is None:
            decide()
        elif do(lambda: report(carry_out(world, accepted))):
            seen = len(said)

    return listen


def decide_when_due(
    world: World,
    settings: LoopSettings,
    report: Callable[[Entry], None],
    do: Callable[[Action], bool] = do_at_once,
) -> Action:
    """What to call after every batch, from any thread: it decides once in an interval."""
    due, alone = world.now() + settings.interval_s, threading.Lock()

    def decide() -> None:
        nonlocal due
        with alone:
            if world.now() >= due and do(lambda: report(step(world, settings))):
                due = world.now() + settings.interval_s

    return decide
