"""Requests of all kinds that the API's description allows, and of many that it does not."""

from __future__ import annotations

import resource
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.core import NOT_SET
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from tests.serve.apps import ACTS

KNOWN = {"run": "words", "number": "0", "job": "job-1", "name": "quickstart"}
SLOW_S = 10.0  # an answer that takes longer hangs


@dataclass
class Tally:
    """What came back."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter[int])
    strange: list[str] = field(default_factory=list[str])  # answers that the API does not describe
    slowest_s: float = 0.0
    grown_mb: float = 0.0


def fuzz(client: TestClient, count: int, start: int = 0) -> Tally:
    """Send so many requests; those of one start are always the same."""
    described: dict[str, Any] = client.get("/api/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(described)
    tally = Tally()
    first_mb = resident_mb()
    strategies = [
        schema.as_strategy(generation_mode=mode)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    ]

    @seed(start)
    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much,
                               HealthCheck.data_too_large, HealthCheck.large_base_example],
    )  # fmt: skip
    @given(st.one_of(strategies), st.booleans(), st.one_of(st.none(), st.binary(max_size=40)))
    def one(case: Any, known: bool, garbage: bytes | None) -> None:
        path = case.path
        for name, value in (case.path_parameters or {}).items():
            text = KNOWN.get(name, "x") if known else str(value)
            path = path.replace(f"{{{name}}}", _quoted(text))
        if case.path.endswith("/events") and known:
            return  # a stream that does not end
        body: dict[str, Any] = {}
        if garbage is not None and case.method != "GET":
            body = {"content": garbage}
        elif isinstance(case.body, bytes):
            body = {"content": case.body}
        elif case.body is not NOT_SET:
            body = {"json": case.body}
        query = {str(key): value for key, value in (case.query or {}).items()}
        ask(client, tally, described, case, path, query, body)

    one()
    tally.grown_mb = resident_mb() - first_mb
    return tally


def ask(
    client: TestClient,
    tally: Tally,
    described: dict[str, Any],
    case: Any,
    path: str,
    query: dict[str, Any],
    body: dict[str, Any],
) -> None:
    """Send one request, and note what is wrong with the answer."""
    began = time.monotonic()
    try:
        answer = client.request(case.method, path, params=query, headers=ACTS, **body)
    except (UnicodeEncodeError, ValueError):  # what no client can send
        return
    tally.requests += 1
    tally.slowest_s = max(tally.slowest_s, time.monotonic() - began)
    tally.statuses[answer.status_code] += 1
    allowed = described["paths"][case.path].get(case.method.lower(), {}).get("responses", {})
    fits = str(answer.status_code) in allowed or answer.status_code in (404, 405)
    if answer.status_code >= 500 or not fits:
        tally.strange.append(f"{case.method} {path} {query} {body}: {answer.status_code}"[:400])


def resident_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="") or "-"
