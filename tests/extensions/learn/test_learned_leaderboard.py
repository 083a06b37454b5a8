"""`leaderboard --labels learned`: its output and notes, and what `learn` writes of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headings import score_columns
from learnable import WordEncoder, grade_by, make_learnable, queries_of
from sklearn.metrics import cohen_kappa_score
from support import Printed, contents, labels_of, printed, read_jsonl, tsv_table

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.learn import validation
from trecexam.extensions.learn.arithmetic.check import compare, hidings, labels, zeros
from trecexam.extensions.learn.arithmetic.learning import Learned, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.results.result import Tables

MEASURES = "nDCG@10", "AP(rel=2)@12", "Judged@10"


def shown(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Printed:
    """Learn, and print the leaderboard."""
    assert run(["learn", str(root)]) == 0
    return printed(capsys, "leaderboard", root, "--labels", "learned", *options)


def test_the_stored_leaderboard_is_shown_without_an_encoder_and_nothing_is_written(
    learnable: Path, capsys: pytest.CaptureFixture[str], encoder: WordEncoder
) -> None:
    assert run(["learn", str(learnable)]) == 0
    before = contents(learnable / "out")
    encoder.encoded.clear()
    out, err = printed(capsys, "leaderboard", learnable, "--labels", "learned")
    assert encoder.encoded == []
    assert (learnable / "out" / "learned-leaderboard.tsv").read_text() == out
    rows = tsv_table(out)
    columns = [f"{measure}{end}" for measure in MEASURES for end in ("", ".stderr")]
    assert score_columns(rows[0]) == columns
    assert {row["run"] for row in rows} == set("abcd")
    means = [float(row["nDCG@10"]) for row in rows]
    assert means == sorted(means, reverse=True)
    assert "expected over 5 queries, with learned labels for unjudged passages (" in err
    assert contents(learnable / "out") == before


def test_json_has_the_certain_digits_of_the_expected_scores(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(shown(learnable, capsys, "--json")[0])
    assert (value["measures"], value["n_queries"]) == ([*MEASURES], 5)
    queries = queries_of(learnable)
    scores = expected_scores(fit(queries), queries, 10, 2)
    of_runs = dict(zip("abcd", scores.transpose(1, 0, 2), strict=True))
    for row in value["runs"]:
        for measure, of_queries in zip(MEASURES, of_runs[row["run"]], strict=False):
            score = row["scores"][measure]
            assert score["mean"] == pytest.approx(of_queries.mean(), abs=1e-3)
            assert score["stderr"] == pytest.approx(of_queries.std(ddof=1) / 5**0.5, abs=1e-3)
            assert [*score.values()] == [round(figure, 3) for figure in score.values()]


def test_a_track_where_nothing_was_learned_says_what_to_run(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error() -> str:
        (line,) = printed(capsys, "leaderboard", learnable, "--labels", "learned", status=2)[1].splitlines()
        return line

    assert error().endswith(f"no learned labels: run `trecexam learn {learnable}`")
    assert run(["learn", str(learnable)]) == 0
    (learnable / "qrels.txt").write_text((learnable / "qrels.txt").read_text() + "q0 0 q0-d00 2\n")
    assert "judgments changed since labels were learned: run `trecexam learn" in error()
    for path in (learnable / "runs").iterdir():
        path.unlink()
    assert "runs" in error()


def test_if_all_is_judged_it_equals_the_official_leaderboard_without_uncertainty(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pooled = {
        tuple(line.split()[0:3:2])
        for path in (learnable / "runs").iterdir()
        for line in path.read_text().splitlines()
    }
    (learnable / "qrels.txt").write_text(
        "".join(f"{query} 0 {doc} {int(doc[-2:]) % 3}\n" for query, doc in sorted(pooled))
    )
    out, err = shown(learnable, capsys)
    assert "(100% of the pool is judged)" in err
    import ir_measures

    qrels = list(ir_measures.read_trec_qrels(str(learnable / "qrels.txt")))
    for row in tsv_table(out):
        ranked = list(ir_measures.read_trec_run(str(learnable / "runs" / f"{row['run']}.run")))
        for name in MEASURES:
            value = ir_measures.parse_measure(name).calc_aggregate(qrels, ranked)
            assert float(row[name]) == pytest.approx(value, abs=1e-3)


# Runs that rank like the encoder.


# The cross-validation of `learn`: comparisons, messages, and what is stored for `fill`.


ROWS = [
    ("leaderboard", "learned"),
    ("leaderboard", "unjudged = 0"),
    ("leaderboard", "condensed"),
    ("fill", "learned"),
    ("fill", "none"),
]


def validated(root: Path) -> Tables:
    with trecexam.open_track(root) as track:
        learned = track.learn.labels()
        track.learn.write(learned)
        return learned.validation


def stored(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "out" / "learned.json").read_text())["cross_validation"])


def test_learn_shows_every_method_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_learnable(tmp_path / "track", queries=6)
    shown = printed(capsys, "learn", root, "--json")
    value = json.loads(shown.out)
    assert [(row["used_by"], row["way"]) for row in value["ways"]] == ROWS
    assert all(line in shown.err for line in value["notes"])
    assert value["best"] == "learned"
    assert value["judged"] == sum(query.judged.sum() for query in queries_of(root))
    assert 0.35 < value["hidden"] / value["judged"] < 0.65
    assert sum(row["used"] == "yes" for row in value["ways"]) == 2
    for row in value["ways"]:
        assert 0 <= row["loss"] <= 2
        assert (row["kappa"] is None) == ((row["used_by"], row["way"]) != ("fill", "learned"))


def test_losses_and_kappa_use_only_hidden_judgments(
    tmp_path: Path,
) -> None:
    root = make_learnable(tmp_path / "track", queries=6)
    queries = queries_of(root)
    ways = {"learned": labels, "none": zeros}
    compared = compare(queries, ways, 2)
    rows = {row[1]: row for row in validated(root).table.rows if row[0] == "fill"}
    for name in ways:
        assert rows[name][2] == pytest.approx(compared[name].loss)
    judged, said = [], []
    for repeat in hidings(queries):
        seen = [query.hiding(hidden) for query, hidden in zip(queries, repeat, strict=True)]
        learned = fit(seen)
        for query, known, hidden in zip(queries, seen, repeat, strict=True):
            judged += (query.judgments[hidden] >= 2).tolist()
            said += (predict(learned, known).labels[hidden] >= 2).tolist()
    assert rows["learned"][3] == pytest.approx(cohen_kappa_score(judged, said))
    assert rows["learned"][4] <= rows["learned"][3] <= rows["learned"][5]


def test_too_few_judgments_to_hide_any_are_reported_and_nothing_is_stored(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (learnable / "qrels.txt").write_text("q0 0 q0-d01 0\nq1 0 q1-d01 2\n")
    shown = printed(capsys, "learn", learnable)
    assert "not cross-validated: too few judgments to hide half of them: " in shown.err
    assert len(shown.out.splitlines()) == 1
    assert "cross_validation" not in json.loads((learnable / "out" / "learned.json").read_text())


# The best method to fill.


def test_a_method_better_only_by_chance_does_not_replace_learned_labels(tmp_path: Path) -> None:
    root = make_learnable(tmp_path / "track", queries=6, docs=8, labels=2)
    config = root / "trecexam.toml"
    config.write_text(config.read_text().replace("min_relevant = 2", "min_relevant = 1"))
    found = validated(root)
    losses = {row[:2]: row[2] for row in found.table.rows}
    best = {row[0]: row[1] for row in found.table.rows if row[-1] == "yes"}
    assert best == {"leaderboard": "learned", "fill": "learned"}
    assert losses["leaderboard", "condensed"] < losses["leaderboard", "learned"]
    assert losses["fill", "learned"] < losses["fill", "none"]
    rule = "used: learned labels, unless another method has a lower loss beyond chance (95%, over queries)"
    assert rule in json.loads(found.to_json())["notes"]
    assert not any("better than learned" in note for note in found.notes)


def test_another_method_that_is_better_beyond_chance_is_named_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inverted(queries: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        return [np.where(query.judged, 2 - query.judgments, 1) for query in queries]

    for name in ("labels", "expectations"):
        monkeypatch.setattr(validation, name, inverted)
    root = make_learnable(tmp_path / "track", queries=12)
    truth = {doc: label for (_, doc), label in labels_of(root / "qrels.txt").items()}
    grade_by(root, lambda doc: 2 * truth.get(doc, 0))
    found = validated(root)
    assert [row[:2] for row in found.table.rows] == [*ROWS, ("fill", "grader")]
    best = {row[0]: row[1] for row in found.table.rows if row[-1] == "yes"}
    assert (found.facts["best"], stored(root)["best"], best["fill"]) == ("grader", "grader", "grader")
    losses = {row[1]: row[2] for row in found.table.rows if row[0] == "fill"}
    assert stored(root)["losses"] == pytest.approx(losses)
    assert found.table.rows[-1][3] == pytest.approx(1)
    (note,) = (note for note in found.notes if "orders the runs better" in note)
    assert note.startswith(f"`{best['leaderboard']}` orders the runs better than learned labels (loss 0.")


@pytest.mark.slow
def test_labels_of_a_grader_are_cut_where_they_agree_best_with_the_judgments(tmp_path: Path) -> None:
    """Ratings are 2 for judgment 1 and 3 for judgment 2; the threshold of the track is 4."""
    root = make_learnable(tmp_path / "track", queries=6)
    truth = {doc: label for (_, doc), label in labels_of(root / "qrels.txt").items()}
    grade_by(root, lambda doc: 0 if doc.endswith("4") else [0, 2, 3][truth.get(doc, 0)])
    queries = queries_of(root)
    rated = {row["doc_id"]: row["rating"] for row in read_jsonl(root / "grades.jsonl")}

    def graded(seen: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        ratings = [np.array([rated[doc] for doc in q.doc_ids]) for q in seen]
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
    (row,) = (row for row in validated(root).table.rows if row[1] == "grader")
    assert row[2] == pytest.approx(compared["grader"].loss)
    assert row[3] > 0.6


def _kappa(judged: np.ndarray, said: np.ndarray) -> float:
    value = cohen_kappa_score(judged, said)
    return 0.0 if math.isnan(value) else float(value)
