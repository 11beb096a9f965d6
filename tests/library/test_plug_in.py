"""The example plug-in, installed as a stranger would install it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_scheduler"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the plug-in is installed."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *options, str(EXAMPLE)], check=True, capture_output=True)
    found = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), found)))}


def headrace(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_it_is_listed_with_the_others(environment: dict[str, str]) -> None:
    done = headrace(environment, "schedulers", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)["schedulers"]}
    assert rows["most-room"]["folder"] == "place"
    assert rows["most-room"]["maturity"] == "ours"


def test_it_places_and_is_compared_by_name(environment: dict[str, str]) -> None:
    file = str(hr.example("quickstart.yaml"))
    done = headrace(
        environment, "place", file, "--by", "most-room", "--option", "keep=0.2", "--json"
    )
    assert json.loads(done.stdout)["scheduler"] == "most-room", done.stderr
    done = headrace(environment, "compare", file, "--by", "most-room", "--by", "headrace", "--json")
    assert [r["scheduler"] for r in json.loads(done.stdout)["results"]] == ["most-room", "headrace"]


def test_it_keeps_every_promise(environment: dict[str, str]) -> None:
    done = headrace(environment, "check-scheduler", "most-room")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("holds") == 8
