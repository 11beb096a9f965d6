"""A Storm cluster that outlives the command which started it, kept up by a process of its own.

`python -m headrace.storm.keeper` is the process behind `headrace storm up`. It says in files of the
cluster's folder what is up, or why nothing is; requests to kill, restart or lose a daemon come the
same way.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.model.files import write_whole
from headrace.run.limits import LIMITS, Limit, check_limits, sweep
from headrace.storm.home import StormNode, storm_nodes
from headrace.storm.jars import VERSION, find_jars
from headrace.storm.local import Daemons, StormCluster, local_storm

FOLDER = Path(".headrace-storm")
STATE = "cluster.json"
MODULE = b"headrace.storm.keeper"


def start_storm(
    files: Sequence[Path],
    folder: Path = FOLDER,
    *,
    version: str = VERSION,
    limits: Collection[Limit] = (),
    options: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> StormCluster:
    """Start a cluster that stays up until `stop_storm`.

    `options`: `source`, `hook`, `settings` and `port` of `local_storm`.
    """
    if find_storm(folder) is not None:
        raise InvalidInput(
            f"a Storm cluster is up already in {folder}; end it with headrace storm down"
        )
    storm_nodes(list(files))  # a wrong file is refused here, in words
    check_limits(limits)
    find_jars(version, say)
    sweep()
    folder.mkdir(parents=True, exist_ok=True)
    refusal_file = folder / "refusal.json"
    refusal_file.unlink(missing_ok=True)
    order = {
        "files": [str(file) for file in files],
        "folder": str(folder),
        "version": version,
        "limits": list(limits),
        "options": dict(options or {}),
    }
    command = [sys.executable, "-m", "headrace.storm.keeper", json.dumps(order)]
    with (folder / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    while keeper.poll() is None:
        if (cluster := find_storm(folder)) is not None:
            return cluster
        time.sleep(0.1)
    if refusal_file.exists():
        refusal: dict[str, Any] = json.loads(refusal_file.read_text())
        raise Unsupported(refusal["message"], resource=refusal["resource"], fix=refusal["fix"])
    raise Unsupported(f"the Storm cluster did not start; see {folder / 'keeper.log'}")


def find_storm(folder: Path = FOLDER) -> StormCluster | None:
    """The cluster that is up, if any; what one that has crashed left behind does not count."""
    try:
        content: dict[str, Any] = json.loads((folder / STATE).read_text())
    except (OSError, ValueError):
        return None
    nodes = tuple(StormNode(**node) for node in content.pop("nodes"))
    cluster = StormCluster(nodes=nodes, limits=tuple(content.pop("limits")), **content)
    return cluster if is_keeper(cluster.pid) else None


def need_storm(folder: Path) -> StormCluster:
    """The cluster that is up; refuses where there is none."""
    cluster = find_storm(folder)
    if cluster is None:
        raise InvalidInput(
            f"no Storm cluster is up in {folder}; start one with headrace storm up CLUSTER.yaml"
        )
    return cluster


def stop_storm(folder: Path = FOLDER) -> bool:
    """End the cluster; False if none was up."""
    cluster = find_storm(folder)
    if cluster is not None:
        os.kill(cluster.pid, signal.SIGTERM)
        for _ in range(600):
            if not is_keeper(cluster.pid):
                break
            time.sleep(0.1)
        else:
            os.kill(cluster.pid, signal.SIGKILL)  # its daemons end with it
    sweep()
    return cluster is not None


def is_keeper(pid: int) -> bool:
    """Whether a process is the one behind `headrace storm up`, and no other with its number."""
    try:
        os.kill(pid, 0)
        file = Path(f"/proc/{pid}/cmdline")
        return not file.parent.parent.exists() or MODULE in file.read_bytes()
    except OSError:
        return False


def change_storm(folder: Path, do: str, daemon: str) -> None:
    """Have a daemon killed, restarted or, with all on its node, lost."""
    need_storm(folder)
    requests = folder / "requests"
    requests.mkdir(exist_ok=True)
    file = requests / f"{uuid.uuid4().hex}.json"
    write_whole(file, json.dumps({"do": do, "daemon": daemon}))
    reply = file.with_suffix(".answer")
    while not reply.exists():
        need_storm(folder)
        time.sleep(0.1)
    said: dict[str, Any] = json.loads(reply.read_text())
    reply.unlink()
    if said:
        raise InvalidInput(said["message"])


def answer(daemons: Daemons, request: Path) -> None:
    """Do what a request asks for; the answer takes its place."""
    asked: dict[str, str] = json.loads(request.read_text())
    said: dict[str, Any] = {}
    try:
        actions = {"kill": daemons.kill, "restart": daemons.restart, "lose": daemons.lose}
        actions[asked["do"]](asked["daemon"])
    except HeadraceError as refusal:
        said = refusal.fields()
    write_whole(request.with_suffix(".answer"), json.dumps(said))
    request.unlink()


def keep(order: Mapping[str, Any]) -> None:
    """Keep a cluster up until a signal comes."""
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    folder = Path(order["folder"])
    limits: list[Limit] = [limit for limit in LIMITS if limit in order["limits"]]
    nodes = storm_nodes([Path(file) for file in order["files"]])
    jars = find_jars(order["version"])
    with local_storm(jars, nodes, folder, limits=limits, **order["options"]) as (cluster, daemons):
        state = folder / STATE
        write_whole(state, json.dumps(asdict(cluster)), durable=True)
        try:
            while not ended.wait(0.2):
                for request in sorted((folder / "requests").glob("*.json")):
                    answer(daemons, request)
        finally:
            state.unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> int:
    order: dict[str, Any] = json.loads(arguments[0])
    try:
        keep(order)
    except HeadraceError as refusal:
        file = Path(order["folder"]) / "refusal.json"
        write_whole(file, json.dumps(refusal.fields()), durable=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
