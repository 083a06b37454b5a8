"""Judgments by people of the track count like official ones, on the official scale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import printed, tsv_rows

import trecexam
from trecexam import Track
from trecexam.cli.main import run

SCALE = '\n[judging]\nscale = ["no", "related", "highly", "perfectly"]\nrule = "{}"\n'
HOLE, OTHER = ("q1", "q1-d03"), ("q1", "q1-d01")


@pytest.fixture
def track(graded: Path) -> Path:
    """A graded track with judgments 0..3, without one of the passages HOLE and OTHER."""
    qrels = graded / "qrels.txt"
    lines = [line for line in qrels.read_text().splitlines() if tuple(line.split()[::2]) not in (HOLE, OTHER)]
    qrels.write_text("".join(f"{line}\n" for line in lines))
    assert max(line.split()[3] for line in lines) == "3"
    return graded


def judge(root: Path, *judgments: tuple[str, int], of: tuple[str, str] = HOLE, kind: str = "") -> None:
    """Import judgments of people, as of a campaign: (name, label)."""
    table = root.parent / "table.tsv"
    rows = [(*of, str(label), name, kind) for name, label in judgments]
    header = ("query_id", "doc_id", "rating", "assessor", "kind")
    table.write_text("".join("\t".join(row) + "\n" for row in (header, *rows)))
    assert run(["judge", "import", str(root), str(table)]) == 0


def with_rule(root: Path, rule: str) -> None:
    config = root / "trecexam.toml"
    config.write_text(config.read_text() + SCALE.format(rule))


def filled(
    root: Path, capsys: pytest.CaptureFixture[str], *more: str, status: int = 0
) -> tuple[dict[tuple[str, str], dict[str, str]], str]:
    """The lines of sources.tsv by passage, and what `fill` says."""
    merged = root.parent / "merged.qrels"
    said = printed(capsys, "fill", root, "-o", merged, *more, status=status).err
    official = (root / "qrels.txt").read_bytes()
    assert merged.read_bytes().startswith(official)
    sources = tsv_rows(merged.with_name("merged.qrels.sources.tsv"))
    rows = {(row["query_id"], row["doc_id"]): row for row in sources}
    lines = [line.split() for line in merged.read_text().splitlines()]
    if "--as-unjudged" not in more:
        assert [(line[0], line[2], line[3]) for line in lines] == [
            (*passage, row["label"]) for passage, row in rows.items()
        ]
    return rows, said


@pytest.mark.parametrize("settings", ["latest", "majority", "adjudicated"])
def test_what_two_people_judged_is_in_the_merged_file_with_their_names(
    track: Path, capsys: pytest.CaptureFixture[str], settings: str
) -> None:
    with_rule(track, settings)
    judge(track, ("ada", 2), ("bob", 2))
    rows, said = filled(track, capsys)
    row = rows[HOLE]
    assert (row["label"], row["source"], row["who"]) == ("2", "human", "ada; bob")
    assert (row["grader"], row["rule"], row["rating"]) == ("", "", "")
    assert rows[OTHER]["source"] == "model"
    assert "1 passage judged by people of this track (ada 1, bob 1) count like those of qrels.txt" in said
    assert "as before, 1 judgment by people of this track, and" in said


def test_each_person_is_counted_by_what_she_judged_and_passages_of_no_run_are_named(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_rule(track, "latest")
    judge(track, ("ada", 1), ("bob", 2))
    judge(track, ("ada", 1), of=("q1", "elsewhere"))
    rows, said = filled(track, capsys)
    assert (rows[HOLE]["label"], rows[HOLE]["who"]) == ("2", "bob")
    assert "1 passage judged by people of this track (ada 1, bob 1) count" in said
    assert "not counted: 1 passage that people judged, in the first " in said


def test_judgments_that_do_not_count_fill_nothing(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_rule(track, "adjudicated")
    judge(track, ("ada", 2), ("bob", 0))
    assert filled(track, capsys)[0][HOLE]["source"] == "model"
    judge(track, ("eve", 1), kind="adjudicated")
    row = filled(track, capsys)[0][HOLE]
    assert (row["label"], row["source"], row["who"]) == ("1", "human", "eve")


def test_an_official_judgment_stays_and_a_note_names_who_judged_otherwise(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query_id, _, doc_id, label = (track / "qrels.txt").read_text().splitlines()[0].split()
    other = (int(label) + 1) % 4
    cell = ["--query", query_id, "--doc", doc_id, "--who", "ada", "--why", "read it"]
    assert run(["override", str(track), *cell, "--rating", str(other)]) == 0
    assert f"{other} (ada) is kept; the official judgment {label} counts" in capsys.readouterr().err
    rows, said = filled(track, capsys)
    assert (rows[query_id, doc_id]["label"], rows[query_id, doc_id]["who"]) == (label, "")
    assert (
        "people judged 1 passage (ada 1) otherwise than qrels.txt, whose labels count "
        f"({query_id} {doc_id}: {label} there, {other} by ada)"
    ) in said


@pytest.mark.parametrize("label", [0, 3])
def test_a_judgment_by_override_is_on_the_official_scale_and_never_mapped(
    track: Path, capsys: pytest.CaptureFixture[str], label: int
) -> None:
    cell = ["--query", HOLE[0], "--doc", HOLE[1], "--who", "ann", "--why", "read it"]
    assert run(["override", str(track), *cell, "--rating", str(label)]) == 0
    assert f"{label} (ann) is the judgment" in capsys.readouterr().err
    for way in ((), ("--map", "thresholds"), ("--map", "identity"), ("--map", "5=3")):
        row = filled(track, capsys, *way)[0][HOLE]
        assert (row["label"], row["source"], row["who"], row["why"]) == (
            str(label),
            "human",
            "ann",
            "read it",
        )
    header, line = (track / "judgments.tsv").read_text().splitlines()
    assert dict(zip(header.split("\t"), line.split("\t"), strict=True))["scale"] == "0..3"
    assert not (track / "overrides.tsv").exists()


@pytest.fixture
def judged(track: Path) -> Iterator[tuple[Track, dict[str, float]]]:
    """The track after a judgment of HOLE, and figures from before it."""
    with trecexam.open_track(track) as opened:
        before = {
            "unjudged": opened.holes().facts["pool"][0]["unjudged"],
            "both": opened.agreement().n_both,
            "holes": opened.fill.find().n_holes,
        }
    judge(track, ("ada", 2))
    with trecexam.open_track(track) as opened:
        yield opened, before


def test_holes_and_agreement_count_judgments_by_people(judged: tuple[Track, dict[str, float]]) -> None:
    track, before = judged
    holes, agreement, found = track.holes(), track.agreement(), track.fill.find()
    assert holes.facts["pool"][0]["unjudged"] == before["unjudged"] - 1
    assert agreement.n_both == before["both"] + 1
    assert found.n_holes == before["holes"] - 1
    for result in (holes, agreement, found):
        assert any("1 passage judged by people of this track (ada 1)" in note for note in result.notes)
    track.update()
    said = (track.folder.out / "holes.tsv").read_text()
    assert said == holes.to_tsv()
    assert (track.folder.out / "agreement.tsv").read_text() == agreement.to_tsv()


def test_ratings_on_the_graders_scale_are_neither_mapped_nor_overwritten(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People rated 0..5 before there were official judgments."""
    qrels = (track / "qrels.txt").rename(track / "aside.qrels")
    cell = ["--query", HOLE[0], "--doc", HOLE[1], "--who", "ann", "--why", "read it"]
    assert run(["override", str(track), *cell, "--rating", "3"]) == 0
    assert (track / "overrides.tsv").exists()
    qrels.rename(track / "qrels.txt")
    rows, said = filled(track, capsys, status=1)
    assert HOLE not in rows
    assert "not filled: 1 hole that people rated as a whole on the grader's scale 0..5 (ann 1)" in said
    row = filled(track, capsys, "--map", "identity")[0][HOLE]
    assert (row["label"], row["source"], row["who"]) == ("3", "override", "ann")
    # Judged again, on the official scale.
    assert run(["override", str(track), *cell, "--rating", "1"]) == 0
    row = filled(track, capsys)[0][HOLE]
    assert (row["label"], row["source"]) == ("1", "human")


def test_a_judgment_on_a_scale_that_is_another_one_by_now_is_rejected(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(track, ("ada", 1))
    lines = (track / "qrels.txt").read_text().splitlines()
    (track / "qrels.txt").write_text("".join(f"{line[:-1]}{min(int(line[-1]), 1)}\n" for line in lines))
    rows, said = filled(track, capsys)
    assert rows[HOLE]["source"] == "model"
    reason = "ada's rating of 'q1-d03' was given on the scale 0..3, and the scale of the official judgments"
    assert f"not counted: 1 line of judgments.tsv, the first is line 2: {reason} is 0..1" in said
    assert run(["watch", str(track), "--once"]) == 1
    assert reason in (track / "out" / "rejected.tsv").read_text()


def test_an_export_has_the_scale_and_is_read_back(track: Path) -> None:
    judge(track, ("ada", 2), ("bob", 3))
    judged = track.parent / "judged"
    assert run(["judge", "export", str(track), "-o", str(judged)]) == 0
    assert (judged / "qrels.txt").read_text() == f"{HOLE[0]} 0 {HOLE[1]} 3\n"
    assert [row["scale"] for row in tsv_rows(judged / "judgments.tsv")] == ["0..3", "0..3"]
    before = (track / "judgments.tsv").read_bytes()
    assert run(["judge", "import", str(track), str(judged / "judgments.tsv")]) == 0
    assert (track / "judgments.tsv").read_bytes() == before
