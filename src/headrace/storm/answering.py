"""The process that answers Nimbus: it takes the cluster's state, and gives the plans in force.

Planning takes a core for seconds and would hold up every other thread of its process, so it is done
by another one (`service.py`); both meet in the files of a store. This one imports next to nothing
and computes nothing: an answer takes a millisecond, whatever is being planned.

    python -m headrace.storm.answering STORE HOST PORT
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from headrace.model.files import write_whole

PROTOCOL = "headrace-storm/1"
PATH = "/storm/v1/plans"
STATE = "state.json"
PLANS = "plans.json"
MOST_BYTES = 64_000_000
WITHIN_S = 30  # for the bytes of one request


class Handler(BaseHTTPRequestHandler):
    """One request of Nimbus."""

    protocol_version = "HTTP/1.1"
    timeout = WITHIN_S
    store: Path

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != PATH or not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True
            self.answer(404, {"error": f"POST the cluster's state to {PATH}"})
            return
        body = self.rfile.read(int(length))
        try:
            state = json.loads(body)
            known = isinstance(state, dict) and state.get("protocol") == PROTOCOL  # pyright: ignore[reportUnknownMemberType]
        except ValueError:
            known = False
        if not known:
            self.answer(400, {"error": f"a state of protocol {PROTOCOL} is needed"})
            return
        write_whole(self.store / STATE, body)
        self.answer(200, read_plans(self.store))

    def do_GET(self) -> None:
        if self.path == PATH:
            self.answer(200, read_plans(self.store))
        else:
            self.answer(404, {"error": f"GET {PATH} shows the plans in force"})

    def answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: Nimbus asks every few seconds."""


def read_plans(store: Path) -> dict[str, Any]:
    """The plans in force, as the protocol has them; none before the first was made."""
    try:
        return json.loads((store / PLANS).read_text())
    except (OSError, ValueError):
        return {"protocol": PROTOCOL, "plans": {}, "refusals": {}}


def main(arguments: list[str]) -> int:
    store, host, port = arguments
    handler = type("Bound", (Handler,), {"store": Path(store)})
    with ThreadingHTTPServer((host, int(port)), handler) as server:
        server.daemon_threads = True
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
