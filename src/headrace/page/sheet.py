"""The shell of every page: one file that needs nothing else."""

from __future__ import annotations

from importlib.resources import files

from headrace.page.markup import Html, element


def sheet(title: str, *content: Html) -> str:
    """An HTML document with our style and script inside it."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", _asset("style.css")),
    )
    body = element("body", element("main", *content), element("script", _asset("script.js")))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _asset(name: str) -> Html:
    return Html(files("headrace.page").joinpath(name).read_text(encoding="utf-8"))
