"""The API against its own description: no failure of the server, whatever it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.serve import jobs
from tests.serve.apps import client_of
from tests.serve.fuzzing import SLOW_S, fuzz
from tests.serve.journals import write_run


async def answer_nothing(request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
    """In the place of a job's process: here the API is asked, not the planner."""
    return {"answer": {"plans": [], "html": "", "sections": []}}


def test_no_request_makes_the_server_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "answer_of", answer_nothing)
    with client_of(write_run(tmp_path / "words", batches=30, moved_at=10)) as client:
        tally = fuzz(client, 250)
    assert tally.strange == []
    assert tally.requests > 150
    assert tally.slowest_s < SLOW_S
    assert {200, 404, 422} <= set(tally.statuses)
