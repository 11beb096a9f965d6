"""What to copy and set so that a Storm cluster of one's own follows Headrace's plans."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput
from headrace.storm.home import HOOK, SCHEDULER
from headrace.storm.jars import Jars
from headrace.storm.plugin import find_plugin

JAR = "headrace-storm.jar"


@dataclass(frozen=True, slots=True)
class Installation:
    """Files to copy, and settings for the storm.yaml of Nimbus and of the supervisors."""

    jar: Path
    copies: tuple[Path, ...]
    nimbus: dict[str, Any]
    supervisors: dict[str, Any]


def installation(jars: Jars, home: Path, address: str, telemetry: str) -> Installation:
    """What an installation takes."""
    if not (home / "lib").is_dir():
        raise InvalidInput(f"{home} is no STORM_HOME: it has no folder lib")
    return Installation(
        find_plugin(jars),
        (home / "extlib-daemon" / JAR, home / "extlib" / JAR),
        {
            "storm.scheduler": SCHEDULER,
            "headrace.address": address,
            "headrace.timeout.secs": 20,
            "headrace.fallback": "org.apache.storm.scheduler.DefaultScheduler",
        },
        {"topology.auto.task.hooks": [HOOK], "headrace.telemetry.folder": telemetry},
    )


def storm_version(home: Path) -> str | None:
    """The version of Storm in a STORM_HOME, by the names of its jars."""
    names = [file.stem for part in ("lib", "lib-worker") for file in (home / part).glob("*.jar")]
    found = {n.removeprefix("storm-client-") for n in names if n.startswith("storm-client-")}
    return min(found, default=None)


def copy_jars(plan: Installation) -> None:
    """Copy the plug-in to where Storm looks for it."""
    for target in plan.copies:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plan.jar, target)
