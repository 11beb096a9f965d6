"""The page of a run as one file: the same page, with the answers it would ask for inside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headrace.errors import HeadraceError
from headrace.model.output import save
from headrace.serve import reading
from headrace.serve.app import static_text, style
from headrace.serve.requests import MomentQuery, PictureQuery, SeriesQuery
from headrace.serve.shelf import Shelf

POINTS = 1200  # as main.js asks for
# Modules in the order in which they need each other.
SCRIPTS = ("api.js", "figures.js", "picture.js", "charts.js", "decisions.js", "try.js", "main.js")
UNQUOTED = "!'()*"  # as encodeURIComponent has it
IMPORT = re.compile(r"^import .*;$", re.MULTILINE)
EXPORT = re.compile(r"^export (?=const|function|async|class)", re.MULTILINE)


def save_page(folder: Path, file: Path) -> Path:
    """Write what there is to see of a run's folder into one file that needs no server."""
    return save(file, saved_page(folder))


def saved_page(folder: Path) -> str:
    """One HTML document."""
    shelf = Shelf([folder])
    shelf.look()
    held = json.dumps(answers(shelf), allow_nan=False, separators=(",", ":"))
    held = held.replace("<", "\\u003c")  # or a name could end the script
    data = f'<script type="application/json" id="saved">{held}</script>'
    page = static_text("index.html")
    page = page.replace(
        '<link rel="icon" href="static/icon.svg">\n<link rel="stylesheet" href="static/style.css">',
        f"<style>{style()}</style>",
    )
    page = page.replace('<script type="module" src="static/main.js"></script>\n', "")
    return page.replace("</body>", f"{data}\n<script>{bundle()}</script>\n</body>")


def bundle() -> str:
    """All modules as one script: no name is used twice, so that none hides another."""
    whole = "\n".join(static_text(name) for name in SCRIPTS)
    return f"(() => {{\n{EXPORT.sub('', IMPORT.sub('', whole))}\n}})();"


def answers(shelf: Shelf) -> dict[str, Any]:
    """Path -> what the server would answer, for all that the saved page asks."""
    nothing: Any = None
    found = {"runs": reading.runs(shelf, {}, nothing)}
    for run in shelf.runs.values():
        path, here = {"run": run.id}, f"runs/{run.id}"
        found[here] = reading.run(shelf, path, nothing)
        found[f"{here}/decisions"] = reading.decisions(shelf, path, nothing)
        found[f"{here}/series?points={POINTS}"] = reading.series(
            shelf, path, SeriesQuery(points=POINTS)
        )
        found[f"{here}/moment"] = reading.moment(shelf, path, MomentQuery())
        found[f"{here}/moment?tasks=true"] = reading.moment(shelf, path, MomentQuery(tasks=True))
        for name in run.plan_names():
            try:
                picture = reading.picture(shelf, path, PictureQuery(plan=name))
            except HeadraceError:
                continue
            found[f"{here}/picture?plan={quote(name, safe=UNQUOTED)}"] = picture
    return found
