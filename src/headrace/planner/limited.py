"""An answer within a time: asked for in a child process, which is stopped if none comes.

A deadline is a question that a scheduler has to ask. One that does not ask, or is deep in a library
that cannot, is stopped from outside.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from headrace.errors import Infeasible, Unsupported

Answer = TypeVar("Answer")

COMPILING = "compiling"  # what a child sends when it starts to compile
PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that a process gets when its parent ends
COMPILING_S = 180.0  # seconds more for a child that has to compile kernels, which happens once


def can_limit() -> bool:
    """Whether this process can have children that share its memory: not on every system."""
    import multiprocessing

    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def load_libraries() -> None:
    """Import what most schedulers import when they start, so that children have it already."""
    for name in ("numba", "scipy.sparse.csgraph", "scipy.optimize"):
        importlib.import_module(name)


def answer_within(seconds: float, make: Callable[[], Answer]) -> Answer:
    """What `make` gives, or raises, in a child process; refused after so many seconds.

    The child is a copy of this process, so `make` may be any function; what it gives is pickled.
    """
    import multiprocessing

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_answer, args=(sender, make, os.getpid()), daemon=True)
    try:
        with _ctrl_c_waits():
            child.start()
            sender.close()
        found, answer = _receive(receiver, seconds)
    except EOFError:
        child.join()
        status = f"with exit status {child.exitcode}"
        raise Unsupported(f"its process ended {status}, without an answer") from None
    finally:
        if child.pid is not None:
            child.kill()
            child.join()
        receiver.close()
    if not found:
        raise answer
    return answer


@contextmanager
def _ctrl_c_waits() -> Generator[None]:
    """Have Ctrl-C act after this: while Python forks, it is lost or leaves a child unknown."""
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C is for the main one
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _receive(receiver: Any, seconds: float) -> tuple[bool, Any]:
    """Whether the child found an answer, and the answer or the error."""
    end = time.monotonic() + seconds
    while receiver.poll(max(end - time.monotonic(), 0.0)):
        message = receiver.recv()
        if message != COMPILING:
            return message
        end += COMPILING_S
    raise Infeasible(
        f"no plan after {seconds:.3g} s, when it was stopped",
        resource="seconds",
        needed=None,
        available=seconds,
        fix="give more seconds, or use headrace",
    )


def _send_answer(sender: Any, make: Callable[[], Any], parent: int) -> None:
    """The child's part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the child
    # Or the kernel does: a parent that is killed cannot.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    compiled = sys.modules.get("headrace.solve.compiled")
    if compiled is not None:
        vars(compiled)["announce"] = lambda: sender.send(COMPILING)
    try:
        message: tuple[bool, Any] = (True, make())
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
        message = (False, error)
    try:
        sender.send(message)
    except Exception:  # noqa: BLE001 - an answer that cannot be pickled
        said = traceback.format_exc(limit=1) if message[0] else repr(message[1])
        sender.send((False, RuntimeError(said)))
    sender.close()
    os._exit(0)
