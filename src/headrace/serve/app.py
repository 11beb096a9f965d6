"""The ASGI application: a table of routes that is also the API's description."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from headrace.errors import HeadraceError
from headrace.page.colours import DARK, LIGHT
from headrace.page.sheet import asset
from headrace.serve import acting, reading
from headrace.serve.events import MOST_VIEWERS
from headrace.serve.jobs import Busy
from headrace.serve.metrics import metrics
from headrace.serve.openapi import describe_api
from headrace.serve.requests import (
    AdviceRequest,
    JobRequest,
    MomentQuery,
    NoQuery,
    PictureQuery,
    PlanRequest,
    SeriesQuery,
    VerdictRequest,
)
from headrace.serve.safety import (
    BodyTooLarge,
    Door,
    Guard,
    Refused,
    error_response,
    too_large,
)
from headrace.serve.shelf import NotThere, Shelf

API = "/api/v1"
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}
STATUS: tuple[tuple[type[HeadraceError], int], ...] = ((NotThere, 404), (Busy, 429))

# What a handler gets: the shelf, names in the path, and the query or the body as its model.
Handler = Callable[[Shelf, dict[str, str], Any], Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that the API does."""

    method: str
    path: str
    summary: str
    handler: Handler
    query: type[BaseModel] = NoQuery
    body: type[BaseModel] | None = None
    status: int = 200

    @property
    def acts(self) -> bool:
        return self.method != "GET"


RUN, DECISION = f"{API}/runs/{{run}}", f"{API}/runs/{{run}}/decisions/{{number}}"
OPERATIONS = (
    Operation("GET", f"{API}/runs", "The runs there are", reading.runs),
    Operation("GET", RUN, "A run in short", reading.run),
    Operation("GET", f"{RUN}/series", "Figures over time", reading.series, SeriesQuery),
    Operation("GET", f"{RUN}/moment", "All figures of one moment", reading.moment, MomentQuery),
    Operation("GET", f"{RUN}/picture", "A plan, drawn", reading.picture, PictureQuery),
    Operation("GET", f"{RUN}/decisions", "What the loop decided, and why", reading.decisions),
    Operation("GET", f"{DECISION}/change", "What a decision would move", reading.change),
    Operation("POST", DECISION, "Accept or refuse a plan that waits", acting.decide,
              body=VerdictRequest),
    Operation("POST", f"{RUN}/plan", "Put a plan of a job in force", acting.put_in_force,
              body=PlanRequest),
    Operation("GET", f"{API}/jobs", "The jobs there are", reading.jobs),
    Operation("POST", f"{API}/jobs", "Plan, compare or simulate", acting.ask, body=JobRequest,
              status=202),
    Operation("GET", f"{API}/jobs/{{job}}", "A job and its answer", reading.job),
    Operation("DELETE", f"{API}/jobs/{{job}}", "Stop a job", acting.stop),
    Operation("GET", f"{API}/schedulers", "Schedulers and objectives", reading.schedulers),
    Operation("GET", f"{API}/examples", "Examples to start from", reading.examples),
    Operation("GET", f"{API}/examples/{{name}}", "An example's files", reading.example),
    Operation("GET", f"{API}/advice", "Spark jobs that are advised on", reading.all_advice),
    Operation("GET", f"{API}/advice/{{name}}", "Advice on a Spark job", reading.advice),
    Operation("POST", f"{API}/advice/{{name}}/what-if", "A Spark job with something different",
              acting.what_if_of_job, body=AdviceRequest),
)  # fmt: skip


def make_app(shelf: Shelf, door: Door) -> Starlette:
    """The application; it follows the shelf's folders as long as it runs."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        shelf.look()
        following = asyncio.create_task(shelf.follow())
        yield
        await shelf.close()
        await following

    routes = [
        Route("/", _asset("index.html")),
        Route("/static/style.css", _style),
        Route("/static/{name}", _static),
        Route("/metrics", _metrics(shelf)),
        Route(f"{API}/openapi.json", _description),
        Route(f"{RUN}/events", _events(shelf)),
        *_routes(shelf),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, door=door)],
        exception_handlers={
            HeadraceError: _refused,
            404: _plain("not-found", "there is nothing at this address"),
            405: _plain("method", "this address does not take this method"),
        },
    )
    app.state.shelf = shelf
    return app


def _routes(shelf: Shelf) -> list[Route]:
    """A route per path: with one per operation, a wrong method would not be seen as such."""
    found: list[Route] = []
    for path in dict.fromkeys(operation.path for operation in OPERATIONS):
        here = {one.method: one for one in OPERATIONS if one.path == path}
        found.append(Route(path, _endpoint(shelf, here), methods=list(here)))
    return found


def _endpoint(
    shelf: Shelf, operations: dict[str, Operation]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        operation = operations["GET" if request.method == "HEAD" else request.method]
        try:
            given = await _given(request, operation)
        except ValidationError as error:
            return _invalid(error)
        except ValueError as error:  # what is not JSON or not UTF-8
            return error_response(Refused(400, "json", f"the body is not JSON: {error}"[:300]))
        except BodyTooLarge as error:
            return error_response(too_large(error.args[0]))
        except TimeoutError:
            return error_response(Refused(408, "time", "the body did not arrive in time"))
        found = operation.handler(shelf, dict(request.path_params), given)
        if asyncio.iscoroutine(found):
            found = await found
        return JSONResponse(found, operation.status, headers={"cache-control": "no-store"})

    return endpoint


async def _given(request: Request, operation: Operation) -> BaseModel:
    if operation.body is None:
        twice = len(request.query_params.multi_items()) > len(request.query_params)
        if twice:
            raise ValueError("a parameter is given twice")
        return operation.query.model_validate(dict(request.query_params))
    try:
        content = json.loads(await request.body())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ClientDisconnect:
        raise ValueError("it did not arrive") from None
    return operation.body.model_validate(content)


def _invalid(error: ValidationError) -> Response:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])[:200]
    message = f"{where}: {first['msg']}" if where else first["msg"]
    return error_response(Refused(422, "invalid-input", message[:500]))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadraceError)
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 422)
    return JSONResponse({"error": error.fields()}, status)


def _plain(kind: str, message: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handler(request: Request, error: Exception) -> Response:
        status = 404 if kind == "not-found" else 405
        response = error_response(Refused(status, kind, message))
        response.headers.update(getattr(error, "headers", None) or {})
        return response

    return handler


def _events(shelf: Shelf) -> Callable[[Request], Awaitable[Response]]:
    async def events(request: Request) -> Response:
        run = shelf.run(request.path_params["run"])
        if shelf.viewers >= MOST_VIEWERS:
            raise Busy(f"{MOST_VIEWERS} look already")
        stream = shelf.hubs[run.id].stream(shelf.closing)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    return events


def _metrics(shelf: Shelf) -> Callable[[Request], Awaitable[Response]]:
    async def give(request: Request) -> Response:
        return Response(metrics(shelf), media_type="text/plain")

    return give


async def _description(request: Request) -> Response:
    return JSONResponse(describe_api(OPERATIONS))


def _asset(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def give(request: Request) -> Response:
        return static_file(name)

    return give


async def _static(request: Request) -> Response:
    return static_file(request.path_params["name"])


async def _style(request: Request) -> Response:
    return Response(style(), media_type="text/css", headers={"cache-control": "no-cache"})


def style() -> str:
    """The style of the reports, and what only the live page has."""
    colours = f":root {{{LIGHT}}}\n@media (prefers-color-scheme: dark) {{ :root {{{DARK}}} }}\n"
    return colours + asset("parts.css") + asset("sheet.css") + static_text("live.css")


def static_names() -> dict[str, str]:
    """The files of the page, by name."""
    folder = files("headrace.serve").joinpath("static")
    return {file.name: str(file) for file in folder.iterdir() if "." in file.name}


def static_text(name: str) -> str:
    """The text of one of them."""
    return files("headrace.serve").joinpath("static", name).read_text(encoding="utf-8")


def static_file(name: str) -> Response:
    """A file of the page; nothing else can be named."""
    if name not in static_names():
        return error_response(Refused(404, "not-found", "there is nothing at this address"))
    kind = TYPES.get("." + name.rpartition(".")[2], "application/octet-stream")
    return Response(static_text(name), media_type=kind, headers={"cache-control": "no-cache"})
