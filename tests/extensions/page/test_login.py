"""Login and logout: cookies, expiry, wrong guesses, and the author of a rating."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import client_of
from starlette.testclient import TestClient
from team import Team, csrf_in, log_in, users_file

from converters.overrides import read_overrides
from trecexam.extensions.page import sessions
from trecexam.extensions.page.front import Front
from trecexam.extensions.page.users import Users, add_tokens, digest, hashes_file

COOKIE = "trecexam"


@pytest.fixture
def team(track: Path, tmp_path: Path) -> Iterator[Team]:
    (tmp_path / "people").mkdir()
    path, tokens = users_file(tmp_path / "people")
    with client_of(track, users=Users(path)) as client:
        yield Team(client.app, path, tokens)


def rating(client: TestClient, **fields: str) -> dict[str, str]:
    page = client.get("/query/q1").text
    doc = re.search(r'/passage/([^"?]+)"', page)
    assert doc
    form = {"query": "q1", "doc": doc[1], "item": "", "rating": "3", "why": "it says so", "who": "somebody"}
    return {"csrf": csrf_in(page), **form, **fields}


def test_login_redirects_to_the_requested_page(team: Team) -> None:
    browser = team.client()
    sent = browser.get("/query/q1?sort=-label")
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?back=%2Fquery%2Fq1%3Fsort%3D-label")
    page = browser.get(sent.headers["location"]).text
    back = re.search(r'name="back" value="([^"]*)"', page)
    assert back
    done = log_in(browser, team.tokens["rudi"], back=back[1])
    assert (done.status_code, done.headers["location"]) == (303, "/query/q1?sort=-label")
    assert browser.get(done.headers["location"]).status_code == 200
    assert "rudi" in browser.get("/").text


def test_an_assessor_starts_on_the_assessor_page_after_login(team: Team) -> None:
    page = team.client("ada").get("/", follow_redirects=True)
    assert page.url.path == "/assess"
    assert "You judge as <bdi>ada</bdi>." in page.text


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "/\\evil", "/../x", "x", "\t//e"]
)
def test_login_redirects_to_no_other_site(team: Team, back: str) -> None:
    done = log_in(team.client(), team.tokens["rudi"], back=back)
    assert done.headers["location"] == "/"


def test_the_cookie_is_http_only_and_contains_no_token_or_name(team: Team) -> None:
    browser = team.client()
    done = log_in(browser, team.tokens["ada"])
    cookie = done.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Secure" not in cookie
    assert team.tokens["ada"] not in cookie
    assert "ada" not in cookie.split(";")[0].partition("=")[2].replace(browser.cookies[COOKIE], "")


@pytest.mark.parametrize(
    ("url", "name", "path"),
    [
        ("https://nuggets.uni.edu", "__Host-trecexam", "Path=/"),
        ("https://nuggets.uni.edu/trec", "__Secure-trecexam", "Path=/trec"),
        ("http://nuggets.uni.edu/trec", "trecexam", "Path=/trec"),
    ],
)
def test_behind_https_the_cookie_is_secure(
    graded: Path, tmp_path: Path, url: str, name: str, path: str
) -> None:
    file, tokens = users_file(tmp_path)
    front = Front.of(url)
    with client_of(graded, users=Users(file), front=front) as client:
        client.base_url = front.origin  # type: ignore[assignment]
        done = log_in(client, tokens["orla"], front.prefix)
        cookie = done.headers["set-cookie"]
        assert cookie.startswith(f"{name}=")
        parts = {part.strip() for part in cookie.split(";")}
        assert path in parts
        assert ("Secure" in parts) is url.startswith("https")
        assert not any(part.startswith("Domain") for part in parts)
        # All other logins too.
        for line in client.get(f"{front.prefix}/assess").headers.get_list("set-cookie"):
            assert path in line
            assert ("Secure" in line) is url.startswith("https")


def test_a_planted_cookie_is_never_a_login(team: Team) -> None:
    browser = team.client()
    browser.cookies.set(COOKIE, "fixed-by-an-attacker", domain="127.0.0.1")
    before = browser.get("/login")
    assert "set-cookie" not in before.headers
    log_in(browser, team.tokens["orla"])
    other = team.client()
    other.cookies.set(COOKIE, "fixed-by-an-attacker", domain="127.0.0.1")
    assert other.get("/result/queries").status_code == 303
    first = browser.cookies[COOKIE]
    form = {"csrf": csrf_in(browser.get("/").text), "token": team.tokens["rudi"]}
    assert browser.post("/login", data=form).status_code == 303
    assert browser.cookies[COOKIE] != first
    again = team.client()
    again.cookies.set(COOKIE, first, domain="127.0.0.1")
    assert again.get("/result/queries").status_code == 303


def test_a_login_form_of_another_browser_is_rejected(team: Team) -> None:
    stolen = csrf_in(team.client().get("/login").text)
    victim = team.client()
    victim.get("/login")
    form = {"csrf": stolen, "token": team.tokens["ada"]}
    assert victim.post("/login", data=form).status_code == 403
    assert team.client().post("/login", data=form).status_code == 403
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        csrf = csrf_in(victim.get("/login").text)
        assert victim.post("/login", data={**form, "csrf": csrf}, headers=headers).status_code == 403


def test_a_form_of_one_login_is_rejected_in_another(team: Team) -> None:
    orla, again = team.client("orla"), team.client("orla")
    form = rating(orla)
    assert again.post("/override", data=form).status_code == 403
    assert orla.post("/override", data=form).status_code == 303


def test_a_rating_belongs_to_the_logged_in_user_whatever_the_form_says(team: Team, track: Path) -> None:
    orla = team.client("orla")
    assert orla.post("/override", data=rating(orla)).status_code == 303
    ((_, row),) = read_overrides(track / "judgments.tsv", lambda refused: None)
    assert (row.who, row.rating) == ("orla", 3)
    page = orla.get("/bank/q1").text
    form = {"csrf": csrf_in(page), "text": "Is it new?", "kind": "question", "who": "somebody"}
    assert orla.post("/bank/q1/item", data=form).status_code == 303
    assert '"who":"orla"' in "".join(p.read_text() for p in track.glob("bank*")).replace('": "', '":"')


def test_logout_invalidates_the_old_cookie(team: Team) -> None:
    orla = team.client("orla")
    kept = orla.cookies[COOKIE]
    done = orla.post("/logout", data={"csrf": csrf_in(orla.get("/").text)})
    assert (done.status_code, done.headers["location"]) == (303, "/login")
    assert COOKIE not in orla.cookies
    assert team.client().get("/result/queries", headers={"cookie": f"{COOKIE}={kept}"}).status_code == 303
    assert orla.get("/logout").status_code == 303


def test_a_removed_user_is_logged_out_at_once_and_a_new_role_applies_at_once(team: Team) -> None:
    orla, rudi = team.client("orla"), team.client("rudi")
    team.path.write_text(team.path.read_text().replace('orla = "organizer"\n', ""))
    assert orla.get("/result/queries").status_code == 303
    team.path.write_text(team.path.read_text().replace('"reader"', '"assessor"'))
    assert rudi.get("/result/queries").status_code == 403
    assert "You judge as <bdi>rudi</bdi>." in rudi.get("/assess").text


def test_while_the_users_file_is_unreadable_nobody_has_access(team: Team) -> None:
    orla, text = team.client("orla"), team.path.read_text()
    csrf = csrf_in(orla.get("/query/q1").text)
    team.path.write_text(text + "[user")
    shown = [
        orla.get("/result/queries"),
        orla.post("/override", data={"csrf": csrf}),
        team.client().get("/login"),
    ]
    assert [answer.status_code for answer in shown] == [503] * 3
    assert "Your change was rejected" in shown[1].text
    assert str(team.path) not in shown[0].text
    assert orla.get("/healthz").status_code == 200
    # As some editors save: an empty file first.
    team.path.write_text("")
    assert orla.get("/result/queries").status_code == 303
    team.path.write_text(text)
    assert orla.get("/result/queries").status_code == 200


def test_a_new_token_ends_all_logins_with_the_old_one(team: Team) -> None:
    orla, hashes = team.client("orla"), hashes_file(team.path)
    hashes.write_text("".join(row for row in hashes.read_text().splitlines(True) if "orla" not in row))
    assert orla.get("/result/queries").status_code == 303
    assert log_in(team.client(), team.tokens["orla"]).status_code == 401
    token = add_tokens(team.path, ["orla"])["orla"]
    assert log_in(team.client(), token).status_code == 303


def test_a_login_ends_when_idle_and_automatic_refreshes_do_not_count(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(sessions.time, "monotonic", lambda: now[0])
    orla = team.client("orla")
    now[0] += sessions.IDLE - 10
    assert orla.get("/result/queries").status_code == 200
    now[0] += sessions.IDLE - 10
    assert orla.get("/state", headers={"x-refresh": "1"}).status_code == 200
    now[0] += 20
    assert orla.get("/state", headers={"x-refresh": "1"}).status_code == 401
    answer = orla.post("/override", data={"csrf": "x"})
    assert answer.status_code == 401
    assert "your change was rejected" in answer.text


def test_a_login_ends_after_a_working_day(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(sessions.time, "monotonic", lambda: now[0])
    orla = team.client("orla")
    for _ in range(int(sessions.LONGEST / 3600)):
        assert orla.get("/result/queries").status_code == 200
        now[0] += 3600
    now[0] += 1
    assert orla.get("/result/queries").status_code == 303


@pytest.mark.parametrize("token", ["", "x", "é", "ada", "0" * 64])
def test_an_unknown_token_is_rejected_at_once(team: Team, token: str) -> None:
    browser = team.client()
    answer = log_in(browser, token)
    assert answer.status_code == 401
    assert "This token is wrong." in answer.text
    assert COOKIE not in answer.headers.get("set-cookie", "")
    assert log_in(browser, digest(team.tokens["ada"])).status_code == 401
    # A link with it says so before it is sent.
    assert ("This token is wrong." in browser.get("/login", params={"token": token}).text) == bool(token)


def test_a_link_fills_in_the_token_and_one_click_logs_in(team: Team) -> None:
    browser = team.client()
    page = browser.get("/login", params={"token": team.tokens["rudi"]})
    assert page.status_code == 200
    # A link from another site logs nobody in.
    assert browser.get("/result/queries").status_code == 303
    filled = re.search(r'name="token" value="([^"]*)"', page.text)
    assert filled
    assert browser.post("/login", data={"csrf": csrf_in(page.text), "token": filled[1]}).status_code == 303
    assert browser.get("/result/queries").status_code == 200
    again = browser.get("/login", params={"token": team.tokens["rudi"]})
    assert (again.status_code, again.headers["location"]) == (303, "/")
    # A link with another user's token asks first: ratings carry the name of the logged-in user.
    other = browser.get("/login", params={"token": team.tokens["orla"]})
    assert other.status_code == 200
    assert "Log out" in other.text
