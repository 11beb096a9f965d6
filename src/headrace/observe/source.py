"""Telemetry folders as Spark sees them: the same columns from Parquet and from JSON lines."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headrace.errors import InvalidInput
from headrace.model.telemetry import KINDS, LATER, VERSION, VERSION_KEY

# What Spark knows about any file.
FILES = (
    StructType()
    .add("path", "string")
    .add("modificationTime", "timestamp")
    .add("length", "long")
    .add("content", "binary")
)
BYTES_PER_BATCH = 64_000_000  # of files in one micro-batch: what a small driver holds with ease


def columns_of(kind: str) -> StructType:
    """The columns of a kind of telemetry."""
    return from_arrow_schema(KINDS[kind])


def check_folder(folder: Path, newest: int | None = None) -> dict[str, list[Path]]:
    """The files of each kind, or the newest of them.

    A folder that is not telemetry, holds nothing, or is of another version is refused.
    """
    if not folder.is_dir():
        fault = "is a file" if folder.exists() else "no such folder"
        raise InvalidInput(f"{folder}: {fault}; a telemetry folder is needed")
    if not any((folder / kind).is_dir() for kind in KINDS):
        raise InvalidInput(
            f"{folder}: is not a telemetry folder; "
            f"it needs at least one of the folders {', '.join(KINDS)}"
        )
    files = {kind: sorted(_files(folder / kind))[-(newest or 0) :] for kind in KINDS}
    if not any(files.values()):
        raise InvalidInput(
            f"{folder}: holds no telemetry yet; "
            f"there is no .parquet or .jsonl file in {', '.join(KINDS)}"
        )
    for kind, found in files.items():
        for file in found:
            _check_file(file, kind)
    return files


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (
            f
            for f in folder.iterdir()
            if f.suffix in (".parquet", ".jsonl") and f.name[0] not in "._"
        )


def _check_file(file: Path, kind: str) -> None:
    version = (
        _version_of_parquet(file, kind) if file.suffix == ".parquet" else _version_of_lines(file)
    )
    if version not in (None, VERSION):
        raise InvalidInput(
            f"{file}: is telemetry of version {version}; this headrace reads version {VERSION}"
        )


def _version_of_parquet(file: Path, kind: str) -> int | None:
    """The version a file names; files of other programs name none, and need the columns."""
    try:
        schema = pq.read_schema(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidInput(
            f"{file}: is not a Parquet file ({str(error).splitlines()[0]})"
        ) from None
    named = (schema.metadata or {}).get(VERSION_KEY)
    if named is not None:
        return int(named)
    needed = [name for name in KINDS[kind].names if name not in LATER]
    if absent := [name for name in needed if name not in schema.names]:
        raise InvalidInput(
            f"{file}: is not telemetry of kind `{kind}`; it has no column `{absent[0]}`"
        )
    return None


def _version_of_lines(file: Path) -> int | None:
    """The version of the first line; a line that cannot be read is a matter for the quarantine."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        try:
            first = json.loads(lines.readline())
        except json.JSONDecodeError:
            return None
    return first.get("version") if isinstance(first, dict) else None  # pyright: ignore[reportUnknownVariableType]


def read_files(spark: SparkSession, kind: str, files: list[Path]) -> DataFrame:
    """All rows of one kind, with `raw` (a line that was not JSON of this kind) and `version`."""
    parquet = [str(f) for f in files if f.suffix == ".parquet"]
    lines = [str(f) for f in files if f.suffix == ".jsonl"]
    read = spark.read
    found = [_plain(read.schema(columns_of(kind)).parquet(*parquet))] if parquet else []
    if lines or not parquet:
        reader = read.schema(_line_columns(kind)).option("columnNameOfCorruptRecord", "raw")
        found.append(
            reader.json(lines) if lines else spark.createDataFrame([], _line_columns(kind))
        )
    return found[0] if len(found) == 1 else found[0].unionByName(found[1])


def new_files(spark: SparkSession, folder: Path, kind: str) -> DataFrame:
    """The files of one kind as a stream, each by its `path` in one row, as they are added.

    A micro-batch of rows would be fixed once it is handed out: every look at it would read and copy
    all columns. By the names of its files, `read_files` reads only what each look needs.
    """
    # Spark would pass over files a week older than the newest one; a node that was cut off may send
    # them yet.
    options = {
        "maxBytesPerTrigger": str(BYTES_PER_BATCH),
        "maxFileAge": "3650d",
        "pathGlobFilter": "*.{parquet,jsonl}",
    }
    files = (
        spark.readStream.format("binaryFile")
        .schema(FILES)
        .options(**options)
        .load(str(folder / kind))
    )
    return files.select("path")  # their content is not read here


def _line_columns(kind: str) -> StructType:
    return columns_of(kind).add("version", "integer").add("raw", "string")


def _plain(rows: DataFrame) -> DataFrame:
    return rows.withColumns({"version": F.lit(None).cast("int"), "raw": F.lit(None).cast("string")})
