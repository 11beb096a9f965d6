"""The stored logs: those of `applications.py`, without this machine's properties, packed again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headrace.observe.spark_log import Imported, spark_log
from tests.observe.spark_log.reading import logs_by_application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORED = Path(__file__).parent / "logs"
PLAIN = "local-1794837859057"  # is read as plain text; stored packed, since it is large


@pytest.fixture(scope="session")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The logs by application name; the last application was killed, Python and Java, with -9."""
    folder = tmp_path_factory.mktemp("spark-logs")
    shutil.copytree(STORED, folder, dirs_exist_ok=True)
    packed = folder / f"{PLAIN}.zstd"
    with pa.input_stream(packed, compression="zstd") as lines:
        (folder / PLAIN).write_bytes(lines.read())
    packed.unlink()
    return logs_by_application(folder)


@pytest.fixture(scope="session")
def imported(spark: SparkSession, logs: dict[str, Path]) -> dict[str, Imported]:
    """Those that several tests look at, each read once."""
    names = ("shuffle-job", "skewed-join", "clicks")
    return {name: spark_log(spark, str(logs[name])) for name in names}
