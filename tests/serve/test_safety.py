"""Without the token nothing acts; another site, or another name of the server, never does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headrace.serve.app import OPERATIONS, Operation
from headrace.serve.safety import Door, is_loopback, refusal
from tests.serve.apps import ACTS, DOOR, TOKEN, client_of
from tests.serve.journals import write_run

ACTING = [operation for operation in OPERATIONS if operation.acts]
REFUSED = {
    "no token": ({}, 401),
    "a wrong token": ({"authorization": "Bearer wrong"}, 401),
    "half of the token": ({"authorization": f"Bearer {TOKEN[:-1]}"}, 401),
    "another scheme": ({"authorization": f"Basic {TOKEN}"}, 401),
    "a foreign origin": ({**ACTS, "origin": "http://evil.example"}, 403),
    "the null origin": ({**ACTS, "origin": "null"}, 403),
    "our origin by https": ({**ACTS, "origin": "https://127.0.0.1:8700"}, 403),
    "another port's origin": ({**ACTS, "origin": "http://127.0.0.1:9999"}, 403),
    "a foreign host": ({**ACTS, "host": "evil.example:8700"}, 403),
    "a host with another port": ({**ACTS, "host": "127.0.0.1:80"}, 403),
    "a cross-site fetch": ({**ACTS, "sec-fetch-site": "cross-site"}, 403),
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(write_run(tmp_path / "words", batches=3, moved_at=1)) as found:
        yield found


def path_of(operation: Operation) -> str:
    known = {"run": "words", "number": "0", "job": "job-1", "name": "job-1"}
    return re.sub(r"{(\w+)}", lambda match: known[match[1]], operation.path)


@pytest.mark.parametrize("operation", ACTING, ids=lambda o: f"{o.method} {o.path}")
@pytest.mark.parametrize("how", REFUSED)
def test_no_route_acts_for_the_wrong_one(
    client: TestClient, tmp_path: Path, operation: Operation, how: str
) -> None:
    headers, status = REFUSED[how]
    before = sorted(tmp_path.rglob("*"))
    answer = client.request(operation.method, path_of(operation), headers=headers, json={})
    assert answer.status_code == status
    assert answer.json()["error"]["kind"] in ("token", "origin", "host")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("operation", ACTING, ids=lambda o: f"{o.method} {o.path}")
def test_with_the_token_every_route_answers_for_itself(
    client: TestClient, operation: Operation
) -> None:
    own = {**ACTS, "origin": "http://127.0.0.1:8700"}
    answer = client.request(operation.method, path_of(operation), headers=own, json={})
    assert answer.status_code in (404, 422)  # an empty body is no request, and there is no job


def test_all_that_changes_anything_is_in_the_table(client: TestClient) -> None:
    routes = client.app.routes  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
    acting = {
        (method, route.path)
        for route in routes
        for method in route.methods or ()
        if method not in ("GET", "HEAD")
    }
    assert acting == {(o.method, o.path) for o in ACTING}


@pytest.mark.parametrize("host", ["127.0.0.1:8700", "localhost:8700", "[::1]:8700"])
def test_reading_needs_nothing_on_the_loopback(client: TestClient, host: str) -> None:
    assert client.get("/api/v1/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8700", "127.0.0.1", ""])
def test_a_name_that_is_not_ours_reads_nothing(client: TestClient, host: str) -> None:
    for path in ("/", "/metrics", "/api/v1/runs", "/api/v1/runs/words/events"):
        assert client.get(path, headers={"host": host}).status_code == 403


def test_elsewhere_reading_needs_the_token_too(tmp_path: Path) -> None:
    door = Door("10.1.2.3", 8700, TOKEN, ("box.local",))
    assert not door.loopback
    with client_of(write_run(tmp_path / "words", batches=2, moved_at=None), door=door) as client:
        for path in ("/api/v1/runs", "/metrics", "/api/v1/runs/words/series"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=ACTS).status_code == 200
        assert client.get("/").status_code == 200  # the page itself, which shows nothing
        assert client.get("/static/main.js").status_code == 200
        named = {"host": "box.local:8700"}
        assert client.get("/api/v1/runs", headers={**ACTS, **named}).status_code == 200
        assert (
            client.get("/api/v1/runs", headers={**ACTS, "host": "localhost:8700"}).status_code
            == 403
        )


def test_every_answer_keeps_browsers_strict(client: TestClient) -> None:
    for path in ("/", "/static/main.js", "/api/v1/runs", "/api/v1/nothing", "/metrics"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe-eval" not in policy
        assert "script-src 'unsafe-inline'" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


def test_the_page_has_no_script_of_its_own(client: TestClient) -> None:
    page = client.get("/").text
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == [""]
    assert not re.search(r"\son\w+=", page)
    assert not re.search(r"https?://", page)


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/.", "/static//"],
)
def test_no_address_leads_out_of_the_page(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_large_body_is_refused_before_it_is_read(client: TestClient) -> None:
    body = b"x" * 4_000_001
    answer = client.post("/api/v1/jobs", content=body, headers=ACTS)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "size")

    def pieces() -> Iterator[bytes]:  # without a length
        for _ in range(5):
            yield b"x" * 1_000_000

    assert client.post("/api/v1/jobs", content=pieces(), headers=ACTS).status_code == 413


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil.example", False)],
)  # fmt: skip
def test_only_this_machine_is_the_loopback(host: str, is_ours: bool) -> None:
    assert is_loopback(host) == is_ours


def test_methods_that_only_look_are_known() -> None:
    headers = {"host": "127.0.0.1:8700"}
    assert refusal("GET", "/api/v1/runs", headers, DOOR) is None
    for method in ("POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE", "BREW"):
        assert refusal(method, "/api/v1/runs", headers, DOOR) is not None
