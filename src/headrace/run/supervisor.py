"""A fleet that outlives the command which started it, kept up by a process of its own.

`python -m headrace.run.supervisor` is the process behind `headrace fleet up`. It tells others about
its fleet, or why there is none, through files in the fleet's folder.
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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.model.document import Node
from headrace.model.files import write_whole
from headrace.run.fleet import LOCAL, WORK, ChangingFleet, Fleet, ask_master, changing_fleet
from headrace.run.leftovers import remove_folder, sweep_scratch
from headrace.run.limits import LIMITS, Limit, check_limits, sweep
from headrace.run.machines import Machine, machines_for, machines_of
from headrace.spark import require_spark

FOLDER = Path(".headrace-fleet")
PID = "supervisor.pid"
MOST_MISSES = 6  # answers in a row that a master may owe: a busy machine makes it slow, not dead
MODULES = (b"headrace.run.supervisor", b"headrace.run.fleet")  # the latter up to version 0.1


def start_fleet(
    files: Sequence[str],
    folder: Path = FOLDER,
    *,
    port: int | None = None,
    limits: Collection[Limit] = (),
) -> Fleet:
    """Start a fleet that stays up until `stop_fleet`."""
    clear_lost_fleet(folder)
    if (running := find_fleet(folder)) is not None:
        raise InvalidInput(
            f"a fleet is up already ({running.master}, in {folder}); "
            "end it with headrace fleet down"
        )
    require_spark("fleet up")
    machines_of(files)  # a wrong file is refused here, in words
    check_limits(limits)
    sweep()
    folder.mkdir(parents=True, exist_ok=True)
    refusal_file = folder / "refusal.json"
    refusal_file.unlink(missing_ok=True)
    options = ["-" if port is None else str(port), ",".join(limits) or "-"]
    command = [sys.executable, "-m", "headrace.run.supervisor", str(folder), *options, *files]
    with (folder / "supervisor.log").open("wb") as log:
        supervisor = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    (folder / PID).write_text(str(supervisor.pid))
    while supervisor.poll() is None:
        if (fleet := find_fleet(folder)) is not None:
            return fleet
        time.sleep(0.1)
    if refusal_file.exists():
        refusal: dict[str, Any] = json.loads(refusal_file.read_text())
        raise Unsupported(refusal["message"], resource=refusal["resource"], fix=refusal["fix"])
    raise Unsupported(f"the fleet did not start; see {folder / 'supervisor.log'}")


def find_fleet(folder: Path = FOLDER) -> Fleet | None:
    """The fleet that is up, if any; what one that has crashed left behind does not count."""
    try:
        content: dict[str, Any] = json.loads((folder / "fleet.json").read_text())
    except (OSError, ValueError):
        return None
    machines = tuple(Machine(**machine) for machine in content.pop("machines"))
    fleet = Fleet(machines=machines, limits=tuple(content.pop("limits")), **content)
    if not _is_supervisor(fleet.pid):
        return None

    def grow(wanted: Mapping[str, int]) -> None:
        change_fleet(folder, {"grow": dict(wanted)})

    return replace(fleet, grow=grow)


def stop_fleet(folder: Path = FOLDER) -> bool:
    """End the fleet, and remove what crashed fleets left behind; False if none was up."""
    fleet = find_fleet(folder)
    if fleet is not None:
        _stop(fleet.pid)
    clear_lost_fleet(folder)
    return fleet is not None


def clear_lost_fleet(folder: Path) -> None:
    """Remove what fleets that were killed left behind: processes, limits, and files but logs."""
    sweep()
    sweep_scratch()
    if folder.is_dir() and find_fleet(folder) is None and not _is_starting(folder):
        clear_folder(folder)


def clear_folder(folder: Path) -> None:
    """Remove what a fleet needs while it is up, and end what still runs there."""
    for name in (WORK, LOCAL, "requests"):
        if (folder / name).exists():
            remove_folder(folder / name)
    for name in ("fleet.json", PID):
        (folder / name).unlink(missing_ok=True)


def _is_starting(folder: Path) -> bool:
    """Whether a supervisor is about to start a fleet here."""
    try:
        return _is_supervisor(int((folder / PID).read_text()))
    except (OSError, ValueError):
        return False


def _stop(supervisor: int) -> None:
    os.kill(supervisor, signal.SIGTERM)
    for _ in range(300):
        if not _is_supervisor(supervisor):
            return
        time.sleep(0.1)
    os.kill(supervisor, signal.SIGKILL)  # its daemons end with it


def _is_supervisor(pid: int) -> bool:
    """Whether a process is the one behind `headrace fleet up`, and no other with its number."""
    try:
        os.kill(pid, 0)
        file = Path(f"/proc/{pid}/cmdline")
        if not file.parent.parent.exists():  # no /proc on this system
            return True
        command = file.read_bytes()
    except OSError:
        return False
    return any(module in command for module in MODULES)


def supervise(
    files: Sequence[str], folder: Path, port: int | None, limits: Collection[Limit]
) -> None:
    """Keep a fleet up until a signal comes or the master ends."""
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    state = folder / "fleet.json"
    fleet = changing_fleet(machines_of(files), folder, port=port, limits=limits, agents=True)
    with fleet as running:
        keep_state(state, running.fleet)
        try:
            misses = 0
            while not ended.wait(1.0) and misses < MOST_MISSES:
                misses = 0 if ask_master(running.fleet) is not None else misses + 1
                for request in sorted((folder / "requests").glob("*.json")):
                    answer(running, request)
                    keep_state(state, running.fleet)
        finally:
            state.unlink(missing_ok=True)
    clear_folder(folder)


def answer(running: ChangingFleet, request: Path) -> None:
    """Do what a request asks for; the answer takes its place."""
    asked: dict[str, Any] = json.loads(request.read_text())
    try:
        if "remove" in asked:
            running.remove(asked["remove"])
        elif "grow" in asked:
            running.grow(asked["grow"])
        else:
            node = Node.model_validate(asked["node"])
            [machine] = machines_for({asked["add"]: node})
            running.add(machine, asked["node"])
        said: dict[str, Any] = {}
    except HeadraceError as refusal:
        said = refusal.fields()
    write_whole(request.with_suffix(".answer"), json.dumps(said), durable=False)
    request.unlink()


def keep_state(file: Path, fleet: Fleet) -> None:
    """Write down what `find_fleet` reads."""
    content = asdict(replace(fleet, grow=None))
    del content["grow"]
    write_whole(file, json.dumps(content), durable=True)
    file.chmod(0o600)  # it holds the secret


def change_fleet(folder: Path, request: Mapping[str, Any]) -> Fleet:
    """Have the supervisor of a fleet add or remove a node; the fleet as it is then."""
    fleet = find_fleet(folder)
    if fleet is None:
        raise InvalidInput(f"no fleet is up in {folder}; start one with headrace fleet up")
    requests = folder / "requests"
    requests.mkdir(exist_ok=True)
    file = requests / f"{uuid.uuid4().hex}.json"
    write_whole(file, json.dumps(request), durable=False)
    reply = file.with_suffix(".answer")
    while not reply.exists():
        if find_fleet(folder) is None:
            file.unlink(missing_ok=True)
            raise Unsupported(f"the fleet has ended; see {folder / 'supervisor.log'}")
        time.sleep(0.2)
    said: dict[str, Any] = json.loads(reply.read_text())
    reply.unlink()
    if said:
        raise InvalidInput(said["message"], fix=said["fix"])
    return find_fleet(folder) or fleet


def main(arguments: Sequence[str]) -> int:
    folder, port, limits, *files = arguments
    chosen: list[Limit] = [limit for limit in LIMITS if limit in limits.split(",")]
    try:
        supervise(files, Path(folder), None if port == "-" else int(port), chosen)
    except HeadraceError as refusal:
        write_whole(Path(folder) / "refusal.json", json.dumps(refusal.fields()), durable=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
