"""Who may ask for what: hosts, origins, tokens, and how much and how long a request may be.

Pure functions say why a request is refused; the middleware asks them before anything else.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 4_000_000  # of a request's body
BODY_S = 10.0  # for all of it to arrive
READING = ("GET", "HEAD", "OPTIONS")
OPEN = ("/", "/static/")  # the page itself, which shows nothing of any run
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Door:
    """Where the server listens, and the token that acting needs."""

    host: str
    port: int
    token: str
    names: tuple[str, ...] = ()  # further names that a browser may call it by

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may call the server."""
        own = {self.host, *self.names}
        if self.loopback:
            own |= {"127.0.0.1", "localhost", "::1"}
        written = {f"[{name}]" if ":" in name else name for name in own}
        return frozenset(f"{name}:{self.port}" for name in written)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request is not answered."""

    status: int
    kind: str
    message: str


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(method: str, path: str, headers: Mapping[str, str], door: Door) -> Refused | None:
    """Why this request is refused; None if it may go on."""
    host = headers.get("host", "")
    if host not in door.hosts:
        known = ", ".join(sorted(door.hosts))
        return Refused(403, "host", f"this server is not called `{host[:100]}`; it is {known}")
    acts = method not in READING
    if acts:
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return Refused(403, "origin", "a page of another site may not act here")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return Refused(403, "origin", "a page of another site may not act here")
    elif door.loopback or path == OPEN[0] or path.startswith(OPEN[1]):
        return None
    kind, _, given = headers.get("authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode(), door.token.encode())
    if kind.lower() != "bearer" or not right:
        needs = "acting" if acts else "reading"
        return Refused(
            401, "token",
            f"{needs} needs the token of the address that was printed at the start, as "
            "`Authorization: Bearer ..`",
        )  # fmt: skip
    return None


class Guard:
    """Asks `refusal` first; limits bodies; adds the headers that keep browsers strict."""

    def __init__(self, app: ASGIApp, door: Door, most_bytes: int = MOST_BYTES) -> None:
        self.app, self.door, self.most_bytes = app, door, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        refused = refusal(scope["method"], scope["path"], headers, self.door)
        if refused is None:
            refused = self._too_long(headers)
        if refused is not None:
            await error_response(refused)(scope, receive, answer)
            return
        await self.app(scope, self._limited(receive), answer)

    def _too_long(self, headers: Mapping[str, str]) -> Refused | None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) <= self.most_bytes:
            return None
        return too_large(self.most_bytes)

    def _limited(self, receive: Receive) -> Receive:
        """A receiver that gives up on bodies that are too long or too slow."""
        taken = 0
        end = asyncio.get_running_loop().time() + BODY_S
        whole = False

        async def limited() -> Message:
            nonlocal taken, whole
            if whole:
                return await receive()  # the end of the connection, whenever that is
            left = end - asyncio.get_running_loop().time()
            message = await asyncio.wait_for(receive(), max(left, 0.01))
            taken += len(message.get("body", b""))
            if taken > self.most_bytes:
                raise BodyTooLarge(self.most_bytes)
            whole = not message.get("more_body", False)
            return message

        return limited


class BodyTooLarge(Exception):
    """A body without a length that went on and on."""


def too_large(most: int) -> Refused:
    """What is said of a body that is too large."""
    return Refused(413, "size", f"the request is too large; at most {most:,} bytes are taken")


def error_response(refused: Refused) -> JSONResponse:
    """A refusal in the form of all our errors."""
    error = {"kind": refused.kind, "message": refused.message}
    extra = {"www-authenticate": "Bearer"} if refused.status == 401 else None
    return JSONResponse({"error": error}, refused.status, headers=extra)
