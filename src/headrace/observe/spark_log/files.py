"""Which files hold the event log of which application, and their text.

Files are found and opened by Spark's own file systems, so a path may be whatever Spark can read.
Plain logs are read where they lie, in parallel. Compressed ones are in the framing of Spark's own
codecs, which no text reader knows: the driver unpacks them into a temporary folder, and what was
unpacked before a break is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = (
    "an event log is a file, or a folder eventlog_v2_*, that Spark wrote under spark.eventLog.dir"
)
ROLLING = "eventlog_v2_"
PART = re.compile(r"events_(\d+)_")
NOT_THE_ID = re.compile(r"(\.(inprogress|compact|zstd|lz4|snappy|lzf|gz))+$")
# By the first bytes, not by the name: logs get renamed.
MAGIC = (
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"LZ4Block", "lz4"),
    (b"\x82SNAPPY\x00", "snappy"),
    (b"ZV\x01", "lzf"),
    (b"ZV\x00", "lzf"),
    (b"\x1f\x8b", "gzip"),
)
# Databricks writes `eventlog`, and closed parts beside it: eventlog-2021-06-15--15-00.gz
DATABRICKS = re.compile(r"eventlog(-\d{4}-\d\d-\d\d--\d\d-\d\d(\.gz)?)?$")
HEAD_LINES = 50  # an application says its name within its first few events


@dataclass(frozen=True, slots=True)
class Log:
    """The event log of one application (of one attempt at it)."""

    app: str  # as the file name says it
    files: tuple[str, ...]
    bytes: int
    modified_ms: int
    in_progress: bool  # so it says: the application runs, or was killed
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder."""

    path: str
    name: str
    is_folder: bool
    bytes: int
    modified_ms: int


def find_logs(spark: SparkSession, path: str) -> list[Log]:
    """The event logs at a path: one, or all of a history server's directory, newest first."""
    where = f"file://{Path(path).resolve()}" if Path(path).exists() else path
    if "://" not in where:
        raise InvalidInput(f"{path}: no such file or folder; {NEEDED}")
    here = _entry(spark, where)
    if not here.is_folder:
        return [single_log(here)]
    entries = _entries(spark, where)
    if here.name.startswith(ROLLING) or any(PART.match(entry.name) for entry in entries):
        return [rolling_log(here, entries)]
    if any(DATABRICKS.match(entry.name) and not entry.is_folder for entry in entries):
        return [databricks_log(here, entries)]
    folders = [entry for entry in entries if entry.is_folder and entry.name.startswith(ROLLING)]
    logs = [rolling_log(folder, _entries(spark, folder.path)) for folder in folders]
    logs += [
        single_log(entry)
        for entry in entries
        if not entry.is_folder and not entry.name.startswith((".", "_"))
    ]
    if not logs:
        raise InvalidInput(f"{path}: is a folder without event logs; {NEEDED}")
    return sorted(logs, key=lambda log: (-log.modified_ms, log.app))


def choose(logs: list[Log], app: str, path: str) -> Log:
    """The log of an application by its id, or a refusal that names the nearest."""
    matching = [log for log in logs if log.app == app] or [
        log for log in logs if re.fullmatch(rf"{re.escape(app)}_\d+", log.app)
    ]
    if not matching:
        raise InvalidInput(
            f"{path}: has no application `{app}`{nearest(app, [log.app for log in logs])}"
        )
    return matching[0]  # of several attempts, the newest


def text_files(spark: SparkSession, log: Log, folder: Path) -> tuple[list[str], list[str]]:
    """Files of plain text for `spark.read.text`, and notes on what could not be unpacked."""
    texts: list[str] = []
    notes = list(log.notes)
    for number, file in enumerate(log.files):
        codec = _codec(spark, file)
        if codec is None:
            # Spark would take these characters for patterns.
            texts.append(re.sub(r"([\[\]{}*?\\])", r"\\\1", file))
            continue
        target = folder / f"part-{number}"
        broken = _unpack(spark, file, codec, target)
        if broken is not None:
            notes.append(
                f"{file.rpartition('/')[2]} breaks off ({codec}: {broken}); "
                "what is before that is used"
            )
        texts.append(f"file://{target}")
    return texts, notes


def copy_files(spark: SparkSession, log: Log, folder: Path) -> tuple[str, ...]:
    """The files of a log as they are, copied from any file system into a folder."""
    jvm = _jvm(spark)
    copies: list[str] = []
    for number, file in enumerate(log.files):
        target = folder / f"{number}-{file.rpartition('/')[2]}"
        out = jvm.java.io.FileOutputStream(str(target))
        try:
            jvm.org.apache.hadoop.io.IOUtils.copyBytes(
                _stream(spark, file, None), out, 1 << 16, True
            )
        except _java_error() as error:
            raise InvalidInput(f"{file}: cannot be read ({_cause(error)})") from None
        copies.append(str(target))
    return tuple(copies)


def head(spark: SparkSession, log: Log) -> list[str]:
    """The first lines of a log, as many as are needed to know whose it is."""
    jvm = _jvm(spark)
    stream = _stream(spark, log.files[0], _codec(spark, log.files[0]))
    reader = jvm.java.io.BufferedReader(jvm.java.io.InputStreamReader(stream, "UTF-8"))
    lines: list[str] = []
    try:
        while len(lines) < HEAD_LINES and (line := reader.readLine()) is not None:
            lines.append(line)
    except _java_error():
        pass  # a log that breaks off is noted when it is read
    finally:
        reader.close()
    return lines


def single_log(entry: Entry) -> Log:
    return Log(
        NOT_THE_ID.sub("", entry.name),
        (entry.path,),
        entry.bytes,
        entry.modified_ms,
        entry.name.endswith(".inprogress"),
    )


def databricks_log(folder: Entry, entries: list[Entry]) -> Log:
    """A cluster's log at Databricks: closed parts by their hours, then the open one."""
    parts = [e for e in entries if DATABRICKS.match(e.name) and not e.is_folder]
    parts.sort(key=lambda e: (e.name == "eventlog", e.name))
    newest = max(e.modified_ms for e in parts)
    size = sum(e.bytes for e in parts)
    return Log(folder.name, tuple(e.path for e in parts), size, newest, False)


def rolling_log(folder: Entry, entries: list[Entry]) -> Log:
    """The parts of a rolling log in order; a compacted part replaces all before it."""
    parts = [(int(match[1]), entry) for entry in entries if (match := PART.match(entry.name))]
    if not parts:
        raise InvalidInput(f"{folder.path}: holds no events_* file; {NEEDED}")
    compacted = max((number for number, entry in parts if ".compact" in entry.name), default=0)
    used = sorted(
        (number, entry.path)
        for number, entry in parts
        if number > compacted or (number == compacted and ".compact" in entry.name)
    )
    numbers = [number for number, _ in used]
    notes = (
        [f"{folder.name}: compacted by the history server, which drops events of finished jobs"]
        if compacted
        else []
    )
    missing = sorted(set(range(compacted or 1, numbers[-1] + 1)) - set(numbers))
    if missing:
        notes.append(
            f"{folder.name}: part {', '.join(map(str, missing))} of 1 to {numbers[-1]} is missing; "
            "the others are used"
        )
    size = sum(entry.bytes for _, entry in parts)
    newest = max(entry.modified_ms for _, entry in parts)
    name = folder.name.removeprefix(ROLLING)
    in_progress = any(
        entry.name.startswith("appstatus_") and entry.name.endswith(".inprogress")
        for entry in entries
    )
    return Log(name, tuple(path for _, path in used), size, newest, in_progress, tuple(notes))


def _entry(spark: SparkSession, path: str) -> Entry:
    try:
        return _as_entry(_file_system(spark, path).getFileStatus(_path(spark, path)))
    except _java_error() as error:
        raise InvalidInput(f"{path}: cannot be read ({_cause(error)}); {NEEDED}") from None


def _entries(spark: SparkSession, path: str) -> list[Entry]:
    try:
        return [
            _as_entry(status) for status in _file_system(spark, path).listStatus(_path(spark, path))
        ]
    except _java_error() as error:
        raise InvalidInput(f"{path}: cannot be listed ({_cause(error)})") from None


def _as_entry(status: Any) -> Entry:
    path = status.getPath()
    return Entry(
        path.toString(),
        path.getName(),
        status.isDirectory(),
        status.getLen(),
        status.getModificationTime(),
    )


def _codec(spark: SparkSession, file: str) -> str | None:
    """How a file is packed; None if it is plain."""
    try:
        stream = _file_system(spark, file).open(_path(spark, file))
        first = bytes(byte for _ in range(8) if (byte := stream.read()) >= 0)
        stream.close()
    except _java_error() as error:
        raise InvalidInput(f"{file}: cannot be read ({_cause(error)})") from None
    return next((codec for magic, codec in MAGIC if first.startswith(magic)), None)


def _stream(spark: SparkSession, file: str, codec: str | None) -> Any:
    jvm = _jvm(spark)
    raw = _file_system(spark, file).open(_path(spark, file))
    if codec is None:
        return raw
    if codec == "gzip":
        return jvm.java.util.zip.GZIPInputStream(raw)
    codecs = getattr(getattr(jvm.org.apache.spark.io, "CompressionCodec$"), "MODULE$")
    # Continuous: the last block of an application that is still running, or was killed, need not be
    # whole.
    return codecs.createCodec(_context(spark).sc().conf(), codec).compressedContinuousInputStream(
        raw
    )


def _unpack(spark: SparkSession, file: str, codec: str, target: Path) -> str | None:
    """Unpack as far as it goes; says why it stopped early."""
    jvm = _jvm(spark)
    out = jvm.java.io.FileOutputStream(str(target))
    try:
        jvm.org.apache.hadoop.io.IOUtils.copyBytes(_stream(spark, file, codec), out, 1 << 16, True)
    except _java_error() as error:
        out.close()
        return _cause(error)
    return None


def _cause(error: Any) -> str:
    """The first line of what Java says, without the class."""
    text = str(error.java_exception.getMessage() or error.java_exception.getClass().getSimpleName())
    return text.splitlines()[0][:200]


def _java_error() -> type[Exception]:
    from py4j.protocol import Py4JJavaError  # with pyspark, only where Spark runs

    return Py4JJavaError


def _path(spark: SparkSession, path: str) -> Any:
    return _jvm(spark).org.apache.hadoop.fs.Path(path)


def _file_system(spark: SparkSession, path: str) -> Any:
    return _path(spark, path).getFileSystem(_context(spark).hadoopConfiguration())


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # pyright: ignore[reportPrivateUsage] # PySpark has no public door to Hadoop's file systems


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc  # pyright: ignore[reportPrivateUsage]
