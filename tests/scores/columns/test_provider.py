"""The columns as a provider of ir_measures: every form of qrels and runs, and how it is registered."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from column_cases import qrels_of, run_of
from ir_measures import AP, RR, Bpref, Measure, P, Qrel, R, ScoredDoc, nDCG, providers
from naive_cover import Frame
from support import ROOT

from trecexam.scores import Cover, RubricQrel
from trecexam.scores.columns import ColumnsProvider, provider, register

MEASURES: list[Measure] = [nDCG @ 10, nDCG, AP(rel=2), RR, P @ 5, R(rel=2) @ 3]


QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
RUN = {"q1": {"x": 3.0, "a": 2.0, "c": 2.0}, "q2": {"b": 1.0}, "q9": {"a": 1.0}}


def test_every_form_of_qrels_and_runs_is_accepted() -> None:
    expected = ir_measures.pytrec_eval.calc_aggregate(MEASURES, QRELS, RUN)
    rows = [
        ScoredDoc(query_id, doc_id, score) for query_id, of in RUN.items() for doc_id, score in of.items()
    ]
    for qrels in (QRELS, qrels_of(QRELS), (r for r in qrels_of(QRELS)), Frame(qrels_of(QRELS), Qrel._fields)):
        assert provider.calc_aggregate(MEASURES, qrels, RUN) == expected
    for run in (RUN, rows, iter(rows), Frame(rows, ScoredDoc._fields), run_of(RUN)):
        assert provider.calc_aggregate(MEASURES, QRELS, run) == expected


def test_for_a_duplicate_document_in_a_run_the_last_score_counts() -> None:
    run = [ScoredDoc("q1", doc_id, score) for doc_id, score in (("a", 9.0), ("x", 2.0), ("a", 1.0))]
    assert (
        provider.calc_aggregate([RR], QRELS, run)[RR]
        == ir_measures.pytrec_eval.calc_aggregate([RR], QRELS, run)[RR]
    )


def test_the_provider_supports_only_what_it_can_compute() -> None:
    assert provider.calc_aggregate([nDCG @ 10], {"q1": {"a": 1}, "q2": {}}, {"q1": {"a": 1.0}}) == {
        nDCG @ 10: 0.5
    }
    with pytest.raises(ValueError, match="unknown qrels format"):
        provider.calc_aggregate(MEASURES, [("q", "d", 1)], RUN)
    with pytest.raises(ValueError, match="not a number"):
        provider.calc_aggregate([RR], QRELS, {"q1": {"a": float("nan")}})
    with pytest.raises(ValueError, match="a row for each passage and item"):
        provider.evaluator([ir_measures.alpha_nDCG @ 5], [RubricQrel("q1", "a", 5, ratings=(5, 0))])
    assert provider.supports(nDCG @ 10)
    assert not provider.supports(Bpref)
    with pytest.raises(AssertionError, match="invalid param"):
        provider.supports(P)
    with pytest.raises(ValueError, match="not computed on columns"):
        provider.calc_aggregate([Bpref], QRELS, RUN)


def test_cover_is_computed_from_rows_with_ratings_and_from_iterations() -> None:
    carried = [RubricQrel("q1", "a", 5, ratings=(5, 0, 4)), RubricQrel("q1", "b", 4, ratings=(0, 4, 0))]
    by_item = [Qrel("q1", "a", 5, "1"), Qrel("q1", "a", 4, "3"), Qrel("q1", "b", 4, "2")]
    for rows in (carried, by_item):
        assert provider.calc_aggregate([Cover @ 1], rows, {"q1": {"a": 1.0}}) == {Cover @ 1: 2 / 3}
    assert provider.qrel_inputs([Cover @ 1])[-1] == "iteration"
    assert "iteration" not in provider.qrel_inputs(MEASURES)


@pytest.mark.parametrize(
    "rows",
    [
        [RubricQrel("q", "a", 5, ratings=(5,)), Qrel("q", "b", 1)],
        [RubricQrel("q", "a", 5, ratings=(5,)), RubricQrel("q", "b", 5, ratings=(5, 0))],
        [
            RubricQrel("q", "a", 5, ratings=(5,), importances=("vital",)),
            RubricQrel("q", "b", 5, ratings=(5,)),
        ],
        [RubricQrel("q", "a", 5, ratings=(5,), importances=("vital", "okay"))],
    ],
    ids=["some without", "unequally many", "importances differ", "more importances"],
)
def test_rows_with_inconsistent_ratings_are_rejected(rows: list[Qrel]) -> None:
    with pytest.raises(ValueError, match="query 'q'"):
        provider.evaluator([Cover @ 5], rows)


def test_after_registration_ir_measures_uses_the_provider_first_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ir_measures.DefaultPipeline, "providers", list(ir_measures.DefaultPipeline.providers))
    monkeypatch.setattr(providers.base, "registry", dict(providers.base.registry))
    monkeypatch.setattr(providers, "registry", providers.base.registry)
    expected = ir_measures.calc_aggregate([*MEASURES, Bpref], QRELS, RUN)
    assert all(known.NAME != ColumnsProvider.NAME for known in ir_measures.DefaultPipeline.providers)
    register()
    register()
    names = [known.NAME for known in ir_measures.DefaultPipeline.providers]
    assert names[0] == ColumnsProvider.NAME
    assert names.count(ColumnsProvider.NAME) == 1
    assert providers.registry[ColumnsProvider.NAME] is provider
    assert ir_measures.calc_aggregate([*MEASURES, Bpref], QRELS, RUN) == expected


def test_the_docs_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "examples" / "trec-eval.md").read_text()
    codes = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    codes = [code for code in codes if "scores.columns" in code]
    assert codes
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ir_measures.DefaultPipeline, "providers", list(ir_measures.DefaultPipeline.providers))
    monkeypatch.setattr(providers.base, "registry", dict(providers.base.registry))
    for code in codes:
        exec(compile(code, "trec-eval.md", "exec"), {})
