"""trecexam.pyterrier with the real PyTerrier, without Java."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import ir_measures
import pytest
from ir_measures import AP, P, nDCG
from support import HashGrader, make_small_track, write_run

import trecexam
from trecexam import TrecexamError
from trecexam.scores.columns import provider

pd = pytest.importorskip("pandas")
pt = pytest.importorskip("pyterrier", reason="the extra `pyterrier` is not installed")

from trecexam.pyterrier import Cover, nCover, qrels, runs, topics  # noqa: E402

#: PyTerrier 1.1 drops columns in place, which pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

MEASURES = [nDCG @ 10, P(rel=4) @ 5, AP(rel=3), Cover(rel=4) @ 20, nCover(rel=4) @ 3]
MEASURES += [Cover(rel=5, partial=3, weights="vital") @ 5]


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Iterator[trecexam.Track]:
    """Queries 01, 02 and 03; each run has unjudged passages, and one skips a query."""
    root = make_small_track(tmp_path_factory.mktemp("pyterrier") / "track")
    for path in (*root.glob("*.*"), *root.glob("runs/*")):
        path.write_text(path.read_text().replace("q1", "01").replace("q2", "02").replace("q3", "03"))
    banks = [json.loads(line) for line in (root / "bank.questions.jsonl").read_text().splitlines()]
    for bank in banks:
        for number, question in enumerate(bank["questions"]):
            question["importance"] = "okay" if number % 3 else "vital"
    (root / "bank.questions.jsonl").write_text("".join(json.dumps(bank) + "\n" for bank in banks))
    (root / "trecexam.toml").write_text("[track]\ndepth = 3\n[report]\nwrite = false\n")
    write_run(root / "runs" / "skips.run", {q: [f"{q}-d11", f"{q}-d00"] for q in ("02", "03")})
    with trecexam.open_track(root, grader=HashGrader()) as opened:
        opened.update()
        yield opened


def own_means(track: trecexam.Track, measures: list[Any] = MEASURES) -> dict[str, list[float]]:
    board = track.leaderboard([str(measure) for measure in measures])
    return {row.run: [score.mean for score in row.scores] for row in board.rows}


def as_means(table: Any, measures: list[Any]) -> dict[str, Any]:
    """An Experiment's table: name -> its values, which are the leaderboard's to 1e-9."""
    table = table[["name", *map(str, measures)]]
    return {name: pytest.approx(values, abs=1e-9) for name, *values in table.itertuples(index=False)}


def test_qrels_have_the_columns_of_pyterrier_and_the_ratings(track: trecexam.Track) -> None:
    frame = qrels(track)
    assert frame.dtypes.astype(str).to_dict() == {
        "qid": str(pd.Series(dtype=str).dtype),
        "docno": str(pd.Series(dtype=str).dtype),
        "label": "int64",
        "ratings": "object",
        "importances": "object",
    }
    rows = list(track.qrels())
    assert list(zip(frame["qid"], frame["docno"], frame["label"], strict=True)) == [row[:3] for row in rows]
    assert frame["ratings"].tolist() == [row.ratings for row in rows]
    assert frame["importances"].tolist() == [("vital", "okay", "okay", "vital")] * len(rows)
    assert set(frame["qid"]) == {"01", "02", "03"}


def test_topics_are_the_queries_of_the_bank(track: trecexam.Track) -> None:
    assert topics(track).to_dict("list") == {
        "qid": ["01", "02", "03"],
        "query": [f"query number 0{n}" for n in (1, 2, 3)],
    }


def test_a_run_is_a_transformer_that_returns_the_results_of_a_topic(track: trecexam.Track) -> None:
    made = runs(track)
    assert list(made) == ["run0", "run1", "run2", "skips"]
    results = made["run1"](topics(track).iloc[1:])
    assert list(results.columns) == ["qid", "query", "docno", "score", "rank"]
    assert results["docno"].head(3).tolist() == ["02-d03", "02-d04", "02-d05"]
    assert results["rank"].tolist() == list(range(10)) * 2
    assert results.dtypes.astype(str).to_dict()["score"] == "float64"
    assert made["skips"](topics(track))["qid"].tolist() == ["02", "02", "03", "03"]
    assert list(runs(track, ["skips", "run0"])) == ["skips", "run0"]
    with pytest.raises(TrecexamError, match=r"no run 'run9'; did you mean 'run2'\?$"):
        runs(track, ["run9"])


@pytest.mark.parametrize("how", [{}, {"batch_size": 2}, {"plan": "tree", "verbose": False}], ids=str)
def test_an_experiment_gives_the_values_of_the_leaderboard(
    track: trecexam.Track, how: dict[str, Any]
) -> None:
    table = pt.Experiment(runs(track), topics(track), qrels(track), eval_metrics=MEASURES, **how)
    assert as_means(table, MEASURES) == own_means(track)


def test_an_experiment_per_query_has_the_item_coverage_of_each_ranking(
    track: trecexam.Track,
) -> None:
    frame = pt.Experiment(runs(track), topics(track), qrels(track), [Cover(rel=4) @ 4], perquery=True)
    reached = {
        (row.query_id, row.doc_id): {item for item, rating in enumerate(row.ratings) if rating >= 4}
        for row in track.qrels()
    }
    for name, run in runs(track).items():
        results = run(topics(track))
        for query_id in ("01", "02", "03"):
            first = results[results["qid"] == query_id].sort_values("rank")["docno"].head(4)
            items = set().union(*(reached.get((query_id, doc_id), ()) for doc_id in first))
            (value,) = frame[(frame["name"] == name) & (frame["qid"] == query_id)]["value"]
            assert value == pytest.approx(len(items) / 4, abs=1e-12)


def test_the_qrels_frame_works_with_ir_measures_and_our_provider(track: trecexam.Track) -> None:
    frame, run = pt.model.to_ir_measures(qrels(track)), runs(track)["run1"](topics(track))
    given = pt.model.to_ir_measures(run)
    (values,) = (row.scores for row in track.leaderboard(list(map(str, MEASURES))).rows if row.run == "run1")
    expected = dict(zip(MEASURES, (pytest.approx(score.mean, abs=1e-9) for score in values), strict=True))
    assert ir_measures.calc_aggregate(MEASURES, frame, given) == expected
    assert ir_measures.evaluator(MEASURES, frame).calc_aggregate(given) == expected
    assert provider.calc_aggregate(MEASURES, frame, given) == expected


def test_pipeline_results_are_evaluated_without_a_folder_and_usable_in_an_experiment(
    track: trecexam.Track,
) -> None:
    results = (runs(track)["run1"] % 2)(topics(track))
    passages = {doc_id: f"text of {doc_id}" for doc_id in results["docno"]}
    bank = {query_id: ["what?", "who?"] for query_id in topics(track)["qid"]}
    with trecexam.evaluate(
        {"mine": results}, bank, passages, grader=HashGrader(), measures=["nDCG@10", "Cover(rel=4)@20"]
    ) as done:
        table = pt.Experiment(
            [results], topics(done.track), qrels(done.track), [nDCG @ 10, Cover(rel=4) @ 20], names=["mine"]
        )
        assert as_means(table, [nDCG @ 10, Cover(rel=4) @ 20]) == {
            "mine": [score.mean for score in done.leaderboard.rows[0].scores]
        }
        assert len(qrels(done.track)) == len(results) == 6


def test_labels_alone_give_no_cover(track: trecexam.Track) -> None:
    plain = qrels(track).drop(columns=["ratings", "importances"])
    pt.Experiment(runs(track), topics(track), plain, eval_metrics=[nDCG @ 10])
    with pytest.raises(ValueError, match="needs the rating of each item"):
        pt.Experiment(runs(track), topics(track), plain, eval_metrics=[Cover(rel=4) @ 20])
    unimportant = qrels(track).drop(columns="importances")
    with pytest.raises(ValueError, match="needs the importance of items"):
        pt.Experiment(runs(track), topics(track), unimportant, [Cover(weights="vital")])


def test_frames_with_fractional_ratings_are_rejected(track: trecexam.Track) -> None:
    frame = qrels(track)
    as_text = frame.assign(ratings=frame["ratings"].map(str))
    holed = frame.assign(ratings=[None, *frame["ratings"][1:]])
    for wrong, reason in (
        (as_text, "'01': the ratings of .* are text"),
        (holed, "'01': only some rows carry"),
    ):
        with pytest.raises(ValueError, match=reason):
            pt.Experiment(runs(track), topics(track), wrong, [Cover(rel=4) @ 20])


def test_the_module_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(trecexam, "pyterrier")
    monkeypatch.delitem(sys.modules, "trecexam.pyterrier")
    monkeypatch.delitem(sys.modules, "trecexam.extensions.libraries.pyterrier")
    monkeypatch.setitem(sys.modules, "pyterrier", None)
    with pytest.raises(
        TrecexamError,
        match=r"^pyterrier is not installed: pip install '\.\[pyterrier\]' in a clone of trecexam$",
    ):
        importlib.import_module("trecexam.pyterrier")


def test_nothing_starts_java(track: trecexam.Track) -> None:
    assert not pt.java.started()
