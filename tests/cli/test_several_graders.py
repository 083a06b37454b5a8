"""Commands on a track with several graders, which a server plays: a row for each, one purse, `--grader`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_server import Exchange, Scripted, serving
from support import make_small_track

import trecexam
from trecexam.cli.main import run

SECTIONS = '[graders.rubric]\n[graders.umbrela]\n[graders.mini]\nkind = "rubric"\nmodel = "n"\n'


def answer(exchange: Exchange) -> None:
    """Of UMBRELA a final score, of rubrics a rating."""
    score = sum(exchange.prompt.encode()) % 4
    exchange.say(f"##final score: {score}" if "final score" in exchange.prompt else str(score + 2))


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with serving(answer) as running:
        yield running


def settings(server: Scripted, more: str = "", sections: str = SECTIONS) -> str:
    return (
        f'[track]\ndepth = 4\n[report]\nwrite = false\n[grader]\nname = "openai"\nmodel = "m"\n'
        f'base_url = "{server.url}"\nconcurrency = 1\nlogprobs = false\n{more}{sections}'
    )


@pytest.fixture(scope="module")
def graded_by_three(server: Scripted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_small_track(tmp_path_factory.mktemp("several") / "track", config=settings(server))
    with trecexam.open_track(root) as track:
        assert track.update().complete
    return root


@pytest.fixture
def root(graded_by_three: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(graded_by_three, tmp_path / "track"))


def out(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    capsys.readouterr()
    assert run([str(argument) for argument in arguments]) == status, capsys.readouterr().err
    return capsys.readouterr().out


def test_each_prompt_and_model_asks_what_it_asks_alone(
    server: Scripted, graded_by_three: Path, tmp_path: Path
) -> None:
    models = {body["model"] for body in server.bodies}
    assert models == {"m", "n"}
    alone = make_small_track(tmp_path / "alone", config=settings(server, 'prompt = "UMBRELA"\n', sections=""))
    shutil.copytree(graded_by_three / ".trecexam", alone / ".trecexam", dirs_exist_ok=True)
    asked = len(server.bodies)
    with trecexam.open_track(alone) as plain, trecexam.open_track(graded_by_three) as track:
        # The keys of grades are the same: nothing is asked again, whichever way it goes.
        assert plain.counts().missing == 0
        assert plain.leaderboard().rows == track["umbrela"].leaderboard().rows
        assert plain.update().graded == 0
    assert len(server.bodies) == asked


def test_the_leaderboard_in_a_pipe_is_the_file_in_out(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, "leaderboard", root) == (root / "out" / "leaderboard.tsv").read_text()
    assert out(capsys, "leaderboard", root, "--grader", "umbrela") == (
        (root / "out" / "umbrela" / "leaderboard.tsv").read_text()
    )
    header = out(capsys, "leaderboard", root, "-m", "umbrela:P(rel=2)@4", "-m", "mini:nDCG@4").splitlines()[0]
    assert header.split("\t")[1::2] == ["umbrela:P(rel=2)@4", "mini:nDCG@4"]


def test_status_has_a_row_for_each_grader_and_a_sum(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *rows = (line.split("\t") for line in out(capsys, "status", root).splitlines())
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert list(table) == ["rubric", "umbrela", "mini", "sum"]
    with trecexam.open_track(root) as track:
        for name in track.graders:
            assert int(table[name]["cells"]) == track[name].counts().cells
    assert int(table["sum"]["cells"]) == sum(int(table[n]["cells"]) for n in ("rubric", "umbrela", "mini"))
    assert int(table["sum"]["requests"]) == int(table["sum"]["cells"])
    assert table["umbrela"]["kind"] == "relevance"
    whole = json.loads(out(capsys, "status", root, "--json"))
    assert whole["graders"]["umbrela"]["grader_identity"] != whole["graders"]["mini"]["grader_identity"]
    one = json.loads(out(capsys, "status", root, "--json", "--grader", "mini"))
    assert one["cells"] == whole["graders"]["mini"]["cells"]


def test_the_estimate_has_a_row_for_each_grader_and_a_sum(
    server: Scripted, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = len(server.bodies)
    (root / "bank.questions.jsonl").write_text(
        (root / "bank.questions.jsonl").read_text().replace("question 0", "quite another question")
    )
    rows = {row["grader"]: row for row in json.loads(out(capsys, "watch", root, "--estimate", "--json"))}
    assert list(rows) == ["rubric", "umbrela", "mini", "sum"]
    # UMBRELA asks about queries.
    assert rows["umbrela"]["cells"] == 0
    assert rows["rubric"]["cells"] == rows["mini"]["cells"] > 0
    assert rows["sum"]["cells"] == rows["rubric"]["cells"] + rows["mini"]["cells"]
    assert rows["sum"]["tokens_in"] == rows["rubric"]["tokens_in"] + rows["mini"]["tokens_in"]
    with trecexam.open_track(root) as track:
        assert track.estimate().cells == rows["sum"]["cells"]
    assert (
        "grader" not in json.loads(out(capsys, "watch", root, "--estimate", "--json", "--grader", "mini"))[0]
    )
    assert len(server.bodies) == asked


def test_a_command_that_can_be_of_one_alone_says_which_it_took(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["verify", "grading", str(root)]) == 0
    assert "note: this is of the grader rubric; --grader takes another one: umbrela, mini" in (
        capsys.readouterr().err
    )
    assert run(["verify", "grading", str(root), "--grader", "umbrela"]) == 0
    assert "this is of the grader" not in capsys.readouterr().err
    assert run(["holes", str(root), "--grader", "umbrel"]) == 2
    assert "no grader 'umbrel' in this track; did you mean 'umbrela'?" in capsys.readouterr().err
    # The next command is not of that grader.
    assert run(["verify", "grading", str(root)]) == 0
    assert "of the grader rubric" in capsys.readouterr().err


def test_a_track_with_one_grader_is_of_that_one_and_says_no_more(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = out(capsys, "leaderboard", graded)
    capsys.readouterr()
    assert run(["leaderboard", str(graded), "--grader", "rubric"]) == 0
    shown = capsys.readouterr()
    assert shown.out == plain
    assert "of the grader" not in shown.err
    assert run(["leaderboard", str(graded), "--grader", "x"]) == 2
    assert "no grader 'x' in this track; there is rubric" in capsys.readouterr().err


def test_one_budget_is_of_all_that_inherit_it(server: Scripted, tmp_path: Path) -> None:
    sections = '[graders.rubric]\n[graders.mini]\nkind = "rubric"\nmodel = "n"\n'
    root = make_small_track(
        tmp_path / "track", config=settings(server, "max_new_tokens = 20\n", sections), queries=1
    )
    with trecexam.open_track(root) as track:
        track["rubric"].update()
        used = track["rubric"].status()
    tokens = used["tokens_in"] + used["tokens_out"]

    def left(own: str) -> tuple[int, str]:
        more = f"max_new_tokens = 20\nbudget_tokens = {tokens + 10}\n"
        (root / "trecexam.toml").write_text(settings(server, more, sections + own))
        asked = len(server.bodies)
        with trecexam.open_track(root) as track:
            done = track.update()
        return len(server.bodies) - asked, done.why

    asked, why = left("")
    assert asked == 0
    assert "mini: ended early" not in why
    assert f"`budget_tokens` = {tokens + 10:,} in [grader] is reached" in why
    # Its own is its own.
    asked, why = left("budget_tokens = 1000\n")
    assert asked > 0
    assert "`budget_tokens` = 1,000 in [graders.mini] is reached" in why
    asked, why = left("budget_tokens = 100000\n")
    assert asked > 0
    assert why == ""


def test_a_server_that_is_gone_ends_its_own_part_alone(server: Scripted, tmp_path: Path) -> None:
    sections = '[graders.gone]\nkind = "rubric"\nbase_url = "http://127.0.0.1:9/v1"\nretries = 0\n'
    root = make_small_track(
        tmp_path / "track", config=settings(server, sections=f"{sections}[graders.rubric]\n"), queries=1
    )
    with trecexam.open_track(root) as track:
        done = track.update()
        assert track["rubric"].counts().missing == 0
        assert track["gone"].counts().missing > 0
    assert not done.complete
    assert done.why.startswith("gone: ")
    assert done.graders["rubric"].complete


def test_watch_names_the_grader_that_cannot_go_on(
    root: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "trecexam.toml").write_text(settings(server, sections=SECTIONS + "[graders.nuggets]\n"))
    capsys.readouterr()
    assert run(["watch", str(root), "--once"]) == 1
    told = capsys.readouterr().err
    assert "nuggets: " in told
    assert "the bank has none" in told
    assert "3 runs; 3 graders" in told
