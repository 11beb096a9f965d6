"""Java programs against a cluster: submit a topology, end one, read what Nimbus knows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput, Unsupported
from headrace.storm.home import class_path
from headrace.storm.local import StormCluster, java

SUBMIT = "org.headrace.storm.topologies.Submit"
READER = "org.headrace.storm.NimbusReader"
KILL = "org.headrace.storm.KillTopology"
TOPOLOGIES = (
    "diamond",
    "exclamation",
    "linear",
    "rolling-count",
    "star",
    "unique-visitors",
    "word-count",
)
WITHIN_S = 180


def submit_example(
    cluster: StormCluster, kind: str, name: str, parameters: Mapping[str, Any]
) -> None:
    """Submit one of our example topologies."""
    jar = Path(cluster.home) / "extlib" / "headrace-storm.jar"
    submit_jar(cluster, jar, SUBMIT, [kind, name, json.dumps(dict(parameters))])


def submit_jar(cluster: StormCluster, jar: Path, main: str, arguments: Sequence[str]) -> None:
    """Run the class of a jar that submits a topology, as `storm jar` does."""
    if not jar.exists():
        raise InvalidInput(f"{jar}: there is no such file")
    run_java(cluster, main, arguments, [f"-Dstorm.jar={jar.resolve()}"], [jar])


def kill_topology(cluster: StormCluster, name: str) -> None:
    """End a topology at once."""
    run_java(cluster, KILL, [name])


def read_nimbus(cluster: StormCluster) -> dict[str, Any]:
    """All that Nimbus says."""
    said = run_java(cluster, READER, [cluster.nimbus, str(cluster.port)])
    return json.loads(next(line for line in said.splitlines() if line.startswith("{")))


def run_java(
    cluster: StormCluster,
    main: str,
    arguments: Sequence[str],
    options: Sequence[str] = (),
    jars: Sequence[Path] = (),
) -> str:
    """What a Java program prints; its error is ours."""
    home = Path(cluster.home)
    path = os.pathsep.join([class_path(home, cluster.conf), *map(str, jars)])
    logging = f"-Dlog4j.configurationFile={home / 'log4j2' / 'client.xml'}"
    command = java(main, path, f"-Dstorm.home={home}", logging, *options)
    variables = {**os.environ, "STORM_CONF_DIR": str(cluster.conf)}
    try:
        done = subprocess.run(
            [*command, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            env=variables,
        )
    except subprocess.TimeoutExpired:
        raise Unsupported(f"{main} did not end within {WITHIN_S} s") from None
    if done.returncode:
        lines = [x for x in done.stderr.splitlines() if "Exception" in x or "Error" in x]
        reason = lines[0] if lines else (done.stderr.strip() or "it said nothing")
        raise Unsupported(f"{main.rpartition('.')[2]} failed: {reason.strip()}")
    return done.stdout
