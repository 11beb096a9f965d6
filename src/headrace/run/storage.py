"""Arrow files of a run, written whole or not at all; a disk that fails is named as what it is."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.model.files import replace_file


class StorageFailed(HeadraceError):
    """A file of the run cannot be written, or what was written cannot be read again."""

    kind = "storage"


@contextmanager
def name_fault(path: Path, what: str) -> Generator[None]:
    """Say which file a failure is about, and what to do."""
    try:
        yield
    except FileNotFoundError:
        raise StorageFailed(
            f"{path}: {what} is not there",
            fix="put the file back, and start again: nothing was changed since the last batch",
        ) from None
    except (OSError, pa.ArrowInvalid) as error:  # what Arrow raises about files is an OSError too
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        words = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
        raise StorageFailed(
            f"{path}: {what} cannot be {'written' if full else 'read or written'}: "
            f"{' '.join(words.split())}",
            fix="make room, and start again: the batch is run again from the commit before it"
            if full
            else "put the file back as it was, and start again: no later batch was committed",
        ) from None


def write_table(path: Path, table: pa.Table) -> None:
    """Write an Arrow file that is whole or not there."""
    with (
        name_fault(path, "a file of this batch"),
        replace_file(path, durable=True) as draft,
        pa.OSFile(str(draft), "wb") as stream,
        pa.ipc.new_file(stream, table.schema) as writer,
    ):
        writer.write_table(table)


def read_table(path: Path, what: str = "a file of the batch before") -> pa.Table:
    """An Arrow file, mapped into memory."""
    with name_fault(path, what), pa.memory_map(str(path)) as stream:
        # It maps and copies nothing: threads would take longer to start.
        return pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
