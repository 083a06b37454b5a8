"""The users of a page: their file, the login links that `serve --users` prints, and the stored hashes."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest
from support import ROOT, until
from team import csrf_in

from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.page.users import Users, add_tokens, digest, hashes_file, read_users

TEXT = '# The people of 2026.\nada = "assessor" # our first\n"orla@uni.edu" = "organizer"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.toml"


@contextmanager
def served(track: Path, users: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`trecexam serve --users`: its address, and the process, whose stderr has the links."""
    command = [sys.executable, "-m", "trecexam", "serve", track, "--port", "0", "--users", users]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as child:
        try:
            assert child.stderr is not None
            match = re.search(r"http://\S+/", child.stderr.readline())
            assert match
            yield match[0], child
        finally:
            child.kill()


def link_in(child: subprocess.Popen[str]) -> tuple[str, str]:
    """The next login link of stderr: whose it is, and the address."""
    assert child.stderr is not None
    line = child.stderr.readline()
    match = re.fullmatch(r"(\S+) \(\w+\) logs in at (http://\S+/login\?token=[\w-]{22})\n", line)
    assert match, line
    return match[1], match[2]


@contextmanager
def opened(link: str) -> Iterator[httpx.Client]:
    """A browser after opening a login link and pressing *Log in*."""
    with httpx.Client(timeout=60) as browser:
        page, token = browser.get(link).text, link.partition("token=")[2]
        assert f'value="{token}"' in page
        browser.post(link.partition("?")[0], data={"csrf": csrf_in(page), "token": token})
        yield browser


def may_enter(browser: httpx.Client, url: str) -> bool:
    """Whether the browser is logged in."""
    return browser.get(f"{url}login").status_code == 303


def test_each_new_name_gets_a_link_once_and_only_its_hash_is_stored(track: Path, path: Path) -> None:
    path.write_text(TEXT)
    with served(track, path) as (url, child):
        links = dict(link_in(child) for _ in range(2))
        assert list(links) == ["ada", "orla@uni.edu"]
        for link in links.values():
            with opened(link) as browser:
                assert may_enter(browser, url)
    hashes = hashes_file(path)
    assert path.read_text() == TEXT
    assert stat.S_IMODE(hashes.stat().st_mode) == 0o600
    stored = hashes.read_text()
    for name, link in links.items():
        token = link.partition("token=")[2]
        assert token not in stored
        assert f"{name}\t{digest(token)}\n" in stored
    # Another start prints no link of theirs, and one of a new name.
    path.write_text(TEXT + 'rudi = "reader"\n')
    with served(track, path) as (url, child):
        assert link_in(child)[0] == "rudi"
        with opened(f"{url}login?{links['ada'].partition('?')[2]}") as browser:
            assert may_enter(browser, url)
    assert hashes.read_text().startswith(stored)


def test_a_running_page_makes_links_for_new_names_and_shuts_out_removed_ones(track: Path, path: Path) -> None:
    path.write_text('ada = "assessor"\n')
    with served(track, path) as (url, child):
        _, first = link_in(child)
        with opened(first) as ada:
            path.write_text('ada = "assessor"\nrudi = "reader"\n')
            name, link = link_in(child)
            assert name == "rudi"
            with opened(link) as rudi:
                assert may_enter(rudi, url)
                assert may_enter(ada, url)
                path.write_text('ada = "assessor"\n')
                assert not may_enter(rudi, url)
            # Without her hash she gets another link, and the old one ends.
            hashes = hashes_file(path)
            hashes.write_text("".join(row for row in hashes.read_text().splitlines(True) if "ada" not in row))
            name, second = link_in(child)
            assert (name, second == first) == ("ada", False)
            assert not may_enter(ada, url)
        with opened(first) as old, opened(second) as new:
            assert (may_enter(old, url), may_enter(new, url)) == (False, True)


def test_a_kill_leaves_whole_hashes_and_no_lock(path: Path) -> None:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from trecexam.extensions.page.users import add_tokens\n"
        f"for n in range(100_000): add_tokens(Path({str(path)!r}), [f'u{{n}}'])\n"
    )
    path.write_text("")
    hashes = hashes_file(path)
    for wanted in (3, 40, 80):
        with subprocess.Popen([sys.executable, "-c", code]) as child:
            until(lambda: hashes.exists() and len(hashes.read_text().splitlines()) > wanted)  # noqa: B023
            child.kill()
        lines = hashes.read_text().splitlines()
        assert all(re.fullmatch(r"u\d+\t[0-9a-f]{64}", line) for line in lines[1:])
    assert add_tokens(path, ["u0", "new"]).keys() == {"new"}


def test_of_concurrent_servers_one_makes_the_link_of_a_name(path: Path) -> None:
    names, made = [f"u{n}" for n in range(20)], list[str]()
    path.write_text("".join(f'{name} = "reader"\n' for name in names))
    threads = [threading.Thread(target=lambda: made.extend(add_tokens(path, names))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == sorted(names)
    assert all(entry.token_sha256 for entry in read_users(path).values())


def test_a_name_without_a_token_cannot_log_in(path: Path) -> None:
    path.write_text('ada = "reader"\n')
    for token in ("", "-" * 64, digest("")):
        assert Users(path).with_token(token) is None


NAMES_THAT_CANNOT_BE = (
    *("", " ", "a b ", "a  b", "a\tb", "a\nb", 'a"b', "a,b", "a/b", "x" * 65, "a\u202eb", "\\", "a=b", "[x]"),
    "a\u200db",
)


def test_an_invalid_name_is_a_one_line_error(path: Path) -> None:
    for name in NAMES_THAT_CANNOT_BE:
        path.write_text(f'{json.dumps(name)} = "reader"\n')
        with pytest.raises(TrecexamError, match=r"^\S*users\.toml: .* cannot be a user's name") as refused:
            read_users(path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ada", "TOML"),
        ("ada@uni.edu = 'reader'", "TOML"),
        ("ada = 1", "ada: give a role"),
        ('ada.lovelace = "reader"', "ada: give a role"),
        ('ada = "boss-secret"', "assessor, organizer, reader"),
        ('[ada]\nrole = "reader"\ntoken = "secret"', "ada: give a role"),
        ('[[user]]\nname = "ada"', "user: give a role"),
        ('ada = "reader"\nADA = "reader"', "a second 'ADA'"),
        ('ada = "reader"\n"\uff41da" = "reader"', "a second"),
        ("user = " + "[" * 50_000, "too deeply"),
    ],
    ids=range(10),
)
def test_an_invalid_users_file_is_a_one_line_error_that_shows_no_secret(
    track: Path, path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    path.write_text(text)
    assert run(["serve", str(track), "--port", "0", "--users", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert reason in said
    assert "secret" not in said
    assert (path.read_text(), hashes_file(path).exists()) == (text, False)


def test_an_invalid_line_of_hashes_is_named_and_nothing_is_written(path: Path) -> None:
    path.write_text('ada = "reader"\n')
    hashes_file(path).write_text("# mine\n\nada\tsecret\n")
    with pytest.raises(TrecexamError, match=r"users\.toml\.tokens:3: .* delete the line") as refused:
        Users(path)
    assert "secret" not in str(refused.value)
    with pytest.raises(TrecexamError):
        add_tokens(path, ["bob"])
    hashes_file(path).write_text("# mine")
    add_tokens(path, ["ada"])
    assert hashes_file(path).read_text().startswith("# mine\nada\t")


@pytest.mark.parametrize("broken", ["[[user", f"x = {'[' * 50_000}"], ids=["TOML", "too deep"])
def test_nobody_has_access_while_the_served_file_is_broken(path: Path, broken: str) -> None:
    path.write_text('ada = "assessor"\n')
    said: list[str] = []
    users = Users(path, said.append)
    path.write_text(broken)
    assert users.get("ada") is None
    assert users.get("ada") is None
    assert users.trouble
    path.write_text('ada = "assessor"\n')
    assert users.get("ada")
    assert not users.trouble
    path.unlink()
    assert users.get("ada") is None
    assert [line for line in said if "nobody can log in" in line] == said
    assert len(said) == 2
    path.write_text('bob = "reader"\n')
    assert users.get("ada") is None
    assert users.get("BOB")


@pytest.mark.parametrize(
    "name", ["प्रिया", "தமிழ்", "ວຽງ", "J\u030c", "x\u0323\u0302 y", "Nguye\u0302\u0303n"], ids=ascii
)
def test_a_name_may_have_accented_letters_and_is_stored_composed(path: Path, name: str) -> None:
    path.write_text(f'"{name}" = "assessor"\n', encoding="utf-8")
    (entry,) = read_users(path).values()
    assert entry.name == unicodedata.normalize("NFC", name)
    assert Users(path).get(unicodedata.normalize("NFD", name)) == entry


def test_a_pipe_or_too_large_file_is_rejected_at_once(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(TrecexamError, match="is a pipe or a device"):
        Users(path)
    path.unlink()
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(TrecexamError, match="larger than 16 MiB"):
        Users(path)
