"""A lost store while out/ exists: paid cells are not paid for again without confirmation."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_server import Exchange, Scripted, serving
from support import switch_report_on

import trecexam
from trecexam.cli.main import run
from trecexam.daemon import Daemon
from trecexam.errors import StoreError

MakeTrack = Callable[..., Path]
ASK = "cells that were graded once"


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(Exchange.say) as started:
        yield started


@pytest.fixture
def paid_track(track: MakeTrack, server: Scripted) -> Path:
    """A track whose cells were graded by the server."""
    root = track(server.url)
    assert run(["watch", str(root), "--once"]) == 0
    return root


def lose_store(root: Path) -> None:
    for path in (root / ".trecexam").glob("grades.sqlite*"):
        path.unlink()


def outputs(root: Path) -> dict[str, bytes]:
    paths = (path for path in (root / "out").iterdir() if path.is_file() and path.name != "history.tsv")
    return {path.name: path.read_bytes() for path in paths}


def test_a_lost_store_is_reported_with_the_number_of_cells_and_nothing_is_requested(
    paid_track: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, before = len(server.bodies), outputs(paid_track)
    with trecexam.open_track(paid_track) as opened:
        graded = opened.grading.counts().ok
        assert opened.grading.lost() == 0
    for lose in (lose_store, lambda root: shutil.rmtree(paid_track / ".trecexam")):
        lose(paid_track)
        capsys.readouterr()
        assert run(["watch", str(paid_track), "--once"]) == 2
        said = capsys.readouterr().err
        assert f"the {graded} {ASK} would be graded again, which costs" in said
        assert "--regrade" in said
        assert said.count("\n") == 1
        assert len(server.bodies) == asked
        assert outputs(paid_track) == before
        assert not (paid_track / ".trecexam" / "grades.sqlite").exists()
    with trecexam.open_track(paid_track) as opened:
        assert opened.grading.lost() == graded
        with pytest.raises(StoreError):
            opened.update()
    assert run(["watch", str(paid_track), "--once", "--regrade"]) == 0
    assert len(server.bodies) == 2 * asked
    assert run(["watch", str(paid_track), "--once"]) == 0
    assert len(server.bodies) == 2 * asked


def test_an_older_copy_of_the_store_is_reported_before_paying_again(
    paid_track: Path, server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(paid_track / ".trecexam" / "grades.sqlite", tmp_path / "older")
    before = len(server.bodies)
    with trecexam.open_track(paid_track) as opened:
        opened.bank.add_item(next(iter(opened.qrels())).query_id, "What else is there?", who="me")
    assert run(["watch", str(paid_track), "--once"]) == 0
    asked = len(server.bodies)
    assert asked > before
    lose_store(paid_track)
    shutil.copy(tmp_path / "older", paid_track / ".trecexam" / "grades.sqlite")
    (paid_track / "trecexam.toml").touch()
    capsys.readouterr()
    assert run(["watch", str(paid_track), "--once"]) == 2
    assert f"the {asked - before} {ASK} would be graded again" in capsys.readouterr().err
    assert len(server.bodies) == asked
    assert run(["watch", str(paid_track), "--once", "--regrade"]) == 0
    assert len(server.bodies) == 2 * asked - before
    assert run(["watch", str(paid_track), "--once"]) == 0


def test_another_grader_grades_its_own_cells(paid_track: Path, server: Scripted) -> None:
    asked = len(server.bodies)
    lose_store(paid_track)
    path = paid_track / "trecexam.toml"
    path.write_text(path.read_text().replace('model = "', 'model = "other-'))
    assert run(["watch", str(paid_track), "--once"]) == 0
    assert len(server.bodies) == 2 * asked


def test_if_grading_is_free_a_lost_store_is_made_again(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    switch_report_on(graded)
    before = outputs(graded)
    lose_store(graded)
    capsys.readouterr()
    assert run(["watch", str(graded), "--once"]) == 0
    assert "144 cells graded" in capsys.readouterr().err
    assert (graded / ".trecexam" / "grades.sqlite").exists()
    assert outputs(graded) == before
    assert run(["watch", str(graded), "--once"]) == 0
    assert "nothing new" in capsys.readouterr().err


def test_a_store_lost_while_a_daemon_runs_is_noticed_and_no_grades_are_lost(
    track: MakeTrack,
) -> None:
    with serving(Exchange.say) as server:
        root = track(server.url)
        lines: list[str] = []
        looks: list[str] = []
        asked: list[int] = []

        def look_ended(why: str) -> None:
            looks.append(why)
            if len(looks) == 1:
                asked.append(len(server.bodies))
                lose_store(root)
                next(root.glob("bank.*")).touch()
                daemon.look()
            else:
                daemon.stop()

        daemon = Daemon(root, poll=True, settle=0, log=lines.append, look_ended=look_ended)
        daemon.run()
        assert ASK in looks[1]
        assert any("cannot go on" in line and ASK in line for line in lines)
        assert len(server.bodies) == asked[0]
        assert not (root / ".trecexam" / "grades.sqlite").exists()
