"""What all tests share: one Spark session, and generated examples that are always the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from headrace.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Processes of pytest-xdist say that they are 80 columns wide.
os.environ.pop("COLUMNS", None)

# The clock of a shared machine is no evidence, so no deadline. --hypothesis-profile=default looks
# for new examples.
hypothesis.settings.register_profile("headrace", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("headrace")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Spark: `-m 'not spark'` runs the rest, one process holds the session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The smallest session there is; the JVM flags trade peak speed for a quick start."""
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    running = session(app="headrace-tests", master="local[1]", conf=conf)
    yield running
    running.stop()
