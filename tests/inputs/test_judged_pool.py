"""Judged passages in the pool: graded and labelled, but without a rank in any run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashGrader, hashed_rating, make_small_track, tsv_rows

import trecexam
from trecexam.inputs.pool import PooledQuery

OFF = "[report]\nwrite = false\n[track]\ndepth = 3\n"
ON = f"{OFF}pool_judged = true\n"
QUERIES = ("q1", "q2", "q3")
#: A passage in no run, one without a text, one with an empty text.
ALONE, LOST, EMPTY = "only-judged", "no-text", "empty-text"
#: Measures that use only ranks, and those that divide by the number of relevant passages.
RANKED = ("P(rel=4)@3", "P(rel=3)@2", "RR(rel=4)@3", "Success(rel=4)@3", "Cover(rel=4)@3", "NumRet")
DIVIDED = ("nCover(rel=4)@3", "AP(rel=4)", "nDCG@3", "R(rel=4)@3", "Rprec(rel=4)")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three runs of ten passages, pooled to depth 3: of twelve judged passages a query three are outside."""
    root = make_small_track(tmp_path / "track", config=ON)
    with (root / "passages.jsonl").open("a") as passages:
        passages.write(json.dumps({"docid": ALONE, "text": "what nobody retrieves"}) + "\n")
        passages.write(json.dumps({"docid": EMPTY, "text": ""}) + "\n")
    with (root / "qrels.txt").open("a") as qrels:
        qrels.write(f"q1 0 {ALONE} 3\nq1 0 {LOST} 2\nq2 0 {EMPTY} 1\n")
        # For no query of the bank; and unjudged, by trec_eval's rules.
        qrels.write(f"q9 0 q1-d01 3\nq2 0 {ALONE} -1\n")
    return root


def update(root: Path, grader: HashGrader | None = None) -> HashGrader:
    grader = grader or HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
    return grader


def labelled(root: Path) -> set[tuple[str, str]]:
    return {tuple(line.split()[::2]) for line in (root / "out" / "rubric.qrels").read_text().splitlines()}  # type: ignore[misc]


def values(root: Path, measures: tuple[str, ...]) -> Mapping[str, list[float]]:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        board = track.leaderboard(list(measures))
    return {row.run: [score.mean for score in row.scores] for row in board.rows}


RANKING = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@given(st.lists(RANKING, max_size=4), st.sets(st.sampled_from("abcdefghxyz")))
def test_judged_passages_join_the_pool_and_ranks_still_refer_to_the_same_passages(
    rankings: list[list[str]], judged: set[str]
) -> None:
    doc_ids = tuple(sorted({doc_id for ranking in rankings for doc_id in ranking}))
    ranks = np.full((len(rankings), max(map(len, rankings), default=0)), -1, np.int32)
    for row, ranking in enumerate(rankings):
        ranks[row, : len(ranking)] = [doc_ids.index(doc_id) for doc_id in ranking]
    pooled = PooledQuery(doc_ids, ranks).with_judged(judged)
    assert pooled.doc_ids == tuple(sorted({*doc_ids, *judged}))
    assert pooled.n_judged_only == len(judged - set(doc_ids))
    assert pooled.ranks.dtype == np.int32
    assert [[pooled.doc_ids[at] for at in row if at >= 0] for row in pooled.ranks] == rankings


def test_judged_passages_with_text_are_graded_and_labelled_only_with_the_option(
    root: Path,
) -> None:
    grader = update(root)
    every = {(q, f"{q}-d{d:02}") for q in QUERIES for d in range(12)}
    assert labelled(root) == every | {("q1", ALONE)}
    assert {(cell.query_id, cell.doc_id) for cell in grader.asked} == labelled(root)
    (root / "trecexam.toml").write_text(OFF)
    assert not update(root).asked
    assert labelled(root) == {(q, f"{q}-d{d:02}") for q in QUERIES for d in range(9)}


def test_judged_passages_without_text_are_counted_in_a_note(root: Path) -> None:
    update(root)
    (row,) = (row for row in tsv_rows(root / "out" / "rejected.tsv") if row["file"] == "qrels.txt")
    assert (row["line"], row["lost"]) == ("", "cell")
    assert row["reason"] == (
        "2 of 12 judged passages outside of the runs' first ranks have no text to grade and "
        f"are not pooled, '{LOST}' of query 'q1' among them"
    )
    with trecexam.open_track(root, grader=HashGrader()) as track:
        assert (track.grading.counts().no_text, track.grading.counts().missing) == (0, 0)
        assert track.status()["judged_only_passages"] == 10


def test_rank_measures_keep_their_values_and_denominators_count_judged_passages(root: Path) -> None:
    update(root)
    ranked, divided = values(root, RANKED), values(root, DIVIDED)
    graded = {q: {d: best_of(q, d) for p, d in labelled(root) if p == q} for q in QUERIES}
    brute = {name: brute_force(root, name, graded) for name in ranked}
    (root / "trecexam.toml").write_text(OFF)
    assert values(root, RANKED) == ranked
    before = values(root, DIVIDED)
    for place, measure in enumerate(DIVIDED[:2]):
        assert any(before[name][place] != divided[name][place] for name in before), measure
    for name, (n_cover, average_precision) in brute.items():
        assert divided[name][0] == pytest.approx(n_cover)
        assert divided[name][1] == pytest.approx(average_precision)


def text_of(doc_id: str) -> str:
    return "what nobody retrieves" if doc_id == ALONE else f"passage {int(doc_id[-2:])} about {doc_id[:2]}"


def ratings_of(query_id: str, doc_id: str) -> list[int]:
    return [hashed_rating(text_of(doc_id), f"question {i} of {query_id}?") for i in range(4)]


def best_of(query_id: str, doc_id: str) -> int:
    return max(ratings_of(query_id, doc_id))


def brute_force(root: Path, run: str, graded: Mapping[str, Mapping[str, int]]) -> tuple[float, float]:
    """nCover(rel=4)@3 and AP(rel=4), means over the queries, over all labelled passages."""
    ranking: dict[str, list[str]] = {}
    for line in (root / "runs" / f"{run}.run").read_text().splitlines():
        query_id, _, doc_id, *_ = line.split()
        ranking.setdefault(query_id, []).append(doc_id)
    n_cover, average_precision = [], []
    for q in QUERIES:
        reached = {d: {i for i, rating in enumerate(ratings_of(q, d)) if rating >= 4} for d in graded[q]}
        whole: set[int] = set().union(*reached.values())
        n_cover.append(len(set().union(*(reached[d] for d in ranking[q][:3]))) / len(whole))
        relevant = {d for d, label in graded[q].items() if label >= 4}
        precisions = [
            len(relevant.intersection(ranking[q][:rank])) / rank
            for rank, d in enumerate(ranking[q], 1)
            if d in relevant
        ]
        average_precision.append(sum(precisions) / len(relevant))
    return float(np.mean(n_cover)), float(np.mean(average_precision))


def test_a_changed_judgments_file_grades_only_new_passages_and_an_unreadable_one_none(root: Path) -> None:
    update(root)
    with (root / "passages.jsonl").open("a") as passages:
        passages.write(json.dumps({"docid": "late", "text": "judged late"}) + "\n")
    assert not update(root).asked
    with (root / "qrels.txt").open("a") as qrels:
        qrels.write("q2 0 late 2\n")
    assert {(cell.query_id, cell.doc_id) for cell in update(root).asked} == {("q2", "late")}
    assert ("q2", "late") in labelled(root)
    (root / "qrels.txt").write_text("q1 0\n")
    assert not update(root).asked
    assert labelled(root) == {(q, f"{q}-d{d:02}") for q in QUERIES for d in range(9)}


def test_a_judged_passage_is_not_a_hole_and_in_no_counts_of_runs(root: Path) -> None:
    (root / "qrels.txt").write_text((root / "qrels.txt").read_text().replace("q3 0 q3-d01", "q3 0 q3-d99"))
    update(root)
    holes = (root / "out" / "holes.tsv").read_bytes()
    with trecexam.open_track(root, grader=HashGrader()) as track:
        to_fill = track.fill.find()
        assert to_fill.holes == {"q3": ("q3-d01",)}
        assert to_fill.pooled == 27
        deep = track.holes([3, 8])
    (root / "trecexam.toml").write_text(OFF)
    update(root)
    assert (root / "out" / "holes.tsv").read_bytes() == holes
    with trecexam.open_track(root, grader=HashGrader()) as track:
        assert track.fill.find().holes == to_fill.holes
        # A judged passage below the pool depth now has a grade.
        assert sum(row.ungraded for row in deep.sums() if row.depth == 8) < sum(
            row.ungraded for row in track.holes([3, 8]).sums() if row.depth == 8
        )


def test_agreement_fill_and_verify_include_judged_passages(root: Path) -> None:
    update(root)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        agreed, rule = track.agreement(), track.fill.find().rule
        outside = sum(track.verify.missing(per_query=True)["outside_pool"])
    # Passages without text are only judged.
    assert (agreed.n_both, agreed.n_label_only, agreed.n_judgment_only) == (37, 0, 2)
    assert rule.n_both == 37
    assert outside == 2
    (root / "trecexam.toml").write_text(OFF)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        agreed, rule = track.agreement(), track.fill.find().rule
    assert (agreed.n_both, agreed.n_label_only, agreed.n_judgment_only) == (27, 0, 12)
    assert rule.n_both == 27


def test_the_leaderboard_equals_ir_measures_on_the_written_qrels(root: Path) -> None:
    update(root)
    names = ("AP(rel=4)", "nDCG@3", "P(rel=4)@3", "R(rel=4)@3")
    measures = [ir_measures.parse_measure(name) for name in names]
    qrels = list(ir_measures.read_trec_qrels(str(root / "out" / "rubric.qrels")))
    for name, means in values(root, names).items():
        run = list(ir_measures.read_trec_run(str(root / "runs" / f"{name}.run")))
        expected = ir_measures.calc_aggregate(measures, qrels, run)
        assert means == pytest.approx([expected[measure] for measure in measures])
