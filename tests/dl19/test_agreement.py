"""Agreement on TREC DL 2019: counts and kappas equal the Rubric workbench's tables."""

from __future__ import annotations

import csv
import gzip
import heapq
import json
from pathlib import Path

import numpy as np
import pytest

from trecexam.cli.main import run
from trecexam.features.agreement.arithmetic import Agreement, Crosstab, agreement
from trecexam.grades.relevance import Thresholds
from trecexam.scores.kappa import labels_of_both
from trecexam.scores.labels import labels
from trecexam.scores.ratings import QueryRatings

#: (query_id, doc_id) -> the ratings of a passage and its judgment, both from the workbench's file.
Graded = dict[tuple[str, str], tuple[list[int], int]]


@pytest.fixture(scope="module")
def graded(dl19: Path) -> Graded:
    found: Graded = {}
    with gzip.open(dl19 / "graded.flan-t5-large.jsonl.gz", "rt") as file:
        for query_id, paragraphs in map(json.loads, file):
            for paragraph in paragraphs:
                ratings = [r["self_rating"] for r in paragraph["exam_grades"][0]["self_ratings"]]
                (judgment,) = paragraph["paragraph_data"]["judgments"]
                found[query_id, paragraph["paragraph_id"]] = ratings, judgment["relevance"]
    return found


def ours(graded: Graded, thresholds: Thresholds) -> Agreement:
    """Agreement by our ratings and labels."""
    own: dict[str, dict[str, int]] = {}
    judged: dict[str, dict[str, int]] = {}
    for query_id in {query_id for query_id, _ in graded}:
        passages = {doc_id: graded[q, doc_id] for q, doc_id in sorted(graded) if q == query_id}
        matrix = np.array([ratings for ratings, _ in passages.values()], np.int8)
        ratings = QueryRatings(query_id, tuple(passages), matrix.shape[1], matrix)
        own[query_id] = labels(ratings, "max", min_answers=thresholds.min_answers)
        judged[query_id] = {doc_id: judgment for doc_id, (_, judgment) in passages.items()}
    return agreement(labels_of_both(own, judged), thresholds, range(4))


def published(
    graded: Graded, min_answers: int, rows: list[set[int]], columns: list[set[int]], paired: list[int]
) -> tuple[list[list[int]], list[float]]:
    """Counts and the rows' kappas as the workbench makes its tables, passage by passage."""
    counts, kappas = [], []
    for row, column in zip(rows, paired, strict=True):
        counts.append([0] * len(columns))
        table = {(a, b): 0 for a in (True, False) for b in (True, False)}
        for ratings, judgment in graded.values():
            said = min(heapq.nlargest(min_answers, ratings)) in row
            for place, judgments in enumerate(columns):
                counts[-1][place] += said and judgment in judgments
            table[said, judgment in columns[column]] += 1
        n = len(graded)
        po = (table[True, True] + table[False, False]) / n
        said_yes = (table[True, True] + table[True, False]) / n
        true_yes = (table[True, True] + table[False, True]) / n
        pe = said_yes * true_yes + (1 - said_yes) * (1 - true_yes)
        kappas.append((po - pe) / (1 - pe))
    return counts, kappas


def assert_same(table: Crosstab, expected: tuple[list[list[int]], list[float]]) -> None:
    counts, kappas = expected
    assert table.counts.tolist() == counts
    assert [value.value for value in table.kappas] == pytest.approx(kappas)


@pytest.mark.parametrize("min_answers", [1, 2, 5])
def test_the_tables_equal_those_of_the_workbench(graded: Graded, min_answers: int) -> None:
    strict = ours(graded, Thresholds(4, min_answers, 2))
    lenient = ours(graded, Thresholds(1, min_answers, 2))
    levels = [{3}, {2}, {1}, {0}]
    assert_same(
        strict.graded,
        published(graded, min_answers, [{5}, {4}, {3}, {2}, {1}, {0}], levels, [0, 0, 1, 1, 1, 3]),
    )
    assert_same(
        strict.merged,
        published(graded, min_answers, [{5, 4}, {3, 2, 1}, {0}], [{3}, {2}, {0, 1}], [0, 1, 2]),
    )
    relevant = [{2, 3}, {0, 1}]
    assert_same(strict.binary, published(graded, min_answers, [{4, 5}, {0, 1, 2, 3}], relevant, [0, 1]))
    assert_same(lenient.binary, published(graded, min_answers, [{1, 2, 3, 4, 5}, {0}], relevant, [0, 1]))


def test_counts_over_all_judged_passages_have_not_changed(graded: Graded) -> None:
    found = ours(graded, Thresholds(4, 2, 2))
    assert found.graded.counts.tolist() == [
        [35, 59, 27, 35],
        [104, 580, 306, 497],
        [6, 29, 43, 114],
        [2, 29, 30, 61],
        [1, 3, 3, 12],
        [95, 172, 338, 1758],
    ]


def test_with_pool_judged_every_recorded_passage_gets_a_label(all_judged: Path, graded: Graded) -> None:
    lines = (all_judged / "out/rubric.qrels").read_text().splitlines()
    rated = {(q, doc_id): int(label) for q, _, doc_id, label in map(str.split, lines)}
    assert len(rated) == 4339
    assert rated == {place: max(ratings) for place, (ratings, _) in graded.items()}
    assert (all_judged / "out/rejected.tsv").read_text().splitlines() == ["file\tline\treason\tlost"]


def test_with_pool_judged_the_command_prints_the_tables_of_the_workbench(
    all_judged: Path, graded: Graded, tmp_path: Path
) -> None:
    target = tmp_path / "a.tsv"
    options = ["--min-answers", "2", "--min-relevant", "2", "-o", str(target)]
    assert run(["agreement", str(all_judged), *options]) == 0
    with target.open(newline="") as file:
        cells = [
            row
            for row in csv.DictReader(file, delimiter="\t")
            if "all" not in (row["label"], row["judgment"])
        ]
    wholes = {
        "graded": ([{5}, {4}, {3}, {2}, {1}, {0}], [{3}, {2}, {1}, {0}], [0, 0, 1, 1, 1, 3]),
        "merged": ([{5, 4}, {3, 2, 1}, {0}], [{3}, {2}, {0, 1}], [0, 1, 2]),
        "binary": ([{4, 5}, {0, 1, 2, 3}], [{2, 3}, {0, 1}], [0, 1]),
    }
    for name, (rows, columns, paired) in wholes.items():
        counts, kappas = published(graded, 2, rows, columns, paired)
        of_table = [cell for cell in cells if cell["table"] == name]
        assert [int(cell["count"]) for cell in of_table] == [count for row in counts for count in row]
        # The kappa of a row is in the column of the judgment it is paired with.
        assert [float(cell["kappa"]) for cell in of_table if cell["kappa"]] == pytest.approx(kappas, abs=1e-6)


def test_the_track_counts_its_pool(track: Path, graded: Graded, tmp_path: Path) -> None:
    pooled = {tuple(line.split()[::2]) for line in (track / "out/rubric.qrels").read_text().splitlines()}
    in_pool = {place: value for place, value in graded.items() if place in pooled}
    assert len(in_pool) == 1531
    target = tmp_path / "a.tsv"
    options = ["--min-answers", "2", "--min-relevant", "2", "-o", str(target)]
    ratings = [part for n in range(1, 6) for part in ("--min-rating", str(n))]
    assert run(["agreement", str(track), *options, *ratings]) == 0
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for min_rating in range(1, 6):
        expected, kappas = published(
            in_pool, 2, [set(range(min_rating, 6)), set(range(min_rating))], [{2, 3}, {0, 1}], [0, 1]
        )
        cells = [r for r in rows if (r["table"], r["min_rating"]) == ("binary", str(min_rating))]
        counts = [int(r["count"]) for r in cells if "all" not in (r["label"], r["judgment"])]
        assert counts == [count for row in expected for count in row]
        whole = next(r for r in cells if r["label"] == r["judgment"] == "all")
        assert float(whole["kappa"]) == pytest.approx(kappas[0], abs=1e-6)
        assert float(whole["kappa.low"]) < kappas[0] < float(whole["kappa.high"])
    reached = [int(r["count"]) for r in rows if (r["table"], r["min_rating"]) == ("binary", "4")]
    assert reached == [372, 268, 640, 109, 782, 891, 481, 1050, 1531]
