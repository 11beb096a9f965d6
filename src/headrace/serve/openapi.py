"""The description of the API: OpenAPI 3.1, from the table of operations and their models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

import headrace

if TYPE_CHECKING:
    from headrace.serve.app import Operation

REF = "#/components/schemas/{model}"
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message"],
            "properties": {"kind": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
WORDS = {
    400: "the body is not JSON",
    401: "the token is missing or wrong",
    403: "another site, or another name of this server",
    404: "there is no such thing",
    408: "the body did not arrive in time",
    413: "the body is too large",
    422: "it cannot be meant, or cannot be done",
    429: "there is too much to do already",
}


def describe_api(operations: Sequence[Operation]) -> dict[str, Any]:
    """The whole description."""
    schemas: dict[str, Any] = {"Error": ERROR}
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(
            operation, schemas
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "headrace serve",
            "version": headrace.__version__,
            "description": "Runs, plans and decisions. Every request that is not a GET needs the "
            "token; off the loopback, all do.",
        },
        "paths": {**paths, **_others()},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.handler.__name__,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation, schemas)],
        "responses": _responses(operation),
    }
    if operation.acts:
        found["security"] = [{"token": []}]
    if operation.body is not None:
        schema = _add(operation.body, schemas)
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return found


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(operation: Operation, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    whole = operation.query.model_json_schema()
    found: list[dict[str, Any]] = []
    for name, schema in whole.get("properties", {}).items():
        own = {key: value for key, value in schema.items() if key not in ("title", "description")}
        # In an address there is no null: what is absent is not there.
        choices = [one for one in own.pop("anyOf", ()) if one.get("type") != "null"]
        own = {**own, **(choices[0] if choices else {})}
        if own.get("default", 0) is None:
            del own["default"]
        found.append({"name": name, "in": "query", "required": False, "schema": own,
                      "description": schema.get("description", "")})  # fmt: skip
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    codes = [403, 422]
    codes += [404] if "{" in operation.path or operation.body is not None else []
    codes += [401] if operation.acts else []
    codes += [400, 408, 413, 429] if operation.body is not None else [400]
    done = {"description": operation.summary, "content": _json({"type": "object"})}
    failed = {
        str(code): {
            "description": WORDS[code],
            "content": _json({"$ref": REF.format(model="Error")}),
        }
        for code in sorted(codes)
    }
    return {str(operation.status): done, **failed}


def _add(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to a model's schema, which is added with all that it refers to."""
    schema = model.model_json_schema(ref_template=REF)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {"$ref": REF.format(model=model.__name__)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _others() -> dict[str, Any]:
    """What is no JSON: events and metrics."""
    run = {"name": "run", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "/api/v1/runs/{run}/events": {
            "get": {
                "summary": "What is new, as server-sent events: batch, plan, decisions, state, "
                "reset (load again)",
                "operationId": "events",
                "parameters": [run],
                "responses": {"200": {"description": "news", "content": {"text/event-stream": {}}},
                              "404": {"description": WORDS[404], "content": _json(ERROR)}},
            }
        },
        "/metrics": {
            "get": {
                "summary": "Metrics for Prometheus",
                "operationId": "metrics",
                "responses": {"200": {"description": "metrics", "content": {"text/plain": {}}}},
            }
        },
    }  # fmt: skip
