"""What is new, to every viewer: server-sent events, written once however many look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import contextmanager
from typing import Any

WAITING = 64  # events that a slow viewer may be behind; then it is told to load again
BEAT_S = 15.0  # a comment in between, so that lost connections are noticed
RESET = b"event: reset\ndata: {}\n\n"
MOST_VIEWERS = 1000


def as_event(name: str, data: Mapping[str, Any]) -> bytes:
    """An event as it travels."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class Hub:
    """The viewers of one run."""

    def __init__(self) -> None:
        self.viewers: set[asyncio.Queue[bytes]] = set()

    def tell(self, event: bytes) -> None:
        """Give an event to everybody; who is too far behind loses what waits and loads again."""
        for queue in self.viewers:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(RESET)
            else:
                queue.put_nowait(event)

    @contextmanager
    def viewer(self) -> Any:
        """A viewer's events, for as long as it looks."""
        queue: asyncio.Queue[bytes] = asyncio.Queue(WAITING)
        self.viewers.add(queue)
        try:
            yield queue
        finally:
            self.viewers.discard(queue)

    async def stream(self, closing: asyncio.Event) -> AsyncIterator[bytes]:
        """What a viewer gets until it goes or the server ends."""
        with self.viewer() as queue:
            yield b"retry: 2000\n\n" + as_event("hello", {})
            while not closing.is_set():
                try:
                    event = await asyncio.wait_for(queue.get(), BEAT_S)
                except TimeoutError:
                    event = b": still here\n\n"
                yield event
