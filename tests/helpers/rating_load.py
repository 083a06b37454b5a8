"""Many concurrent raters on a page, each with a separate connection, and the results."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from support import ROOT

from converters.overrides import read_overrides
from trecexam.extensions.campaign.plan import PlannedTask, write_plan
from trecexam.extensions.page.users import Role, add_tokens
from trecexam.folder import TrackFolder


@dataclass
class Load:
    """The outcome.

    Attributes:
        taken: the reasons of the accepted ratings, each unique.
        rating, next_page: seconds from the form to the response, and of the page after it.
        failed: connections that ended.
    """

    taken: list[str] = field(default_factory=list)
    rating: list[float] = field(default_factory=list)
    next_page: list[float] = field(default_factory=list)
    failed: int = 0


def team_of(folder: Path, people: int, role: Role = "organizer") -> tuple[Path, dict[str, str]]:
    """A users file, and the token of each user."""
    path, names = folder / "users.toml", [f"p{n}" for n in range(people)]
    path.write_text("".join(f'{name} = "{role}"\n' for name in names))
    return path, add_tokens(path, names)


@contextmanager
def served_apart(track: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`trecexam serve` in a separate process: the process and its address."""
    command = [sys.executable, "-m", "trecexam", "serve", str(track), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stderr is not None
        try:
            line = child.stderr.readline()
            match = re.search(r"http://\S+/", line)
            assert match, line
            yield child, match[0]
        finally:
            child.kill()


#: What a person does in a turn: (browser, random numbers, reason, outcome).
Turn = Callable[["_Browser", random.Random, str, Load], Awaitable[None]]


async def rate(
    url: str,
    tokens: Mapping[str, str],
    cells: list[dict[str, str]],
    seconds: float,
    pause: float,
    mark: str = "",
) -> Load:
    """Everybody logs in; then all rate for so long.

    Args:
        cells: fields `query`, `doc` and `item` of what is rated.
        pause: seconds between two ratings of a person, on average.
        mark: stands in each reason, so that those of two rounds differ.
    """

    async def turn(browser: _Browser, chance: random.Random, why: str, load: Load) -> None:
        form = {**chance.choice(cells), "rating": str(chance.randrange(4)), "why": why, "csrf": browser.csrf}
        headers, _ = await browser.timed(load.rating, "POST", "/override", form)
        load.taken.append(why)
        await browser.timed(load.next_page, "GET", headers["location"])

    return await _all_together(url, tokens, lambda browser: turn, seconds, pause, mark)


async def assess(
    url: str, tokens: Mapping[str, str], seconds: float, pause: float, steps: int, mark: str = ""
) -> Load:
    """As `rate`, on the page of assessors: each goes through her tasks, and then through them again.

    Args:
        steps: of the track's scale. The reasons in `Load.taken` are notes.
    """

    def of(browser: _Browser) -> Turn:
        known = [browser.home]

        async def turn(browser: _Browser, chance: random.Random, note: str, load: Load) -> None:
            _, text = await browser.timed(load.next_page, "GET", browser.home)
            form = text.partition('id="rate-form">')[2].partition("</form>")[0]
            hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
            if not hidden:
                # All is judged: start again from any of them.
                browser.home = chance.choice(known)
                return
            known.append(browser.home)
            fields = {**hidden, "item-1": str(chance.randrange(steps)), "note": note}
            headers, _ = await browser.timed(load.rating, "POST", "/assess", fields)
            load.taken.append(note)
            browser.home = headers["location"]

        return turn

    return await _all_together(url, tokens, of, seconds, pause, mark, home="/assess")


async def _all_together(
    url: str,
    tokens: Mapping[str, str],
    turn_of: Callable[[_Browser], Turn],
    seconds: float,
    pause: float,
    mark: str,
    home: str = "/",
) -> Load:
    load, browsers = Load(), [_Browser(url) for _ in tokens]
    await asyncio.gather(*(b.log_in(token, home) for b, token in zip(browsers, tokens.values(), strict=True)))
    end = time.monotonic() + seconds

    async def person(browser: _Browser, name: str) -> None:
        chance, turn, number = random.Random(name), turn_of(browser), 0
        await asyncio.sleep(chance.uniform(0, pause))
        try:
            while time.monotonic() < end:
                number += 1
                await turn(browser, chance, f"{name}-{number}", load)
                await asyncio.sleep(chance.uniform(0.5, 1.5) * pause)
        except (OSError, EOFError):
            load.failed += 1
        await browser.close()

    await asyncio.gather(*(person(b, name + mark) for b, name in zip(browsers, tokens, strict=True)))
    return load


def plan_for_all(track: Path, people: Collection[str], cells: list[dict[str, str]], steps: int) -> None:
    """Gives the track a scale, and a plan in which every assessor judges all of these passages."""
    config = track / "trecexam.toml"
    scale = ", ".join(f'"step {step}"' for step in range(steps))
    config.write_text(f"{config.read_text()}\n[judging]\nscale = [{scale}]\n")
    pairs = dict.fromkeys((cell["query"], cell["doc"]) for cell in cells)
    plan = [PlannedTask(person, *pair) for person in people for pair in pairs]
    write_plan(TrackFolder.open(track), plan)


def cells_of(queries: int) -> list[dict[str, str]]:
    """Passages and cells of `graded_track`, as fields of a form."""
    return [
        {"query": f"q{query}", "doc": f"q{query}-d{doc:02}", "item": item}
        for query in range(1, queries + 1)
        for doc in range(5)
        for item in ("", f"q{query}/1")
    ]


def lost(track: Path, load: Load) -> list[str]:
    """The accepted ratings that are not exactly once in people's files; each line must be readable."""
    refused: list[object] = []
    files = [path for name in ("overrides.tsv", "judgments.tsv") if (path := track / name).exists()]
    there = [row.note or row.why for path in files for _, row in read_overrides(path, refused.append)]
    assert not refused, refused
    assert len(there) == len(set(there))
    return sorted(set(load.taken) - set(there))


def is_sound(track: Path) -> bool:
    """Whether SQLite finds no error in the store of grades."""
    with closing(sqlite3.connect(track / ".trecexam" / "grades.sqlite")) as store:
        return store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


class _Browser:
    """A minimal client: one that works hard would measure itself."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._address = place.hostname, place.port
        self._host = place.netloc
        self._cookie = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.csrf = ""
        #: The page after the login.
        self.home = ""

    async def log_in(self, token: str, home: str = "/") -> None:
        await self._read_csrf("/login")
        status, _, text = await self.ask("POST", "/login", {"csrf": self.csrf, "token": token})
        assert status == 303, text
        if home == "/assess":
            # While the track is read, it redirects to itself.
            while home == "/assess":
                home = (await self.ask("GET", "/assess"))[1].get("location", home)
                await asyncio.sleep(0.1)
        else:
            while '"loading":true' in (await self.ask("GET", "/state"))[2]:
                await asyncio.sleep(0.1)
        self.home = home
        await self._read_csrf(home)

    async def _read_csrf(self, path: str) -> None:
        match = re.search(r'name="csrf" value="([0-9a-f]+)"', (await self.ask("GET", path))[2])
        assert match
        self.csrf = match[1]

    async def ask(
        self, method: str, path: str, form: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers, text."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        body = urlencode(form or {})
        kind = "Content-Type: application/x-www-form-urlencoded\r\n" if form else ""
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nCookie: {self._cookie}\r\n{kind}"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        # Of the page's cookies, the login's has the port in its name.
        self._cookie = next(iter(re.findall(r"(?i)set-cookie: (trecexam-\d+=[^;]*)", head)), self._cookie)
        text = (await reader.readexactly(int(headers["content-length"]))).decode()
        return int(first.split()[1]), headers, text

    async def timed(
        self, taken: list[float], method: str, path: str, form: Mapping[str, str] | None = None
    ) -> tuple[dict[str, str], str]:
        """Headers and text of a request that must succeed; its seconds are added to `taken`."""
        began = time.monotonic()
        status, headers, text = await self.ask(method, path, form)
        taken.append(time.monotonic() - began)
        assert status == (303 if form else 200), status
        return headers, text

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            with suppress(OSError):
                await self._streams[1].wait_closed()
