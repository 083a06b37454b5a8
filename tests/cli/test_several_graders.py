"""Commands on a track with several graders behind a scripted server: rows, shared budget, `--grader`."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rag_track import make_demo_with_two_graders
from scripted_server import Exchange, Scripted, serving
from support import err, make_small_track, out

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError

SECTIONS = '[graders.rubric]\n[graders.umbrela]\n[graders.mini]\nkind = "rubric"\nmodel = "n"\n'


def answer(exchange: Exchange) -> None:
    """A final score for UMBRELA, a rating for rubrics."""
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


def test_status_has_a_row_for_each_grader_and_a_sum(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *rows = (line.split("\t") for line in out(capsys, "status", root).splitlines())
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert list(table) == ["rubric", "umbrela", "mini", "sum"]
    with trecexam.open_track(root) as track:
        for name in track.graders:
            assert int(table[name]["cells"]) == track[name].grading.counts().cells
    assert int(table["sum"]["cells"]) == sum(int(table[n]["cells"]) for n in ("rubric", "umbrela", "mini"))
    assert int(table["sum"]["requests"]) == int(table["sum"]["cells"])
    assert table["umbrela"]["kind"] == "relevance"
    whole = json.loads(out(capsys, "status", root, "--json"))
    assert whole["graders"]["umbrela"]["grader_identity"] != whole["graders"]["mini"]["grader_identity"]
    one = json.loads(out(capsys, "status", root, "--json", "--grader", "mini"))
    assert one["cells"] == whole["graders"]["mini"]["cells"]


def test_overrides_lists_the_ratings_of_all_graders(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with trecexam.open_track(root) as track:
        cell = next(iter(track["rubric"].grades()))
    of_cell = ("--query", cell["query_id"], "--doc", cell["doc_id"], "--item", cell["item_id"])
    for name, rating in (("rubric", "1"), ("mini", "3")):
        said = ("--rating", rating, "--who", "ann", "--why", f"read for {name}")
        out(capsys, "override", root, "--grader", name, *of_cell, *said)
    rows = [line.split("\t") for line in out(capsys, "override", root, "--list").splitlines()]
    assert rows[0][:5] == ["grader", "query_id", "doc_id", "item_id", "rating"]
    assert [(row[0], row[4], row[7]) for row in rows[1:]] == [
        ("rubric", "1", "read for rubric"),
        ("mini", "3", "read for mini"),
    ]
    of_one = [
        line.split("\t") for line in out(capsys, "override", root, "--list", "--grader", "mini").splitlines()
    ]
    assert of_one == [rows[0][1:], rows[2][1:]]
    whole = json.loads(out(capsys, "override", root, "--list", "--json"))
    assert {name: each["cells"] for name, each in whole["graders"].items()} == {
        "rubric": 1, "umbrela": 0, "mini": 1,
    }  # fmt: skip
    with (root / "overrides.mini.tsv").open("a") as file:
        file.write("q1\tnowhere\t\t9\tbob\tno\t\n")
    assert "rejected: overrides.mini.tsv:3: " in err(capsys, "override", root, "--list", status=1)


def test_graders_that_inherit_a_budget_share_it(server: Scripted, tmp_path: Path) -> None:
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
    assert f"`budget_tokens` = {tokens + 10:,} in [grader] is reached" in why
    # Its own budget is separate.
    asked, why = left("budget_tokens = 1000\n")
    assert asked > 0
    assert "`budget_tokens` = 1,000 in [graders.mini] is reached" in why
    asked, why = left("budget_tokens = 100000\n")
    assert asked > 0
    assert why == ""


def test_invalid_settings_of_one_grader_stop_no_other_grader(
    root: Path, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = '[graders.odd]\nkind = "nonsense"\n'
    (root / "trecexam.toml").write_text(settings(server, sections=SECTIONS + odd))
    (root / "runs" / "late.run").write_text("q1 Q0 q1-d00 1 2 late\n")
    for words, status in ((["watch", "--once"], 1), (["watch", "--once"], 1), (["leaderboard"], 1)):
        capsys.readouterr()
        assert run([words[0], str(root), *words[1:]]) == status
        told = capsys.readouterr().err
        assert "odd cannot go on: " in told
        assert '`graders.odd.kind` = "nonsense": no such kind; known here: rubric' in told
        assert "ended early" not in told
    assert "late\t" in (root / "out" / "leaderboard.tsv").read_text()
    assert json.loads((root / "out" / "manifest.json").read_text())["complete"] is False
    assert run(["watch", str(root), "--json"]) == 0
    shown = capsys.readouterr()
    assert {row["grader"] for row in json.loads(shown.out)} == {
        "rubric",
        "umbrela",
        "mini",
        "sum without grading by odd",
    }
    assert "the sum lacks grading by odd: " in shown.err


def test_a_measure_of_no_grader_or_of_two_says_what_to_write(
    root: Path, updated_once: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = "begins with two names of graders: write mini:nDCG@10"
    for track, command, measure, said in (
        (root, "leaderboard", "umbrella:nDCG@10", ": no grader 'umbrella' in this track; did you mean 'umb"),
        (root, "correlate", "mini:mini:nDCG@10", f" {twice}"),
        (root, "compare", "umbrela:mini:nDCG@10", f" {twice}"),
        (updated_once, "leaderboard", "support:SupportF1", ": no grader 'support' in this track"),
        (updated_once, "judge-next", "rubric:P@5", ": this track has only one grader: write P@5"),
    ):
        assert f"measure '{measure}'{said}" in err(capsys, command, track, "-m", measure)


def test_correlate_has_tau_of_each_pair_of_columns_and_with_people(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *rows = (line.split("\t") for line in out(capsys, "correlate", root).splitlines())
    table = [dict(zip(header, row, strict=True)) for row in rows]
    columns = ["rubric:Cover(rel=4)@4", "umbrela:nDCG@10", "mini:Cover(rel=4)@4"]
    pairs = [(row["measure"], row["other_measure"]) for row in table]
    assert pairs[:3] == [(columns[0], columns[1]), (columns[0], columns[2]), (columns[1], columns[2])]
    assert [column for column, _ in pairs[3:]] == [column for column in columns for _ in range(3)]
    assert all(other.startswith("official:") for _, other in pairs[3:])
    with trecexam.open_track(root) as track:
        means = {
            name: {row.run: row.scores[place].mean for row in track.leaderboard().rows}
            for place, name in enumerate(columns)
        }
        for row in table[3:]:
            name, _, measure = row["measure"].partition(":")
            own = track[name].correlate([measure], [row["other_measure"].removeprefix("official:")])
            assert (row["kendall_tau"] or "nan") == f"{own.pairs[0][1].kendall_tau.value:.6f}"
    for row in table[:3]:
        tau = tau_b(means[row["measure"]], means[row["other_measure"]])
        assert (row["kendall_tau"] or "nan") == f"{tau:.6f}"
    with trecexam.open_track(root) as track, pytest.raises(TrecexamError, match="is of one grader's scale"):
        track.correlate(min_ratings=[3])
    assert out(capsys, "correlate", root, "--grader", "mini", "--thresholds")


def tau_b(one: dict[str, float], other: dict[str, float]) -> float:
    """Kendall's tau-b, by its definition."""
    signs = [
        (
            (round(one[a], 9) > round(one[b], 9)) - (round(one[a], 9) < round(one[b], 9)),
            (round(other[a], 9) > round(other[b], 9)) - (round(other[a], 9) < round(other[b], 9)),
        )
        for a, b in itertools.combinations(one, 2)
    ]
    same = sum(x * y for x, y in signs)
    untied = sum(abs(x) for x, _ in signs) * sum(abs(y) for _, y in signs)
    return same / math.sqrt(untied) if untied else float("nan")


def test_a_grader_without_grades_has_empty_columns_not_zeros(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    make_demo_with_two_graders(folder)
    config = folder / "trecexam.toml"
    empty = (
        '[graders.x]\nkind = "rubric"\nname = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n\n'
    )
    config.write_text(config.read_text().replace("[graders.support]", f"{empty}[graders.support]"))
    with trecexam.open_track(folder) as track:
        for call in (track.correlate, lambda: track.plot("leaderboard")):
            with pytest.raises(TrecexamError, match="nothing is graded yet"):
                call()
        track["rubric"].grading.grade()
        board, compared = track.leaderboard(), track.correlate()
        assert "x:" not in track.plot("leaderboard").plot.title
    of_x = [value for name in board.measures if name.startswith("x:") for value in board[name]]
    assert of_x
    assert all(value != value for value in of_x)
    again = f"nothing is graded yet; `trecexam watch {folder} --once` grades"
    assert f"x, support: {again}" in board.notes
    assert f"x: {again}" in compared.notes
    assert not any(name.startswith("x:") for name in [*compared["measure"], *compared["other_measure"]])
