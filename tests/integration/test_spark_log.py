"""Event logs that this machine's Spark writes now, held to the tests of the stored logs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.observe.spark_log import Imported, spark_log
from tests.observe.spark_log import applications, test_read
from tests.observe.spark_log.reading import logs_by_application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]

# The tests of the stored logs, with the fixtures of this file.
globals().update({name: test for name, test in vars(test_read).items() if name.startswith("test_")})


@pytest.fixture(scope="module")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The logs by application name; the last application is killed, Python and Java, with -9."""
    folder = tmp_path_factory.mktemp("spark-logs")
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.observe.spark_log.applications", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert program.stdout is not None
        ready = any(applications.READY in line for line in program.stdout)
        assert ready, "the applications did not run"
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    return logs_by_application(folder)


@pytest.fixture(scope="module")
def imported(spark: SparkSession, logs: dict[str, Path]) -> dict[str, Imported]:
    names = ("shuffle-job", "skewed-join", "clicks")
    return {name: spark_log(spark, str(logs[name])) for name in names}


def test_a_component_is_named_after_the_line_that_asked_for_it(
    imported: dict[str, Imported],
) -> None:
    lines = Path(applications.__file__).read_text().splitlines()
    (line,) = (i for i, text in enumerate(lines, 1) if text.endswith(f"# {applications.HOT}"))
    components = imported["skewed-join"].document["topology"]["components"]
    (join,) = (name for name, c in components.items() if len(c.get("inputs", ())) == 2)
    assert join.startswith(f"collect-applications-{line}-")
