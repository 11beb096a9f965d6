"""Java classes of the plug-in beside Storm's, without a cluster of ours: what any Nimbus says."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from headrace.errors import InvalidInput, Unsupported
from headrace.spark import find_java
from headrace.storm.jars import VERSION, find_jars
from headrace.storm.plugin import find_plugin

READER = "org.headrace.storm.NimbusReader"
PORT = 6627  # Storm's default
WITHIN_S = 120


def java_command(version: str, say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Starts a JVM with the classes of a version of Storm and ours."""
    plugin = find_plugin(find_jars(say=say))
    path = os.pathsep.join(map(str, [plugin, *find_jars(version, say).class_path]))
    return [str(find_java().home / "bin" / "java"), "-cp", path]


def _host_and_port(address: str) -> tuple[str | None, int]:
    try:
        parts = urlsplit(address)
        return parts.hostname, parts.port or PORT
    except ValueError:  # a port that is no number
        return None, PORT


def ask_nimbus(address: str, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """All that Nimbus at nimbus://host:port says."""
    host, port = _host_and_port(address)
    if not host:
        raise InvalidInput(f"{address}: is no address; one looks like nimbus://host:{PORT}")
    command = [*java_command(VERSION, say), READER, host, str(port)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=WITHIN_S
        )
    except subprocess.TimeoutExpired:
        raise Unsupported(f"{address}: no answer within {WITHIN_S} s") from None
    answer = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
    if done.returncode or answer is None:
        words = [line for line in done.stderr.splitlines() if "Exception" in line]
        reason = words[-1].strip() if words else f"status {done.returncode}"
        raise InvalidInput(f"{address}: cannot be asked ({reason}); does Nimbus run there?")
    return json.loads(answer)
