"""`trecexam fill`: holes get automatic labels, and no human label changes."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import (
    RECORDED,
    ROOT,
    HashGrader,
    hashed_rating,
    labels_of,
    make_small_track,
    printed,
    tsv_rows,
    write_jsonl,
)

import trecexam
from converters.trec_qrels import qrels_line
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.features.fill.rules import fitted
from trecexam.files.track_lock import track_lock
from trecexam.graders import Answer, Cell
from trecexam.grades.store import GradeStore

Labels = dict[tuple[str, str], int]


class SureGrader(HashGrader):
    """Gives a probability distribution with each rating."""

    def _done(self, batch: list[tuple[Cell, Answer]]) -> list[tuple[Cell, Answer]]:
        return super()._done(
            [(cell, answer._replace(probabilities=chances(answer))) for cell, answer in batch]
        )


def chances(answer: Answer) -> tuple[float, ...]:
    """0.7 for the rating, 0.06 for each other one."""
    return tuple(0.7 if rating == answer.rating else 0.06 for rating in range(6))


def fill(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    captured = printed(capsys, "fill", *arguments, status=status)
    assert status in (2, 130) or captured.out.startswith(("source\tlabel\tlines", "query_id\tholes"))
    assert "Traceback" not in captured.err
    return captured.err


def drop(root: Path, target: Path, share: float = 0.5, seed: int = 0) -> Path:
    """A part of a track's official judgments."""
    lines = (root / "qrels.txt").read_text().splitlines(keepends=True)
    kept = sorted(random.Random(seed).sample(range(len(lines)), round(len(lines) * (1 - share))))
    target.write_text("".join(lines[place] for place in kept))
    return target


def pool_of(root: Path, depth: int = 8) -> set[tuple[str, str]]:
    found = set()
    for path in (root / "runs").iterdir():
        places: dict[str, int] = {}
        for line in path.read_text().splitlines():
            query_id, _, doc_id = line.split()[:3]
            places[query_id] = places.get(query_id, 0) + 1
            if places[query_id] <= depth:
                found.add((query_id, doc_id))
    return found


def ratings_of(query_id: str, doc_id: str) -> list[int]:
    text = f"passage {int(doc_id[-2:])} about {query_id}"
    return [hashed_rating(text, f"question {item} of {query_id}?") for item in range(4)]


def best_rating(query_id: str, doc_id: str) -> int:
    return max(ratings_of(query_id, doc_id))


def test_official_lines_come_first_unchanged_and_every_hole_has_a_line(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    official, merged = drop(graded, tmp_path / "half.qrels"), tmp_path / "merged.qrels"
    text = fill(capsys, graded, "--qrels", official, "-o", merged)
    human, found = labels_of(official), labels_of(merged)
    assert merged.read_bytes().startswith(official.read_bytes())
    holes = pool_of(graded) - human.keys()
    assert found.keys() - human.keys() == holes
    both = [place for place in pool_of(graded) if place in human]
    rule = fitted([best_rating(*place) for place in both], [human[place] for place in both])
    assert {place: found[place] for place in holes} == {place: rule(best_rating(*place)) for place in holes}
    assert f"labels: {rule}" in text
    assert run(["check", str(merged), "--as", "qrels"]) == 0


def test_the_sources_file_says_who_labelled_each_line(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    official, merged = drop(graded, tmp_path / "half.qrels"), tmp_path / "merged.qrels"
    fill(capsys, graded, "--qrels", official, "-o", merged, "--map", "thresholds")
    rows = tsv_rows(tmp_path / "merged.qrels.sources.tsv")
    human = labels_of(official)
    lines = merged.read_text().splitlines()
    assert [f"{row['query_id']} {row['iteration']} {row['doc_id']} {row['label']}" for row in rows] == lines
    for row in rows:
        place = row["query_id"], row["doc_id"]
        if place in human:
            assert row["source"] == "human"
            assert not any(row[key] for key in ("grader", "model", "prompt", "rating", "confidence", "rule"))
        else:
            assert (row["source"], row["grader"], row["model"]) == ("model", "recorded", "hash")
            assert int(row["rating"]) == best_rating(*place)
            assert int(row["label"]) == int(best_rating(*place) >= 4)
            assert row["rule"] == "thresholds: below 4: 0, from 4: 1"
    assert {row["source"] for row in rows} == {"human", "model"}


def test_only_holes_are_sent_to_the_grader(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    official = drop(root, tmp_path / "half.qrels")
    holes = pool_of(root) - labels_of(official).keys()
    grader = HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        found = track.fill.find(official, rule="identity")
        assert not grader.asked
        assert not (root / ".trecexam").exists()
        assert found.missing == 4 * len(holes)
        filled = track.fill(found)
        assert {(cell.query_id, cell.doc_id) for cell in grader.asked} == holes
        assert filled.graded == len(grader.asked) == 4 * len(holes)
        again = track.fill(track.fill.find(official, rule="identity"))
        assert again.graded == 0
        assert again.rows == filled.rows
    assert len(grader.asked) == 4 * len(holes)


def test_the_confidence_is_that_of_the_grader_and_stays_when_nothing_is_graded(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    official = drop(root, tmp_path / "half.qrels")
    with trecexam.open_track(root, grader=SureGrader()) as track:
        first = track.fill(track.fill.find(official, rule="identity"))
        again = track.fill(track.fill.find(official, rule="identity"))
    assert first.rows == again.rows
    for row in first.rows[len(first.found.official.rows) :]:
        ratings = ratings_of(row.query_id, row.doc_id)
        shares = [chances(Answer(rating, "ok", "")) for rating in ratings]
        at_most, less = (
            math.prod(sum(each[:end]) for each in shares) for end in (max(ratings) + 1, max(ratings))
        )
        assert row.confidence == pytest.approx(at_most - less)


def test_a_watched_track_is_filled_if_nothing_needs_grading(graded: Path, tmp_path: Path) -> None:
    official, merged = drop(graded, tmp_path / "half.qrels"), tmp_path / "merged.qrels"
    with track_lock(graded / ".trecexam" / "lock"):
        assert run(["fill", str(graded), "--qrels", str(official), "-o", str(merged)]) == 0
        shutil.rmtree(graded / "out")
    assert merged.exists()


def test_a_track_that_is_being_graded_is_not_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track", config=RECORDED)
    (root / "grades.jsonl").write_text(
        '{"query_id": "q1", "doc_id": "q1-d00", "item_id": "q1/0", "rating": 1}\n'
    )
    merged = tmp_path / "merged.qrels"
    with track_lock(root / ".trecexam" / "lock"):
        half = drop(root, tmp_path / "half.qrels")
        text = fill(capsys, root, "--qrels", half, "-o", merged, "--map", "identity", status=2)
    assert "is already grading this track" in text
    assert not merged.exists()


def test_holes_without_text_or_grade_remain_and_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track", queries=1, config=RECORDED)
    official = tmp_path / "few.qrels"
    official.write_text("q1 0 q1-d00 1\n")
    pooled = sorted(doc for _, doc in pool_of(root) if doc != "q1-d00")
    mute, ungraded, half = pooled[:3]
    passages = [json.loads(line) for line in (root / "passages.jsonl").read_text().splitlines()]
    write_jsonl(root / "passages.jsonl", (row for row in passages if row["docid"] != mute))
    write_jsonl(
        root / "grades.jsonl",
        (
            {"query_id": "q1", "doc_id": doc, "item_id": f"q1/{item}", "rating": item}
            for doc in pooled
            if doc != ungraded
            for item in range(2 if doc == half else 4)
        ),
    )
    merged = tmp_path / "merged.qrels"
    text = fill(capsys, root, "--qrels", official, "-o", merged, "--map", "identity", status=1)
    assert "not filled: 1 hole whose passage has no text to grade" in text
    assert "not filled: 1 hole that no grader rated" in text
    assert "1 passage without a rating on some items, which count as not reached" in text
    found = labels_of(merged)
    assert not {("q1", mute), ("q1", ungraded)} & found.keys()
    assert found["q1", half] == 1
    assert len(found) == len(pooled) + 1 - 2


@pytest.mark.parametrize("how", ["same", "link", "hard link", "other spelling", "the track's own"])
def test_official_judgments_are_never_overwritten(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    official, other = drop(graded, tmp_path / "half.qrels"), tmp_path / "other.qrels"
    if how == "link":
        other.symlink_to(official)
    elif how == "hard link":
        other.hardlink_to(official)
    target = {
        "same": official,
        "other spelling": tmp_path / "x" / ".." / "half.qrels",
        "the track's own": graded / "qrels.txt",
    }.get(how, other)
    before = official.read_bytes(), (graded / "qrels.txt").read_bytes()
    if how == "other spelling":
        (tmp_path / "x").mkdir()
    text = fill(capsys, graded, "--qrels", official, "-o", target, status=2)
    assert "name another file" in text
    assert (official.read_bytes(), (graded / "qrels.txt").read_bytes()) == before


@pytest.mark.parametrize("where", ["named", "the track's own"])
def test_output_of_fill_is_not_accepted_as_judgments_of_people(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    merged = tmp_path / "merged.qrels"
    fill(capsys, graded, "--qrels", drop(graded, tmp_path / "half.qrels"), "-o", merged)
    options = ["--qrels", merged]
    if where == "the track's own":
        for suffix in ("", ".sources.tsv"):
            content = (tmp_path / f"merged.qrels{suffix}").read_bytes()
            (graded / f"qrels.txt{suffix}").write_bytes(content)
        options = []
    text = fill(capsys, graded, *options, "-o", tmp_path / "again.qrels", status=2)
    assert "not all lines are people's; name the official judgments" in text
    assert not (tmp_path / "again.qrels").exists()


def test_ids_of_another_form_are_an_error_unless_a_map_is_given(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    official, merged = tmp_path / "other.qrels", tmp_path / "merged.qrels"
    official.write_text("q1 0 clueweb-1 1\nq2 0 clueweb-2 0\n")
    text = fill(capsys, graded, "--qrels", official, "-o", merged, status=2)
    assert "'clueweb-1'" in text
    assert "'q1-d00'" in text
    assert "--map identity" in text
    assert not merged.exists()
    text = fill(capsys, graded, "--qrels", official, "-o", merged, "--map", "identity")
    assert "'clueweb-1'" in text
    assert len(labels_of(merged)) == 2 + len(pool_of(graded))
    official.write_text("topic-1 0 q1-d00 1\n")
    assert "are query ids written in another form?" in fill(
        capsys, graded, "--qrels", official, "-o", merged, status=2
    )


def test_a_map_that_cannot_be_fitted_gives_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track", config=RECORDED)
    (root / "grades.jsonl").write_text(
        '{"query_id": "q1", "doc_id": "q1-d00", "item_id": "q1/0", "rating": 1}\n'
    )
    merged = tmp_path / "merged.qrels"
    half = drop(root, tmp_path / "half.qrels")
    # Before hours of grading.
    text = fill(capsys, root, "--qrels", half, "-o", merged, status=2)
    assert "no rule gives official labels for the grader's: no passage has both" in text
    assert not (root / ".trecexam").exists()
    assert not merged.exists()
    fill(capsys, root, "--qrels", half, "-o", merged, "--map", "thresholds", status=1)
    assert merged.exists()


@pytest.mark.parametrize(
    ("way", "words", "cuts"),
    [
        ("identity", "labels up to 5, and the highest official one is 3", (1, 2, 3, 4, 5)),
        ("3=1, 5=2", "labels: thresholds: below 3: 0, from 3: 1, from 5: 2", (3, 5)),
    ],
)
def test_a_given_map_is_used_for_every_hole(
    graded: Path, tmp_path: Path, way: str, words: str, cuts: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    half, merged = drop(graded, tmp_path / "half.qrels"), tmp_path / "m"
    assert words in fill(capsys, graded, "--qrels", half, "-o", merged, "--map", way)
    found = labels_of(merged)
    for place in pool_of(graded) - labels_of(half).keys():
        assert found[place] == sum(best_rating(*place) >= cut for cut in cuts)


def test_with_count_labels_the_threshold_is_min_answers(graded: Path, tmp_path: Path) -> None:
    (graded / "trecexam.toml").write_text(
        RECORDED + '[scores]\nlabel = "count"\nmin_answers = 2\nmin_relevant = 2\n'
    )
    with trecexam.open_track(graded) as track:
        found = track.fill.find(drop(graded, tmp_path / "half.qrels"), rule="thresholds")
    assert str(found.rule) == "thresholds: below 2: 0, from 2: 2"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--map", "4"], "LABEL=OFFICIAL"),
        (["--map", "4=1,4=2"], "each label once"),
        (["--map", "4=2,5=1"], "official labels must not fall as labels rise: 4=2 and then 5=1"),
        (["--map", "9=1"], "no passage has the label 9; automatic labels here are on the scale 0..5"),
        (["-o", "-"], "is not a file"),
    ],
)
def test_contradictory_options_are_rejected(
    graded: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = fill(capsys, graded, "-o", "m", *options, status=2)
    assert why in text.splitlines()[-1]
    assert text.count("trecexam: ") == 1
    assert not Path("m").exists()


def test_subtopics_of_official_judgments_are_kept(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    official, merged = tmp_path / "sub.qrels", tmp_path / "m"
    official.write_text("q1 1 q1-d00 1\nq1 2 q1-d00 0\nq1 1 q1-d01 -2\n")
    text = fill(capsys, graded, "--qrels", official, "-o", merged, "--map", "identity")
    assert "judges subtopics" in text
    assert merged.read_text().startswith(official.read_text())
    new = merged.read_text().splitlines()[3:]
    assert len(new) == len(pool_of(graded) - {("q1", "q1-d00"), ("q1", "q1-d01")})
    assert {line.split()[1] for line in new} == {"0"}


def test_a_failed_write_leaves_both_old_files(
    graded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    merged, sources = tmp_path / "m", tmp_path / "m.sources.tsv"
    merged.write_text("old")
    sources.write_text("older")
    real = os.fsync
    calls: list[int] = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr("os.fsync", full)
    text = fill(capsys, graded, "-o", merged, status=2)
    assert f"{merged}: cannot be written: No space left on device" in text
    assert (merged.read_text(), sources.read_text()) == ("old", "older")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.sources.tsv", "track"]


def test_a_failing_grader_keeps_its_grades_and_nothing_is_written(tmp_path: Path) -> None:
    root, merged = make_small_track(tmp_path / "track"), tmp_path / "m"
    official = drop(root, tmp_path / "half.qrels")
    grader = HashGrader(batch=5)
    grader.fail_after = 3
    with trecexam.open_track(root, grader=grader) as track, pytest.raises(RuntimeError):
        track.fill(track.fill.find(official, rule="identity"), output=merged)
    assert not merged.exists()
    with GradeStore(root / ".trecexam" / "grades.sqlite", write=False) as store:
        assert store.count() == 15
    with track_lock(root / ".trecexam" / "lock"):
        pass
    again = HashGrader()
    with trecexam.open_track(root, grader=again) as track:
        filled = track.fill(track.fill.find(official, rule="identity"), output=merged)
    calm = make_small_track(tmp_path / "calm")
    with trecexam.open_track(calm, grader=HashGrader()) as track:
        undisturbed = track.fill(track.fill.find(official, rule="identity"))
    assert len(again.asked) == undisturbed.graded - 15
    assert merged.read_bytes() == b"".join(map(qrels_line, undisturbed.qrels))
    assert filled.rows == undisturbed.rows


#: Fills a track and is killed without cleaning up: in the 3rd batch, or before the 1st rename.
KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import trecexam
from support import HashGrader
class Killed(HashGrader):
    def _done(self, batch):
        if sys.argv[5] == "grading" and self.batches == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._done(batch)
if sys.argv[5] == "writing":
    Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with trecexam.open_track(sys.argv[2], grader=Killed(batch=5)) as track:
    track.fill(track.fill.find(sys.argv[3], rule="identity"), output=sys.argv[4])
"""


@pytest.mark.parametrize(("when", "kept"), [("grading", 15), ("writing", None)])
def test_a_killed_fill_leaves_the_old_files_and_resumes(tmp_path: Path, when: str, kept: int | None) -> None:
    root, merged = make_small_track(tmp_path / "track"), tmp_path / "m"
    official = drop(root, tmp_path / "half.qrels")
    merged.write_text("old")
    (tmp_path / "m.sources.tsv").write_text("older")
    arguments = [str(ROOT / "tests" / "helpers"), str(root), str(official), str(merged), when]
    child = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, check=False)
    assert child.returncode == -signal.SIGKILL
    assert (merged.read_text(), (tmp_path / "m.sources.tsv").read_text()) == ("old", "older")
    grader = HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        filled = track.fill(track.fill.find(official, rule="identity"), output=merged)
    cells = 4 * filled.found.n_holes
    assert len(grader.asked) == (0 if kept is None else cells - kept)
    assert merged.read_bytes() == b"".join(map(qrels_line, filled.qrels))


def test_as_unjudged_changes_no_value_on_the_official_judgments(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pytrec_eval

    official, merged = tmp_path / "half.qrels", tmp_path / "m"
    half = drop(graded, tmp_path / "all.qrels").read_text()
    # q3 is unjudged, a query is in no run, and one judgment is negative.
    kept = "".join(line + "\n" for line in half.splitlines() if line[:2] != "q3")
    official.write_text(f"{kept}q1 0 extra -2\nzz 0 x 1\n")
    text = fill(capsys, graded, "--qrels", official, "-o", merged, "--as-unjudged")
    assert "are left out: negative labels alone stop trec_eval" in text
    human, found = labels_of(official), labels_of(merged)
    new = found.keys() - human.keys()
    assert new == {place for place in pool_of(graded) if place[0] != "q3"} - human.keys()
    assert {found[place] for place in new} == {-1}
    assert run(["fill", str(graded), "--qrels", str(official), "-o", str(merged), "--as-unjudged"]) == 0
    assert f"model\t-1\t{len(new)}\n" in capsys.readouterr().out
    rows = {(row["query_id"], row["doc_id"]): row for row in tsv_rows(tmp_path / "m.sources.tsv")}
    filled = tmp_path / "filled"
    text = fill(capsys, graded, "--qrels", official, "-o", filled)
    lost = sum(query_id == "q3" for query_id, _ in pool_of(graded))
    assert f"1 query ('q3') without an official judgment: all {lost} passages are holes" in text
    assert "1 query ('zz') of " in text
    for place in new:
        assert int(rows[place]["label"]) == labels_of(filled)[place] >= 0

    def values(judgments: Labels, path: Path) -> dict[str, dict[str, float]]:
        by_query: dict[str, dict[str, int]] = {}
        for (query_id, doc_id), label in judgments.items():
            by_query.setdefault(query_id, {})[doc_id] = label
        ranked: dict[str, dict[str, float]] = {}
        for line in path.read_text().splitlines():
            query_id, _, doc_id, _, score, _ = line.split()
            ranked.setdefault(query_id, {})[doc_id] = float(score)
        # Only infAP distinguishes unjudged passages in the pool from those outside: this is the purpose of
        # the label -1.
        measures = pytrec_eval.supported_measures - {"infAP", "runid"}
        result: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(by_query, measures).evaluate(
            ranked
        )
        return result

    for path in (graded / "runs").iterdir():
        assert values(found, path) == values(human, path)
        assert values(labels_of(filled), path) != values(human, path)


@pytest.mark.parametrize("seed", range(6))
def test_for_any_judgments_and_grades_no_human_line_changes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = make_small_track(tmp_path / "track", queries=3)
    places = [(f"q{q}", f"q{q}-d{d:02}") for q in range(1, 5) for d in range(14)]
    rng.shuffle(places)
    rows = [f"{q} 0 {doc} {rng.choice([-2, -1, 0, 0, 1, 2, 3])}\n" for q, doc in places[: rng.randint(5, 50)]]
    official, merged = tmp_path / "official.qrels", tmp_path / "merged.qrels"
    official.write_text("".join(rows))
    grader = HashGrader(version=seed)
    grader.status = lambda cell: rng.choice(["ok", "ok", "unparsed", "refused", "error"])
    with trecexam.open_track(root, grader=grader) as track:
        if rng.random() < 0.5:
            track.update()
        asked = len(grader.asked)
        rule = rng.choice([None, "identity"])
        try:
            found = track.fill.find(official, rule=rule)
        except TrecexamError:
            # No judged passage has a grade.
            found = track.fill.find(official, rule="identity")
        filled = track.fill(found, output=merged)
    human = {place: label for place, label in labels_of(official).items() if label != -1}
    lines, filled_lines = official.read_text().splitlines(), merged.read_text().splitlines()
    kept = [line for line in lines if not line.endswith(" -1") or line in filled_lines]
    assert filled_lines[: len(kept)] == kept
    assert labels_of(merged).keys() - labels_of(official).keys() <= pool_of(root, found.depth)
    assert not {(cell.query_id, cell.doc_id) for cell in grader.asked[asked:]} & human.keys()
    assert filled.filled + filled.no_text + filled.no_grade == found.n_holes
    assert found.n_holes == len(pool_of(root, found.depth) - human.keys())
