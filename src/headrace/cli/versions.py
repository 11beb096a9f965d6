"""What `headrace --version` prints: the versions that a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import headrace

LIBRARIES = ("numpy", "numba", "scipy", "pyspark", "pymetis")
NOT_INSTALLED = "not installed"


def versions() -> dict[str, str]:
    """Ours, Python's, those of the libraries, of Java and of the platform."""
    found = {"headrace": headrace.__version__, "python": platform.python_version()}
    found |= {name: _version(name) for name in LIBRARIES}
    return {**found, "java": _java(), "platform": platform.platform()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def _java() -> str:
    from headrace.errors import Unsupported
    from headrace.spark import find_java

    try:
        return find_java().version
    except Unsupported:
        return "none that Spark can use"
