"""The server as a process beside a run: what is new arrives, many may look, and it ends."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headrace.errors import InvalidInput, Unsupported
from headrace.run.journal import Journal
from headrace.serve.server import Where, address, beside, bind, read_token
from tests.serve.journals import COUNTS, NODES, SPREAD, WORDS, batch, write_run


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "words"
    with beside(folder, Where(port=0), lambda message: None) as found:
        yield folder, found


def connect(found: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", urlsplit(found).port or 0, timeout=20)


def events_of(found: str, wanted: int, heard: list[tuple[str, float]]) -> None:
    connection = connect(found)
    connection.request("GET", "/api/v1/runs/words/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    for line in iter(answer.readline, b""):
        if line.startswith(b"event: "):
            heard.append((line[7:].decode().strip(), time.time()))
        if len(heard) >= wanted:
            break
    connection.close()


def test_a_batch_is_seen_within_a_second(served: tuple[Path, str]) -> None:
    folder, found = served
    journal = Journal(folder)
    journal.begin({"topology": WORDS, "cluster": {"nodes": NODES}}, telemetry=None)
    journal.add_plan("first", COUNTS, SPREAD)
    heard: list[tuple[str, float]] = []
    viewer = threading.Thread(target=events_of, args=(found, 8, heard))
    viewer.start()
    deadline = time.monotonic() + 20
    while not any(name == "hello" for name, _ in heard) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.7)
    written: list[float] = []
    for number in range(3):
        journal.add(batch(number, time.time(), "first"))
        written.append(time.time())
        time.sleep(0.4)
    journal.end()
    seen = [at for name, at in heard if name == "batch"]
    assert len(seen) == 3
    assert max(b - a for a, b in zip(written, seen, strict=True)) < 1.0
    connection = connect(found)
    connection.request("GET", "/api/v1/runs/words")
    assert json.load(connection.getresponse())["batches"] == 3


def test_the_server_ends_with_what_it_is_beside(tmp_path: Path) -> None:
    with beside(write_run(tmp_path / "words", batches=3), Where(port=0), lambda m: None) as found:
        port = urlsplit(found).port or 0
        heard: list[tuple[str, float]] = []
        viewer = threading.Thread(target=events_of, args=(found, 99, heard))
        viewer.start()
        time.sleep(0.5)
        began = time.monotonic()
    assert time.monotonic() - began < 8  # though somebody looks
    viewer.join(5)
    assert not viewer.is_alive()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 1)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Unsupported, match=f"127.0.0.1:{port}: cannot listen"):
            bind(Where(port=port))


def test_the_address_carries_the_token() -> None:
    listener, door = bind(Where(port=0))
    listener.close()
    assert address(door) == f"http://127.0.0.1:{door.port}/#token={door.token}"
    assert len(door.token) >= 30


@pytest.mark.parametrize(
    "text", ["", "short", "with\nlines and more of them", "ümläute-in-a-token-xx"]
)
def test_a_token_file_holds_a_token(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match="token"):
        read_token(str(file))
    file.write_text("a-token-of-24-characters\n")
    assert read_token(str(file)) == "a-token-of-24-characters"
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_token(str(tmp_path / "absent"))


def test_a_slow_body_is_given_up(served: tuple[Path, str]) -> None:
    _, found = served
    parts = urlsplit(found)
    token = parts.fragment.removeprefix("token=")
    with socket.create_connection(("127.0.0.1", parts.port or 0), 30) as slow:
        head = (
            f"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n"
        )
        slow.sendall(head.encode() + b'{"a":')
        began = time.monotonic()
        said = slow.recv(4096)
    assert b" 408 " in said.split(b"\r\n")[0] + b" "
    assert 5 < time.monotonic() - began < 20


def test_the_command_prints_where_and_ends_on_interrupt(tmp_path: Path) -> None:
    import signal

    write_run(tmp_path / "words", batches=3, moved_at=None)
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "serve", str(tmp_path), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("look at it: http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
