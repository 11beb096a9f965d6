"""Addresses and ports of this machine, and whether somebody answers at a Spark master."""

from __future__ import annotations

import socket

from headrace.errors import InvalidInput, Unsupported

LOOPBACK = "127.0.0.1"


def check_reachable(master: str) -> None:
    """Refuse a master that nobody listens at; Spark would try for a minute and print a trace."""
    if not master.startswith("spark://"):
        return
    refusals: list[str] = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidInput(f"`{master}` is no master; one looks like spark://host:7077")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except OSError as error:
            refusals.append(f"{address}: {error.strerror or error}")
    raise Unsupported(
        f"the master {master} cannot be reached ({'; '.join(refusals)})",
        fix="start one, such as with headrace fleet up, or name another",
    )


def free_port(host: str = LOOPBACK) -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def check_port(host: str, port: int) -> None:
    """Refuse a port that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Unsupported(
                f"port {port} of {host} cannot be used: {error.strerror}",
                resource="port",
                fix="name another, or none for a free one",
            ) from None


def check_address(host: str) -> None:
    """Refuse an address that is not this machine's."""
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            raise Unsupported(
                f"this machine does not answer at {host}; Linux does by itself, macOS after: "
                f"sudo ifconfig lo0 alias {host}",
                resource="address",
            ) from None
