"""What a result was measured on."""

from __future__ import annotations

import os
import platform


def machine() -> str:
    """Processor kind, cores and Python, in a few words."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
