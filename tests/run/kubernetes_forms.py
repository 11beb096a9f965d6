"""What Kubernetes and the Spark operator accept, as strict JSON Schemas: unknown keys are errors.

From the reference of the core/v1 Pod and of the operator's v1beta2 SparkApplication: only keys that
exporting could use are listed, each with its type and limits.
"""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
WORDS: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}
NAME: dict[str, Any] = {
    "type": "string",
    "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    "maxLength": 63,
}
LABEL_VALUE = {"type": "string", "pattern": "^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$"}
LABEL_KEY = {
    "type": "string",
    "pattern": "^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
}
QUANTITY = {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(m|[KMGT]i?)?$"}
JVM_MEMORY = {"type": "string", "pattern": "^[0-9]+[kmgt]b?$"}


def mapping(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(required),
    }


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


LABELS = {"type": "object", "propertyNames": LABEL_KEY, "additionalProperties": LABEL_VALUE}
METADATA = mapping(
    ("name",),
    name=NAME,
    namespace=NAME,
    labels=LABELS,
    annotations={"type": "object", "propertyNames": LABEL_KEY, "additionalProperties": TEXT},
)
EXPRESSION = mapping(
    ("key", "operator"),
    key=LABEL_KEY,
    operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
    values=array(LABEL_VALUE),
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AFFINITY = mapping(
    nodeAffinity=mapping(
        **{
            REQUIRED: mapping(
                ("nodeSelectorTerms",),
                nodeSelectorTerms=array(mapping(matchExpressions=array(EXPRESSION))),
            )
        }
    ),
    podAntiAffinity=mapping(
        **{
            REQUIRED: array(
                mapping(
                    ("topologyKey",),
                    labelSelector=mapping(matchLabels=LABELS),
                    topologyKey=LABEL_KEY,
                )
            )
        }
    ),
)
AMOUNTS = mapping(cpu=QUANTITY, memory=QUANTITY)
CONTAINER = mapping(
    ("name",), name=NAME, image=TEXT, resources=mapping(requests=AMOUNTS, limits=AMOUNTS)
)
POD = mapping(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "v1"},
    kind={"const": "Pod"},
    metadata=METADATA,
    spec=mapping(("containers",), containers=array(CONTAINER), affinity=AFFINITY),
)
CORES = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
SPARK_APPLICATION = mapping(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "sparkoperator.k8s.io/v1beta2"},
    kind={"const": "SparkApplication"},
    metadata=METADATA,
    spec=mapping(
        ("driver", "executor", "mainApplicationFile", "sparkVersion", "type"),
        type={"enum": ["Java", "Python", "Scala", "R"]},
        mode={"enum": ["cluster", "client"]},
        image=TEXT,
        mainApplicationFile=TEXT,
        sparkVersion=TEXT,
        sparkConf=WORDS,
        restartPolicy=mapping(type={"enum": ["Never", "Always", "OnFailure"]}),
        driver=mapping(cores=CORES, memory=JVM_MEMORY, serviceAccount=TEXT, labels=LABELS),
        executor=mapping(
            instances=CORES,
            cores=CORES,
            memory=JVM_MEMORY,
            memoryOverhead=JVM_MEMORY,
            labels=LABELS,
            affinity=AFFINITY,
        ),
    ),
)
