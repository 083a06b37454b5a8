"""The users file, and the commands that change it."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.page.running import unknown_assessors
from trecexam.extensions.page.users import (
    Users,
    add_user,
    checked_name,
    digest,
    name_key,
    read_users,
    remove_user,
)
from trecexam.track import TrackFolder

#: In the form of an earlier version of the file.
HASH = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$LS6NR/AMNYk"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.toml"


def test_a_token_is_printed_once_and_only_its_digest_is_stored(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve-user", "add", str(path), "ada", "--role", "assessor"]) == 0
    said = capsys.readouterr()
    token = said.out.strip()
    assert len(token) == 22
    assert f"/login?token={token};" in said.err
    assert token not in path.read_text()
    entry = read_users(path)["ada"]
    assert (entry.role, entry.token_sha256) == ("assessor", digest(token))


def test_a_user_authenticated_by_a_proxy_needs_no_token(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve-user", "add", str(path), "ada", "--role", "reader", "--proxy-alone"]) == 0
    assert capsys.readouterr() == ("", "")
    assert read_users(path)["ada"].token_sha256 == ""
    for token in ("", "-" * 64, digest("")):
        assert Users(path).with_token(token) is None


def test_a_password_in_the_file_is_rejected_and_not_shown(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_user(path, "ada", "assessor")
    path.write_text(path.read_text() + f'password = "{HASH}"\n')
    assert run(["serve-user", "list", str(path)]) == 2
    said = capsys.readouterr().err
    assert "user 1: password: no such setting" in said
    assert HASH not in said


def test_the_file_is_private_to_its_owner_and_a_changed_mode_is_kept(path: Path) -> None:
    add_user(path, "ada", "assessor", token=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    add_user(path, "bob", "reader", token=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_other_content_of_the_file_is_kept(path: Path) -> None:
    path.write_text(
        f'# The people of 2026.\n\n[[user]]\nname = "ada" # our first\nrole = "assessor"\n'
        f'token_sha256 = "{"0" * 64}"\n\n'
        '# Helps in May.\n[[user]]\nrole = "reader"\nname = "bob"'
    )
    add_user(path, "eve", "organizer")
    text = path.read_text()
    assert "# The people of 2026." in text
    assert "# our first" in text
    assert list(read_users(path)) == ["ada", "bob", "eve"]
    remove_user(path, "ADA")
    assert list(read_users(path)) == ["bob", "eve"]
    assert path.read_text().startswith("# The people of 2026.\n")
    assert path.read_text().endswith('[[user]]\nname = "eve"\nrole = "organizer"\n')


def test_an_existing_user_is_replaced_only_with_the_replace_option(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_user(path, "ada", "assessor", token=True)
    before = path.read_bytes()
    assert run(["serve-user", "add", str(path), "ADA", "--role", "reader"]) == 2
    assert "--replace" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert run(["serve-user", "add", str(path), "Ada", "--role", "reader", "--replace"]) == 0
    (entry,) = read_users(path).values()
    assert (entry.name, entry.role) == ("Ada", "reader")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            "a b ",
            "a  b",
            "a\tb",
            "a\nb",
            'a"b',
            "a,b",
            "a/b",
            "x" * 65,
            "a\u202eb",
            "\\",
            "a=b",
            "[x]",
        ),
        *("\u0301a", "1\u0301", "a \u0301b", "a" + "\u0301" * 6, "a\u200db", "a\ufe0f", "a\u034fb"),
    ],
)
def test_an_invalid_name_is_a_one_line_error(
    path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["serve-user", "add", str(path), "--role", "reader", "--", name]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not path.exists()


def test_users_are_listed_without_hashes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_user(path, "ada", "assessor", token=True)
    add_user(path, "bob", "reader")
    assert run(["serve-user", "list", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["users"]
    assert [tuple(row.values()) for row in rows] == [
        ("ada", "assessor", "token"),
        ("bob", "reader", "proxy alone"),
    ]


def test_removing_an_unknown_user_is_an_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_user(path, "ada", "assessor", token=True)
    assert run(["serve-user", "remove", str(path), "bob"]) == 2
    assert run(["serve-user", "remove", str(path), "ada"]) == 0
    assert read_users(path) == {}
    assert run(["serve-user", "list", str(path.with_name("none.toml"))]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("user = 1", "[[user]]"),
        ('[users.ada]\nrole = "reader"', "[[user]]"),
        ("[[user]]\n[", "TOML"),
        ('[[user]]\nname = "ada"', "user 1: role"),
        ('[[user]]\nname = "ada"\nrole = "boss"', "user 1: role"),
        ('[[user]]\nname = "a,b"\nrole = "reader"', "user 1: name"),
        ('[[user]]\nname = "ada"\nrole = "reader"\ntoken_sha256 = "plain-secret"', "not a sha256"),
        ('[[user]]\nname = "ada"\nrole = "reader"\nshoe = 4', "user 1: shoe"),
        (
            "\n".join(
                f'[[user]]\nname = "{name}"\nrole = "reader"\ntoken_sha256 = "{"0" * 64}"' for name in "ab"
            ),
            "user 2: token_sha256: another user has the same",
        ),
        (
            '[[user]]\nname = "ada"\nrole = "reader"\n[[user]]\nname = "ADA"\nrole = "reader"',
            "user 2: a second",
        ),
    ],
)
def test_an_invalid_users_file_is_a_one_line_error_that_shows_no_secret(
    path: Path, text: str, reason: str
) -> None:
    path.write_text(text)
    with pytest.raises(TrecexamError) as refused:
        Users(path)
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(TrecexamError):
        add_user(path, "new", "reader", token=True)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["user = " + "[" * 50_000, "user.a" + ".a" * 5_000 + " = 1"])
def test_a_file_nested_too_deeply_is_a_one_line_error(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(TrecexamError, match=r"users\.toml: .*(too deeply|\[\[user\]\])"):
        Users(path)
    path.write_text(f"[[user]]\nname{'.a' * 5_000} = 1")
    with pytest.raises(TrecexamError, match=r"users\.toml: user 1: name"):
        Users(path)


def test_an_invalid_or_too_large_file_is_rejected_at_once(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(TrecexamError, match="is a pipe or a device"):
        Users(path)
    path.unlink()
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(TrecexamError, match="larger than 16 MiB"):
        Users(path)


def test_a_user_replaced_within_the_same_size_and_time_is_logged_out(path: Path) -> None:
    add_user(path, "ada", "reader", token=True)
    users, before = Users(path), path.stat()
    assert users.get("ada") is not None
    path.write_text(path.read_text().replace('"ada"', '"eve"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )
    assert users.get("ada") is None
    assert users.get("eve") is not None


def test_nobody_has_access_while_the_file_is_nested_too_deeply(path: Path) -> None:
    add_user(path, "ada", "reader", token=True)
    said: list[str] = []
    text, users = path.read_text(), Users(path, said.append)
    path.write_text(f"{text}x = {'[' * 50_000}")
    assert users.get("ada") is None
    assert "nobody can log in" in said[0]
    path.write_text(text)
    assert users.get("ada") is not None


def test_a_file_that_cannot_be_edited_line_by_line_is_left_to_people(path: Path) -> None:
    text = 'user = [{name = "ada", role = "reader"}]\n'
    path.write_text(text)
    with pytest.raises(TrecexamError, match="by hand"):
        add_user(path, "bob", "reader")
    assert path.read_text() == text


def test_nobody_has_access_while_the_served_file_is_broken(path: Path) -> None:
    add_user(path, "ada", "assessor")
    said: list[str] = []
    users = Users(path, said.append)
    text = path.read_text()
    path.write_text("[[user")
    assert users.get("ada") is None
    assert users.get("ada") is None
    assert users.trouble
    path.write_text(text)
    assert users.get("ada")
    assert not users.trouble
    path.unlink()
    assert users.get("ada") is None
    assert len(said) == 2
    add_user(path, "bob", "reader")
    assert users.get("ada") is None
    assert users.get("BOB")


def test_concurrently_added_users_are_all_stored(path: Path) -> None:
    threads = [
        threading.Thread(target=add_user, args=(path, f"u{n}", "reader"), kwargs={"token": True})
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(read_users(path)) == {f"u{n}" for n in range(12)}


def test_a_symlink_stays_a_symlink(path: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path.symlink_to(tmp_path / "real" / "people.toml")
    add_user(path, "ada", "assessor")
    add_user(path, "bob", "assessor")
    assert path.is_symlink()
    assert set(read_users(tmp_path / "real" / "people.toml")) == {"ada", "bob"}
    assert not list(tmp_path.glob(".*.tmp"))


#: Except for the few letters whose composed form is two characters, a letter and a mark.
NAMES = st.from_regex(r"[\w.@+-]{1,8}( [\w.@+-]{1,8})?", fullmatch=True).filter(
    lambda name: re.fullmatch(r"[\w.@+ -]+", unicodedata.normalize("NFC", name))
)


@example(["0A", "0\U0001d400"])
@given(st.lists(NAMES, max_size=5))
def test_names_are_read_back_as_they_were_added(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    path = tmp_path_factory.mktemp("users") / "users.toml"
    added = {}
    for name in names:
        try:
            add_user(path, name, "reader")
            added[checked_name(name)] = "reader"
        except TrecexamError:
            assert name_key(checked_name(name)) in read_users(path)
    assert {entry.name: entry.role for entry in read_users(path).values()} == added if added else True
    for name in added:
        remove_user(path, name)
    assert not added or read_users(path) == {}
    assert {file.name for file in path.parent.iterdir()} <= {".users.toml.lock", "users.toml"}


@pytest.mark.parametrize(
    "name", ["प्रिया", "தமிழ்", "ວຽງ", "J\u030c", "x\u0323\u0302 y", "Nguye\u0302\u0303n"], ids=ascii
)
def test_a_name_may_have_accented_letters_and_is_stored_composed(path: Path, name: str) -> None:
    add_user(path, name, "assessor", token=True)
    (entry,) = read_users(path).values()
    assert entry.name == unicodedata.normalize("NFC", name)
    remove_user(path, unicodedata.normalize("NFD", name))
    assert read_users(path) == {}


def test_names_that_look_the_same_are_one_name(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_user(path, "ada", "assessor")
    for name in ("\uff41da", "AD\uff21"):
        assert run(["serve-user", "add", str(path), name, "--role", "organizer"]) == 2
        assert "is there already" in capsys.readouterr().err


def test_a_pipe_is_not_a_users_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(path)
    assert run(["serve-user", "list", str(path)]) == 2
    assert "pipe" in capsys.readouterr().err


def test_a_plan_with_assessors_who_cannot_log_in_is_reported(small_track: Path, path: Path) -> None:
    folder = TrackFolder.open(small_track)
    add_user(path, "ada", "assessor")
    add_user(path, "rudi", "reader")
    users = Users(path)
    assert not unknown_assessors(folder, users)
    plan = small_track / "judging.tsv"
    plan.write_text("assessor\tquery_id\tdoc_id\ttask\nada\tq0\td\town\n")
    assert not unknown_assessors(folder, users)
    with plan.open("a") as file:
        file.writelines(f"{name}\tq0\td\town\n" for name in ("Ada", "bob", "rudi"))
    assert unknown_assessors(folder, users).endswith(": 'Ada' (there is 'ada'), 'bob', 'rudi'")
    plan.write_text("x")
    assert "judging.tsv:1" in unknown_assessors(folder, users)
