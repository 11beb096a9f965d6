"""The process that answers Nimbus: quick, and sure of what it takes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.run.addresses import LOOPBACK, free_port
from headrace.storm.answering import PATH
from headrace.storm.service import answering
from tests.storm.states import cluster, word_count


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    # A process of its own is what keeps planning from delaying an answer.
    port = free_port()
    with answering(tmp_path, LOOPBACK, port):
        yield f"http://{LOOPBACK}:{port}{PATH}"


def post(address: str, body: bytes) -> dict[str, Any]:
    with urllib.request.urlopen(urllib.request.Request(address, body), timeout=10) as answer:
        return json.load(answer)


def test_nimbus_gets_the_plans_in_force_and_its_state_is_kept(address: str, tmp_path: Path) -> None:
    state = cluster(word_count())
    none = {"protocol": "headrace-storm/1", "plans": {}, "refusals": {}}
    assert post(address, json.dumps(state).encode()) == none
    assert json.loads((tmp_path / "state.json").read_text()) == state
    plans = {"protocol": "headrace-storm/1", "plans": {"wc-1-100": {"name": "p"}}, "refusals": {}}
    (tmp_path / "plans.json").write_text(json.dumps(plans))
    assert post(address, json.dumps(state).encode()) == plans


@pytest.mark.parametrize("body", [b"", b"rubbish", b"[]", b'{"protocol": "other/1"}'])
def test_what_is_no_state_is_refused_and_not_kept(
    address: str, tmp_path: Path, body: bytes
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        post(address, body)
    assert refusal.value.code == 400
    assert not (tmp_path / "state.json").exists()


def test_other_paths_are_not_there(address: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        post(address.replace("plans", "other"), b"{}")
    assert refusal.value.code == 404
