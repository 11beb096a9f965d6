"""A server to ask, without a socket."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from headrace.serve.app import make_app
from headrace.serve.safety import Door
from headrace.serve.shelf import Shelf

TOKEN = "a-token-that-nobody-guesses"
DOOR = Door("127.0.0.1", 8700, TOKEN)
ACTS = {"authorization": f"Bearer {TOKEN}"}


@contextmanager
def client_of(*folders: Path, door: Door = DOOR, **settings: Any) -> Generator[TestClient]:
    """A client of a server that shows these folders."""
    shelf = Shelf(folders, **settings)
    address = f"http://{door.host}:{door.port}"
    with TestClient(make_app(shelf, door), base_url=address) as client:
        yield client
