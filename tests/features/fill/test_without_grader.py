"""`trecexam fill --by learned`: outputs, errors and fallbacks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from learnable import WordEncoder, fit_once, make_learnable
from support import hashed_rating, printed, tsv_rows

import trecexam
import trecexam.extensions.learn.learned_pool as learning
from trecexam.cli.main import run


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> WordEncoder:
    words = WordEncoder()
    monkeypatch.setattr(learning, "track_encoder", lambda track: words)
    return words


@pytest.fixture(scope="module", autouse=True)
def fitted_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        fit_once(patch)
        yield


@pytest.fixture(scope="module")
def validated_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A track whose grades are in a file, with a stored cross-validation."""
    root = make_learnable(tmp_path_factory.mktemp("fill") / "track", queries=6, docs=20)
    with (root / "grades.jsonl").open("w") as grades:
        for line in (root / "passages.jsonl").read_text().splitlines():
            doc = json.loads(line)["docid"]
            q = doc.split("-")[0]
            grade = {"query_id": q, "doc_id": doc, "item_id": f"{q}/1", "rating": hashed_rating(doc, q)}
            grades.write(json.dumps(grade) + "\n")
    with (root / "trecexam.toml").open("a") as config:
        config.write('\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "track_encoder", lambda track: WordEncoder())
        with trecexam.open_track(root) as opened:
            opened.grading.grade()
        assert run(["learn", str(root)]) == 0
    return root


@pytest.fixture
def validated(validated_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(validated_once, tmp_path / "track"))


@pytest.fixture
def track(validated: Path) -> Path:
    """The same without the stored cross-validation."""
    change_stored(validated, None)
    return validated


def identity_of(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "out" / "learned.json").read_text()))


def change_stored(root: Path, cross_validation: object) -> None:
    identity = {**identity_of(root), "cross_validation": cross_validation}
    (root / "out" / "learned.json").write_text(json.dumps(identity))


def fill(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str, status: int = 0) -> str:
    captured = printed(capsys, "fill", root, "-o", root.parent / "merged.qrels", *arguments, status=status)
    assert status == 2 or captured.out.startswith(("source\tlabel\tlines", "query_id\tholes"))
    return captured.err


def merged(root: Path) -> str:
    return (root.parent / "merged.qrels").read_text()


def sources(root: Path) -> list[dict[str, str]]:
    return tsv_rows(root.parent / "merged.qrels.sources.tsv")


def pooled(root: Path, depth: int = 12) -> set[tuple[str, ...]]:
    ranked = [line.split() for path in (root / "runs").iterdir() for line in path.read_text().splitlines()]
    return {(q, doc) for q, _, doc, rank, *_ in ranked if int(rank) <= depth}


def prefer(root: Path, way: str) -> None:
    """Makes another method the best one of the stored cross-validation."""
    losses = {"learned": 0.9, "grader": 0.8, "none": 0.7, way: 0.1}
    change_stored(root, {**identity_of(root)["cross_validation"], "best": way, "losses": losses})


def learned_table(root: Path) -> dict[tuple[str, str], dict[str, str]]:
    rows = tsv_rows(root / "out" / "learned.tsv")
    return {(row["query_id"], row["doc_id"]): row for row in rows if row["judged"] == "no"}


def test_the_sources_file_has_method_gain_and_probability_of_a_learned_label(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(capsys, track, "--by", "learned")
    rows = sources(track)
    people = (track / "qrels.txt").read_text().splitlines()
    assert [row["source"] for row in rows[: len(people)]] == ["human"] * len(people)
    table = learned_table(track)
    n_pooled = sum(tuple(line.split()[:3:2]) in pooled(track) for line in people)
    for row in rows[len(people) :]:
        expected = table[row["query_id"], row["doc_id"]]
        assert (row["source"], row["grader"], row["model"]) == ("learned", "learned", "words")
        assert (row["label"], float(row["rating"])) == (
            expected["label"],
            pytest.approx(float(expected["gain"])),
        )
        assert row["rule"].startswith(
            f"learned from {n_pooled} judgments, by expected label: below: 0, from "
        )
        assert 0 < float(row["confidence"]) <= 1


def test_labels_that_share_a_cut_are_reported_as_never_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_learnable(tmp_path / "track", queries=6, docs=20)
    rows = [line.split() for line in (root / "qrels.txt").read_text().splitlines()]
    # Only one passage has the label 1, and it is not among the best.
    labels = [{0: 0, 1: 2, 2: 3}[int(row[3])] for row in rows]
    labels[labels.index(0)] = 1
    lines = (" ".join([*row[:3], str(label)]) for row, label in zip(rows, labels, strict=True))
    (root / "qrels.txt").write_text("".join(f"{line}\n" for line in lines))
    fill(capsys, root, "--by", "learned")
    assert all(", never: 1" in row["rule"] for row in sources(root) if row["source"] == "learned")
    assert not any(row["source"] == "learned" and row["label"] == "1" for row in sources(root))


def test_judgments_without_variation_are_an_error_and_nothing_is_written(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (track / "few.qrels").write_text("q0 0 q0-d01 1\n")
    said = fill(capsys, track, "--by", "learned", "--qrels", str(track / "few.qrels"), status=2)
    assert "nothing to learn" in said
    assert not (track.parent / "merged.qrels").exists()


def test_with_other_judgments_these_are_learned_from_instead_of_those_of_the_track(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (track / "qrels.txt").read_text().splitlines(keepends=True)
    (track / "half.qrels").write_text("".join(lines[::2]))
    fill(capsys, track, "--by", "learned", "--qrels", str(track / "half.qrels"))
    rows = sources(track)
    people = [row for row in rows if row["source"] == "human"]
    assert len(people) == len(lines[::2])
    n_pooled = len({(row["query_id"], row["doc_id"]) for row in people} & pooled(track))
    assert f"learned from {n_pooled} judgments" in rows[-1]["rule"]
    assert {(row["query_id"], row["doc_id"]) for row in rows if row["source"] == "learned"} == pooled(
        track
    ) - {(row["query_id"], row["doc_id"]) for row in people}


def test_passages_without_text_are_filled_by_the_votes_of_the_runs(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (track / "runs" / "a.run").open("a") as ranked:
        ranked.write("q0 Q0 textless 0 999 a\n")
    said = fill(capsys, track, "--by", "learned")
    assert (
        "1 pooled passage ('textless') without a text: labels come from the votes of the runs alone" in said
    )
    assert " textless " in merged(track)


def test_ratings_by_people_in_place_of_the_grader_count_only_with_the_grader(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    q, doc = min(learned_table(track))
    with trecexam.open_track(track) as opened:
        opened.override(q, doc, 5, item=1, who="ann", why="it answers all")
    said = fill(capsys, track, "--by", "learned")
    assert "1 hole that people rated in the grader's place" in said
    assert {row["source"] for row in sources(track)} == {"human", "learned"}
    assert "in the grader's place" not in fill(capsys, track, "--by", "grader")
    assert "override" in {row["source"] for row in sources(track)}


# The default method.


@pytest.mark.parametrize(
    ("best", "arguments", "source", "said"),
    [
        (
            "learned",
            "",
            "learned",
            "filled by learned labels; cross-validation here: learned 0.100, ",
        ),
        ("grader", "", "model", "filled by the grader's labels; cross-validation here: grader 0.100, none "),
        ("learned", "--by grader", "model", "labels: fitted on 73 passages"),
        ("learned", "--map thresholds", "model", "labels: thresholds: "),
        ("grader", "--by learned", "learned", "learned labels are not the best way here"),
    ],
)
def test_the_best_of_the_cross_validation_fills_unless_an_option_names_another(
    validated: Path, capsys: pytest.CaptureFixture[str], best: str, arguments: str, source: str, said: str
) -> None:
    prefer(validated, best)
    assert said in fill(capsys, validated, *arguments.split())
    assert {row["source"] for row in sources(validated)} == {"human", source}
    before = merged(validated)
    if not arguments:
        fill(capsys, validated, "--by", best)
        assert merged(validated) == before


def test_if_holes_are_better_than_any_label_nothing_is_written_without_a_choice(
    validated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefer(validated, "none")
    said = fill(capsys, validated, status=2)
    assert "leaving holes orders the runs better than filling them" in said
    assert "(none 0.100, grader 0.800, learned 0.900)" in said
    assert not (validated.parent / "merged.qrels").exists()
    for way in ("learned", "grader"):
        fill(capsys, validated, "--by", way)
        assert (validated.parent / "merged.qrels").exists()


def change_judgments(root: Path) -> None:
    lines = (root / "qrels.txt").read_text().splitlines(keepends=True)
    (root / "qrels.txt").write_text("".join(lines[1:]))


def change_grader(root: Path) -> None:
    with (root / "grades.jsonl").open("a") as grades:
        row = {"query_id": "q0", "doc_id": "q0-d00", "item_id": "q0/1", "rating": 1, "model": "another"}
        grades.write(json.dumps(row) + "\n")
    text = (root / "trecexam.toml").read_text()
    (root / "trecexam.toml").write_text(f'{text}model = "another"\n')


def change_encoder(root: Path) -> None:
    text = (root / "trecexam.toml").read_text()
    (root / "trecexam.toml").write_text(f'{text}[learn]\nencoder = "another"\n')


@pytest.mark.parametrize("change", [change_judgments, change_grader, change_encoder])
def test_an_outdated_cross_validation_is_ignored_with_a_note(
    validated: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None]
) -> None:
    change(validated)
    # The ratings of judged passages by another grader are not known yet.
    told = fill(capsys, validated, "--dry-run", status=2 if change is change_grader else 0)
    said = "was made with other judgments, or another grader or encoder"
    assert f"the stored cross-validation {said}: run `trecexam learn {validated}` again" in told
    assert "until then the grader fills" in told
    assert "labels, as of now: learned" not in told


@pytest.mark.parametrize(
    "damaged", [[], {"best": "learned"}, {"best": 1, "losses": 2}, {"best": "x", "losses": {"x": 0.1}}]
)
def test_a_damaged_cross_validation_counts_as_none(
    validated: Path, capsys: pytest.CaptureFixture[str], damaged: object
) -> None:
    basis = identity_of(validated)["cross_validation"]["basis"]
    change_stored(validated, {**damaged, "basis": basis} if isinstance(damaged, dict) else damaged)
    fill(capsys, validated)
    assert {row["source"] for row in sources(validated)} == {"human", "model"}


def test_learned_labels_are_not_accepted_as_judgments_of_people(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", str(track)]) == 0
    learned, merged = track / "out" / "learned.qrels", track.parent / "again.qrels"
    said = printed(capsys, "fill", track, "--qrels", learned, "--by", "learned", "-o", merged, status=2).err
    assert "`trecexam learn` wrote it, as learned.json beside it says" in said
    assert not merged.exists()


def test_without_holes_no_map_is_needed(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(capsys, track, "--by", "learned")
    (track / "grades.jsonl").write_text("")
    full = track.parent / "full.qrels"
    full.write_text(merged(track))
    fill(capsys, track, "--qrels", str(full))
    assert merged(track) == full.read_text()


def test_filling_by_learned_labels_grades_nothing(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (track / "trecexam.toml").write_text((track / "trecexam.toml").read_text() + 'model = "nobody"\n')
    assert "0 cells to grade" in fill(capsys, track, "--by", "learned")
