"""Advice in the words of those who start executors: spark-submit settings, a Kubernetes pod."""

from __future__ import annotations

from typing import Any

from headrace.advise.memory import LEAST_OVERHEAD_MB, OVERHEAD
from headrace.advise.report import Advice
from headrace.errors import Unsupported
from headrace.model.document import FORMAT
from headrace.observe.spark_log.application import memory_in_mb


def spark_settings(advice: Advice) -> dict[str, Any]:
    """Settings for spark-submit; what the log cannot tell is not set, and named."""
    conf = {s.name: s.value for s in advice.settings if s.name.startswith("spark.")}
    submit = " ".join(["spark-submit", *(f"--conf {key}={value}" for key, value in conf.items())])
    return {
        "format": FORMAT,
        "conf": conf,
        "spark_submit": submit,
        "expected": advice.chosen.to_json(),
        "reasons": {s.name: s.reason for s in advice.settings},
        "notes": [f"not set: {line}" for line in advice.unknown],
    }


def executor_pod(advice: Advice) -> dict[str, Any]:
    """A pod template for `spark.kubernetes.executor.podTemplateFile`, free to stand anywhere."""
    if advice.shape.local:
        raise Unsupported(
            "the application ran in local mode, without executors: a log of it does not show what "
            "a pod needs",
            resource="kubernetes",
        )
    conf = {s.name: s.value for s in advice.settings}
    heap_mb = memory_in_mb(conf.get("spark.executor.memory")) or advice.memory.heap_mb
    given = memory_in_mb(conf.get("spark.executor.memoryOverhead")) or advice.memory.overhead_mb
    overhead_mb = max(given, OVERHEAD * heap_mb, LEAST_OVERHEAD_MB)
    size = {"cpu": str(advice.chosen.cores), "memory": f"{round(heap_mb + overhead_mb)}Mi"}
    settings = " ".join(f"{k}={v}" for k, v in conf.items() if k.startswith("spark."))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {
                "headrace/executors": str(advice.chosen.executors),
                "headrace/conf": settings,
            },
        },
        "spec": {
            "containers": [
                {"name": "executor", "resources": {"requests": dict(size), "limits": dict(size)}}
            ]
        },
    }
