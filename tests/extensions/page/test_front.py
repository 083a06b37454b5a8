"""The page behind a proxy: prefixes, hosts and origins."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from served import csrf_of
from starlette.testclient import TestClient
from team import users_file

from trecexam.cli.main import run
from trecexam.extensions.page.front import Front

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
        ((), "", "", False),
    ],
)
def test_origin_prefix_and_security_follow_from_the_options(
    given: tuple[str, ...], origin: str, prefix: str, secure: bool
) -> None:
    front = Front.of(*given)
    assert (front.origin, front.prefix, front.is_secure) == (origin, prefix, secure)


@pytest.mark.parametrize(
    "options",
    [
        ["--public-url", "nuggets.uni.edu"],
        ["--public-url", "ftp://nuggets.uni.edu"],
        ["--public-url", "https://a@nuggets.uni.edu"],
        ["--public-url", "https://nuggets.uni.edu/?a=b"],
        ["--public-url", "https://nuggets.uni.edu/run"],
        ["--public-url", "https://nuggets.uni.edu/../a"],
        ["--users", "USERS", "--token", "1" * 22],
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
    paths = "/ /run/run0 /result/queries /query/q1 /query/q1/passage/q1-d00 /result/disagreements"
    for path in f"{paths} /section/holes /result/rejected /bank/q1 /who /nowhere".split():
        page = client.get(inner + path, headers=headers).text
        links = re.findall(r'(?:href|src|action|data-state|content)="(?:0; url=)?(/[^"]*)"', page)
        assert links
        assert not [link for link in links if not link.startswith("/trec/")], path
    assert 'aria-current="page"' in client.get(f"{inner}/result/queries", headers=headers).text
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
    slash = client.get(f"{inner}/result/queries/", headers=headers)
    assert slash.headers["location"] == f"{PUBLIC}/trec/result/queries"


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


def test_the_token_url_redirects_below_the_prefix(track: Path, open_client: Opened) -> None:
    client = open_client(track, front=Front.of(f"{PUBLIC}/trec"), token="s3cret-token")
    asks = client.get("/trec/result/queries")
    assert asks.status_code == 401
    assert 'action="/trec/"' in asks.text
    welcome = client.get("/result/queries?token=s3cret-token&sort=mean")
    assert 'url=/trec/result/queries?sort=mean"' in welcome.text
    cookie = welcome.headers["set-cookie"]
    assert "Path=/trec;" in cookie
    assert "Secure" in cookie
