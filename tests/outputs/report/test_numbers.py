"""The numbers next to each plot, recomputed from the track's files and the hash grader."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest
from scipy import stats
from support import (
    REPORTED,
    HashGrader,
    hashed_rating,
    make_small_track,
    tsv_rows,
    tsv_table,
    update,
    write_run,
)

import trecexam
from trecexam.results.table import to_tsv

DEPTH, MIN_RATING = 8, 4
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track in which a run skips queries, answers are unparsed, and a passage has no text."""
    root = make_small_track(tmp_path_factory.mktemp("numbers") / "track", config=REPORTED, docs=13)
    write_run(root / "runs" / "skips.run", {"q1": ["q1-d03", "q1-d00", "nowhere"]})
    grader = HashGrader()
    grader.status = lambda cell: "unparsed" if cell.doc_id in {"q2-d01", "q1-d03"} else "ok"
    update(root, grader)
    return root


def rows(root: Path, name: str) -> Rows:
    return tsv_rows(root / "out" / name)


def plotted(root: Path, name: str) -> Rows:
    """The numbers of a plot that the report does not have."""
    with trecexam.open_track(root, grader=HashGrader()) as track:
        return tsv_table(to_tsv(track.plot(name).plot.table))


def rankings(root: Path) -> dict[str, dict[str, list[str]]]:
    """run -> query -> the first passages, best first; the helper's runs are in that order."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted((root / "runs").glob("*.run")):
        for line in path.read_text().splitlines():
            query_id, _, doc_id, *_ = line.split()
            found.setdefault(path.stem, {}).setdefault(query_id, []).append(doc_id)
    return {run: {q: docs[:DEPTH] for q, docs in by.items()} for run, by in found.items()}


def bank(root: Path) -> dict[str, dict[str, str]]:
    lines = map(json.loads, (root / "bank.questions.jsonl").read_text().splitlines())
    return {r["query_id"]: {i["question_id"]: i["question_text"] for i in r["questions"]} for r in lines}


def ratings(root: Path) -> dict[tuple[str, str, str], int | None]:
    """(query, passage, item) -> rating, None if it is unparsed, of every pooled passage with a text."""
    texts = {
        r["docid"]: r["text"] for r in map(json.loads, (root / "passages.jsonl").read_text().splitlines())
    }
    pooled = {(q, d) for by in rankings(root).values() for q, docs in by.items() for d in docs}
    return {
        (q, d, i): None if d in {"q2-d01", "q1-d03"} else hashed_rating(texts[d], text)
        for q, d in pooled
        if d in texts
        for i, text in bank(root)[q].items()
    }


def per_query(root: Path, measure: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows(root, "per_query.tsv"):
        if row["measure"] == measure:
            found.setdefault(row["run"], []).append(float(row["value"]))
    return found


def test_leaderboard_numbers_equal_a_recount(root: Path) -> None:
    measure = f"P(rel={MIN_RATING})@{DEPTH}"
    values = per_query(root, measure)
    table = rows(root, "plots/leaderboard.tsv")
    assert [row["run"] for row in table] == [row["run"] for row in rows(root, "leaderboard.tsv")]
    assert [row["rank"] for row in table] == ["1", "2", "2", "4"], "ties share a rank"
    for row in table:
        mine = values[row["run"]]
        low, high = stats.t.interval(0.95, len(mine) - 1, statistics.fmean(mine), stats.sem(mine))
        assert float(row[measure]) == pytest.approx(statistics.fmean(mine), abs=2e-6)
        assert float(row[f"{measure}.low"]) == pytest.approx(max(low, 0), abs=2e-6)
        assert float(row[f"{measure}.high"]) == pytest.approx(min(high, 1), abs=2e-6)


def test_scatter_numbers_equal_a_recount(root: Path) -> None:
    values = per_query(root, f"P(rel={MIN_RATING})@{DEPTH}")
    table = rows(root, "plots/scatter.tsv")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        official = {row.run: row for row in track.leaderboard(official=True).rows}
    for row in table:
        mine, theirs = values[row["run"]], official[row["run"]].scores[0]
        half = stats.t.ppf(0.975, len(mine) - 1) * theirs.stderr
        assert float(row["rubric"]) == pytest.approx(statistics.fmean(mine), abs=2e-6)
        assert float(row["rubric.high"]) == pytest.approx(
            min(statistics.fmean(mine) + stats.t.ppf(0.975, len(mine) - 1) * stats.sem(mine), 1), abs=2e-6
        )
        assert float(row["official"]) == pytest.approx(theirs.mean, abs=2e-6)
        assert float(row["official.low"]) == pytest.approx(max(theirs.mean - half, 0), abs=2e-6)


def test_threshold_numbers_equal_a_recount(root: Path) -> None:
    table = plotted(root, "thresholds")
    assert [row["measure"] for row in table] == [f"P@{DEPTH}", *(f"P(rel={t})@{DEPTH}" for t in range(2, 6))]
    assert [int(row["min_rating"]) for row in table] == [1, 2, 3, 4, 5]
    with trecexam.open_track(root, grader=HashGrader()) as track:
        official = {row.run: row.scores[0].mean for row in track.leaderboard(official=True).rows}
        for row in table:
            board = track.leaderboard([row["measure"]])
            mine = [one.scores[0].mean for one in board.rows]
            tau = stats.kendalltau(mine, [official[one.run] for one in board.rows]).statistic
            if math.isnan(tau):
                assert row["kendall_tau"] == ""
            else:
                assert float(row["kendall_tau"]) == pytest.approx(tau, abs=1e-6)
    known = {(r["measure"], r["official_measure"]): r for r in rows(root, "correlation.tsv")}
    for row in table:
        if int(row["min_rating"]) == MIN_RATING:
            same = known[row["measure"], row["official_measure"]]
            assert {key: row[key] for key in same} == same


def test_grade_numbers_equal_a_recount(root: Path) -> None:
    rated = ratings(root)
    counts = Counter("unparsed" if rating is None else str(rating) for rating in rated.values())
    page = (root / "out" / "report.html").read_text()
    section = page.split('id="grades-section"')[1].split("</section>")[0]
    cells = re.findall(r"<t[hd][^>]*>(?:<bdi>)?([^<]+)", section.split("<tbody>")[1])
    table = dict(zip(cells[::3], zip(cells[1::3], cells[2::3], strict=True), strict=True))
    assert list(table) == [*map(str, range(6)), "unparsed"]
    assert {grade: int(count) for grade, (count, _) in table.items() if count != "0"} == counts
    shares = {grade: float(share) for grade, (_, share) in table.items()}
    total = counts.total()
    assert shares == pytest.approx({grade: counts[grade] / total for grade in table}, abs=6e-4)


def test_item_numbers_equal_a_recount(root: Path) -> None:
    rated, ranked = ratings(root), rankings(root)
    table = plotted(root, "items")
    assert [row["item_id"] for row in table] == [i for items in bank(root).values() for i in items]
    for row in table:
        q, item = row["query_id"], row["item_id"]
        mine = [r for (a, _, i), r in rated.items() if (a, i) == (q, item)]
        known = [r for r in mine if r is not None]
        covering = sum(
            any((rated.get((q, d, item)) or 0) >= MIN_RATING for d in by.get(q, ())) for by in ranked.values()
        )
        assert (int(row["passages"]), int(row["rated"])) == (len(mine), len(known))
        assert int(row["unparsed"]) == mine.count(None)
        assert float(row["mean_rating"]) == pytest.approx(statistics.fmean(known), abs=1e-6)
        assert float(row["share_reaching"]) == pytest.approx(
            sum(r >= MIN_RATING for r in known) / len(known), abs=1e-6
        )
        assert (int(row["runs_covering"]), int(row["n_runs"])) == (covering, 4)
        assert float(row["share_of_runs"]) == pytest.approx(covering / 4)
        assert row["text"] == bank(root)[q][item]
