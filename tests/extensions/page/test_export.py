"""The page as files: `trecexam serve --export`."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from support import HashGrader, make_small_track, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.page.export import exporting
from trecexam.extensions.page.export.blinding import NeutralNames
from trecexam.extensions.page.export.exporting import export
from trecexam.extensions.page.export.naming import canonical, file_of
from trecexam.extensions.page.export.placing import IN_WORK, MARKER, new_copy

#: Runs whose names reveal the system, and one with characters special in paths and pages.
SYSTEM, ODD = "webis_gpt-4o_top20", "../<b>&a%2F#?"


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track with passage ids that contain a run name, and a rating by a person."""
    root = make_small_track(tmp_path_factory.mktemp("export") / "track", queries=2, docs=4, items=2)
    docs = {f"q{q}": [f"q{q}-d{n:02}" for n in range(4)] for q in (1, 2)}
    own = f"{SYSTEM}/2024-{'x' * 200}/1"
    with (root / "passages.jsonl").open("a") as file:
        file.write(f'{{"docid": "{own}", "text": "Some text of a system."}}\n')
    write_run(root / "runs" / "input-webis.run", {q: [own, *docs[q]] for q in docs}, SYSTEM)
    write_run(root / "runs" / "odd.run", docs, ODD)
    write_run(root / "runs" / "short.run", docs, "42")
    with trecexam.open_track(root, grader=HashGrader()) as opened:
        opened.update()
        opened.override("q1", "q1-d00", 3, item="q1/0", who="Zoe Quux", why="says Zoe Quux")
        opened.override("q1", "q1-d01", 2, item="q1/0", who="Una Vert", why="first")
        opened.override("q1", "q1-d01", 4, item="q1/0", who="Zoe Quux", why="Una Vert is wrong")
        opened.update()
    return root


@pytest.fixture(scope="module")
def copy(track: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "site"
    assert export(track, folder) == sum(path.is_file() for path in folder.rglob("*")) - 1
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_link_in_the_copy_leads_to_a_file_and_needs_no_server(copy: Path) -> None:
    pages = list(copy.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<(form|script|button|input)\b|data-state|csrf", text)
        for href in re.findall(r'href="([^"]*)"', text):
            parts = urlsplit(unescape(href))
            assert not any((parts.scheme, parts.netloc, parts.query))
            target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            assert target.is_file(), (page, href)
            assert copy.resolve() in target.resolve().parents


def test_the_copy_shows_the_same_as_the_page(copy: Path) -> None:
    board = (copy / "index.html").read_text()
    assert SYSTEM in board
    assert "&lt;b&gt;&amp;a%2F#?" in board
    assert "Zoe Quux" in (copy / "query" / "q1" / "passage" / "q1-d00.html").read_text()
    assert (copy / "index.csv").read_text().count("\n") == 7


def test_a_second_export_is_byte_identical_and_replaces_the_first(
    track: Path, copy: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        export(track, tmp_path / "site")
        assert contents(tmp_path / "site") == contents(copy)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_blind_copy_has_no_track_name_no_reasons_and_no_ids_next_to_marks(
    track: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(track, tmp_path / "webis-secret-track"))
    with (root / "runs" / "acme-refused.run").open("w") as file:
        file.write("q1 Q0 q1-d00 1 1.0 acme\nq1 Q0 q1-d00 2 0.5 acme\n")
    reasons = "as q1-d99, of webis-secret-track", "see q1-d98."
    with trecexam.open_track(root, grader=HashGrader()) as opened:
        opened.override("q1", "q1-d02", 2, item="q1/1", who="Una Vert", why=reasons[0])
        opened.override("q1", "q1-d02", 2, who="Una Vert", why=reasons[1])
        opened.update()
    export(root, tmp_path / "blind", blind=True)
    files = contents(tmp_path / "blind")
    assert len(files) > 40
    for name, content in files.items():
        for telling in ("secret-track", "q1-d9", "q1-d0", "acme"):
            assert telling not in name + content.decode(), (telling, name)
    # The full view shows them.
    export(root, tmp_path / "open")
    page = (tmp_path / "open" / "query" / "q1" / "passage" / "q1-d02.html").read_text()
    assert all(f'dir="auto">{reason}<' in page for reason in reasons)
    assert "webis-secret-track</title>" in page


def test_ids_are_found_next_to_marks_and_not_within_other_words() -> None:
    names = NeutralNames({}, {}, {}, lambda doc_id: "P", ["d-1", "D_2", "a(b)#3", "7", "é-4"])
    text = "d-1. (d-1) D_2/d-1: see d-1's 'a(b)#3', not d-12, xd-1, d-1x, D_22 or 7; é-4!"
    assert names.in_text(text) == "P. (P) P/P: see P's 'P', not d-12, xd-1, d-1x, D_22 or 7; P!"
    long = "x-" * 100_000
    assert names.in_text(long) == long


@pytest.mark.parametrize("inside", ["runs", "runs/deep/er", "out/site", ".trecexam/site", "link"])
@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_an_export_into_a_folder_that_a_track_reads_or_writes_is_rejected(
    track: Path, tmp_path: Path, inside: str, whose: str
) -> None:
    root = Path(shutil.copytree(track, tmp_path / "track"))
    (root / "link").symlink_to(root / "runs" / "site")
    before = contents(tmp_path)
    with pytest.raises(TrecexamError, match="give a folder elsewhere"):
        export(root if whose == "its own" else track, root / inside)
    assert contents(tmp_path) == before


def test_an_export_into_an_external_runs_folder_is_rejected(track: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(track, tmp_path / "track"))
    config = root / "trecexam.toml"
    config.write_text(config.read_text().replace("[track]", '[track]\nruns = "../drop"'))
    (root / "runs").rename(tmp_path / "drop")
    with pytest.raises(TrecexamError, match="drop, which holds the track's runs"):
        export(root, tmp_path / "drop" / "site")


def test_a_blind_copy_contains_no_name_of_a_run_person_or_file(track: Path, tmp_path: Path) -> None:
    export(track, tmp_path / "blind", blind=True)
    files = contents(tmp_path / "blind")
    whole = b"\n".join([*files.values(), *(name.encode() for name in files)]).decode()
    for name in (
        SYSTEM,
        "webis",
        "gpt-4o",
        "Zoe",
        "Quux",
        "Vert",
        "odd.run",
        "input-webis",
        "&lt;b&gt;",
        "q1-d0",
    ):
        assert name not in whole, name
    assert not re.search(r"run\d|<title>42", whole)
    board = files["index.html"].decode()
    assert len(set(re.findall(r"run \d", board))) == len(list((track / "runs").iterdir()))
    # All links work here as well.
    for name, content in files.items():
        for href in re.findall(r'href="([^"#]+)', content.decode() if name.endswith(".html") else ""):
            assert (tmp_path / "blind" / name).parent.joinpath(unquote(unescape(href))).is_file()
    # The same names on a second export.
    export(track, tmp_path / "again", blind=True)
    assert contents(tmp_path / "again") == files


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: folder.write_text("mine"), "is not a folder"),
        (
            lambda folder: (folder.mkdir(), (folder / MARKER).write_text('"mine"')),
            "do not belong to a copy of a page",
        ),
        (
            lambda folder: (folder.mkdir(), (folder / "mine.txt").write_text("mine")),
            "do not belong to a copy of a page",
        ),
    ],
)
def test_a_folder_that_is_not_a_copy_is_never_replaced(
    track: Path, tmp_path: Path, make: Callable[[Path], Any], reason: str
) -> None:
    make(tmp_path / "site")
    with pytest.raises(TrecexamError, match=reason):
        export(track, tmp_path / "site")
    assert "mine" in b"".join([*contents(tmp_path).values()]).decode()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda site: (site / ".htaccess").write_text("mine"), ".htaccess"),
        (lambda site: (site / "CNAME").write_text("mine"), "CNAME"),
        (lambda site: (site / "query" / "notes.txt").write_text("mine"), "query/notes.txt"),
        (lambda site: ((site / ".git").mkdir(), (site / ".git" / "HEAD").touch()), ".git/"),
        (lambda site: (site / "empty").mkdir(), "empty/"),
        (lambda site: (site / "link").symlink_to("/nowhere"), "link"),
        (lambda site: (site / "folder").symlink_to(site.parent), "folder"),
        (lambda site: os.mkfifo(site / "pipe"), "pipe"),
        (lambda site: (site / "index.html").write_text("mine"), "index.html"),
        (lambda site: ((site / "index.csv").unlink(), os.mkfifo(site / "index.csv")), "index.csv"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_added_to_a_copy_by_people_are_listed_and_never_removed(
    track: Path, copy: Path, tmp_path: Path, make: Callable[[Path], Any], named: str
) -> None:
    site = tmp_path / "site"
    shutil.copytree(copy, site)
    make(site)
    before = sorted((path, path.lstat().st_ino) for path in site.rglob("*"))
    with pytest.raises(TrecexamError) as refused:
        export(track, site)
    assert f"did not write, or that changed since: {named}. Nothing was removed." in str(refused.value)
    assert sorted((path, path.lstat().st_ino) for path in site.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_files_added_to_the_folder_during_an_export_stay(track: Path, copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy, tmp_path / "site")
    with pytest.raises(TrecexamError, match="CNAME"), new_copy(tmp_path / "site"):
        (tmp_path / "site" / "CNAME").write_text("mine")
    assert (tmp_path / "site" / "CNAME").read_text() == "mine"
    assert (tmp_path / "site" / "index.html").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_old_pages_are_removed_and_a_forged_file_list_removes_nothing_elsewhere(
    track: Path, copy: Path, tmp_path: Path
) -> None:
    site, mine = tmp_path / "site", tmp_path / "mine.txt"
    shutil.copytree(copy, site)
    mine.write_text("mine")
    old = site / "old" / "page.html"
    old.parent.mkdir()
    old.write_text("old")
    marker = json.loads((site / MARKER).read_text())
    digests = {name: sha256(path.read_bytes()).hexdigest() for name, path in {
        "old/page.html": old, "../mine.txt": mine, str(mine): mine}.items()}  # fmt: skip
    (site / MARKER).write_text(json.dumps({**marker, "files": {**marker["files"], **digests}}))
    export(track, site)
    assert contents(site) == contents(copy)
    assert not old.parent.exists()
    assert mine.read_text() == "mine"


def test_an_interrupted_export_keeps_the_earlier_copy(
    track: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(track, tmp_path / "site")
    ask, asked = exporting.ask, []

    def full(app: Any, address: str, view: Any) -> Any:
        asked.append(address)
        if len(asked) > 5:
            raise OSError(28, "No space left on device")
        return ask(app, address, view)

    monkeypatch.setattr(exporting, "ask", full)
    with pytest.raises(TrecexamError, match="cannot be written: No space left"):
        export(track, tmp_path / "site")
    assert contents(tmp_path / "site") == contents(copy)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_leftovers_of_a_killed_export_are_cleaned_up_by_the_next(
    track: Path, copy: Path, tmp_path: Path
) -> None:
    moved, unfinished = tmp_path / ".site-abcdefg1-old", tmp_path / ".site-abcdefg2"
    others = [tmp_path / name for name in (".site-of-others", ".site-abcdefg3", ".sites-abcdefg4")]
    export(track, moved)
    for folder in (unfinished, *others[::2]):
        folder.mkdir()
        (folder / IN_WORK).touch()
    others[1].mkdir()
    (others[1] / "mine").touch()
    with suppress(RuntimeError), new_copy(tmp_path / "site"):
        assert contents(tmp_path / "site") == contents(copy)
        assert not moved.exists()
        assert not unfinished.exists()
        raise RuntimeError("killed")
    assert contents(tmp_path / "site") == contents(copy)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["site", *(o.name for o in others)])


def test_an_export_does_not_touch_files_of_a_concurrent_export(
    track: Path, copy: Path, tmp_path: Path
) -> None:
    with new_copy(tmp_path / "site") as made:
        (made / "page.html").write_text("unfinished")
        export(track, tmp_path / "site")
        assert (made / "page.html").is_file()
        (made / MARKER).write_bytes((tmp_path / "site" / MARKER).read_bytes())
    assert sorted(contents(tmp_path / "site")) == sorted(["page.html", MARKER])
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_the_command_writes_the_copy_and_starts_no_server(
    track: Path, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "site"
    assert run(["serve", str(track), "--export", str(folder)]) == 0
    assert f"{len(contents(copy)) - 1} files; begin with index.html" in capsys.readouterr().err
    assert (folder / MARKER).is_file()
    assert run(["serve", str(track), "--blind"]) == 2
    assert "give --export DIR too" in capsys.readouterr().err
    assert run(["serve", str(tmp_path / "none"), "--export", str(folder)]) != 0
    (tmp_path / "file").write_text("mine")
    assert run(["serve", str(track), "--export", str(tmp_path / "file" / "site")]) != 0
    assert "Traceback" not in capsys.readouterr().err
    assert (folder / "index.html").is_file()


def test_urls_that_only_sort_filter_or_modify_are_not_in_the_copy() -> None:
    assert canonical("/?sort=-m0") is None
    assert canonical("/judge") is None
    assert canonical("https://elsewhere.org/") is None
    assert canonical("/queries?page=1") == "/queries"
    assert canonical("/queries?page=2#table") == "/queries?page=2"
    assert file_of("/queries?page=2") == "queries~page~2.html"
    assert file_of("/run/a~2Fb/query/1?format=csv") == "run/a~2Fb/query/1.csv"
    assert len(file_of("/run/" + "x" * 900).split("/")[1]) < 255
