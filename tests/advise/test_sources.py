"""Where logs come from: files in every packing, folders, servers; and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import threading
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import headrace as hr
from headrace.advise.live import follow
from headrace.cli import main
from headrace.errors import InvalidInput
from tests.advise.builders import SHARED, two_stage_app

Reply = tuple[int, bytes]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["advise", *arguments])


def text() -> bytes:
    return b"\n".join(two_stage_app().lines()) + b"\n"


def lz4(plain: bytes) -> bytes:
    """As lz4-java frames it, in blocks."""
    packed = b""
    for start in range(0, len(plain), 1000):
        piece = plain[start : start + 1000]
        block = bytes(pa.Codec("lz4_raw").compress(piece))
        sizes = b"".join(n.to_bytes(4, "little") for n in (len(block), len(piece), 0))
        packed += b"LZ4Block\x25" + sizes + block
    return packed + b"LZ4Block\x15" + bytes(12)


def snappy(plain: bytes) -> bytes:
    packed = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
    for start in range(0, len(plain), 1000):
        block = bytes(pa.Codec("snappy").compress(plain[start : start + 1000]))
        packed += len(block).to_bytes(4, "big") + block
    return packed


def lzf(plain: bytes) -> bytes:
    """Literals only, and one copy at the start to see that copies work."""
    packed = b""
    for start in range(0, len(plain), 1000):
        piece = plain[start : start + 1000]
        block = b"".join(
            bytes([len(piece[i : i + 32]) - 1]) + piece[i : i + 32]
            for i in range(0, len(piece), 32)
        )
        sizes = len(block).to_bytes(2, "big") + len(piece).to_bytes(2, "big")
        packed += b"ZV\x01" + sizes + block
    return packed


def zstd(plain: bytes) -> bytes:
    """Several frames, as a writer that flushes leaves them."""
    pieces = [plain[start : start + 1000] for start in range(0, len(plain), 1000)]
    return b"".join(bytes(pa.Codec("zstd").compress(piece)) for piece in pieces)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd, lz4, snappy, lzf])
def test_every_packing_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(pack(text()))
    assert hr.advise(tmp_path / "log").replayed.wall_s == pytest.approx(7.0)


def test_a_copy_within_an_lzf_block_may_overlap_itself() -> None:
    from headrace.observe.spark_log.local_files import _unpack_lzf  # pyright: ignore

    # `ab` as literals, then 6 bytes from 2 back.
    assert _unpack_lzf(bytes([1]) + b"ab" + bytes([4 << 5, 1]), 8) == b"abababab"


@pytest.mark.parametrize("pack", [gzip.compress, zstd, lz4, snappy])
def test_a_packed_log_that_breaks_off_is_used_up_to_there(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    packed = pack(text() * 1)
    (tmp_path / "log").write_bytes(packed[: int(len(packed) * 0.93)])
    advice = hr.advise(tmp_path / "log")
    assert any("breaks off" in note or "cut off" in note for note in advice.trace.notes)


def test_a_plain_log_that_is_cut_says_so(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(text()[:-60])
    notes = " ".join(hr.advise(tmp_path / "log").trace.notes)
    assert "1 line is cut off" in notes
    assert "did not end" in notes


def test_databricks_parts_are_one_log(tmp_path: Path) -> None:
    lines = text().splitlines(keepends=True)
    (tmp_path / "eventlog-2021-06-15--15-00.gz").write_bytes(gzip.compress(b"".join(lines[:6])))
    (tmp_path / "eventlog").write_bytes(b"".join(lines[6:]))
    assert hr.advise(tmp_path).replayed.wall_s == pytest.approx(7.0)


def test_a_rolling_log_is_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    lines = text().splitlines(keepends=True)
    for n in range(1, 12):
        part = lines[n - 1 :] if n == 11 else lines[n - 1 : n]
        (folder / f"events_{n}_app-1").write_bytes(b"".join(part))
    assert hr.advise(tmp_path / "eventlog_v2_app-1").replayed.wall_s == pytest.approx(7.0)


def test_a_folder_of_many_needs_an_id(tmp_path: Path) -> None:
    for name in ("app-1", "app-2"):
        (tmp_path / name).write_bytes(text())
    refused = run(str(tmp_path))
    assert refused.exit_code == 1
    assert "2 applications" in refused.stderr
    assert hr.advise(tmp_path, app="app-2").trace.id == "app-1"  # as the log itself says


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"not a log\n" * 5, "holds none of Spark's events"),
        (b'{"Event": "login", "user": "x"}\n' * 3, "holds none of Spark's events"),
        (b'[{"a": 1}]', "holds none of Spark's events"),
        (b"\x00\x01\x02" * 100, "holds none of Spark's events"),
        (b'{"Event":"SparkListenerLogStart","Spark Version":"3.5.0"}\n', "no task came to its end"),
        (b"\x28\xb5\x2f\xfd\x00", "holds none of Spark's events"),
    ],
)
def test_bad_files_are_refused_in_one_line(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(content)
    refused = run(str(tmp_path / "log"))
    assert refused.exit_code == 1
    assert told in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    answer = json.loads(run(str(tmp_path / "log"), "--json").stdout)
    assert answer["error"]["kind"] == "invalid-input"


def test_a_missing_file_is_refused() -> None:
    assert "no such file or folder" in run("/nowhere/log").stderr


@contextmanager
def server(reply: Callable[[str], Reply | None]) -> Generator[str]:
    """A server on this machine; None: it stops in the middle of its answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = reply(self.path.removeprefix("/api/v1/"))
            if answer is None:
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"PK\x03\x04 half")
                return
            self.send_response(answer[0])
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, format: str, *args: object) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}"
    finally:
        serving.shutdown()
        serving.server_close()


APPS = json.dumps([{"id": "app-1", "name": "app", "attempts": [{"startTime": ""}]}]).encode()


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("app-1", text())
    return packed.getvalue()


def test_a_history_server_hands_out_its_log() -> None:
    with server(lambda path: (200, APPS if path == "applications" else archive())) as url:
        assert hr.advise(url).replayed.wall_s == pytest.approx(7.0)
        assert "has no application `x`" in run(url, "--app", "x").stderr


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((404, b""), None, "the server answers 404"),
        ((500, b""), None, "the server answers 500"),
        ((200, b"<html>"), None, "the answer is not Spark's"),
        ((200, b'{"jobs": []}'), None, "not a list of Spark's applications"),
        ((200, b"[]"), None, "has no application"),
        ((200, APPS), None, "broke off"),
        ((200, APPS), (200, b"PK half"), "broke off"),
    ],
)
def test_bad_servers_are_refused_in_one_line(first: Reply, second: Reply | None, told: str) -> None:
    with server(lambda path: first if path == "applications" else second) as url:
        refused = run(url)
    assert refused.exit_code == 1
    assert told in refused.stderr
    assert refused.stderr.startswith("headrace: ")
    assert len(refused.stderr.strip().splitlines()) <= 2  # the second says what would help


def test_a_server_that_is_not_there_is_refused() -> None:
    assert "the server stopped or is not there" in run("http://127.0.0.1:9").stderr
    assert "--follow needs one address" in run("/tmp", "--follow").stderr


def test_following_ends_with_the_application() -> None:
    replies: Iterator[Reply] = iter([(200, APPS), (200, archive())])
    with server(lambda _: next(replies, (404, b""))) as url:
        seen = list(follow(url, sleep=lambda _: None))
    assert len(seen) == 1


def test_the_address_must_be_one() -> None:
    with pytest.raises(InvalidInput, match="no address"):
        hr.advise("http://")


@pytest.mark.skipif(not SHARED.exists(), reason="event logs of strangers are not on this machine")
@pytest.mark.parametrize(
    "path",
    [p for p in sorted(SHARED.glob("*")) if p.suffix != ".md"],
    ids=lambda p: p.name[:30],
)
def test_strangers_logs_are_reproduced_and_no_figure_is_impossible(path: Path) -> None:
    advice = hr.advise(path)
    assert advice.error <= 0.25
    answer = advice.to_json()
    json.dumps(answer, allow_nan=False)
    for finding in answer["findings"]:
        assert finding["seconds"] is None or 0 <= finding["seconds"] <= advice.trace.wall_s
        for name, number in finding["numbers"].items():
            assert number >= 0
            assert name not in ("share", "busy") or number <= 1
    for point in answer["curve"]:
        assert point["wall_s"] > 0
        assert point["core_hours"] > 0
    size = advice.shape.executors, advice.shape.cores
    own = next(p for p in advice.curve if (p.executors, p.cores) == size)
    assert own.wall_s == pytest.approx(advice.trace.wall_s, rel=0.25)
    assert advice.chosen.wall_s <= 1.06 * own.wall_s


def test_an_event_with_figures_that_are_none_is_passed_over_as_one() -> None:
    """Half an attempt would leave columns of unequal lengths."""
    book = two_stage_app()
    ends = [e for e in book.events if e["Event"] == "SparkListenerTaskEnd"]
    ends[0]["Task Metrics"]["Executor Run Time"] = "soon"
    ends[1]["Task Info"]["Launch Time"] = 2**70
    book.events.append({"Event": "SparkListenerDriverAccumUpdates", "accumUpdates": [""]})
    trace = book.trace()
    assert "3 lines are not events of Spark" in " ".join(trace.notes)
    first = trace.stages[0].attempts
    assert {len(column) for column in first.metrics.values()} == {len(first)} == {6}


def test_reports_of_a_query_are_in_the_order_of_their_triggers() -> None:
    book = two_stage_app()
    for minute in (2, 0, 1):
        progress = {"id": "q", "timestamp": f"2026-01-01T00:0{minute}:00.000Z", "numInputRows": 1}
        book.events.append(
            {
                "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
                "progress": {**progress, "durationMs": {"triggerExecution": "NaN", "addBatch": 9}},
            }
        )
    reports = book.trace().progress
    assert [r.at_ms for r in reports] == sorted(r.at_ms for r in reports)
    assert reports[0].duration_ms == {"addBatch": 9.0}
