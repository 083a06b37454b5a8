"""TREC DL 2019: agreement as in the workbench, labels and measures, abilities, holes."""

from __future__ import annotations

import csv
import gzip
import heapq
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from ir_measures import nDCG
from scipy import stats
from support import tsv_rows

import trecexam
from trecexam.cli.main import run
from trecexam.features.agreement.arithmetic import Agreement, Crosstab, agreement
from trecexam.inputs.thresholds import Thresholds
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


# From runs to scores on TREC DL 2019: 21 queries, 37 runs, FLAN-T5-large's recorded grades.


Ratings = Mapping[str, Mapping[str, Mapping[str, int]]]
Rankings = Mapping[str, Mapping[str, list[str]]]


@pytest.fixture(scope="module")
def pooled(ratings: Ratings, rankings: Rankings) -> Ratings:
    """Only the ratings of pooled passages."""
    pool = {(q, d) for run in rankings.values() for q, docs in run.items() for d in docs[:20]}
    return {q: {d: of for d, of in docs.items() if (q, d) in pool} for q, docs in ratings.items()}


def test_rubric_qrels_are_the_best_ratings(track: Path, pooled: Ratings) -> None:
    expected = [f"{q} 0 {d} {max(pooled[q][d].values())}" for q in sorted(pooled) for d in sorted(pooled[q])]
    assert (track / "out" / "rubric.qrels").read_text().splitlines() == expected


def test_cover_and_precision_equal_a_naive_computation(
    track: Path, pooled: Ratings, rankings: Rankings
) -> None:
    values = {
        (r["run"], r["query_id"], r["measure"]): float(r["value"])
        for r in tsv_rows(track / "out" / "per_query.tsv")
    }
    for name, by_query in rankings.items():
        for query_id, graded in pooled.items():
            top = by_query.get(query_id, [])[:20]
            reached = {item for d in top for item, rating in graded[d].items() if rating >= 4}
            possible = {item for d in graded for item, rating in graded[d].items() if rating >= 4}
            precision = sum(max(graded[d].values()) >= 4 for d in top) / 20
            assert values[name, query_id, "Cover(rel=4)@20"] == pytest.approx(len(reached) / 10, abs=1e-6)
            assert values[name, query_id, "nCover(rel=4)@20"] == pytest.approx(
                len(reached) / len(possible) if possible else 0, abs=1e-6
            )
            assert values[name, query_id, "P(rel=4)@20"] == pytest.approx(precision, abs=1e-6)


def test_judged_passages_change_denominators_but_no_rank_measure(
    track: Path, all_judged: Path, ratings: Ratings, rankings: Rankings
) -> None:
    names = ("before", "now")
    values = {
        name: {
            (r["run"], r["query_id"], r["measure"]): float(r["value"])
            for r in tsv_rows(root / "out" / "per_query.tsv")
        }
        for name, root in zip(names, (track, all_judged), strict=True)
    }
    assert values["before"].keys() == values["now"].keys()
    changed = {key[2] for key, value in values["now"].items() if value != values["before"][key]}
    assert changed == {"nDCG@20", "AP(rel=4)", "nCover(rel=4)@20", "alpha_nDCG@20"}
    for run_name, by_query in rankings.items():
        for query_id, graded in ratings.items():
            ranking = by_query.get(query_id, [])
            reached = {item for d in ranking[:20] for item, r in graded.get(d, {}).items() if r >= 4}
            possible = {item for d in graded for item, rating in graded[d].items() if rating >= 4}
            relevant = {d for d, of in graded.items() if max(of.values()) >= 4}
            n_cover = len(reached) / len(possible) if possible else 0
            precisions = [
                len(relevant.intersection(ranking[:rank])) / rank
                for rank, d in enumerate(ranking, 1)
                if d in relevant
            ]
            place = run_name, query_id
            assert values["now"][*place, "nCover(rel=4)@20"] == pytest.approx(n_cover, abs=1e-6)
            average_precision = sum(precisions) / len(relevant) if relevant else 0
            assert values["now"][*place, "AP(rel=4)"] == pytest.approx(average_precision, abs=1e-6)


@pytest.mark.slow
def test_embedding_agrees_with_the_official_judgments(dl19: Path, tmp_path: Path) -> None:
    from trecexam.graders.weights import offline_folder

    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    root = tmp_path / "track"
    # Every third query: 7 of 21 take a third of the time.
    bank = tmp_path / "bank.jsonl"
    with gzip.open(dl19 / "bank.questions.jsonl.gz", "rb") as file:
        bank.write_bytes(b"".join(file.readlines()[::3]))
    arguments = ["--bank", bank, "--passages", dl19 / "passages.jsonl.gz",
                 "--qrels", dl19 / "qrels.txt", "--runs", dl19 / "runs"]  # fmt: skip
    assert run(["init", str(root), *map(str, arguments)]) == 0
    # The other queries are noted as missing from the bank.
    assert run(["watch", str(root), "--once"]) == 0
    found = {(r["measure"], r["official_measure"]): r for r in tsv_rows(root / "out" / "correlation.tsv")}
    # Measured 0.770 (0.846 on all queries); a lexical grader has about zero here.
    assert float(found["P(rel=4)@20", "P@20"]["kendall_tau"]) > 0.75


# The bank of TREC DL 2019 as an exam of its 37 runs, against the official leaderboard.


def test_abilities_agree_with_the_official_leaderboard_better_than_coverage_does(track: Path) -> None:
    with trecexam.open_track(track) as opened:
        fitted = opened.exam.fit()
        cover = {row.run: row.scores[0].mean for row in opened.leaderboard(["Cover(rel=4)@20"]).rows}
    assert fitted.exam.values.shape == (37, 210)
    # All cells have a rating, so the share of items that a run has right is its Cover.
    assert dict(zip(fitted.exam.examinees, fitted.fit.accuracy.tolist(), strict=True)) == pytest.approx(cover)
    ranks = json.loads((track / "official_leaderboard.json").read_text())
    theta = dict(zip(fitted.exam.examinees, fitted.fit.theta.tolist(), strict=True))
    runs = [name for name in theta if name in ranks]
    taus = {(ours, official): one.kendall_tau.value for ours, official, one in fitted.official}
    expected = stats.kendalltau([theta[name] for name in runs], [-ranks[name] for name in runs]).statistic
    assert taus["theta", "official_leaderboard"] == pytest.approx(expected, abs=1e-3)
    assert taus["theta", "official_leaderboard"] > 0.6
    assert taus["accuracy", "official_leaderboard"] < 0.5
    shares = fitted.exam.values.mean(axis=0)
    assert ((shares == 1).sum(), (shares == 0).sum()) == (26, 38)
    assert all(math.isfinite(value) for value in (*fitted.fit.a, *fitted.fit.b, *fitted.fit.theta))


# Holes and simulations on TREC DL 2019, compared with ir_measures and naive file reading.


Qrels = dict[tuple[str, str], int]


def read_qrels(path: Path) -> Qrels:
    rows = map(str.split, path.read_text().splitlines())
    return {(query_id, doc_id): int(label) for query_id, _, doc_id, label in rows}


def means(qrels: Qrels, rankings: Rankings, measure: ir_measures.Measure) -> dict[str, float]:
    rows = [ir_measures.Qrel(q, d, label) for (q, d), label in qrels.items()]
    evaluator = ir_measures.evaluator([measure], rows)
    return {
        name: evaluator.calc_aggregate(
            {q: {d: float(-rank) for rank, d in enumerate(docs)} for q, docs in by.items()}
        )[measure]
        for name, by in rankings.items()
    }


def mapped(rule: str, label: int) -> int:
    """The official label of an automatic one by a rule in words: "below 4: 0, from 4: 2, from 5: 3"."""
    steps = re.findall(r"(below|from) (\d+): (\d+)", rule)
    return max(int(to) for word, least, to in steps if word == "below" or label >= int(least))


def test_leaving_out_a_run_equals_ir_measures_on_files_without_its_judgments(
    track: Path, rankings: Rankings
) -> None:
    qrels, labels = read_qrels(track / "qrels.txt"), read_qrels(track / "out" / "rubric.qrels")
    with trecexam.open_track(track) as opened:
        report = opened.simulate(["nDCG@10"])
    rows = {one["run"]: one for one in report.table}
    full = means(qrels, rankings, nDCG @ 10)
    assert {name: one["mean.full"] for name, one in rows.items()} == pytest.approx(full)
    for name in ("ICT-CKNRM_B50", "idst_bert_p2", "idst_bert_p1"):
        theirs = {
            (q, d)
            for other in rankings
            if other != name
            for q, docs in rankings[other].items()
            for d in docs[:20]
        }
        own = {(q, d) for q, docs in rankings[name].items() for d in docs[:20]} - theirs
        dropped = own & qrels.keys()
        assert rows[name]["unique"] == len(dropped)
        assert rows[name]["relevant"] == sum(qrels[place] >= 1 for place in dropped)
        remain = {place: label for place, label in qrels.items() if place not in dropped}
        filled = remain | {
            place: mapped(str(rows[name]["map"]), labels[place]) for place in dropped & labels.keys()
        }
        for how, changed in (("holes", remain), ("fill", filled)):
            board = means(changed, rankings, nDCG @ 10)
            assert rows[name][f"mean.{how}"] == pytest.approx(board[name])
            assert rows[name][f"rank.{how}"] == 1 + sum(
                value > board[name] + 1e-12 for value in board.values()
            )


@pytest.mark.slow
def test_fill_changes_the_leaderboard_less_than_random_holes(track: Path) -> None:
    with trecexam.open_track(track) as opened:
        rows = list(opened.simulate(["nDCG@10"], judgments=True, repeats=3).table)
    assert [one["n_removed"] for one in rows] == [434, 868, 1302, 1736, 2170, 2603, 3037, 3471, 3905]
    for one in rows:
        assert one["tau.fill"] > one["tau.holes"]
        assert one["difference.fill"] < one["difference.holes"]
    assert rows[-1]["tau.fill"] > 0.75
