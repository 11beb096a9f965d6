"""Reading event logs, for tests of stored logs and of fresh ones."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from headrace.cli import main
from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.read import read
from headrace.observe.spark_log import Imported


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def problem_of(result: Imported, folder: Path) -> Problem:
    """What `headrace check` and `headrace place` see."""
    file = folder / "imported.json"
    file.write_text(json.dumps(result.document))
    return build(read([file]))


def messages(result: Imported, kind: str) -> list[str]:
    return [
        f"{finding.where}: {finding.message}"
        for finding in result.diagnosis
        if finding.kind == kind
    ]


def logs_by_application(folder: Path) -> dict[str, Path]:
    """The logs of a folder, each by the name of its application."""
    found: dict[str, Path] = {}
    for row in json.loads(run("import", "spark-log", str(folder), "--json"))["applications"]:
        (found[row["name"]],) = folder.glob(f"*{row['id']}*")
    return found
