"""Writing files so that a reader sees the old content or the new one, and never half of either.

A file is written under a hidden name beside its own and renamed once it is whole. `durable` also
waits for the disk, so that the file survives a power cut.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replace_file(path: Path, *, durable: bool = False) -> Generator[Path]:
    """A hidden path to write to, which takes the place of `path` when the `with` ends well."""
    # With the process id: two processes may write the same file at the same time.
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        if durable:
            sync(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)  # the new name is on disk only once the folder is


def write_whole(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all; text is UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    with replace_file(path, durable=durable) as draft:
        draft.write_bytes(data)


def append_line(path: Path, line: str) -> None:
    """Add a line, on disk when this returns; a line that a crash cut off is ended first."""
    torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as lines:
        lines.write(("\n" if torn else "") + line + "\n")
        lines.flush()
        os.fsync(lines.fileno())


def sync(path: Path) -> None:
    """Have the content of a file, or the names in a folder, reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
