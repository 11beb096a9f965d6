"""The shell of every page: one file that needs nothing else."""

from __future__ import annotations

from importlib.resources import files

from headrace.page.colours import DARK, LIGHT
from headrace.page.markup import Html, element


def sheet(title: str, *content: Html) -> str:
    """An HTML document with our style and script inside it."""
    colours = f":root {{{LIGHT}}}\n@media (prefers-color-scheme: dark) {{ :root {{{DARK}}} }}\n"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(colours + asset("parts.css") + asset("sheet.css"))),
    )
    script = element("script", Html(asset("script.js")))
    body = element("body", element("main", *content), script)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def asset(name: str) -> str:
    """The text of a file beside this one."""
    return files("headrace.page").joinpath(name).read_text(encoding="utf-8")
