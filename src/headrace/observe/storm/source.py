"""Storm's answers: asked from its UI, or read from files."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest
from headrace.observe.storm.answers import Answers, kind_of, recognize

TIMEOUT_S = 20.0
LARGEST = 256_000_000  # bytes; an answer about 10,000 executors is a few MB
NEEDED = "Storm's answers are one JSON file that holds them all, or a folder of .json files"


def ask_ui(url: str, topology: str | None, window: str, timeout_s: float) -> Answers:
    """Ask the UI about one topology, by its id or its name."""
    base = f"{url.split('/api/v1')[0].removesuffix('/').removesuffix('/index.html')}/api/v1"
    summary = _get(f"{base}/topology/summary", timeout_s)
    running = summary.get("topologies")
    if not isinstance(running, list):
        raise InvalidInput(
            f"{url}: answers, but not as Storm's UI does "
            "(no `topologies` in /api/v1/topology/summary)"
        )
    ids = {str(t["id"]): str(t["name"]) for t in cast("list[dict[str, Any]]", running)}
    page = f"{base}/topology/{quote(_choose(ids, topology, url), safe='')}"
    parts = {
        "/topology/ID": f"{page}?window={quote(window)}",
        "/topology/ID/visualization": f"{page}/visualization?window={quote(window)}",
        "/supervisor/summary": f"{base}/supervisor/summary",
        "/cluster/summary": f"{base}/cluster/summary",
    }
    answers = {name: _get(where, timeout_s) for name, where in parts.items()}
    for component in _components_of(answers["/topology/ID"]):
        where = f"{page}/component/{quote(component, safe='')}?window={quote(window)}"
        answers[f"/topology/ID/component/{component}"] = _get(where, timeout_s)
    return recognize(answers, url)


def _components_of(page: dict[str, Any]) -> list[str]:
    """The spouts and bolts on a topology's page."""
    rows = [(row, "spoutId") for row in page.get("spouts") or ()]
    rows += [(row, "boltId") for row in page.get("bolts") or ()]
    return [str(row[key]) for row, key in rows if isinstance(row, dict) and key in row]


def _choose(ids: dict[str, str], topology: str | None, url: str) -> str:
    if not ids:
        raise InvalidInput(f"{url}: no topology runs there")
    if topology is None:
        if len(ids) == 1:
            return next(iter(ids))
        raise InvalidInput(
            f"{url}: {len(ids)} topologies run there: {', '.join(sorted(ids))}", fix="--topology ID"
        )
    matching = [i for i, name in ids.items() if topology in (i, name)]
    if not matching:
        raise InvalidInput(
            f"{url}: no topology `{topology}` runs there{nearest(topology, [*ids.values(), *ids])}"
        )
    return matching[0]


def _opener() -> urllib.request.OpenerDirector:
    """Speaks http and https only, so that no redirection leads to a file or elsewhere."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _get(url: str, timeout_s: float) -> dict[str, Any]:
    try:
        with _opener().open(url, timeout=timeout_s) as answer:
            data = answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        raise InvalidInput(
            f"{url}: answers {error.code} {error.reason}; is this Storm's UI?"
        ) from None
    except urllib.error.URLError as error:
        raise InvalidInput(
            f"{url}: cannot be reached ({error.reason}); does Storm's UI run there?"
        ) from None
    except (TimeoutError, OSError) as error:
        raise InvalidInput(f"{url}: no answer ({error or 'timed out'})") from None
    if len(data) > LARGEST:
        raise InvalidInput(f"{url}: answers with more than {LARGEST:,} bytes")
    return _json(data, url)


def read_json(path: str) -> dict[str, Any] | None:
    """The content of one file; None for a folder, or nothing."""
    place = Path(path)
    return _json(_bytes(place), path) if place.is_file() else None


def read_saved(path: str) -> Answers:
    """Answers from one file, or from the .json files of a folder."""
    place = Path(path)
    if place.is_dir():
        files = sorted(place.glob("*.json"))
        if not files:
            raise InvalidInput(f"{path}: has no .json file; {NEEDED}")
        return recognize({file.name: _json(_bytes(file), str(file)) for file in files}, path)
    if not place.exists():
        raise InvalidInput(f"{path}: no such file or folder; {NEEDED}")
    content = _json(_bytes(place), path)
    return recognize({place.name: content} if kind_of(content) else content, path)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from None


def _json(data: bytes, where: str) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where}: is not JSON, as Storm's answers are") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{where}: is not a JSON object, as Storm's answers are")
    return cast("dict[str, Any]", content)
