"""The shell of what a notebook shows: a piece of HTML that leaves the rest of the notebook alone.

Every class gets a prefix and every rule is put below the fragment's own class, so that neither
our style reaches the notebook nor its style our drawings. No script, no ids, nothing to load.
"""

from __future__ import annotations

import re
from functools import cache

from headrace.page.colours import DARK, LIGHT
from headrace.page.markup import Html, element, join
from headrace.page.sheet import asset

ROOT, PREFIX = "headrace", "hr-"
DARK_THEMES = ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]')

COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
CLASS_IN_CSS = re.compile(r"\.(?=[a-z])")
CLASSES_IN_HTML = re.compile(r' class="([^"]*)"')  # quotes in names are escaped, so only ours match


def fragment(*content: Html) -> str:
    """A piece of HTML with its own style; the same content gives the same bytes."""
    inside = CLASSES_IN_HTML.sub(_prefix_classes, join(content))
    return element("div", element("style", Html(_style())), Html(inside), class_=ROOT)


def _prefix_classes(match: re.Match[str]) -> str:
    return f' class="{" ".join(PREFIX + name for name in match[1].split())}"'


@cache
def _style() -> str:
    """The shared rules for fragments, in the colours of the notebook's theme."""
    dark = ", ".join(f"{theme} .{ROOT}" for theme in DARK_THEMES)
    rules = COMMENT.sub("", asset("parts.css") + asset("notebook.css"))
    scoped = "\n".join(map(_scope, RULE.finditer(rules)))
    return f".{ROOT} {{{LIGHT}}}\n{dark} {{{DARK}}}\n{scoped}\n"


def _scope(match: re.Match[str]) -> str:
    selectors = CLASS_IN_CSS.sub(f".{PREFIX}", match[1].strip()).split(",")
    return f"{', '.join(map(_below_root, selectors))} {{{match[2]}}}"


def _below_root(selector: str) -> str:
    """`&` is the fragment itself."""
    selector = selector.strip()
    return selector.replace("&", f".{ROOT}") if "&" in selector else f".{ROOT} {selector}"
