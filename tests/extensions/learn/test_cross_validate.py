"""`cross-validate`: comparisons, messages, and what is stored for `fill`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable, make_misleading, most_retrieved_alone
from near import near
from sklearn.metrics import cohen_kappa_score

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.learn.arithmetic.check import compare, hidings, labels, zeros
from trecexam.extensions.learn.arithmetic.learning import Learned, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.extensions.learn.validation import Validation
from trecexam.files.kept import read_kept
from trecexam.line.loader import opened

ROWS = [
    ("learned-leaderboard", "learned"),
    ("learned-leaderboard", "unjudged = 0"),
    ("learned-leaderboard", "condensed"),
    ("fill", "learned"),
    ("fill", "none"),
]


def validated(root: Path) -> Validation:
    with trecexam.open_track(root) as track:
        return track.learn.cross_validate()  # type: ignore[no-any-return]


def queries_of(root: Path) -> tuple[QueryPassages, ...]:
    with opened(root) as loader:
        return gather_data(loader.load(), encoder=WordEncoder()).queries


def verdict(root: Path) -> dict[str, Any]:
    content = read_kept(root / ".trecexam" / "verdict.json")
    assert content is not None
    return dict(json.loads(content))


def test_the_command_shows_every_method_and_writes_nothing_to_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_learnable(tmp_path / "track", queries=6)
    assert run(["cross-validate", str(root), "--json"]) == 0
    shown = capsys.readouterr()
    value = json.loads(shown.out)
    assert [(row["used_by"], row["way"]) for row in value["ways"]] == ROWS
    assert all(line in shown.err for line in value["notes"])
    assert (value["design"], value["best"]) == ("random", "learned")
    assert 0.4 < value["retrieved_more"] < 0.75
    assert value["judged"] == sum(query.judged.sum() for query in queries_of(root))
    assert 0.35 < value["hidden"] / value["judged"] < 0.65
    assert sum(row["verdict"] == "best" for row in value["ways"]) == 2
    for row in value["ways"]:
        assert 0 <= row["loss"] <= 2
        assert (row["kappa"] is None) == ((row["used_by"], row["way"]) != ("fill", "learned"))
    assert not (root / "out").exists()


def test_losses_and_kappa_use_only_hidden_judgments(
    tmp_path: Path,
) -> None:
    root = make_learnable(tmp_path / "track", queries=6)
    queries = queries_of(root)
    ways = {"learned": labels, "none": zeros}
    compared = compare(queries, ways, 2)
    rows = {row[1]: row for row in validated(root).rows if row[0] == "fill"}
    for name in ways:
        assert rows[name][2] == pytest.approx(compared.ways[name].loss)
    judged, said = [], []
    for repeat in hidings(queries, "random"):
        seen = [query.hiding(hidden) for query, hidden in zip(queries, repeat, strict=True)]
        learned = fit(seen)
        for query, known, hidden in zip(queries, seen, repeat, strict=True):
            judged += (query.judgments[hidden] >= 2).tolist()
            said += (predict(learned, known).labels[hidden] >= 2).tolist()
    assert rows["learned"][3] == pytest.approx(cohen_kappa_score(judged, said))
    assert rows["learned"][4] <= rows["learned"][3] <= rows["learned"][5]


@pytest.mark.slow
def test_the_judging_design_is_reported(tmp_path: Path) -> None:
    root = make_learnable(tmp_path / "track", queries=6, docs=20)
    notes = validated(root).notes
    assert any("as often as the others, as in a random sample" in note for note in notes)
    most_retrieved_alone(root, 6)
    validation = validated(root)
    assert validation.design == "most retrieved"
    assert validation.share > 0.8
    assert validation.hidden == 18
    assert any("of each query the less retrieved half was hidden" in note for note in validation.notes)
    pooled = {
        tuple(line.split()[0:3:2])
        for path in (root / "runs").iterdir()
        for line in path.read_text().splitlines()
    }
    every = "".join(f"{query} 0 {doc} {int(doc[-2:]) % 3}\n" for query, doc in sorted(pooled))
    (root / "qrels.txt").write_text(every)
    validation = validated(root)
    assert validation.design == "all"
    assert any("all of the pool is judged; a random half was hidden" in note for note in validation.notes)


@pytest.mark.slow
@pytest.mark.parametrize("least", [3, 0])
def test_a_threshold_reached_by_no_or_every_judgment_is_reported(
    learnable: Path, capsys: pytest.CaptureFixture[str], least: int
) -> None:
    config = (learnable / "trecexam.toml").read_text()
    (learnable / "trecexam.toml").write_text(config.replace("min_relevant = 2", f"min_relevant = {least}"))
    if not least:
        # Settings start at 1.
        (learnable / "trecexam.toml").write_text(config.replace("min_relevant = 2", "min_relevant = 1"))
        text = (learnable / "qrels.txt").read_text()
        (learnable / "qrels.txt").write_text(text.replace(" 0\n", " 1\n"))
    assert run(["cross-validate", str(learnable)]) == 0
    which = "no judgment reaches `min_relevant = 3`" if least else "every judgment reaches `min_relevant = 1`"
    assert f"{which}, so kappa says nothing" in capsys.readouterr().err


def test_too_few_judgments_to_hide_any_are_reported(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, why in (
        ("q0 0 q0-d01 0\nq1 0 q1-d01 2\n", "too few judgments to hide half of them: "),
        ("q0 0 q0-d01 2\n", "nothing to validate on: the only judgment is 2"),
        ("q0 0 nowhere 2\n", "nothing to validate on"),
    ):
        (learnable / "qrels.txt").write_text(text)
        assert run(["cross-validate", str(learnable)]) == 2
        error = capsys.readouterr().err
        assert why in error
        assert "learned-next" in error
        assert not (learnable / ".trecexam" / "verdict.json").exists()


def test_without_runs_or_judgments_the_command_says_so(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (learnable / "qrels.txt").unlink()
    assert run(["cross-validate", str(learnable)]) == 2
    assert "no official judgments" in capsys.readouterr().err
    for path in (learnable / "runs").iterdir():
        path.unlink()
    assert run(["cross-validate", str(learnable)]) == 2
    assert "no runs" in capsys.readouterr().err


def test_progress_is_reported_step_by_step(learnable: Path) -> None:
    told: list[tuple[int, int]] = []
    with trecexam.open_track(learnable) as track:
        track.learn.cross_validate(steps=lambda done, of: told.append((done, of)))
    assert told == [(at, 5) for at in range(1, 6)]
    most_retrieved_alone(learnable, 5)
    with trecexam.open_track(learnable) as track:
        track.learn.cross_validate(steps=lambda done, of: told.append((done, of)))
    assert told[5:] == [(1, 1)]


# The best method to fill.


def with_grades(root: Path, rating: Any) -> Path:
    """The same with recorded grades: `rating(label)` for each passage."""
    rows = map(str.split, (root / "qrels.txt").read_text().splitlines())
    truth = {(query, doc): int(label) for query, _, doc, label in rows}
    with (root / "grades.jsonl").open("w") as grades:
        for line in (root / "passages.jsonl").read_text().splitlines():
            doc = json.loads(line)["docid"]
            query = doc.split("-")[0]
            row = {"query_id": query, "doc_id": doc, "item_id": f"{query}/1"}
            grades.write(json.dumps({**row, "rating": rating(truth.get((query, doc), 0), doc)}) + "\n")
    with (root / "trecexam.toml").open("a") as config:
        config.write('\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    with trecexam.open_track(root) as track:
        track.grading.grade()
    return root


def test_if_learned_labels_mislead_leaving_holes_is_best_and_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_misleading(tmp_path / "track")
    validation = validated(root)
    assert validation.best == "none"
    assert verdict(root)["best"] == "none"
    losses = {row[1]: row[2] for row in validation.rows if row[0] == "fill"}
    assert verdict(root)["losses"] == pytest.approx(losses)
    figures = f"losses: none {losses['none']:.3f}, learned {losses['learned']:.3f}"
    assert f"method to fill holes: none; {figures}" in validation.notes
    assert [row[-1] for row in validation.rows] == ["", "best", "", "", "best"]


def test_a_method_better_only_by_chance_is_shown_with_the_selection_rule(tmp_path: Path) -> None:
    root = make_learnable(tmp_path / "track", queries=6, docs=8, labels=2)
    config = root / "trecexam.toml"
    config.write_text(config.read_text().replace("min_relevant = 2", "min_relevant = 1"))
    validation = validated(root)
    losses = {row[:2]: row[2] for row in validation.rows}
    best = {row[0]: row[1] for row in validation.rows if row[-1] == "best"}
    assert best == {"learned-leaderboard": "learned", "fill": "learned"}
    learned, condensed = (losses["learned-leaderboard", way] for way in ("learned", "condensed"))
    assert condensed < learned
    assert losses["fill", "learned"] < losses["fill", "none"]
    rule = "verdict: learned labels, unless another method has a lower loss beyond chance (95%, over queries)"
    assert rule in json.loads(validation.to_json())["notes"]
    less = f"`condensed` loses less here ({condensed:.4f} against {learned:.4f}), but not beyond chance, so "
    assert [note for note in validation.notes if "loses less here" in note] == [
        f"learned-leaderboard: {less}learned labels are used"
    ]
    with trecexam.open_track(root) as track:
        notes = track.learn.leaderboard().notes
    assert f"with half of the judgments hidden {less}learned labels are used" in notes


def test_a_more_accurate_grader_is_the_best_method(tmp_path: Path) -> None:
    root = with_grades(make_misleading(tmp_path / "track"), lambda label, doc: 5 * label)
    validation = validated(root)
    assert [row[:2] for row in validation.rows] == [*ROWS, ("fill", "grader")]
    assert (validation.best, verdict(root)["best"]) == ("grader", "grader")
    (row,) = (row for row in validation.rows if row[1] == "grader")
    assert (row[2], row[3]) == (pytest.approx(0), pytest.approx(1))


@pytest.mark.slow
def test_labels_of_a_grader_are_cut_where_they_agree_best_with_the_judgments(tmp_path: Path) -> None:
    """Ratings are 2 for judgment 1 and 3 for judgment 2; the threshold of the track is 4."""
    root = with_grades(
        make_learnable(tmp_path / "track", queries=6),
        lambda label, doc: 0 if doc.endswith("4") else [0, 2, 3][label],
    )
    queries = queries_of(root)
    rated = {
        (row["query_id"], row["doc_id"]): row["rating"]
        for row in map(json.loads, (root / "grades.jsonl").read_text().splitlines())
    }

    def graded(seen: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        ratings = [np.array([rated[q.query_id, doc] for doc in q.doc_ids]) for q in seen]
        known = np.concatenate([of[q.judged] for of, q in zip(ratings, seen, strict=True)])
        people = np.concatenate([q.judgments[q.judged] for q in seen])
        cuts = [
            max(range(1, 6), key=lambda cut: (round(_kappa(people >= step, known >= cut), 9), -cut))
            for step in (1, 2)
        ]
        return [
            np.where(q.judged, q.judgments, sum((of >= cut).astype(float) for cut in cuts))
            for of, q in zip(ratings, seen, strict=True)
        ]

    compared = compare(queries, {"grader": graded}, 2)
    (row,) = (row for row in validated(root).rows if row[1] == "grader")
    assert row[2] == pytest.approx(compared.ways["grader"].loss)
    assert row[3] > 0.6


def _kappa(judged: np.ndarray, said: np.ndarray) -> float:
    value = cohen_kappa_score(judged, said)
    return 0.0 if math.isnan(value) else float(value)


def test_results_are_shown_even_if_they_cannot_be_stored(learnable: Path) -> None:
    (learnable / ".trecexam" / "verdict.json" / "not ours").mkdir(parents=True)
    validation = validated(learnable)
    assert any("not stored for `trecexam fill`" in note for note in validation.notes)
    assert len(validation.rows) == 5


@pytest.mark.slow
def test_the_results_do_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    found = []
    for order in (1, -1):
        root = make_learnable(tmp_path / str(order))
        for name in ("qrels.txt", "passages.jsonl", "queries.tsv"):
            lines = (root / name).read_text().splitlines(keepends=True)
            (root / name).write_text("".join(lines[::order]))
        found.append(validated(root).rows)
    assert near(*map(str, found))
