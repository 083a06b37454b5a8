"""`cross-validate --from`: how well another track's judgments carry over."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable
from sklearn.metrics import cohen_kappa_score

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder

ALONE = "none known but of other"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another track's: six queries with other words."""
    root = make_learnable(tmp_path / "other", queries=6)
    for name in ("queries.tsv", "bank.questions.jsonl", "passages.jsonl", "qrels.txt", "runs/a.run"):
        text = (root / name).read_text()
        (root / name).write_text(text.replace("q", "z").replace("zuer", "quer").replace("zuest", "quest"))
    for run_file in "bcd":
        (root / "runs" / f"{run_file}.run").unlink()
    return root


def test_what_carries_over_is_measured_with_the_other_tracks_judgments_alone(
    learnable: Path, other: Path
) -> None:
    with trecexam.open_track(learnable) as track:
        rows = track.learn.cross_validate(source=other, known=[0.5], top=[3], repeats=1, resamples=0).rows
    (row,) = (row for row in rows if row.split == ALONE and row.method == "learned")
    assert row.known == 0
    sides = []
    for root in (learnable, other):
        with TrackLoader(TrackFolder.open(root)) as loader:
            sides.append(gather_data(loader.load(), encoder=WordEncoder()).queries)
    here, there = sides
    known = [~np.isnan(query.judgments) for query in here]
    assert row.hidden == sum(of_query.sum() for of_query in known)
    fitted = fit([query.passages for query in there])
    judged, labels = [], []
    for query, of_query in zip(here, known, strict=True):
        blank = query.hiding(of_query)
        judged += query.judgments[of_query].tolist()
        labels += predict(fitted, blank.passages).labels[of_query].tolist()
    naive = cohen_kappa_score(np.array(judged) >= 2, np.array(labels) >= 2)
    assert row.kappa.value == pytest.approx(naive)
    assert not np.isnan(row.tau.value)


def test_ratings_are_features_where_both_tracks_have_the_same_grader(learnable: Path, other: Path) -> None:
    cells = [(f"{letter}0", at) for letter in "qz" for at in range(14)]
    recording = [
        {"query_id": q, "doc_id": f"{q}-d{at:02}", "item_id": f"{q}/1", "rating": at % 6} for q, at in cells
    ]
    for root in (learnable, other):
        with (root / "trecexam.toml").open("a") as config:
            config.write('\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
        (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recording))
        with trecexam.open_track(root) as track:
            assert track.update().graded > 0
    with trecexam.open_track(learnable) as track:
        assert track.learn.labels(source=other).identity["grader_ratings"]


def test_judgments_of_a_query_that_both_tracks_ask_do_not_tell_what_is_hidden(
    learnable: Path, tmp_path: Path
) -> None:
    twin = make_learnable(tmp_path / "twin", queries=7)
    with trecexam.open_track(learnable) as track:
        validation = track.learn.cross_validate(source=twin, known=[0.5], top=[3], repeats=1, resamples=0)
    asked = "5 queries ('q0', 'q1', 'q2', ...) of the other track are asked here, too"
    assert any(asked in note for note in validation.notes)
    lines = (twin / "qrels.txt").read_text().splitlines(keepends=True)
    (twin / "qrels.txt").write_text("".join(line for line in lines if line.startswith(("q5 ", "q6 "))))
    with trecexam.open_track(learnable) as track:
        without = track.learn.cross_validate(source=twin, known=[0.5], top=[3], repeats=1, resamples=0)
    assert repr(validation.rows) == repr(without.rows)


def test_without_judgments_here_the_other_track_is_validated_within_itself_and_it_is_said(
    learnable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = make_learnable(tmp_path / "bare", queries=2)
    (bare / "qrels.txt").unlink()
    options = ["--repeats", "1", "--json"]
    assert run(["cross-validate", str(bare), "--from", str(learnable), *options]) == 0
    shown = capsys.readouterr()
    assert f"no judgments here, so all figures are of {learnable} within itself" in shown.err
    assert run(["cross-validate", str(learnable), *options]) == 0
    assert json.loads(shown.out)["ways"] == json.loads(capsys.readouterr().out)["ways"]
    assert not (bare / "out").exists()
