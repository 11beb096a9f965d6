"""A hook of mkdocs: links that leave docs/ become the path in the repository, as text."""

from __future__ import annotations

import os
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The text of a page without links that the site cannot follow."""
    home = os.path.join("docs", os.path.dirname(page.file.src_uri))

    def show(match: re.Match[str]) -> str:
        path = os.path.normpath(os.path.join(home, match[2]))
        return match[0] if path.startswith("docs/") else f"{match[1]} (`{path}`)"

    return LINK.sub(show, markdown)
