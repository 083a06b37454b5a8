"""A grader of which no reply can be read gives no scores, and is not asked on."""

from __future__ import annotations

import html
import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from headings import score_columns
from scripted_server import Exchange, Scripted, serving
from support import HashGrader, make_small_track, tsv_rows, until

import trecexam
from trecexam.cli.main import run
from trecexam.daemon import Daemon

#: Cells of the track, and the replies after which the grader is not asked any more.
CELLS, FIRST = 144, 20
REPLY = "I would say that this passage is rather good.\nReally."


def chatting(exchange: Exchange) -> None:
    exchange.say(REPLY)


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(chatting) as found:
        yield found


def settings(server: Scripted, more: str = "", section: str = "grader") -> str:
    return (
        f'[track]\ndepth = 8\n[{section}]\nname = "openai"\nmodel = "m"\nbase_url = "{server.url}"\n{more}\n'
        "[report]\nwrite = false\n"
    )


@pytest.fixture
def track(tmp_path: Path, server: Scripted) -> Path:
    return make_small_track(tmp_path / "t", config=settings(server))


def watched(capsys: pytest.CaptureFixture[str], root: Path, *options: str, status: int = 1) -> str:
    capsys.readouterr()
    assert run(["watch", str(root), "--once", *options]) == status
    return capsys.readouterr().err


def test_a_server_is_not_asked_on_after_twenty_unread_replies(
    track: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    said = watched(capsys, track)
    # Exactly: the first ones are waited for before more are sent.
    assert len(server.bodies) == FIRST
    (line,) = [line for line in said.splitlines() if "ended early" in line]
    assert "of 20 answers 20 are unparsed" in line
    assert 'such as "I would say that this passage is rather good. Really."' in line
    for setting in ("`prompt`", "`model`", "`max_new_tokens`", "[grader]", "--retry-errors"):
        assert setting in line
    assert "of 20 answers 20 are unparsed" in watched(capsys, track)
    assert len(server.bodies) == FIRST


def test_no_run_has_a_score_where_no_reply_can_be_read(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trecexam.open_track(track) as opened:
        update = opened.update()
        assert not update.complete
        assert "of 20 answers 20 are unparsed" in update.why
        board = opened.leaderboard()
        assert board.ranks == (None, None, None)
        assert all(math.isnan(score.mean) for row in board.rows for score in row.scores)
        assert REPLY.split("\n")[0] in " ".join(board.notes)
    rows = tsv_rows(track / "out" / "leaderboard.tsv")
    assert {row[name] for row in rows for name in score_columns(row)} == {""}
    for command in ("compare", "correlate"):
        assert run([command, str(track)]) == 2
        assert "such as" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ("max_new_tokens = 3000", FIRST),
        ("temperature = 0.5", FIRST),
        ("extra = { top_p = 0.5 }", FIRST),
        ("timeout = 60", 0),
        ("price_in = 1.0", 0),
    ],
)
def test_a_change_of_settings_that_matter_asks_again(
    track: Path, server: Scripted, more: str, asked: int, capsys: pytest.CaptureFixture[str]
) -> None:
    watched(capsys, track)
    (track / "trecexam.toml").write_text(settings(server, more))
    watched(capsys, track)
    assert len(server.bodies) == FIRST + asked


def test_retry_errors_keeps_unread_replies_where_others_can_be_read(
    track: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda exchange: exchange.say("4" if exchange.number == 20 else REPLY)
    watched(capsys, track, status=0)
    watched(capsys, track, "--retry-errors", status=0)
    assert len(server.bodies) == CELLS


def test_other_graders_of_the_track_go_on(
    tmp_path: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as good:
        one = 'kind = "rubric"\nname = "openai"\nmodel = "m"\n'
        root = make_small_track(
            tmp_path / "two",
            config=f'[track]\ndepth = 8\n[graders.chatty]\n{one}base_url = "{server.url}"\n'
            f'revision = "a"\n[graders.good]\n{one}base_url = "{good.url}"\nrevision = "b"\n',
        )
        said = watched(capsys, root)
        assert len(server.bodies) == FIRST
        assert len(good.bodies) == CELLS
    assert "chatty ended early: the grader gave no rating" in said
    assert "[graders.chatty]" in said
    columns = json.loads((root / "out" / "leaderboard.json").read_text())["runs"][0]["scores"]
    by_grader = {
        name: {score["mean"] is None for at, score in columns.items() if at.startswith(name)}
        for name in ("chatty", "good")
    }
    assert by_grader == {"chatty": {True}, "good": {False}}
    assert REPLY.split("\n")[0] in html.unescape((root / "out" / "report.html").read_text())


def test_a_daemon_says_so_once_and_asks_again_after_a_change(track: Path, server: Scripted) -> None:
    lines: list[str] = []
    daemon = Daemon(track, settle=0.05, poll=True, log=lines.append)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        until(lambda: any("ended early" in line for line in lines))
        looks = daemon.updates
        text = (track / "runs" / "run0.run").read_text()
        (track / "runs" / "more.run").write_text(text.replace("run0", "more"))
        until(lambda: daemon.updates > looks)
        assert len(server.bodies) == FIRST
        server.script = Exchange.say
        (track / "trecexam.toml").write_text(settings(server, "max_new_tokens = 3000"))
        until(lambda: len(server.bodies) == FIRST + CELLS)
        until(lambda: "\t\t" not in (track / "out" / "leaderboard.tsv").read_text())
    finally:
        daemon.stop()
        thread.join()
    assert sum("such as" in line for line in lines) <= 2


class _Writing(HashGrader):
    """A model in this process, whose words cannot be read."""

    free_text = True

    def __init__(self) -> None:
        super().__init__(batch=8)
        self.status = lambda cell: "unparsed"

    def read(self, item: object, text: str, cut: bool = False) -> None:
        return None


def test_a_local_model_is_not_asked_on_after_the_batch_of_the_twentieth_reply(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", config="[track]\ndepth = 8\n[report]\nwrite = false\n")
    grader = _Writing()
    with trecexam.open_track(root, grader=grader) as opened:
        for _ in range(2):
            assert "24 are unparsed" in opened.update().why
            assert len(grader.asked) == 24
        assert opened.grading.forget_errors() == 24
        opened.update()
        assert len(grader.asked) == 48


@pytest.mark.parametrize("policy", ["zero", "seed", "skip"])
def test_no_policy_makes_scores_of_replies_that_cannot_be_read(
    track: Path, server: Scripted, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (track / "trecexam.toml").write_text(settings(server, f'[scores]\nunparsed = "{policy}"'))
    watched(capsys, track)
    with trecexam.open_track(track) as opened:
        assert opened.leaderboard().ranks == (None, None, None)


def test_a_small_track_of_unread_replies_has_no_scores_either(
    tmp_path: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "s", config=settings(server), queries=1, docs=4, items=1)
    assert "of 4 answers 4 are unparsed" in watched(capsys, root)
    (root / "trecexam.toml").write_text(settings(server, "max_new_tokens = 3000"))
    watched(capsys, root)
    assert len(server.bodies) == 8
