"""Comparing within a time: rows as they come, nobody hangs, and Ctrl-C keeps what is there."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import Infeasible, Unsupported
from headrace.planner import Outcome, Plan, Refusal, comparing
from headrace.planner.limited import answer_within

QUICKSTART = str(hr.example("quickstart.yaml"))


def sleeps(problem: hr.Problem) -> dict[str, str]:
    time.sleep(600)
    return {}


def dies(problem: hr.Problem) -> dict[str, str]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def fails(problem: hr.Problem) -> dict[str, str]:
    raise ValueError("not today")


def test_a_scheduler_that_does_not_look_at_its_deadline_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparing, "MORE_S", 0.5)
    start, shown = time.monotonic(), list[str]()

    def show(row: Outcome) -> None:
        shown.append(row.scheduler)

    table = hr.compare(QUICKSTART, by=[sleeps, "storm-even"], seconds=4, show=show)
    assert time.monotonic() - start < 60
    assert shown == ["sleeps", "storm-even"]
    stopped = table["sleeps"]
    assert isinstance(stopped, Refusal)
    assert stopped.error.message == "no plan after 6.5 s, when it was stopped"
    assert stopped.seconds >= 6.5
    assert isinstance(table["storm-even"], Plan)


def test_what_a_child_process_makes_is_what_this_one_makes() -> None:
    by = ["storm-even", "storm-ras", "i-scheduler"]
    here = hr.compare(QUICKSTART, by=by)
    there = hr.compare(QUICKSTART, by=by, seconds=100)
    for name in by:
        a, b = here[name].to_json(), there[name].to_json()
        assert {**a, "seconds": 0} == {**b, "seconds": 0}
    nasiri = [hr.example("nasiri", file) for file in ("linear.yaml", "cluster-testbed.yaml")]
    sized = hr.compare(hr.load(*nasiri), stage="size", by=["nasiri", "lsa"], seconds=100)
    nasiri_plan = sized["nasiri"]
    assert isinstance(nasiri_plan, Plan)
    assert nasiri_plan.tasks == hr.size(hr.load(*nasiri), by="nasiri").tasks
    assert isinstance(sized["lsa"], Refusal)


def test_a_scheduler_that_dies_or_fails_is_a_row_and_the_others_are_asked() -> None:
    table = hr.compare(QUICKSTART, by=[dies, fails, "storm-even"], seconds=50)
    refusals = [row.error.message for row in table if isinstance(row, Refusal)]
    assert refusals == [
        "its process ended with exit status -9, without an answer",
        "it raised ValueError: not today",
    ]
    assert isinstance(table["storm-even"], Plan)


def test_a_child_raises_what_was_raised_and_refuses_what_cannot_be_sent() -> None:
    def refuses() -> None:
        raise Unsupported("too much", needed=3, fix="less")

    with pytest.raises(Unsupported, match="too much") as refusal:
        answer_within(50, refuses)
    assert (refusal.value.needed, refusal.value.fix) == (3, "less")
    with pytest.raises(RuntimeError, match="pickle"):
        answer_within(50, lambda: lambda: 0)
    with pytest.raises(Infeasible, match="stopped"):
        answer_within(0.1, lambda: time.sleep(600))


def test_an_interrupted_comparison_keeps_its_rows() -> None:
    def interrupted(problem: hr.Problem) -> dict[str, str]:
        raise KeyboardInterrupt

    table = hr.compare(QUICKSTART, by=["storm-even", interrupted, "storm-ras"])
    assert [row.scheduler for row in table] == ["storm-even"]
    assert table.interrupted
    with pytest.raises(KeyboardInterrupt):
        hr.compare(QUICKSTART, by=[interrupted, "storm-even"])


# What a shell runs in the background ignores Ctrl-C, and so would its children.
HEARS_CTRL_C = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from headrace.cli import main; main()"
)


def test_ctrl_c_prints_the_table_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(
        "def sleep(problem):\n    import time\n    time.sleep(600)\n"
    )
    watched, stderr = pty.openpty()  # rows are shown as they come where someone is watching
    asked = ["--by", "storm-even", "--by", "stuck:sleep", "--by", "headrace", "--seconds", "300"]
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C, "compare", QUICKSTART, *asked],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    os.close(stderr)
    shown = b""
    while b"storm-even" not in shown:
        shown += os.read(watched, 1000)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    table, _ = process.communicate(timeout=300)
    os.close(watched)
    assert process.returncode == 130
    assert b"storm-even" in table
    assert b"stuck" not in table
