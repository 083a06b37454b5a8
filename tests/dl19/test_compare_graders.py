"""Several graders on TREC DL 2019: recomputed by brute force from the recordings, runs and judgments."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import trecexam
from trecexam.results.table import to_tsv

Ratings = Mapping[str, Mapping[str, Mapping[str, int]]]
Rankings = Mapping[str, Mapping[str, list[str]]]


@pytest.fixture(scope="module")
def changed(ratings: Ratings) -> Ratings:
    """The same ratings with a quarter of the cells changed."""

    def rating(q: str, d: str, i: str, published: int) -> int:
        digest = hashlib.md5(f"{q} {d} {i}".encode()).digest()
        return digest[1] % 6 if digest[0] < 64 else published

    return {
        q: {d: {i: rating(q, d, i, r) for i, r in items.items()} for d, items in docs.items()}
        for q, docs in ratings.items()
    }


@pytest.fixture(scope="module")
def track(new_track: Callable[..., Path]) -> Path:
    """An ungraded track."""
    return new_track()


@pytest.fixture(scope="module")
def graders(dl19: Path, changed: Ratings, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three graders: FLAN-T5, the changed one, and the official qrels."""
    path = tmp_path_factory.mktemp("grades") / "changed.jsonl"
    path.write_text(
        "".join(
            json.dumps({"query_id": q, "doc_id": d, "item_id": i, "rating": r, "answer": str(r)}) + "\n"
            for q, docs in changed.items()
            for d, items in docs.items()
            for i, r in items.items()
        )
    )
    recorded = dl19 / "graded.flan-t5-large.jsonl.gz", path, dl19 / "qrels.txt"
    return [part for each in recorded for part in ("--recorded", str(each))]


@pytest.fixture(scope="module")
def pool(rankings: Rankings) -> set[tuple[str, str]]:
    return {(q, d) for of_run in rankings.values() for q, docs in of_run.items() for d in docs[:20]}


def cohens_kappa(pairs: Sequence[tuple[int, int]]) -> float:
    n = len(pairs)
    firsts, seconds = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    po = sum(a == b for a, b in pairs) / n
    pe = sum(firsts[level] * seconds[level] for level in firsts) / n**2
    return (po - pe) / (1 - pe)


def tau_b(x: Sequence[float], y: Sequence[float]) -> float:
    signs = [
        ((x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j]))
        for i, j in itertools.combinations(range(len(x)), 2)
    ]
    untied = math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    return sum(a * b for a, b in signs) / untied


def written(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.slow
def test_tau_and_kappa_per_grader_and_threshold_equal_a_naive_count(
    track: Path,
    graders: list[str],
    dl19: Path,
    tmp_path: Path,
    ratings: Ratings,
    changed: Ratings,
    judgments: Mapping[tuple[str, str], int],
    rankings: Rankings,
    pool: set[tuple[str, str]],
) -> None:
    out = tmp_path / "graders.tsv"
    with trecexam.open_track(track) as opened:
        compared = opened.compare_graders(
            recorded=graders[1::2], measures=["P(rel=4)@20"], official_measures=["official_leaderboard"]
        )
    out.write_text(compared.to_tsv())
    assert not (track / ".trecexam" / "grades.sqlite").exists()
    labels = {
        "graded": {(q, d): max(items.values()) for q, docs in ratings.items() for d, items in docs.items()},
        "changed": {(q, d): max(items.values()) for q, docs in changed.items() for d, items in docs.items()},
        "qrels": judgments,
    }
    ranks = json.loads((dl19 / "official_leaderboard.json").read_text())
    names = [name for name in rankings if name in ranks]
    rows = written(out)
    assert [(row["grader"], row["min_rating"]) for row in rows] == [
        *((grader, str(t)) for grader in ("graded", "changed") for t in range(1, 6)),
        *(("qrels", str(t)) for t in range(1, 4)),
    ]
    for row in rows:
        label, t = labels[row["grader"]], int(row["min_rating"])
        tops = [[(q, d) for q, docs in rankings[name].items() for d in docs[:20]] for name in names]
        hits = [sum(label[key] >= t for key in top) for top in tops]
        tau = tau_b(hits, [-ranks[name] for name in names])
        assert row["kendall_tau"] == f"{tau:z.6f}"
        # All passages of the qrels are graded by them; a grader of items has those of the runs.
        common = judgments.keys() if row["grader"] == "qrels" else pool & judgments.keys()
        # Qrels are on the scale of the judgments, and have their threshold.
        relevant = t if row["grader"] == "qrels" else 1
        kappa = cohens_kappa([(int(label[key] >= t), int(judgments[key] >= relevant)) for key in common])
        assert (row["kappa"], row["n_judged"]) == (f"{kappa:z.6f}", str(len(common)))
        assert row["min_relevant"] == str(relevant)


@pytest.mark.slow
def test_kappa_between_two_graders_equals_a_naive_count(
    track: Path,
    graders: list[str],
    tmp_path: Path,
    ratings: Ratings,
    changed: Ratings,
    judgments: Mapping[tuple[str, str], int],
    rankings: Rankings,
    pool: set[tuple[str, str]],
) -> None:
    out, by_item = tmp_path / "pairs.tsv", tmp_path / "items.tsv"
    with trecexam.open_track(track) as opened:
        compared = opened.compare_graders(recorded=graders[1::2], measures=["P(rel=4)@20"])
    out.write_text(to_tsv(compared.tables["pairs"]))
    by_item.write_text(to_tsv(compared.tables["items"]))
    best = {(q, d): (max(ratings[q][d].values()), max(changed[q][d].values())) for q, d in pool}
    cells = [(ratings[q][d][i], changed[q][d][i]) for q, d in pool for i in ratings[q][d]]
    of_pair = {
        ("graded", "changed", "labels"): list(best.values()),
        ("graded", "changed", "ratings"): cells,
        ("graded", "qrels", "labels"): [(best[key][0], judgments[key]) for key in pool],
        ("changed", "qrels", "labels"): [(best[key][1], judgments[key]) for key in pool],
    }
    rows = written(out)
    assert {(row["grader"], row["other_grader"], row["over"]) for row in rows} == of_pair.keys()
    assert len(rows) == 6 + 6 + 4 + 4
    for row in rows:
        pairs = of_pair[row["grader"], row["other_grader"], row["over"]]
        if row["min_rating"]:
            a, b = int(row["min_rating"]), int(row["other_min_rating"])
            pairs = [(int(x >= a), int(y >= b)) for x, y in pairs]
        assert (row["kappa"], row["n"]) == (f"{cohens_kappa(pairs):z.6f}", str(len(pairs)))
    # Graders of items have their own scale: the same ratings as judges, each at its threshold.
    of_judges = [row for row in rows if (row["grader"], row["other_grader"]) == ("graded", "qrels")]
    assert [(row["min_rating"], row["other_min_rating"]) for row in of_judges] == [
        ("1", "1"), ("2", "2"), ("3", "3"), ("4", "2")
    ]  # fmt: skip
    both = ("graded", "changed")
    items = [
        row
        for row in written(by_item)
        if (row["grader"], row["other_grader"]) == both and row["min_rating"] == "4"
    ]
    assert len(items) == 210
    for row in items[::23]:
        pairs = [
            (int(ratings[q][d][row["item_id"]] >= 4), int(changed[q][d][row["item_id"]] >= 4))
            for q, d in pool
            if q == row["query_id"]
        ]
        assert row["kappa"] == f"{cohens_kappa(pairs):z.6f}"
