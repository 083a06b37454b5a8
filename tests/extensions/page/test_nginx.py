"""The page behind a real nginx: below a prefix, with Host kept or rewritten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx2 as httpx
import pytest
from nginx import free_port, is_installed, nginx
from served import serving
from team import csrf_in, users_file

from converters.overrides import read_overrides
from trecexam.extensions.page.front import Front
from trecexam.extensions.page.users import Users

pytestmark = pytest.mark.skipif(not is_installed(), reason="no nginx here: apt-get install nginx")


class Behind(NamedTuple):
    url: str
    inner: str
    tokens: dict[str, str]
    track: Path


@pytest.fixture
def behind_nginx(track: Path, tmp_path: Path) -> Iterator[Callable[..., Behind]]:
    """(**options of `nginx`) -> the page behind one."""
    path, tokens = users_file(tmp_path)
    with ExitStack() as stack:

        def made(**options: object) -> Behind:
            port = free_port()
            front = Front.of(f"http://127.0.0.1:{port}/trec")
            page = stack.enter_context(serving(track, users=Users(path), front=front))
            url = stack.enter_context(nginx(tmp_path / "nginx", port, page.url, **options))  # type: ignore[arg-type]
            return Behind(url, page.url, tokens, track)

        yield made


@pytest.mark.parametrize("preserved", [True, False], ids=["Host preserved", "Host rewritten"])
@pytest.mark.parametrize("stripped", [True, False], ids=["prefix stripped", "prefix left"])
def test_a_user_logs_in_rates_and_logs_out(
    behind_nginx: Callable[..., Behind], preserved: bool, stripped: bool
) -> None:
    place = behind_nginx(preserved=preserved, stripped=stripped)
    origin = place.url.removesuffix("/trec/")
    with httpx.Client(follow_redirects=True, headers={"sec-fetch-site": "same-origin"}) as browser:
        page = browser.get(f"{place.url}query/q1")
        assert str(page.url).startswith(f"{place.url}login?back=")
        back = re.search(r'name="back" value="([^"]*)"', page.text)
        assert back
        form = {"csrf": csrf_in(page.text), "token": place.tokens["orla"], "back": back[1]}
        page = browser.post(f"{place.url}login", data=form, headers={"origin": origin})
        assert str(page.url) == f"{place.url}query/q1"
        assert browser.get(f"{origin}/trec/static/app.js").status_code == 200
        cookie = next(cookie for cookie in browser.cookies.jar if cookie.path == "/trec")
        assert cookie.value
        assert not [cookie for cookie in browser.cookies.jar if cookie.path == "/"]
        form = {"csrf": csrf_in(page.text), "query": "q1", "doc": "q1-d00", "rating": "2", "why": "so",
                "back": "/trec/query/q1"}  # fmt: skip
        assert browser.post(f"{place.url}override", data=form, headers={"origin": origin}).status_code == 200
        for other in ("http://evil.example", "null", place.inner + "0"):
            answer = browser.post(f"{place.url}override", data=form, headers={"origin": other})
            assert answer.status_code == 403
        browser.post(f"{place.url}logout", data={"csrf": form["csrf"]}, headers={"origin": origin})
        assert "/login?back=" in str(browser.get(place.url).url)
        assert browser.get(f"{place.url}queries/").url.host == "127.0.0.1"
    ((_, row),) = read_overrides(place.track / "judgments.tsv", lambda refused: None)
    assert (row.who, row.doc_id, row.rating) == ("orla", "q1-d00", 2)
