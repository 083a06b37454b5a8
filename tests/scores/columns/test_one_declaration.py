"""One declaration of a measure is enough for leaderboards, notes and providers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ir_measures import Measure, ParamInfo, measures
from support import HashGrader

import trecexam
from trecexam.scores.columns import Evaluator, Hits, Judged, provider
from trecexam.scores.columns.measures import MEASURES
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    n_relevant,
    ratio,
)


class _Lead(Measure):
    """The number of relevant passages before the first other one, as a share of all relevant ones."""

    __name__ = "Lead"
    NAME = "Lead"
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold"),
        "rel": ParamInfo(dtype=int, default=1, desc="label from which a passage is relevant"),
    }


def _computation(measure: Measure, judged: Judged) -> Computation:
    relevant = n_relevant(judged, measure["rel"])

    def values(hits: Hits) -> Values:
        hits = considered(measure, hits)
        good = (hits.labels >= measure["rel"]) & (hits.ranks == np.arange(hits.ranks.shape[1]))
        return ratio(np.logical_and.accumulate(good, axis=1).sum(axis=1), relevant)

    return values


LEAD = ColumnMeasure(
    "Lead",
    frozenset(("cutoff", "rel")),
    _computation,
    "`cutoff`, `rel` from 1",
    depends_on_pool=True,
    takes=lambda measure: measure["rel"] <= 5,
)


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> _Lead:
    """As in a file of scores/columns/measures/."""
    made = _Lead()
    monkeypatch.setitem(measures.registry, "Lead", made)
    monkeypatch.setitem(MEASURES, "Lead", LEAD)
    return made


def naive(labels: dict[str, int], ranking: list[str], rel: int) -> float:
    good = [labels.get(doc_id, 0) >= rel for doc_id in ranking]
    before = good.index(False) if False in good else len(good)
    relevant = sum(label >= rel for label in labels.values())
    return before / relevant if relevant else 0.0


def test_a_declared_measure_is_on_the_leaderboard_with_the_pool_warning(
    lead: _Lead, small_track: Path
) -> None:
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.update()
        board = track.leaderboard(["Lead(rel=4)@5", "P(rel=4)@5"])
        labels: dict[str, dict[str, int]] = {}
        for row in track.qrels():
            labels.setdefault(row.query_id, {})[row.doc_id] = row.relevance
        expected = {
            name: sum(naive(labels[query], list(run.ranking(query, 5)), 4) for query in labels) / len(labels)
            for name, run in track.export.runs().items()
        }
    assert {row.run: row.scores[0].mean for row in board.rows} == pytest.approx(expected, abs=1e-12)
    assert any(value > 0 for value in expected.values())
    assert any(line.startswith("values of Lead(rel=4)@5 depend on this pool of ") for line in board.notes)


def test_invalid_parameters_are_rejected_and_misspelled_names_get_a_suggestion(
    lead: _Lead, small_track: Path
) -> None:
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        with pytest.raises(ValueError, match=r"Lead\(rel=6\): no provider of ir_measures computes it"):
            track.leaderboard(["Lead(rel=6)"])
        with pytest.raises(ValueError, match=r"unknown measure 'Led@5'; did you mean .*Lead"):
            track.leaderboard(["Led@5"])


def test_a_measure_uses_no_more_than_its_declared_depth(lead: _Lead) -> None:
    qrels = {"q": {"a": 1, "b": 1, "c": 0, "d": 1}}
    run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    assert Evaluator([lead @ 1], Judged.from_qrels([])).depth == 1
    assert Evaluator([lead], Judged.from_qrels([])).depth is None
    assert provider.calc_aggregate([lead @ 1], qrels, run) == {lead @ 1: 1 / 3}
    assert provider.calc_aggregate([lead], qrels, run) == {lead: 2 / 3}
