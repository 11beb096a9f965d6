"""How a command that runs for long is ended: Ctrl-C, and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from headrace.cli.shared import echo


@contextmanager
def stop_on_interrupt() -> Generator[None]:
    """End quietly on Ctrl-C: a run can go on later."""
    try:
        yield
    except KeyboardInterrupt:
        echo("stopped; run again to go on", err=True)


def end_on_terminate() -> None:
    """Have SIGTERM end the command as an exit does, with all that it has started."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():  # else it is no command's process
        signal.signal(signal.SIGTERM, end)
