"""Outputs of several graders in one track: those of each grader, and joint ones."""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, contents, make_small_track, tsv_rows, update, write_run

import trecexam
from trecexam.errors import GraderError

TWO = '[track]\ndepth = 8\n[graders.rubric]\n[graders.other]\nkind = "rubric"\nmin_rating = 2\ndepth = 4\n'
QUIET = "[report]\nwrite = false\n"
NUGGETS = '[graders.third]\nkind = "nuggets"\nname = "recorded"\nrecorded = "nowhere.jsonl"\n'


class Contrary(HashGrader):
    """Gives 5 where the other grader gives 0."""

    def __init__(self) -> None:
        super().__init__(version=2)

    def _done(self, batch: list[Any]) -> list[Any]:
        return super()._done([(cell, answer._replace(rating=5 - answer.rating)) for cell, answer in batch])


def graders() -> dict[str, HashGrader]:
    return {"rubric": HashGrader(), "other": Contrary()}


def update_both(root: Path) -> None:
    with trecexam.open_track(root, graders=graders()) as track:
        track.update()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_small_track(tmp_path / "track", config=TWO + QUIET)


@pytest.fixture
def track(root: Path) -> Iterator[trecexam.Track]:
    with trecexam.open_track(root, graders=graders()) as opened:
        yield opened


def test_the_joint_leaderboard_has_the_columns_of_each_grader(track: trecexam.Track, root: Path) -> None:
    done = track.update()
    assert done.complete
    assert set(done.graders) == {"rubric", "other"}
    assert done.graded == sum(each.graded for each in done.graders.values())
    joint = {row["run"]: row for row in tsv_rows(root / "out" / "leaderboard.tsv")}
    columns = {"rubric": "Cover(rel=4)@8", "other": "Cover(rel=2)@4"}
    for name, measure in columns.items():
        own = tsv_rows(root / "out" / name / "leaderboard.tsv")
        assert {row["run"]: row[measure] for row in own} == {
            run: row[f"{name}:{measure}"] for run, row in joint.items()
        }
    first = [float(row["rubric:Cover(rel=4)@8"]) for row in joint.values()]
    assert first == sorted(first, reverse=True)
    board = track.leaderboard()
    assert board.measures[:2] == ("rubric:Cover(rel=4)@8", "other:Cover(rel=2)@4")
    assert [row.run for row in board.rows] == list(joint)
    for name in columns:
        own_board = track[name].leaderboard()
        for measure in own_board.measures:
            assert {row.run: row.scores[f"{name}:{measure}"] for row in board.rows} == {
                row.run: row.scores[measure] for row in own_board.rows
            }


def test_any_measure_of_any_grader_can_be_requested(track: trecexam.Track) -> None:
    track.update()
    board = track.leaderboard(["other:P(rel=2)@4", "P(rel=4)@8", "rubric:nDCG@8"])
    assert board.measures == ("other:P(rel=2)@4", "rubric:P(rel=4)@8", "rubric:nDCG@8")
    for place, (name, measure) in enumerate(
        (("other", "P(rel=2)@4"), ("rubric", "P(rel=4)@8"), ("rubric", "nDCG@8"))
    ):
        own = {row.run: row.scores[0] for row in track[name].leaderboard([measure]).rows}
        assert {row.run: row.scores[place] for row in board.rows} == own


def test_a_run_ignored_by_one_grader_has_no_number_there(root: Path) -> None:
    (root / "trecexam.toml").write_text(TWO.replace("depth = 4", 'depth = 4\nruns = "responses"') + QUIET)
    row = {
        "run_id": "gen",
        "query_id": "q1",
        "responses": [{"text": "It is what it is, and more than that.", "citations": []}],
    }
    (root / "runs" / "gen.jsonl").write_text(json.dumps(row) + "\n")
    with trecexam.open_track(root, graders=graders()) as track:
        track.update()
        board = track.leaderboard()
        ranked = [each.run for each in board.rows if each.run != "gen"]
        for each in board.rows:
            assert math.isnan(each.scores[1].mean) == (each.run != "gen")
        assert not any(line.startswith("other: not of") for line in board.notes)
        skipped = f'skipped {len(ranked)} runs by `runs = "responses"` in [graders.other]'
        assert f"other: {skipped}" in board.notes
    assert {each["run"]: each["other:Cover(rel=2)@4"] for each in tsv_rows(root / "out/leaderboard.tsv")}[
        ranked[0]
    ] == ""


def test_files_of_the_first_grader_stay_and_the_others_have_folders(root: Path, tmp_path: Path) -> None:
    alone = make_small_track(tmp_path / "alone", config="[track]\ndepth = 8\n" + QUIET)
    update(alone)
    update_both(root)
    plain, several = contents(alone / "out"), contents(root / "out")
    shared = {"leaderboard.tsv", "leaderboard.json", "rejected.tsv", "manifest.json"}
    for name, content in plain.items():
        if name not in shared:
            assert several[name] == content
    assert several["rubric/leaderboard.tsv"] == plain["leaderboard.tsv"]
    assert several["rubric/leaderboard.json"] == plain["leaderboard.json"]
    own = {name.removeprefix("other/") for name in several if name.startswith("other/")}
    assert own == plain.keys() - {"rejected.tsv"}
    manifest = json.loads(several["manifest.json"])
    assert manifest["complete"]
    assert list(manifest["graders"]) == ["rubric", "other"]
    assert manifest["graders"]["other"]["grader"]["version"] == 2
    assert manifest["graders"]["rubric"]["counts"] == json.loads(plain["manifest.json"])["counts"]
    assert manifest["outputs"].keys() == several.keys() - {
        "manifest.json",
        "rubric/manifest.json",
        "other/manifest.json",
    }
    for name, digest in manifest["outputs"].items():
        assert hashlib.sha256(several[name]).hexdigest() == digest
    assert manifest["inputs"] == json.loads(several["other/manifest.json"])["inputs"]


def test_a_grader_that_cannot_go_on_does_not_stop_the_others(root: Path) -> None:
    (root / "trecexam.toml").write_text(TWO + NUGGETS + QUIET)
    with trecexam.open_track(root, graders=graders()) as track:
        done = track.update()
        assert done.graded
        assert not done.complete
        assert set(done.graders) == {"rubric", "other"}
        assert done.why.startswith("third cannot go on: ")
        assert "nowhere.jsonl" in done.why
        board = track.leaderboard()
        assert board.measures[:2] == ("rubric:Cover(rel=4)@8", "other:Cover(rel=2)@4")
        assert any(line.startswith("third cannot go on: ") for line in board.notes)
        with pytest.raises(GraderError, match=r"nowhere\.jsonl"):
            track["third"].leaderboard()
        # It causes no repeated work.
        assert not track.update().changed
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    assert not manifest["complete"]
    assert "nowhere.jsonl" in manifest["graders"]["third"]["unable"]


def test_a_stop_ends_all_graders_and_grades_are_kept(root: Path) -> None:
    given, asked = graders(), []
    with trecexam.open_track(root, graders=given) as track:
        done = track.update(progress=asked.append, stop=lambda: len(asked) >= 2)
        assert not done.complete
        assert {each.grader for each in asked} == {"rubric"}
        assert not given["other"].asked
        assert track["rubric"].grading.counts().missing
        rest = track.update()
        assert rest.complete
        assert rest.graders["rubric"].graded == 144 - done.graded
    with trecexam.open_track(root, graders=graders()) as track:
        assert not track.update().changed


@pytest.mark.parametrize(
    ("after", "gone"),
    [
        ("[track]\ndepth = 8\n", ("rubric/leaderboard.tsv", "other/leaderboard.tsv", "other/rubric.qrels")),
        (
            TWO.replace("graders.other", "graders.new"),
            ("other/leaderboard.tsv", "other/rubric.qrels", "other/manifest.json"),
        ),
        (
            '[graders.other]\nkind = "rubric"\n[graders.rubric]\n',
            ("other/rubric.qrels", "other/per_query.tsv"),
        ),
    ],
)
def test_outputs_of_removed_graders_are_deleted(root: Path, after: str, gone: tuple[str, ...]) -> None:
    update_both(root)
    assert set(gone) <= contents(root / "out").keys()
    (root / "trecexam.toml").write_text(after + QUIET)
    with trecexam.open_track(root) as track:
        given: Any = {name: HashGrader() for name in track.graders}
    with trecexam.open_track(root, graders=given) as track:
        track.update()
    assert not set(gone) & contents(root / "out").keys()


class Killed(BaseException):
    """Simulates a kill without ending the process."""


def test_an_update_killed_at_any_step_ends_like_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"queries": 1, "docs": 5}
    calm = make_small_track(tmp_path / "calm", config=TWO + QUIET, **small)
    update_both(calm)
    wanted, replace, link = contents(calm / "out"), os.replace, os.link

    def killing(after: int, call: Callable[..., None]) -> Callable[..., None]:
        def replaced(*args: Any, **kwargs: Any) -> None:
            nonlocal steps
            steps += 1
            if steps > after:
                raise Killed
            call(*args, **kwargs)

        return replaced

    n = 0
    while True:
        stormy = make_small_track(tmp_path / f"stormy{n}", config=TWO + QUIET, **small)
        steps = 0
        monkeypatch.setattr(os, "replace", killing(n, replace))
        monkeypatch.setattr(os, "link", killing(n, link))
        try:
            with trecexam.open_track(stormy, graders=graders()) as track:
                track.update()
            killed = False
        except Killed:
            killed = True
        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr(os, "link", link)
        given = graders()
        with trecexam.open_track(stormy, graders=given) as track:
            assert track.update().complete
            assert not track.update().changed
        assert contents(stormy / "out") == wanted, n
        if not killed:
            break
        n += 1
    assert n > 30


def sections(page: str) -> list[str]:
    """The headings of a page's sections, in their order."""
    return re.findall(r'<h2 id="[^"]*">(.*?)</h2>', page)


def broken_links(out: Path) -> list[str]:
    """Broken links to files in all pages of out/."""
    return [
        f"{page.relative_to(out)}: {link}"
        for page in out.rglob("report.html")
        for link in re.findall(
            r'<a href="([^"#]+)"', re.sub("<svg.*?</svg>", "", page.read_text(), flags=re.S)
        )
        if not (page.parent / link).exists()
    ]


def test_the_report_covers_all_graders_and_each_has_its_own_report(root: Path) -> None:
    (root / "trecexam.toml").write_text(TWO)
    (root / "runs" / "bad.run").write_text("no run at all\n")
    update_both(root)
    out = root / "out"
    page = (out / "report.html").read_text()
    assert sections(page) == [
        "All graders", "Rank correlation of graders", "Graders", "Rejected files",
    ]  # fmt: skip
    for name in ("rubric", "other"):
        assert f'<a href="{name}/report.html">{name}</a>' in page
        own = (out / name / "report.html").read_text()
        assert sections(own)[0] == "Leaderboard"
        assert '<a href="../report.html">all graders</a>' in own
    assert not broken_links(out)
    manifest = json.loads((out / "manifest.json").read_text())
    assert {"report.html", "rubric/report.html", "other/report.html"} <= manifest["outputs"].keys()
    assert any(name.startswith("plots/") for name in manifest["outputs"])
    for name, digest in manifest["outputs"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    with trecexam.open_track(root, graders=graders()) as track:
        assert not track.update().changed
        write_run(root / "runs" / "new.run", {"q1": ["q1-d01", "q1-d00"]})
        assert track.update().changed
    assert "new" in (out / "report.html").read_text()
    (root / "trecexam.toml").write_text(TWO + QUIET)
    with trecexam.open_track(root, graders=graders()) as track:
        assert track.update().changed
    assert not list(out.rglob("report.html"))


@pytest.mark.parametrize("waits", ["rubric", "other"])
def test_a_grader_that_waits_for_a_bank_has_no_files_until_it_continues(root: Path, waits: str) -> None:
    lines = {"rubric": "[graders.rubric]\n", "other": "[graders.other]\n"}
    waiting = TWO.replace(lines[waits], f'{lines[waits]}write_bank = "questions"\nbank = ["own.jsonl"]\n')
    (root / "trecexam.toml").write_text(waiting)
    (root / "own.jsonl").write_bytes((root / "bank.questions.jsonl").read_bytes())
    update_both(root)
    before = contents(root / "out")
    (root / "own.jsonl").rename(root / "away.jsonl")
    with trecexam.open_track(root, graders=graders()) as track:
        done = track.update()
        assert not track.update().changed
    assert done.complete
    where = {"rubric": "out/", "other": "out/other/"}
    assert any(
        line.startswith(f"{waits}: removed its files of an earlier update from {where[waits]};")
        for line in done.notes
    )
    assert not any(f"are of {waits}" in line or f"{waits}: out/" in line for line in done.notes)
    now = contents(root / "out")
    of_all = {"leaderboard.tsv", "leaderboard.json", "report.html", "rejected.tsv", "manifest.json"}
    of_other = {name for name in before if name.startswith("other/")}
    assert now.keys() == of_all | (of_other if waits == "rubric" else before.keys() - of_other)
    page = now["report.html"].decode()
    assert sections(page)[0] == "All graders"
    assert f"{waits} cannot go on: " in page
    assert not broken_links(root / "out")
    (root / "away.jsonl").rename(root / "own.jsonl")
    given = graders()
    with trecexam.open_track(root, graders=given) as track:
        track.update()
    assert not any(grader.asked for grader in given.values())
    assert contents(root / "out") == before


def test_a_failed_grader_keeps_its_files_which_are_marked_as_old(root: Path) -> None:
    (root / "trecexam.toml").write_text(
        TWO.replace("[graders.rubric]", '[graders.rubric]\nbank = ["own.jsonl"]')
    )
    (root / "own.jsonl").write_bytes((root / "bank.questions.jsonl").read_bytes())
    update_both(root)
    before = contents(root / "out")
    (root / "own.jsonl").write_text("no bank\n")
    with trecexam.open_track(root, graders=graders()) as track:
        done = track.update()
    assert "rubric cannot go on: " in done.why
    assert done.why.endswith("; its files in out/ are of an earlier update")
    now = contents(root / "out")
    assert now["rubric.qrels"] == before["rubric.qrels"]
    page = now["report.html"].decode()
    assert "rubric cannot go on; its files in out/ are of an earlier update" in page
    assert "rubric:Cover" not in page
    manifest = json.loads(now["manifest.json"])
    assert manifest["graders"]["rubric"]["stale"] == "its files in out/ are of an earlier update"
    assert "stale" not in manifest["graders"]["other"]
    assert not broken_links(root / "out")


def test_a_history_moves_with_the_files_of_its_grader(root: Path) -> None:
    update_both(root)
    out = root / "out"
    first, second = (path.read_text() for path in (out / "history.tsv", out / "other" / "history.tsv"))
    assert first != second
    swapped = TWO.replace("[graders.rubric]\n", "") + "[graders.rubric]\n"
    (root / "trecexam.toml").write_text(swapped + QUIET)
    for _ in range(2):
        with trecexam.open_track(root, graders=graders()) as track:
            assert track.graders == ("other", "rubric")
            track.update()
            assert (out / "rubric" / "history.tsv").read_text() == first
            assert (out / "history.tsv").read_text() == second
    assert not (out / "other").exists() or not (out / "other" / "history.tsv").exists()


def test_the_folder_of_a_removed_grader_keeps_only_its_history(root: Path) -> None:
    update_both(root)
    (root / "trecexam.toml").write_text("[track]\ndepth = 8\n[graders.rubric]\n" + QUIET)
    with trecexam.open_track(root, graders={"rubric": HashGrader()}) as track:
        track.update()
    assert [path.name for path in (root / "out" / "other").iterdir()] == ["history.tsv"]


def test_a_rating_belongs_to_the_first_grader_that_has_the_cell(root: Path) -> None:
    with trecexam.open_track(root, graders=graders()) as track:
        track.update()
        pools = {
            name: {(row.query_id, row.doc_id) for row in track[name].export.pool()} for name in track.graders
        }
        deep = min(pools["rubric"] - pools["other"])
    # The grader that has it is the second one now.
    swapped = TWO.replace("[graders.rubric]\n", "") + "[graders.rubric]\n"
    (root / "trecexam.toml").write_text(swapped + QUIET)
    with trecexam.open_track(root, graders=graders()) as track:
        track.override(*deep, 3, item=1, who="ann", why="read it")
    assert "\tann\t" in (root / "overrides.tsv").read_text()
    assert not (root / "overrides.other.tsv").exists()


def test_answers_without_a_rating_are_noted_wherever_scores_are_shown(root: Path) -> None:
    (root / "trecexam.toml").write_text(TWO)
    both = {"rubric": HashGrader(), "other": HashGrader(version=2)}
    both["other"].status = lambda cell: "unparsed" if cell.doc_id == "q1-d00" else "ok"
    with trecexam.open_track(root, graders=both) as track:
        track.update()
        counts = track["other"].status()
        assert counts["unparsed"] > 0
        line = (
            f"of the grader's {counts['cells']:,} answers {counts['unparsed']:,} are unparsed, 0 refused and "
            '0 errors; the policy "skip": each unparsed or refused one gives no rating, and what has no '
            "rating at all counts as not relevant"
        )
        assert line in track["other"].leaderboard().notes
        assert line in track["other"].status().notes
        assert f"other: {line}" in track.leaderboard().notes
        assert f"other: {line}" in track.status().notes
        assert not any("unparsed" in note for note in track["rubric"].leaderboard().notes)
    for page in (root / "out", root / "out" / "other"):
        assert line.partition(" answers ")[2] in html.unescape((page / "report.html").read_text())
