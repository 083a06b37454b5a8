"""Permissions: each route of the page for each role."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served import client_of
from starlette.testclient import TestClient
from team import ROLES, Team, csrf_in, users_file

from trecexam.extensions.page.front import OURS
from trecexam.extensions.page.pages import routes
from trecexam.extensions.page.permissions import TABLE, roles_for
from trecexam.extensions.page.urls import segment
from trecexam.extensions.page.users import Users

#: Values for the names in a route's path.
NAMES = {"run": "run0", "query_id": "q1", "doc_id": "q1-d00", "item_id": segment("q1/1"), "way": "next"}
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
    client = [(route.path, sorted((route.methods or set()) - {"HEAD"})) for route in routes_of()]
    return ((path, method) for path, methods in client for method in methods)


def routes_of():  # type: ignore[no-untyped-def]
    from starlette.convertors import CONVERTOR_TYPES

    from trecexam.extensions.page.app import _Name

    CONVERTOR_TYPES["name"] = _Name()
    return routes()


def test_the_permission_table_has_exactly_the_existing_routes() -> None:
    known = {route.path for route in routes_of()} | {"/static/{path:path}"}
    assert set(TABLE) == known
    for path, method in routes_and_methods():
        roles = TABLE[path][method == "POST"]
        assert roles, f"nobody may {method} {path}"
        assert roles_for(method, address(path)) == roles, f"{method} {path} is read as another one"
    assert {route.path.split("/")[1] for route in routes_of()} - {""} <= OURS


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
    "path", ["/nowhere", "/queries/", "/static", "/bank/q1/item/other", "/assess/../queries", "//"]
)
def test_urls_outside_the_table_are_forbidden_to_all(browsers: dict[str, TestClient], path: str) -> None:
    for role, browser in browsers.items():
        answer = browser.get(f"http://127.0.0.1{path}")
        if path == "/assess/../queries" and role in {"organizer", "reader"}:
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
                "/queries",
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
