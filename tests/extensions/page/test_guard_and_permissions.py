"""Request checks and permissions. Each attack could come through a browser that has the page open."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served import client_of, csrf_of
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from team import ROLES, Team, csrf_in, users_file

from trecexam.extensions.page import guard
from trecexam.extensions.page.front import OURS
from trecexam.extensions.page.guard import Guard
from trecexam.extensions.page.pages import routes
from trecexam.extensions.page.permissions import TABLE, roles_for
from trecexam.extensions.page.users import Users

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def written() -> list[dict[str, str]]:
    """The accepted forms."""
    return []


@pytest.fixture
def guarded(written: list[dict[str, str]]) -> Callable[..., TestClient]:
    """(**options of Guard) -> a client of a page that accepts a form at /write."""

    def made(**options: object) -> TestClient:
        def write(request):  # type: ignore[no-untyped-def]
            written.append(request.scope["form"])
            return PlainTextResponse("written")

        def show(request):  # type: ignore[no-untyped-def]
            return PlainTextResponse(request.scope["csrf"])

        routes = [Route("/", show), Route("/write", write, methods=["POST"])]
        app = Guard(Starlette(routes=routes), **options)  # type: ignore[arg-type]
        return TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)

    return made


def test_a_form_of_the_page_is_accepted(
    guarded: Callable[..., TestClient], written: list[dict[str, str]]
) -> None:
    client = guarded()
    headers = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    done = client.post("/write", data={"csrf": client.get("/").text, "a": "1", "b": ""}, headers=headers)
    assert done.text == "written"
    assert written == [{"a": "1", "b": ""}]


@pytest.mark.parametrize("token", [None, "", "0" * 64, "é"])
def test_a_form_without_the_token_is_rejected(
    guarded: Callable[..., TestClient], written: list[dict[str, str]], token: str | None
) -> None:
    fields = {"a": "1"} if token is None else {"a": "1", "csrf": token}
    assert guarded().post("/write", data=fields).status_code == 403
    assert not written


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"origin": "http://127.0.0.1.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_a_form_from_another_site_is_rejected_even_with_the_token(
    guarded: Callable[..., TestClient], written: list[dict[str, str]], headers: dict[str, str]
) -> None:
    client = guarded()
    done = client.post("/write", data={"csrf": client.get("/").text}, headers=headers)
    assert done.status_code == 403
    assert not written


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data; boundary=x", ""])
def test_only_form_encoded_requests_are_accepted(
    guarded: Callable[..., TestClient], written: list[dict[str, str]], kind: str
) -> None:
    client = guarded()
    body = f"csrf={client.get('/').text}"
    assert client.post("/write", content=body, headers={"content-type": kind}).status_code == 415
    assert not written


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[",
        "192.168.0.7",
        "a@127.0.0.1:x",
    ],
)
def test_an_unknown_host_name_is_rejected(guarded: Callable[..., TestClient], host: str) -> None:
    assert guarded().get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:1", "[::1]:8377", "gpu7.example"])
def test_configured_host_names_are_accepted_with_any_port(
    guarded: Callable[..., TestClient], host: str
) -> None:
    assert guarded(hosts=["GPU7.example"]).get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_not_allowed(guarded: Callable[..., TestClient], method: str) -> None:
    done = guarded().request(method, "/")
    assert done.status_code == 405
    assert done.headers["allow"] == "GET, HEAD, POST"


def test_an_address_that_is_too_long_is_rejected(guarded: Callable[..., TestClient]) -> None:
    assert guarded().get("/?q=" + "x" * guard.MAX_URL).status_code == 414


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"&".join(b"f%d=1" % n for n in range(guard.MAX_FIELDS + 5)), 400),
        (b"a=%ff", 400),
        (b"a=1&a=2", 400),
        (b"\xff=1", 400),
        (b"a=" + b"x" * guard.MAX_BODY, 413),
    ],
    ids=["many fields", "no UTF-8, encoded", "a field twice", "no UTF-8", "too large"],
)
def test_a_malformed_form_is_rejected(
    guarded: Callable[..., TestClient], written: list[dict[str, str]], body: bytes, status: int
) -> None:
    client = guarded()
    whole = f"csrf={client.get('/').text}&".encode() + body
    assert client.post("/write", content=whole, headers={"content-type": FORM}).status_code == status
    assert not written


def test_a_body_without_a_length_is_read_only_up_to_the_limit(guarded: Callable[..., TestClient]) -> None:
    sent: list[int] = []

    def endless():  # type: ignore[no-untyped-def]
        for _ in range(64):
            sent.append(1)
            yield b"x" * (guard.MAX_BODY // 8)

    done = guarded().post("/write", content=endless(), headers={"content-type": FORM})
    assert done.status_code == 413


def test_every_response_has_the_security_headers(client: TestClient) -> None:
    for path in ("/", "/nowhere", "/static/app.js", "/state"):
        answer = client.get(path)
        for name, value in guard.HEADERS.items():
            assert answer.headers[name] == value, path
    assert "unsafe" not in guard.POLICY
    assert "default-src 'none'" in guard.POLICY
    assert client.get("/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/",
    ],
)
def test_only_files_of_the_page_are_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in {404, 405}
    assert "create_app" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("name", ["../../trecexam.toml", "~2E~2E~2Ftrecexam.toml", "..%2f..%2fetc%2fpasswd"])
def test_ids_are_looked_up_and_never_opened_as_files(client: TestClient, name: str) -> None:
    for path in (f"/run/{name}", f"/query/{name}", f"/query/q1/passage/{name}"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "recorded =" not in answer.text


class TestWithAToken:
    """Not on the loopback address."""

    @pytest.fixture
    def asked(self, graded: Path, open_client: Callable[..., TestClient]) -> TestClient:
        return open_client(graded, token="s3cret&t", cookie="trecexam-1")

    def test_nothing_is_shown_without_the_token(self, asked: TestClient) -> None:
        for path in ("/", "/state", "/nowhere"):
            answer = asked.get(path)
            assert answer.status_code == 401
            assert "run0" not in answer.text
        assert asked.post("/override", data={"csrf": "x"}).status_code == 401

    @pytest.mark.parametrize("token", ["", "s3cret", "s3cret&t ", "é"])
    def test_a_wrong_token_is_rejected(self, asked: TestClient, token: str) -> None:
        assert asked.get("/", params={"token": token}).status_code == 401
        cookie = f"trecexam-1={token}".encode()
        assert asked.get("/", headers={b"cookie": cookie}).status_code == 401

    def test_wrong_tokens_delay_nobody_and_the_right_one_works_after_them(self, asked: TestClient) -> None:
        for number in range(200):
            # The cookie is derived from the token, so it must not be guessable.
            cookie = {"headers": {"cookie": f"trecexam-1={number}"}}
            guess = {"params": {"token": str(number)}}
            assert asked.get("/", **(cookie if number % 2 else guess)).status_code == 401  # type: ignore[arg-type]
        assert asked.get("/?token=s3cret%26t").status_code == 200
        assert "q1" in asked.get("/result/queries").text

    def test_the_token_becomes_a_cookie_hidden_from_scripts_and_other_sites(self, asked: TestClient) -> None:
        welcome = asked.get("/result/queries?token=s3cret%26t&sort=-mean")
        assert welcome.status_code == 200
        cookie = welcome.headers["set-cookie"]
        assert "s3cret" not in cookie + welcome.text
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        onwards = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', welcome.text)
        assert onwards
        assert onwards[1] == "/result/queries?sort=-mean"
        assert "q1" in asked.get("/result/queries").text

    def test_the_token_url_redirects_to_no_other_site(self, asked: TestClient) -> None:
        welcome = asked.get("http://127.0.0.1//evil.example/?token=s3cret%26t")
        assert 'url=/evil.example/"' in welcome.text

    def test_the_token_is_not_sent_in_a_referrer(self, asked: TestClient) -> None:
        assert asked.get("/?token=s3cret%26t").headers["referrer-policy"] == "same-origin"

    def test_urls_that_reveal_nothing_of_the_track_need_no_token(self, asked: TestClient) -> None:
        assert asked.get("/healthz").text == "ok\n"
        assert asked.get("/static/style.css").status_code == 200

    def test_an_ip_address_as_host_is_accepted_because_it_cannot_be_rebound(self, asked: TestClient) -> None:
        assert asked.get("/healthz", headers={"host": "192.168.0.7:8377"}).status_code == 200
        assert asked.get("/healthz", headers={"host": "evil.example"}).status_code == 421


def test_the_csrf_token_differs_after_each_start(
    graded: Path, open_client: Callable[..., TestClient]
) -> None:
    assert csrf_of(open_client(graded)) != csrf_of(open_client(graded))


# Permissions: each route of the page for each role.


#: Values for the names in a route's path.
NAMES = {"run": "run0", "query_id": "q1", "doc_id": "q1-d00", "result": "queries"}
NAMES |= {"path": "app.js", "passage": "p1", "section": "no-such", "grader": "rubric"}
#: URLs that reveal nothing of the track, and the login.
OPEN = {"/healthz", "/login", "/static/{path:path}"}
#: URLs for assessors only; check additions for anything that breaks blinding.
ASSESSING = {"/assess", "/logout", *OPEN}


def address(pattern: str) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: NAMES[match[1]], pattern)


@pytest.fixture(scope="module")
def team(graded_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    path, tokens = users_file(tmp_path_factory.mktemp("team"))
    with client_of(graded_once, users=Users(path)) as client:
        yield Team(client.app, path, tokens)


@pytest.fixture(scope="module")
def browsers(team: Team) -> dict[str, TestClient]:
    return {"visitor": team.client(), **{role: team.client(name) for name, role in ROLES.items()}}


def routes_and_methods() -> Iterator[tuple[str, str]]:
    client = [(route.path, sorted((route.methods or set()) - {"HEAD"})) for route in routes()]
    return ((path, method) for path, methods in client for method in methods)


def test_the_permission_table_has_exactly_the_existing_routes() -> None:
    known = {route.path for route in routes()} | {"/static/{path:path}"}
    assert set(TABLE) == known
    for path, method in routes_and_methods():
        roles = TABLE[path][method == "POST"]
        assert roles, f"nobody may {method} {path}"
        assert roles_for(method, address(path)) == roles, f"{method} {path} is read as another one"
    assert {route.path.split("/")[1] for route in routes()} - {""} <= OURS


def test_an_assessor_can_open_only_pages_that_assessors_need() -> None:
    reached = {path for path, roles in TABLE.items() if "assessor" in roles[0] | roles[1]}
    own = {path.removeprefix("/grader/{grader:name}") for path in reached}
    assert {path for path in own if not path.startswith("/assess/")} == ASSESSING


def test_pages_of_each_grader_have_the_permissions_of_the_first() -> None:
    named = {path: roles for path, roles in TABLE.items() if path.startswith("/grader/")}
    assert len(named) > 15
    for path, roles in named.items():
        assert TABLE[path.removeprefix("/grader/{grader:name}") or "/"] == roles


def test_a_reader_changes_nothing_and_a_visitor_sees_nothing() -> None:
    assert {path for path, (_, post) in TABLE.items() if "reader" in post} == {"/login", "/logout"}
    assert {path for path, (get, post) in TABLE.items() if "visitor" in get | post} == OPEN


@pytest.mark.parametrize(("path", "method"), list(routes_and_methods()), ids=str)
def test_each_url_works_for_allowed_roles_and_reveals_nothing_to_others(
    browsers: dict[str, TestClient], path: str, method: str
) -> None:
    if method == "POST" and path in OPEN | {"/logout"}:
        pytest.skip("test_login.py does that")
    allowed = TABLE[path][method == "POST"]
    for role, browser in browsers.items():
        if method == "POST":
            page = {"visitor": "/login", "reader": "/"}.get(role, "/assess")
            csrf = csrf_in(browser.get(page, follow_redirects=True).text)
            answer = browser.post(address(path), data={"csrf": csrf})
        else:
            answer = browser.get(address(path))
        if role in allowed:
            # The track has no passage or section of that name.
            own = path.removeprefix("/grader/{grader:name}")
            is_there = method == "GET" and not own.startswith(("/assess/passage", "/section"))
            assert answer.status_code in ({200, 303} if is_there else {200, 303, 404, 422}), role
            assert not answer.headers.get("location", "").startswith("/login"), role
            continue
        if role == "visitor" and method == "GET":
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/login?back=")
        elif (role, path) == ("assessor", "/"):
            assert (answer.status_code, answer.headers["location"]) == (303, "/assess")
        else:
            assert answer.status_code == (401 if role == "visitor" else 403), role
        for secret in ("run0", "run1"):
            assert secret not in answer.text, f"{role} reads {secret}"


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/result/queries/", "/static", "/bank/q1/item/other", "/assess/../result/queries", "//"],
)
def test_urls_outside_the_table_are_forbidden_to_all(browsers: dict[str, TestClient], path: str) -> None:
    for role, browser in browsers.items():
        answer = browser.get(f"http://127.0.0.1{path}")
        if path == "/assess/../result/queries" and role in {"organizer", "reader"}:
            continue
        assert answer.status_code in {303, 403, 404}, role
        assert "run0" not in answer.text


def test_pages_for_assessors_show_no_runs_and_no_errors_of_the_track(
    team: Team, browsers: dict[str, TestClient]
) -> None:
    live = team.app.state.live  # type: ignore[attr-defined]
    live.trouble, live_trouble = "runs/secret.run:3: no number", live.trouble
    try:
        for role, path in itertools.product(
            ("assessor", "visitor"), ("/assess", "/login", "/static/none.js")
        ):
            answer = browsers[role].get(path, follow_redirects=True)
            for secret in (
                "secret.run",
                f"· {live.view.name}",
                *([f">{live.view.name}<"] if role == "visitor" else []),
                "Leaderboard",
                "run0",
                "app.js",
                "/result/queries",
            ):
                assert secret not in answer.text
    finally:
        live.trouble = live_trouble


def test_a_reader_sees_no_form_that_would_be_rejected(browsers: dict[str, TestClient]) -> None:
    for path, method in routes_and_methods():
        if method == "GET" and "reader" in TABLE[path][0] and path != "/login":
            answer = browsers["reader"].get(address(path), follow_redirects=True)
            for action in re.findall(r'<form method="post" action="([^"]+)"', answer.text):
                assert action == "/logout", path


def test_an_error_page_shown_to_an_assessor_reveals_nothing(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trecexam.errors import TrecexamError
    from trecexam.extensions.page.pages import assess

    def failing(*args: object, **values: object) -> None:
        raise TrecexamError("'secret-doc' is not in the pool")

    monkeypatch.setattr(assess, "Desk", failing)
    for name, shown in (("ada", False), ("orla", True)):
        answer = team.client(name).get("/assess")
        assert answer.status_code == 422
        assert ("secret-doc" in answer.text) is shown


def test_without_users_there_is_no_login_and_who_judges_gives_a_name(
    graded_once: Path, open_client: Callable[..., TestClient]
) -> None:
    client = open_client(graded_once)
    assert client.get("/login").status_code == 404
    assert client.get("/assess").headers["location"] == "/who?back=%2Fassess"
    assert "Log out" not in client.get("/").text
