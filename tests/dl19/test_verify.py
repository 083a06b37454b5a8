"""Verification on real data: TREC DL 2019 with FLAN-T5-large's recorded grades, against naive counts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from scipy import stats

import trecexam
from trecexam.cli.main import run

Ratings = Mapping[str, Mapping[str, Mapping[str, int]]]


@pytest.fixture(scope="module")
def track(dl19: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify") / "track"
    arguments = ["--bank", dl19 / "bank.questions.jsonl.gz", "--passages", dl19 / "passages.jsonl.gz",
                 "--qrels", dl19 / "qrels.txt", "--runs", dl19 / "runs",
                 "--recorded", dl19 / "graded.flan-t5-large.jsonl.gz"]  # fmt: skip
    assert run(["init", str(root), *map(str, arguments)]) == 0
    assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.fixture(scope="module")
def judgments(dl19: Path) -> Mapping[tuple[str, str], int]:
    rows = map(str.split, (dl19 / "qrels.txt").read_text().splitlines())
    return {(query_id, doc_id): int(label) for query_id, _, doc_id, label in rows}


@pytest.fixture(scope="module")
def ratings(dl19: Path) -> Ratings:
    """query -> document -> item -> rating, straight from the workbench's file (its pool is ours)."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    with gzip.open(dl19 / "graded.flan-t5-large.jsonl.gz", "rt") as file:
        for line in file:
            query_id, paragraphs = json.loads(line)
            for paragraph in paragraphs:
                found.setdefault(query_id, {})[paragraph["paragraph_id"]] = {
                    r["question_id"]: r["self_rating"] for r in paragraph["exam_grades"][0]["self_ratings"]
                }
    return found


@pytest.mark.parametrize("min_rating", [1, 3, 4, 5])
def test_missed_passages_are_those_that_a_loop_finds(
    track: Path, ratings: Ratings, judgments: Mapping[tuple[str, str], int], min_rating: int
) -> None:
    with trecexam.open_track(track) as opened:
        found = opened.verify.missing(min_rating=min_rating, min_relevant=2)
        grid = opened.verify.grid()
    pool = set(zip(grid["query_id"], grid["doc_id"], strict=True))
    expected = {
        (query_id, doc_id)
        for (query_id, doc_id), label in judgments.items()
        if label >= 2 and (query_id, doc_id) in pool and max(ratings[query_id][doc_id].values()) < min_rating
    }
    assert {(missed.query_id, missed.doc_id) for missed in found} == expected
    relevant = sum(label >= 2 and query_id in ratings for (query_id, _), label in judgments.items())
    assert sum(found.tables["queries"]["relevant"]) == relevant


def test_items_discriminate_as_scipy_says(
    track: Path, ratings: Ratings, judgments: Mapping[tuple[str, str], int]
) -> None:
    with trecexam.open_track(track) as opened:
        found = opened.verify.spurious(min_relevant=2)
        grid = opened.verify.grid()
    pool = set(zip(grid["query_id"], grid["doc_id"], strict=True))
    assert len(found) == 210
    for item in found:
        pairs = [
            (ratings[q][d][item.item_id] >= 4, judgments[q, d] >= 2)
            for q, d in pool
            if q == item.query_id and (q, d) in judgments
        ]
        assert item.nonrelevant_reached == sum(reached and not relevant for reached, relevant in pairs)
        assert item.relevant_reached == sum(reached and relevant for reached, relevant in pairs)
        if not item.note:
            reached, relevant = zip(*pairs, strict=True)
            assert item.phi == pytest.approx(stats.pearsonr(reached, relevant).statistic)
    # Measured: a question on public transport, where the query asks in which part of a city an airport is.
    assert found["phi"][0] == pytest.approx(-0.30, abs=0.01)
