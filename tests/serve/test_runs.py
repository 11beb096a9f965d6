"""A run's folder, followed while it grows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from headrace.run.journal import Journal
from headrace.serve.runs import Run, find_runs
from tests.serve.journals import COUNTS, NODES, SPREAD, START_S, WORDS, batch, journal_of, write_run


def begin(folder: Path) -> Journal:
    journal = Journal(folder)
    journal.begin({"topology": WORDS, "cluster": {"nodes": NODES}}, telemetry=None)
    journal.add_plan("first", COUNTS, SPREAD)
    return journal


def test_a_run_is_as_new_as_the_last_look(tmp_path: Path) -> None:
    run = Run("r", tmp_path)
    assert (run.refresh(), run.state) == ([], "waiting") or run.state == "waiting"
    journal = begin(tmp_path)
    journal.add(batch(0, START_S + 1, "first"))
    kinds = [name for name, _ in run.refresh()]
    assert kinds == ["begin", "plan", "batch", "state"]
    assert (run.state, run.batches, run.columns.rows) == ("running", 1, 1)
    journal.add(batch(1, START_S + 3, "first"))
    assert [name for name, _ in run.refresh()] == ["batch"]
    assert run.columns.row(1)["tuples_per_s"] == pytest.approx(batch(1, 0, "")["tuples"] / 2)
    journal.end()
    run.refresh()
    assert run.state == "ended"


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    begin(tmp_path)
    run = Run("r", tmp_path)
    run.refresh()
    line = json.dumps({"kind": "batch", **batch(0, START_S + 1, "first")})
    with journal_of(tmp_path).open("a", encoding="utf-8") as file:
        file.write(line[:50])
        file.flush()
        assert run.refresh() == [] or not list(run.refresh())
        file.write(line[50:] + "\n")
    run.refresh()
    assert run.batches == 1


def test_what_is_no_line_is_left_out(tmp_path: Path) -> None:
    write_run(tmp_path, batches=3, moved_at=None, ended=False)
    with journal_of(tmp_path).open("a", encoding="utf-8") as file:
        file.write('not json\n[1, 2]\n{"kind": "strange"}\n')
    run = Run("r", tmp_path)
    run.refresh()
    assert run.batches == 3


def test_a_pause_is_no_time_between_batches(tmp_path: Path) -> None:
    write_run(tmp_path, batches=2, moved_at=None)
    journal = begin(tmp_path)
    journal.add(batch(2, START_S + 10_000, "first"))
    run = Run("r", tmp_path)
    run.refresh()
    after = run.columns.row(2)
    assert after["tuples_per_s"] > 1000  # of a batch's own seconds, not of the hours before it
    assert [name for _, name in run.changes] == ["storm-even", "first"]


def test_a_run_whose_process_is_gone_has_stopped(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    process = subprocess.Popen(["true"])
    process.wait()
    gone = process.pid
    journal.begin({"topology": WORDS, "cluster": {"nodes": NODES}}, telemetry=None, pid=gone)
    run = Run("r", tmp_path)
    run.refresh()
    assert run.state == "stopped"


def test_thousands_of_new_batches_are_one_reset(tmp_path: Path) -> None:
    write_run(tmp_path, batches=500)
    run = Run("r", tmp_path)
    assert list(run.refresh()) == [("reset", {})]
    assert run.batches == 500


def test_a_folder_of_runs_gives_each_of_them(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, batches=1, moved_at=None)
    assert [f.name for f in find_runs([tmp_path, tmp_path / "one"])] == ["one", "two"]
    assert find_runs([tmp_path / "to-come"]) == [tmp_path / "to-come"]
