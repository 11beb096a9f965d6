"""A driver that dies in the middle of batch 1: its output is delivered, the batch not committed.

python -m tests.integration.killed_driver FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from headrace.run import Callback
from headrace.run.batches import Settings
from headrace.run.engine import run
from headrace.spark import session
from tests.run.topologies import word_count

FATAL_BATCH = 1


def die(batch: int, table: Any) -> None:
    if batch == FATAL_BATCH:
        os.killpg(0, signal.SIGKILL)  # the JVM and its Python workers too


def main(folder: Path) -> None:
    topology = word_count(folder / "out").sink("count", Callback(die))
    spark = session(
        master="local[1]",
        conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )
    run(spark, topology, None, Settings(folder / "run", batches=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
