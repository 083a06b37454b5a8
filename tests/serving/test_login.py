"""Logging in and out: cookies, ends of logins, guesses, and who a rating is by."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loops import run_in_loop
from served import client_of
from starlette.testclient import TestClient
from team import Team, csrf_in, log_in, users_file

from converters.overrides import read_overrides
from trecexam.serving import guard, logins, sessions
from trecexam.serving.front import Front
from trecexam.serving.logins import Logins, TooManyError
from trecexam.serving.users import Users, add_user, remove_user

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


def test_who_logs_in_comes_to_where_they_wanted(team: Team) -> None:
    browser = team.client()
    sent = browser.get("/query/q1?sort=-label")
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?back=%2Fquery%2Fq1%3Fsort%3D-label")
    page = browser.get(sent.headers["location"]).text
    back = re.search(r'name="back" value="([^"]*)"', page)
    assert back
    done = log_in(browser, "rudi", team.tokens["rudi"], back=back[1])
    assert (done.status_code, done.headers["location"]) == (303, "/query/q1?sort=-label")
    assert browser.get(done.headers["location"]).status_code == 200
    assert "rudi" in browser.get("/").text


def test_an_assessor_lands_at_what_she_judges(team: Team) -> None:
    page = team.client("ada").get("/", follow_redirects=True)
    assert page.url.path.startswith("/assess/passage/")
    assert "Your judgment" in page.text


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "/\\evil", "/../x", "x", "\t//e"]
)
def test_it_leads_to_no_other_site(team: Team, back: str) -> None:
    done = log_in(team.client(), "rudi", team.tokens["rudi"], back=back)
    assert done.headers["location"] == "/"


def test_the_cookie_is_for_no_script_and_says_nothing(team: Team) -> None:
    browser = team.client()
    done = log_in(browser, "ada", team.tokens["ada"])
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
def test_behind_https_browsers_hold_it_to_that(
    graded: Path, tmp_path: Path, url: str, name: str, path: str
) -> None:
    file, tokens = users_file(tmp_path)
    front = Front.of(url)
    with client_of(graded, users=Users(file), front=front) as client:
        client.base_url = front.origin  # type: ignore[assignment]
        done = log_in(client, "orla", tokens["orla"], front.prefix)
        cookie = done.headers["set-cookie"]
        assert cookie.startswith(f"{name}=")
        parts = {part.strip() for part in cookie.split(";")}
        assert path in parts
        assert ("Secure" in parts) is url.startswith("https")
        assert not any(part.startswith("Domain") for part in parts)
        # All others too.
        for line in client.get(f"{front.prefix}/judge").headers.get_list("set-cookie"):
            assert path in line
            assert ("Secure" in line) is url.startswith("https")


def test_a_cookie_that_somebody_else_put_there_is_never_a_login(team: Team) -> None:
    browser = team.client()
    browser.cookies.set(COOKIE, "fixed-by-an-attacker", domain="127.0.0.1")
    before = browser.get("/login")
    assert "set-cookie" not in before.headers
    log_in(browser, "orla", team.tokens["orla"])
    other = team.client()
    other.cookies.set(COOKIE, "fixed-by-an-attacker", domain="127.0.0.1")
    assert other.get("/queries").status_code == 303
    first = browser.cookies[COOKIE]
    form = {"csrf": csrf_in(browser.get("/").text), "name": "rudi", "secret": team.tokens["rudi"]}
    assert browser.post("/login", data=form).status_code == 303
    assert browser.cookies[COOKIE] != first
    again = team.client()
    again.cookies.set(COOKIE, first, domain="127.0.0.1")
    assert again.get("/queries").status_code == 303


def test_a_login_form_of_another_browser_is_refused(team: Team) -> None:
    stolen = csrf_in(team.client().get("/login").text)
    victim = team.client()
    victim.get("/login")
    form = {"csrf": stolen, "name": "ada", "secret": team.tokens["ada"]}
    assert victim.post("/login", data=form).status_code == 403
    assert team.client().post("/login", data=form).status_code == 403
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        csrf = csrf_in(victim.get("/login").text)
        assert victim.post("/login", data={**form, "csrf": csrf}, headers=headers).status_code == 403


def test_a_form_of_one_login_is_none_of_another(team: Team) -> None:
    orla, again = team.client("orla"), team.client("orla")
    form = rating(orla)
    assert again.post("/override", data=form).status_code == 403
    assert orla.post("/override", data=form).status_code == 303


def test_a_rating_is_by_who_is_logged_in_whatever_the_form_says(team: Team, track: Path) -> None:
    orla = team.client("orla")
    assert orla.post("/override", data=rating(orla)).status_code == 303
    ((_, row),) = read_overrides(track / "overrides.tsv", lambda refused: None)
    assert (row.who, row.rating) == ("orla", 3)
    page = orla.get("/bank/q1").text
    form = {"csrf": csrf_in(page), "text": "Is it new?", "kind": "question", "who": "somebody"}
    assert orla.post("/bank/q1/item", data=form).status_code == 303
    assert '"who":"orla"' in "".join(p.read_text() for p in track.glob("bank*")).replace('": "', '":"')


def test_who_logs_out_is_out_and_so_is_the_old_cookie(team: Team) -> None:
    orla = team.client("orla")
    kept = orla.cookies[COOKIE]
    done = orla.post("/logout", data={"csrf": csrf_in(orla.get("/").text)})
    assert (done.status_code, done.headers["location"]) == (303, "/login")
    assert COOKIE not in orla.cookies
    assert team.client().get("/queries", headers={"cookie": f"{COOKIE}={kept}"}).status_code == 303
    assert orla.get("/logout").status_code == 303


def test_who_is_removed_is_out_at_the_next_click_and_another_role_counts_at_once(team: Team) -> None:
    orla, rudi = team.client("orla"), team.client("rudi")
    remove_user(team.path, "orla")
    assert orla.get("/queries").status_code == 303
    team.path.write_text(team.path.read_text().replace('"reader"', '"assessor"'))
    assert rudi.get("/queries").status_code == 403
    assert rudi.get("/assess").headers["location"].startswith("/assess/passage/")


def test_while_the_users_cannot_be_read_nobody_is_in_and_then_those_who_were(team: Team) -> None:
    orla, text = team.client("orla"), team.path.read_text()
    csrf = csrf_in(orla.get("/query/q1").text)
    team.path.write_text(text + "[[user")
    shown = [orla.get("/queries"), orla.post("/override", data={"csrf": csrf}), team.client().get("/login")]
    assert [answer.status_code for answer in shown] == [503] * 3
    assert "nothing was taken" in shown[1].text
    assert str(team.path) not in shown[0].text
    assert orla.get("/healthz").status_code == 200
    # As some editors save: an empty file first.
    team.path.write_text("")
    assert orla.get("/queries").status_code == 303
    team.path.write_text(text)
    assert orla.get("/queries").status_code == 200


def test_another_password_ends_all_logins_with_the_old_one(team: Team) -> None:
    orla = team.client("orla")
    add_user(team.path, "orla", "organizer", token=True, replace=True)
    assert orla.get("/queries").status_code == 303


def test_a_login_ends_when_nobody_clicks_and_a_page_that_renews_itself_is_no_click(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(sessions.time, "monotonic", lambda: now[0])
    orla = team.client("orla")
    now[0] += sessions.IDLE - 10
    assert orla.get("/queries").status_code == 200
    now[0] += sessions.IDLE - 10
    assert orla.get("/state", headers={"x-refresh": "1"}).status_code == 200
    now[0] += 20
    assert orla.get("/state", headers={"x-refresh": "1"}).status_code == 401
    answer = orla.post("/override", data={"csrf": "x"})
    assert answer.status_code == 401
    assert "nothing was taken" in answer.text


def test_a_login_ends_after_a_working_day_in_any_case(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(sessions.time, "monotonic", lambda: now[0])
    orla = team.client("orla")
    for _ in range(int(sessions.LONGEST / 3600)):
        assert orla.get("/queries").status_code == 200
        now[0] += 3600
    now[0] += 1
    assert orla.get("/queries").status_code == 303


@pytest.mark.parametrize(("name", "secret"), [("ada", "x"), ("nobody", "x"), ("", ""), ("ada", "é")])
def test_a_wrong_name_and_a_wrong_token_get_the_same_answer(team: Team, name: str, secret: str) -> None:
    browser = team.client()
    csrf = csrf_in(browser.get("/login").text)
    data = {"csrf": csrf, "name": name, "secret": secret}
    answer = browser.post("/login", data=data)
    assert answer.status_code == 401
    assert "There is nobody of that name with that password or token." in answer.text
    assert COOKIE not in answer.headers.get("set-cookie", "")


def test_the_trail_of_judgments_is_of_who_is_logged_in_not_of_the_browser(team: Team) -> None:
    browser = team.client("orla")
    browser.post("/override", data=rating(browser, **{"from": "judge"}))
    page = browser.get("/judge?query=q1&doc=d0", follow_redirects=True)
    browser.post("/logout", data={"csrf": csrf_in(page.text)})
    log_in(browser, "rudi", team.tokens["rudi"])
    assert 'id="judge-undo"' not in browser.get("/judge?query=q1&doc=d0").text


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users with a password, with nothing, and with the token in the file beside."""
    path = tmp_path_factory.mktemp("logins") / "users.toml"
    add_user(path, "ada", "assessor", password="correct horse")
    add_user(path, "bob", "assessor")
    path.with_name("token").write_text(add_user(path, "tom", "assessor", token=True))
    return path


class TestLogins:
    """Who guesses."""

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The time, which passes where somebody waits."""
        now = [100.0]

        async def sleep(seconds: float) -> None:
            now[0] += seconds

        monkeypatch.setattr(guard.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(logins.asyncio, "sleep", sleep)
        return now

    def test_passwords_and_tokens_are_known(self, path: Path) -> None:
        async def all_of_them() -> list[bool]:
            known = Logins(Users(path))
            token = path.with_name("token").read_text()
            tries = [("ada", "correct horse"), ("ADA", "correct horse"), ("tom", token), ("ada", token),
                     ("tom", "correct horse"), ("bob", ""), ("bob", "correct horse"),
                     ("eve", "correct horse"), ("ada", ""), ("ada", "correct horse ")]  # fmt: skip
            return [await known.entry(name, secret, "192.0.2.1") is not None for name, secret in tries]

        assert run_in_loop(all_of_them()) == [True, True, True, *[False] * 7]

    def test_a_name_that_nobody_has_costs_one_hash_as_any_other_does(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hashed: list[str] = []
        monkeypatch.setattr(logins, "_matches", lambda against, secret: hashed.append(against))

        async def one_each() -> None:
            known = Logins(Users(path))
            for name in ("ada", "bob", "tom", "nobody"):
                assert await known.entry(name, "wrong", "192.0.2.1") is None

        run_in_loop(one_each())
        assert len(hashed) == 4
        assert len(set(hashed)) == 1

    def test_hashing_keeps_nobody_waiting_and_two_passwords_are_looked_at_at_a_time(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        busy, most = [0], [0]

        def slow(against: str, secret: str) -> bool:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
            time.sleep(0.05)
            busy[0] -= 1
            return True

        monkeypatch.setattr(logins, "_matches", slow)

        async def crowd() -> float:
            known = Logins(Users(path))
            tasks = [asyncio.create_task(known.entry("ada", "x", f"192.0.2.{n}")) for n in range(4)]
            longest, last = 0.0, time.monotonic()
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0.001)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            return longest

        assert run_in_loop(crowd()) < 0.045
        assert most == [2]

    def test_who_guesses_a_name_waits_longer_and_longer_from_wherever_that_is(
        self, path: Path, clock: list[float]
    ) -> None:
        async def guess() -> tuple[int, float]:
            known, began, looked_at = Logins(Users(None)), clock[0], 0
            for number in range(200):
                try:
                    await known.entry("ada", "wrong", f"192.0.2.{number}")
                    looked_at += 1
                except TooManyError:
                    clock[0] += 1
            return looked_at, clock[0] - began

        looked_at, seconds = run_in_loop(guess())
        assert looked_at <= guard.FREE + 1 + seconds / guard.LONGEST_WAIT + 3

    def test_other_ways_to_write_a_name_are_no_further_guesses(self, path: Path) -> None:
        add_user(path, "zo\u00e9", "assessor")
        known = Logins(Users(path))
        ways = ("zo\u00e9", "zoe\u0301", "ZO\u00c9", "ZOE\u0301", "\uff5ao\u00e9")
        for name in ways:
            assert run_in_loop(known.entry(name, "x", "192.0.2.1")) is None
        assert len(known._names._known) == 1

    def test_who_tries_many_names_waits_too_and_a_class_behind_one_address_does_not(
        self, path: Path, clock: list[float]
    ) -> None:
        async def spray() -> tuple[float, float]:
            known = Logins(Users(None))
            began = clock[0]
            for number in range(logins.FREE_OF_ADDRESS):
                assert await known.entry(f"user{number}", "12345678", "192.0.2.1") is None
            free = clock[0] - began
            for number in range(20):
                await known.entry(f"other{number}", "12345678", "192.0.2.1")
            return free, clock[0] - began

        free, whole = run_in_loop(spray())
        assert free == 0
        assert whole > 60

    def test_who_has_logged_in_from_here_is_not_kept_out_by_who_guesses_elsewhere(
        self, path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def attacked() -> float:
            known = Logins(Users(path))
            token = path.with_name("token").read_text()
            assert await known.entry("tom", token, "192.0.2.1")
            for _ in range(100):
                known._names.wait("tom")
            with pytest.raises(TooManyError):
                await known.entry("tom", token, "198.51.100.1")
            began = clock[0]
            assert await known.entry("tom", token, "192.0.2.1")
            return clock[0] - began

        assert run_in_loop(attacked()) == 0
