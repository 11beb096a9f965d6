"""The process that Spark's Python workers are forked from, with everything imported beforehand.

Without it every worker imports pandas, pyarrow and the rest by itself (local mode with two workers:
2.6 s of CPU for the first batch, 1.8 s with it, one run each). Set as `spark.python.daemon.module`.
"""

from __future__ import annotations

import pyspark.worker
from pyspark.daemon import manager

import headrace.run.task

PRELOADED = (pyspark.worker, headrace.run.task)

if __name__ == "__main__":
    headrace.run.task.settle()
    manager()
