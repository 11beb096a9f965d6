"""Event logs on this machine's disk, found and unpacked without Spark, line by line.

The advice reads a log in one pass and needs no session for it. Spark's codecs frame their blocks in
ways of their own: zstd and gzip are streams that any reader knows; lz4, snappy and lzf come in
blocks with a header each, which are unpacked one by one, so that a log never has to fit in memory.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import zlib
from collections.abc import Iterator
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any

from headrace.errors import InvalidInput, Unsupported
from headrace.observe.spark_log.files import (
    DATABRICKS,
    MAGIC,
    NEEDED,
    PART,
    ROLLING,
    Entry,
    Log,
    databricks_log,
    rolling_log,
    single_log,
)

CHUNK = 1 << 20
MOST_LINE = 256 << 20  # a line longer than this is no event


def find_local_logs(path: Path) -> list[Log]:
    """The event logs at a path: one, or all of a history server's folder, newest first."""
    if not path.exists():
        raise InvalidInput(f"{path}: no such file or folder; {NEEDED}")
    here = _entry(path)
    if not here.is_folder:
        return [single_log(here)]
    entries = _entries(here)
    if any(PART.match(entry.name) for entry in entries):
        return [rolling_log(here, entries)]
    if any(DATABRICKS.match(e.name) and not e.is_folder for e in entries):
        return [databricks_log(here, entries)]
    logs = [rolling_log(e, _entries(e)) for e in entries if _is_rolling(e)]
    logs += [
        single_log(e) for e in entries if not e.is_folder and not e.name.startswith((".", "_"))
    ]
    if not logs:
        raise InvalidInput(f"{path}: is a folder without event logs; {NEEDED}")
    return sorted(logs, key=lambda log: (-log.modified_ms, log.app))


def read_lines(file: Path, notes: list[str]) -> Iterator[bytes]:
    """The lines of a log file, unpacked; where it breaks off, a note says so and reading ends."""
    rest = b""
    for chunk in _unpacked(file, notes):
        whole, found, rest_of_chunk = chunk.rpartition(b"\n")
        if not found:
            rest += chunk
            if len(rest) > MOST_LINE:
                notes.append(f"{file.name}: a line of more than {MOST_LINE >> 20} MB; not read on")
                return
            continue
        yield from (rest + whole).split(b"\n")
        rest = rest_of_chunk
    if rest:
        yield rest


def _unpacked(file: Path, notes: list[str]) -> Iterator[bytes]:
    try:
        with file.open("rb") as raw:
            first = raw.read(8)
            raw.seek(0)
            codec = next((codec for magic, codec in MAGIC if first.startswith(magic)), None)
            chunks = _chunks(raw, codec)
            while True:
                try:
                    chunk = next(chunks, None)
                except (OSError, EOFError, ValueError, zlib.error) as error:
                    why = str(error).splitlines()[0][:120] if str(error) else "it ends too early"
                    notes.append(
                        f"{file.name} breaks off ({codec}: {why}); what is before that is used"
                    )
                    return
                if chunk is None:
                    return
                yield chunk
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read ({error.strerror})") from None


def _chunks(raw: IO[bytes], codec: str | None) -> Iterator[bytes]:
    if codec is None:
        yield from iter(lambda: raw.read(CHUNK), b"")
    elif codec == "gzip":
        unpacked = GzipFile(fileobj=raw)
        yield from iter(lambda: unpacked.read1(CHUNK), b"")
    elif codec == "zstd":
        yield from _zstd(raw.name)
    else:
        yield from {"lz4": _lz4_blocks, "snappy": _snappy_blocks, "lzf": _lzf_blocks}[codec](raw)


def _zstd(file: str) -> Iterator[bytes]:
    """Unpacked as far as it goes: a running application's last block is never whole.

    The reader gives nothing of a piece that it cannot fill, so the last ones are asked for in ever
    smaller pieces.
    """
    given, step = 0, CHUNK
    while True:
        stream = _arrow().CompressedInputStream(_arrow().OSFile(file), "zstd")
        try:
            for at in range(0, given, CHUNK):
                stream.read(min(CHUNK, given - at))
            while piece := bytes(stream.read(step)):
                given += len(piece)
                yield piece
            return
        except OSError:
            if step == 1:
                raise
            step = max(1, step // 32)


def _lz4_blocks(raw: IO[bytes]) -> Iterator[bytes]:
    """lz4-java's blocks: `LZ4Block`, a token, packed and plain length, a checksum."""
    unpack = _arrow().Codec("lz4_raw").decompress
    while header := raw.read(21):
        if len(header) < 21 or not header.startswith(b"LZ4Block"):
            raise EOFError("a block without its header")
        packed, plain = _little(header[9:13]), _little(header[13:17])
        if plain == 0:
            continue  # the mark at the end of a stream
        block = _exactly(raw, packed)
        stored = header[8] & 0xF0 == 0x10
        yield block if stored else bytes(unpack(block, decompressed_size=plain))


def _snappy_blocks(raw: IO[bytes]) -> Iterator[bytes]:
    """snappy-java's blocks: a stream header of 16 bytes, then lengths and blocks."""
    unpack = _arrow().Codec("snappy").decompress
    _exactly(raw, 16)
    while length := raw.read(4):
        if length == b"\x82SNA":  # a second stream appended to the first
            _exactly(raw, 12)
            continue
        block = _exactly(raw, int.from_bytes(length, "big"))
        yield bytes(unpack(block, decompressed_size=_varint(block)))


def _lzf_blocks(raw: IO[bytes]) -> Iterator[bytes]:
    """lzf chunks: `ZV`, a type, packed length and, if packed, plain length; two bytes each."""
    while header := raw.read(5):
        if len(header) < 5 or not header.startswith(b"ZV"):
            raise EOFError("a block without its header")
        length = int.from_bytes(header[3:5], "big")
        if header[2] == 0:
            yield _exactly(raw, length)
        else:
            plain = int.from_bytes(_exactly(raw, 2), "big")
            yield _unpack_lzf(_exactly(raw, length), plain)


def _unpack_lzf(block: bytes, plain: int) -> bytes:
    """One chunk: runs of literals, and copies of what was written before."""
    out, at = bytearray(), 0
    while at < len(block):
        control = block[at]
        at += 1
        if control < 32:
            out += block[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += block[at]
            at += 1
        start = len(out) - ((control & 31) << 8) - block[at] - 1
        at += 1
        for i in range(start, start + length + 2):  # may overlap what it writes
            out.append(out[i])
    if len(out) != plain:
        raise EOFError("a block of another length than it says")
    return bytes(out)


def _exactly(raw: IO[bytes], length: int) -> bytes:
    block = raw.read(length)
    if len(block) < length:
        raise EOFError("the last block is not whole")
    return block


def _little(four: bytes) -> int:
    return int.from_bytes(four, "little")


def _varint(block: bytes) -> int:
    """The plain length, with which a snappy block begins."""
    value = shift = 0
    for byte in block[:5]:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    raise ValueError("a block without its length")


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise Unsupported(
            "a packed event log needs pyarrow, which is not installed",
            resource="pyarrow",
            fix="pip install 'headrace[spark]', or unpack the log",
        ) from None
    return pyarrow


def _is_rolling(entry: Entry) -> bool:
    return entry.is_folder and (
        entry.name.startswith(ROLLING) or any(PART.match(e.name) for e in _entries(entry))
    )


def _entries(folder: Entry) -> list[Entry]:
    return [_entry(path) for path in sorted(Path(folder.path).iterdir())]


def _entry(path: Path) -> Entry:
    stat = path.stat()
    return Entry(str(path), path.name, path.is_dir(), stat.st_size, stat.st_mtime_ns // 10**6)
