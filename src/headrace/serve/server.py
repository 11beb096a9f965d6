"""Binding, the address that is printed, and the end; also beside a run, as a process of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput, Unsupported
from headrace.serve.safety import Door, is_loopback, new_token

if TYPE_CHECKING:
    from headrace.advise.report import Advice

PORT = 8700
START_S = 60.0  # until a server beside a run answers
SHORTEST_TOKEN = 16  # characters

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Where:
    """Where to serve."""

    host: str = "127.0.0.1"
    port: int = PORT
    token: str = ""
    names: tuple[str, ...] = ()  # further names of the host


def read_token(file: str | None) -> str:
    """The token of a file, or a new one."""
    if file is None:
        return new_token()
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: cannot be read as a token: {error}") from None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidInput(
            f"{file}: holds no token; {SHORTEST_TOKEN} or more plain characters are needed"
        )
    return token


def address(door: Door, *, token: bool = True) -> str:
    """What to open in a browser."""
    host = f"[{door.host}]" if ":" in door.host else door.host
    host = "127.0.0.1" if host == "0.0.0.0" else host
    return f"http://{host}:{door.port}/" + (f"#token={door.token}" if token else "")


def bind(where: Where) -> tuple[socket.socket, Door]:
    """A socket that listens, and the door behind it; a port that is taken is refused."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
    except (OSError, OverflowError) as error:
        listener.close()
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise Unsupported(
            f"{where.host}:{where.port}: cannot listen there: {words}",
            fix="choose another port with --port, or --port 0 for any that is free",
        ) from None
    port = int(listener.getsockname()[1])
    return listener, Door(where.host, port, where.token or new_token(), where.names)


def can_bind(where: Where) -> bool:
    """Whether a port is free."""
    try:
        listener, _ = bind(where)
    except Unsupported:
        return False
    listener.close()
    return True


def require_serve(what: str) -> None:
    """Refuse in a line where the packages are missing."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise Unsupported(
            f"{what} needs starlette and uvicorn, which are not installed",
            fix="pip install 'headrace[serve]'",
        )


def serve(
    folders: Sequence[Path],
    where: Where,
    ready: Callable[[Door], None],
    *,
    advice: Sequence[Advice] = (),
    until: Callable[[], object] | None = None,
) -> None:
    """Serve until Ctrl-C, or until a call comes back; `ready` is called once it answers."""
    require_serve("headrace serve")
    listener, door = bind(where)
    try:
        asyncio.run(_serve(folders, listener, door, ready, advice, until))
    finally:
        listener.close()


async def _serve(
    folders: Sequence[Path],
    listener: socket.socket,
    door: Door,
    ready: Callable[[Door], None],
    advice: Sequence[Advice],
    until: Callable[[], object] | None,
) -> None:
    import uvicorn

    from headrace.serve.app import make_app
    from headrace.serve.shelf import Shelf

    shelf = Shelf(folders, advice)

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready(door)

        async def shutdown(self, sockets: Any = None) -> None:
            shelf.closing.set()  # viewers would be waited for
            await shelf.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        make_app(shelf, door),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=30,
        ws="none",
        lifespan="on",
    )
    server = Server(config)
    if until is not None:
        loop = asyncio.get_running_loop()

        def wait() -> None:
            until()
            loop.call_soon_threadsafe(setattr, server, "should_exit", True)

        threading.Thread(target=wait, daemon=True).start()
    await server.serve(sockets=[listener])


def check_where(where: Where, say: Say) -> None:
    """Say what it means to be reachable from elsewhere."""
    if not is_loopback(where.host):
        say(
            f"others can reach {where.host}: who has the address with its token sees the runs "
            "and can act; there is no encryption"
        )


@contextmanager
def beside(folder: Path, where: Where, say: Say) -> Generator[str]:
    """A server in a process of its own while something runs here; gives the address.

    What is written into the folder is all that it knows: it takes no time from what runs but that
    of another process.
    """
    require_serve("--serve")
    where = Where(where.host, where.port, where.token or new_token(), where.names)
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.serve.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the run, whose end is its end
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        asked = {"folder": str(folder.resolve()), "host": where.host, "port": where.port,
                 "token": where.token, "names": list(where.names)}  # fmt: skip
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        said = json.loads(process.stdout.readline() or "{}")
        if "address" not in said:
            raise Unsupported(said.get("error") or "the server beside the run did not start",
                              fix=said.get("fix"))  # fmt: skip
        say(f"look at it: {said['address']}")
        yield said["address"]
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main() -> None:
    """The process beside a run: what to serve is the first line of stdin, whose end is its end."""
    asked = json.loads(sys.stdin.readline())
    where = Where(asked["host"], asked["port"], asked["token"], tuple(asked["names"]))

    def tell(said: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()

    try:
        serve(
            [Path(asked["folder"])],
            where,
            lambda door: tell({"address": address(door)}),
            until=sys.stdin.read,
        )
    except Unsupported as error:
        tell({"error": error.message, "fix": error.fix})


if __name__ == "__main__":
    main()
