"""A topology that runs on Storm as a headrace/1 document.

From the REST API of its UI, from Nimbus over Thrift, or from saved answers of either.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest
from headrace.observe.storm.document import document_of
from headrace.observe.storm.nimbus import is_of_nimbus, nimbus_document
from headrace.observe.storm.source import TIMEOUT_S, ask_ui, read_json, read_saved


def storm(
    source: str, topology: str | None = None, *, window: str = "600", timeout_s: float = TIMEOUT_S
) -> tuple[dict[str, Any], list[str]]:
    """The headrace/1 document of a running topology, or of saved answers, and notes.

    What Nimbus says is read by a Java class (`headrace.storm.nimbus`), and given here as it came.
    """
    scheme = urlsplit(source).scheme
    if scheme in ("http", "https"):
        return document_of(ask_ui(source, topology, window, timeout_s))
    if "://" in source:
        raise InvalidInput(
            f"{source}: {scheme} is not asked; give http:// or https:// and the host and port of "
            "Storm's UI, or nimbus:// and those of Nimbus"
        )
    content = read_json(source)
    if content is not None and is_of_nimbus(content):
        return nimbus_document(content, topology, source)
    answers = read_saved(source)
    if topology not in (None, answers.page.id, answers.page.name):
        found = [answers.page.name, answers.page.id]
        raise InvalidInput(
            f"{source}: is of the topology `{answers.page.id}`, "
            f"not `{topology}`{nearest(str(topology), found)}"
        )
    return document_of(answers)
