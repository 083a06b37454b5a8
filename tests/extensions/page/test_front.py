"""The page behind a proxy: prefixes, hosts, origins, and which headers are trusted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from served import client_of, csrf_of
from starlette.testclient import TestClient
from team import Team, csrf_in, users_file

from trecexam.cli.main import run
from trecexam.extensions.page.front import Front
from trecexam.extensions.page.urls import segment
from trecexam.extensions.page.users import Users

PUBLIC = "https://nuggets.uni.edu"
Opened = Callable[..., TestClient]


@pytest.mark.parametrize(
    ("given", "origin", "prefix", "secure"),
    [
        (("https://nuggets.uni.edu/trec",), PUBLIC, "/trec", True),
        (("https://Nuggets.uni.edu:443/trec/",), PUBLIC, "/trec", True),
        (("https://nuggets.uni.edu",), PUBLIC, "", True),
        (("http://nuggets.uni.edu:8080/a/b-c",), "http://nuggets.uni.edu:8080", "/a/b-c", False),
        (("https://[2001:DB8::1]/",), "https://[2001:db8::1]", "", True),
        (("https://büro.example/",), "https://xn--bro-hoa.example", "", True),
        (("", "trec/"), "", "/trec", False),
        (("https://nuggets.uni.edu", "/trec"), PUBLIC, "/trec", True),
        (("https://nuggets.uni.edu/trec", "/trec"), PUBLIC, "/trec", True),
        ((), "", "", False),
    ],
)
def test_origin_prefix_and_security_follow_from_the_options(
    given: tuple[str, ...], origin: str, prefix: str, secure: bool
) -> None:
    front = Front.of(*given)
    assert (front.origin, front.prefix, front.place.secure) == (origin, prefix, secure)


@pytest.mark.parametrize(
    "options",
    [
        ["--public-url", "nuggets.uni.edu"],
        ["--public-url", "ftp://nuggets.uni.edu"],
        ["--public-url", "https://"],
        ["--public-url", "https://a@nuggets.uni.edu"],
        ["--public-url", "https://nuggets.uni.edu/?a=b"],
        ["--public-url", "https://nuggets.uni.edu:x"],
        ["--public-url", "https://nuggets.uni.edu/run"],
        ["--public-url", "https://nuggets.uni.edu/a", "--root-path", "/b"],
        ["--root-path", "/a b"],
        ["--root-path", "/../a"],
        ["--root-path", "/a//b"],
        ["--trusted-proxy", "nginx"],
        ["--trusted-proxy", "0.0.0.0/0"],
        ["--trust-header", "X-Remote-User", "--trusted-role", "reader"],
        ["--trust-header", "X-Remote-User", "--trusted-proxy", "127.0.0.1"],
        ["--trust-header", "X Remote", "--trusted-proxy", "127.0.0.1", "--trusted-role", "reader"],
        ["--trusted-role", "reader"],
        ["--users", "USERS", "--token", "1" * 22],
        ["--users", "nowhere.toml"],
    ],
    ids=" ".join,
)
def test_invalid_options_are_a_one_line_error(
    track: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    users = str(users_file(tmp_path)[0])
    given = [users if option == "USERS" else option for option in options]
    assert run(["serve", str(track), "--port", "0", *given]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def hosts(preserved: bool) -> dict[str, str]:
    """A browser's headers as changed by a proxy: Host unchanged, or the page's address."""
    return {"host": "nuggets.uni.edu" if preserved else "127.0.0.1:8377", "origin": PUBLIC}


@pytest.mark.parametrize("preserved", [True, False], ids=["Host preserved", "Host rewritten"])
@pytest.mark.parametrize("stripped", [True, False], ids=["prefix stripped", "prefix left"])
def test_ratings_work_through_a_proxy_and_all_links_have_the_prefix(
    track: Path, open_client: Opened, preserved: bool, stripped: bool
) -> None:
    client = open_client(track, front=Front.of(f"{PUBLIC}/trec"))
    inner = "" if stripped else "/trec"
    headers = hosts(preserved)
    paths = (
        "/ /run/run0 /queries /query/q1 /query/q1/passage/q1-d00 /query/q1/item/q1~2F1 /judge /disagreements"
    )
    for path in f"{paths} /holes /rejected /search?q=d00 /bank/q1 /who /nowhere".split():
        page = client.get(inner + path, headers=headers).text
        links = re.findall(r'(?:href|src|action|data-state|content)="(?:0; url=)?(/[^"]*)"', page)
        assert links
        assert not [link for link in links if not link.startswith("/trec/")], path
    assert 'aria-current="page"' in client.get(f"{inner}/queries", headers=headers).text
    page = client.get(f"{inner}/query/q1", headers=headers).text
    doc = re.search(r'/trec/query/q1/passage/([^"?]+)"', page)
    assert doc
    csrf = client.get(f"{inner}/state", headers=headers).json()["csrf"]
    form = {"csrf": csrf, "query": "q1", "doc": doc[1],
            "rating": "2", "who": "ann", "why": "so", "back": "/trec/query/q1?sort=rank"}  # fmt: skip
    done = client.post(f"{inner}/override", data=form, headers={**headers, "sec-fetch-site": "same-origin"})
    assert (done.status_code, done.headers["location"]) == (303, "/trec/query/q1?sort=rank")
    assert len((track / "judgments.tsv").read_text().splitlines()) == 2
    # Starlette's own redirect keeps the public host and the prefix.
    slash = client.get(f"{inner}/queries/", headers=headers)
    assert slash.headers["location"] == f"{PUBLIC}/trec/queries"


def test_without_a_public_url_a_rewritten_host_is_rejected(track: Path, open_client: Opened) -> None:
    client = open_client(track)
    form = {"csrf": csrf_of(client)}
    assert client.post("/override", data=form, headers={"origin": PUBLIC}).status_code == 403
    assert client.get("/", headers={"host": "nuggets.uni.edu"}).status_code == 421


@pytest.mark.parametrize(
    "origin",
    ["http://nuggets.uni.edu", "https://nuggets.uni.edu:8443", "https://nuggets.uni.edu.evil.example", "null",
     "https://uni.edu", "https://nuggets.uni.edu/"],
)  # fmt: skip
def test_another_origin_is_rejected_behind_a_proxy_too(track: Path, open_client: Opened, origin: str) -> None:
    client = open_client(track, front=Front.of(f"{PUBLIC}/trec"))
    form = {"csrf": csrf_of(client)}
    for host in ("127.0.0.1:8377", "[::1]:8377"):
        headers = {"host": host, "origin": origin}
        assert client.post("/trec/override", data=form, headers=headers).status_code == 403
    assert client.get("/trec/", headers={"host": "evil.example"}).status_code == 421


def test_a_run_with_the_name_of_the_prefix_is_found(track: Path, open_client: Opened) -> None:
    client = open_client(track, front=Front.of(f"{PUBLIC}/run0"))
    for path in ("/run/run0", "/run0/run/run0", "/run0", "/run0/"):
        assert client.get(path).status_code == 200
    for path in (f"/run0/run/{segment('run0/run0')}", "/run00", "/run0/run0"):
        assert client.get(path).status_code == 404


def test_the_token_url_redirects_below_the_prefix(track: Path, open_client: Opened) -> None:
    client = open_client(track, front=Front.of(f"{PUBLIC}/trec"), token="s3cret-token")
    asks = client.get("/trec/queries")
    assert asks.status_code == 401
    assert 'action="/trec/"' in asks.text
    welcome = client.get("/queries?token=s3cret-token&sort=mean")
    assert 'url=/trec/queries?sort=mean"' in welcome.text
    cookie = welcome.headers["set-cookie"]
    assert "Path=/trec;" in cookie
    assert "Secure" in cookie


class TestTrust:
    """Which headers count from which senders."""

    @pytest.fixture
    def opened(self, graded: Path, tmp_path: Path) -> Iterator[Callable[..., Team]]:
        path, tokens = users_file(tmp_path)
        with ExitStack() as stack:

            def made(*proxies: str, trusted_role: Any = None, users: bool = True) -> Team:
                front = Front.of(f"{PUBLIC}/trec", "", proxies or ["192.0.2.0/28"], "X-Remote-User")
                people = Users(path if users else None)
                client = stack.enter_context(
                    client_of(graded, users=people, front=front, trusted_role=trusted_role)
                )
                return Team(client.app, path, tokens)

            yield made

    def ask(self, team: Team, sender: str, name: str | bytes, path: str = "/trec/queries") -> Any:
        browser = team.client(client=(sender, 4711))
        return browser.get(path, headers={"x-remote-user": name})

    def test_a_user_name_header_is_trusted_from_the_proxy_only(self, opened: Callable[..., Team]) -> None:
        team = opened()
        for sender in ("192.0.2.7", "::ffff:192.0.2.7"):
            assert self.ask(team, sender, "orla").status_code == 200
        for sender in ("192.0.2.16", "127.0.0.1", "::1", "testclient", "2001:db8::1"):
            assert self.ask(team, sender, "orla").status_code == 303

    def test_a_similar_looking_user_name_is_another_person(self, opened: Callable[..., Team]) -> None:
        team = opened("192.0.2.0/28")
        browser = team.client(client=("192.0.2.1", 1))
        for name in ("\uff4frla", "\u2134rla"):
            assert browser.get("/trec/queries", headers={"X-Remote-User": name.encode()}).status_code == 403
        assert browser.get("/trec/queries", headers={"X-Remote-User": "ORLA"}).status_code == 200

    def test_a_proxy_user_has_the_role_in_the_users_file(self, opened: Callable[..., Team]) -> None:
        team = opened()
        assert self.ask(team, "192.0.2.7", "ADA").status_code == 403
        page = self.ask(team, "192.0.2.7", "ada", "/trec/assess")
        page = self.ask(team, "192.0.2.7", "ada", page.headers["location"])
        assert "ada" in page.text
        assert "Log out" not in page.text
        browser = team.client(client=("192.0.2.7", 1))
        named = {"x-remote-user": "orla"}
        csrf = browser.get("/trec/state", headers=named).json()["csrf"]
        sent = {"csrf": csrf, "who": "x"}
        assert browser.post("/trec/who", data=sent, headers=named).status_code == 200
        # A form of another user is rejected even in the same browser.
        assert browser.post("/trec/who", data=sent, headers={"x-remote-user": "rudi"}).status_code == 403

    @pytest.mark.parametrize("name", ["mallory", "a,b", "ada\tx", b"\xff", "x" * 70])
    def test_a_user_who_is_not_in_the_file_has_no_access(
        self, opened: Callable[..., Team], name: str | bytes
    ) -> None:
        team = opened()
        for path in ("/trec/queries", "/trec/assess", "/trec/login"):
            answer = self.ask(team, "192.0.2.7", name, path)
            assert answer.status_code == 403
            assert "Ask the organizer" in answer.text
        assert self.ask(team, "192.0.2.7", name, "/trec/static/style.css").status_code == 200

    def test_with_trusted_role_other_users_have_that_role(self, opened: Callable[..., Team]) -> None:
        team = opened(trusted_role="reader", users=False)
        assert self.ask(team, "192.0.2.7", "mallory").status_code == 200
        assert self.ask(team, "192.0.2.7", "mallory", "/trec/who").status_code == 403
        assert self.ask(team, "192.0.2.7", "a,b").status_code == 403
        assert self.ask(team, "192.0.2.70", "mallory").status_code == 303

    def test_two_user_name_headers_count_as_none(self, opened: Callable[..., Team]) -> None:
        browser = opened().client(client=("192.0.2.7", 1))
        headers = [("x-remote-user", "ada"), ("x-remote-user", "orla")]
        assert browser.get("/trec/queries", headers=headers).status_code == 403

    def test_without_a_user_name_header_people_log_in(self, opened: Callable[..., Team]) -> None:
        team = opened()
        assert self.ask(team, "192.0.2.7", "").status_code == 303
        browser = team.client(client=("192.0.2.7", 1), base_url=PUBLIC)
        csrf = csrf_in(browser.get("/trec/login").text)
        form = {"csrf": csrf, "token": team.tokens["rudi"]}
        assert browser.post("/trec/login", data=form).status_code == 303
        assert browser.get("/trec/queries").status_code == 200
