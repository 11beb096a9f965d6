"""Long work, for whoever waits: a line of progress, and Ctrl-C that keeps the best plan so far."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import click

from headrace.model.progress import NOW

SOON_S, EVERY_S = 1.0, 0.5  # before the first line, and between two
CLEAR = "\r\033[K"
INTERRUPTED = "headrace.interrupted"  # of the context: whether Ctrl-C ended it early


@contextmanager
def work_shown(keeps_best: bool = True) -> Generator[None]:
    """Say on a terminal what goes on inside, and let Ctrl-C end it with what there is.

    The first Ctrl-C is a wish, the second ends the command. Not `keeps_best`: the first one does.
    """
    ended = threading.Event()
    ticker = threading.Thread(target=_tick, args=(ended,), daemon=True)
    NOW.doing, NOW.stop = "", False
    main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, _wish) if keeps_best and main_thread else None
    if sys.stderr.isatty():
        ticker.start()
    try:
        yield
    finally:
        ended.set()
        if ticker.is_alive():
            ticker.join()
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if NOW.stop:
            click.get_current_context().meta[INTERRUPTED] = True
            NOW.stop = False


def was_interrupted() -> bool:
    """Whether Ctrl-C ended the command's work early."""
    return bool(click.get_current_context().meta.get(INTERRUPTED))


def _wish(number: int, frame: FrameType | None) -> None:
    if NOW.stop:
        raise KeyboardInterrupt
    NOW.stop = True
    clear = CLEAR if sys.stderr.isatty() else ""
    click.echo(f"{clear}stopping with the best so far; Ctrl-C again ends at once", err=True)


def _tick(ended: threading.Event) -> None:
    start, shown = time.monotonic(), False
    while not ended.wait(EVERY_S):
        took = time.monotonic() - start
        if took >= SOON_S and NOW.doing:
            click.echo(CLEAR + progress_line(took), err=True, nl=False)
            shown = True
    if shown:
        click.echo(CLEAR, err=True, nl=False)


def progress_line(seconds: float) -> str:
    """What is being done: `optimal places 50 tasks, 12 s: best 6,420, bound 6,100, gap 5 %`."""
    from headrace.figures import number, percent, printable

    line = f"{NOW.doing}, {seconds:.0f} s"
    figures: list[str] = []
    if NOW.best is not None:
        figures.append(f"best {number(NOW.best)}")
    if NOW.bound is not None:
        figures.append(f"bound {number(NOW.bound)}")
    if NOW.best is not None and NOW.bound is not None and (NOW.best or NOW.bound):
        gap = abs(NOW.best - NOW.bound) / max(abs(NOW.best), abs(NOW.bound))
        figures.append(f"gap {percent(gap)}")
    return printable(f"{line}: {', '.join(figures)}" if figures else line)
