"""`trecexam compare-graders`: graders against the official side and with each other, and bad input."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from support import (
    HashGrader,
    err,
    hashed_rating,
    labels_of,
    make_small_track,
    printed,
    tsv_table,
    write_jsonl,
    write_run,
)

import converters
import trecexam
from trecexam.results.result import Tables

#: (query_id, doc_id, item_id) -> rating
Ratings = Mapping[tuple[str, str, str], int]
#: A recording of two prompts, and its content.
Two = tuple[Path, dict[str, Ratings]]
Capture = pytest.CaptureFixture[str]
QUERIES, DOCS, ITEMS = ("q1", "q2", "q3"), range(12), range(4)


def compared(track: Path, *recorded: Path) -> Tables:
    with trecexam.open_track(track) as opened:
        return opened.compare_graders(recorded=recorded)


def approx(value: float) -> object:
    return pytest.approx(value, nan_ok=True)


def random_ratings(seed: int, near: Ratings = MappingProxyType({})) -> Ratings:
    """A rating of every cell, or one close to another grader's."""
    rng = random.Random(seed)
    cells = [(q, f"{q}-d{d:02}", f"{q}/{i}") for q in QUERIES for d in DOCS for i in ITEMS]
    drawn = {cell: rng.choice((0, 0, 0, 0, 0, 1, 2, 3, 4, 5)) for cell in cells}
    return drawn | {cell: rating for cell, rating in near.items() if rng.random() > 0.4}


def write_recording(path: Path, by_prompt: Mapping[str, Ratings]) -> Path:
    fields = ("query_id", "doc_id", "item_id", "rating", "answer", "model", "prompt")
    rows = (
        dict(zip(fields, (*cell, rating, str(rating), "m", prompt), strict=True))
        for prompt, ratings in by_prompt.items()
        for cell, rating in ratings.items()
    )
    return write_jsonl(path, rows)


def cohens_kappa(pairs: Sequence[tuple[int, int]]) -> float:
    n = len(pairs)
    po = sum(a == b for a, b in pairs) / n
    levels = {level for pair in pairs for level in pair}
    pe = sum(sum(a == x for a, _ in pairs) * sum(b == x for _, b in pairs) for x in levels) / n**2
    return (po - pe) / (1 - pe) if pe != 1 else math.nan


def weighted(pairs: Sequence[tuple[int, int]], power: int) -> float:
    n = len(pairs)
    observed = sum(abs(a - b) ** power for a, b in pairs) / n
    expected = sum(abs(a - b) ** power for a, _ in pairs for _, b in pairs) / n**2
    return 1 - observed / expected


def tau_b(x: Sequence[float], y: Sequence[float]) -> float:
    pairs = itertools.combinations(range(len(x)), 2)
    signs = [((x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j])) for i, j in pairs]
    untied = sum(abs(a) for a, _ in signs) * sum(abs(b) for _, b in signs)
    return sum(a * b for a, b in signs) / math.sqrt(untied) if untied else math.nan


def rankings(root: Path) -> list[dict[str, list[str]]]:
    runs = (converters.read(path, "run") for path in sorted((root / "runs").glob("*.run")))
    return [{q: run.ranking(q) for q in run.query_ids} for run in runs]


def pooled(root: Path) -> set[tuple[str, str]]:
    return {(q, d) for run in rankings(root) for q, docs in run.items() for d in docs[:8]}


def label(ratings: Ratings, q: str, d: str) -> int:
    return max(ratings[q, d, f"{q}/{i}"] for i in ITEMS)


@pytest.fixture
def track(tmp_path: Path) -> Path:
    """An ungraded track with eight runs."""
    root = make_small_track(tmp_path / "track")
    rng = random.Random(1)
    for number in range(5):
        ranking = {q: rng.sample([f"{q}-d{d:02}" for d in DOCS], 8) for q in QUERIES}
        write_run(root / "runs" / f"more{number}.run", ranking)
    return root


@pytest.fixture
def two(tmp_path: Path) -> Two:
    first = random_ratings(1)
    by_prompt = {"first": first, "second": random_ratings(2, near=first)}
    return write_recording(tmp_path / "two.jsonl", by_prompt), by_prompt


def test_each_prompt_of_a_recording_is_compared_with_the_official_side_per_threshold(
    track: Path, two: Two
) -> None:
    path, by_prompt = two
    with (track / "trecexam.toml").open("a") as file:
        file.write('[scores]\nmeasures = ["P(rel=4)@5"]\nofficial_measures = ["P@5"]\nmin_relevant = 2\n')
    found = [*compared(track, path).tables["graders"]]
    rows = [(row["grader"], row["min_rating"]) for row in found]
    assert rows == [*itertools.product(by_prompt, range(1, 6))]
    judged = labels_of(track / "qrels.txt")
    first_ranks = [[(q, d) for q in QUERIES for d in run[q][:5]] for run in rankings(track)]
    for row in found:
        ratings, t = by_prompt[row["prompt"]], row["min_rating"]
        assert (row["model"], row["measure"]) == ("m", "P@5" if t == 1 else f"P(rel={t})@5")
        # Precision times its ranks: a whole number, so that ties are ties.
        ours = [sum(label(ratings, *passage) >= t for passage in first) for first in first_ranks]
        official = [sum(judged[passage] >= 1 for passage in first) for first in first_ranks]
        assert row["kendall_tau"] == approx(tau_b(ours, official))
        pairs = [(int(label(ratings, q, d) >= t), int(judged[q, d] >= 2)) for q, d in pooled(track)]
        assert row["kappa"] == approx(cohens_kappa(pairs))
        assert row["n_judged"] == len(pairs)
    assert len({row["kendall_tau"] for row in found}) > 4


def test_kappa_between_two_graders_equals_a_naive_count(track: Path, two: Two) -> None:
    path, by_prompt = two
    first, second = by_prompt.values()
    pool = sorted(pooled(track))
    over = {
        "labels": [(label(first, q, d), label(second, q, d)) for q, d in pool],
        "ratings": [(first[q, d, f"{q}/{i}"], second[q, d, f"{q}/{i}"]) for q, d in pool for i in ITEMS],
    }
    found = [*compared(track, path).tables["pairs"]]
    rows = [(row["over"], row["min_rating"]) for row in found]
    assert rows == [*itertools.product(over, (None, 1, 2, 3, 4, 5))]
    for row in found:
        graded, t = over[row["over"]], row["min_rating"]
        assert row["other_min_rating"] == t
        pairs = [(int(a >= t), int(b >= t)) for a, b in graded] if t else graded
        assert (row["n"], row["grader_only"], row["other_only"]) == (len(pairs), 0, 0)
        assert row["agreement"] == approx(sum(a == b for a, b in pairs) / len(pairs))
        assert row["kappa"] == approx(cohens_kappa(pairs))
        # Fewer than five queries.
        assert math.isnan(row["kappa.low"])
        assert row["kappa.linear"] == approx(math.nan if t else weighted(pairs, 1))
        assert row["kappa.quadratic"] == approx(math.nan if t else weighted(pairs, 2))


def test_cells_rated_by_only_one_grader_are_excluded_and_counted(
    track: Path, tmp_path: Path, two: Two
) -> None:
    part = {cell: rating for cell, rating in two[1]["second"].items() if cell[0] != "q3"}
    few = write_recording(tmp_path / "few.jsonl", {"second": part})
    whole = write_recording(tmp_path / "whole.jsonl", {"first": two[1]["first"]})
    none = write_recording(tmp_path / "none.jsonl", {"third": {("q9", "d", "i"): 1}})
    found = compared(track, whole, few, none)
    n = Counter(query for query, _ in pooled(track))
    row = next(iter(found.tables["pairs"]))
    assert (row["n"], row["grader_only"], row["other_only"]) == (n["q1"] + n["q2"], n["q3"], 0)
    total, notes = 4 * n.total(), "\n".join(found.notes)
    assert f"few: {4 * n['q3']} of {total} cells have no rating" in notes
    assert f"none: {total} of {total} cells have no rating" in notes
    assert "whole:" not in notes
    unrated = {(row["grader"], row["unrated_cells"]) for row in found}
    assert unrated == {("whole", 0), ("few", 4 * n["q3"])}
    assert {(row["grader"], row["other_grader"]) for row in found.tables["pairs"]} == {("whole", "few")}


def test_stored_grades_are_used_and_nothing_is_graded_or_stored(track: Path, two: Two) -> None:
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        opened.update()
    before = files(track)
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        both = opened.compare_graders(recorded=[two[0]], measures=["P@5"])
        alone = opened.compare_graders(measures=["P@5"])
    assert files(track) == before
    own = both.table["grader"][0]
    assert set(both.table["grader"]) == {own, "first", "second"}
    assert [row for row in list(both.table) if row["grader"] == own] == list(alone.table)
    first = two[1]["first"]
    expected = [
        (hashed_rating(f"passage {int(d[-2:])} about {q}", f"question {i} of {q}?"), first[q, d, f"{q}/{i}"])
        for q, d in pooled(track)
        for i in ITEMS
    ]
    key = {"grader": own, "other_grader": "first", "over": "ratings", "min_rating": None}
    (row,) = (row for row in list(both.tables["pairs"]) if key.items() <= row.items())
    assert row["kappa"] == pytest.approx(cohens_kappa(expected))


def test_ratings_of_a_person_do_not_count_for_any_grader(graded: Path) -> None:
    before = compared(graded).to_tsv()
    with trecexam.open_track(graded) as opened:
        rating = next(r for r in opened.grades() if r["rating"] == 0)
        cell = rating["query_id"], rating["doc_id"]
        opened.override(*cell, 5, item=rating["item_id"], who="ann", why="it says so")
    after = compared(graded)
    assert after.to_tsv() == before
    assert "left out: people's ratings that replace a grader's (overrides.tsv)" in after.notes


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--grader", "rubrik"], "no grader 'rubrik' in this track; did you mean 'rubric'?"),
        (["--grader", "trecexam.toml"], "no grader 'trecexam.toml' in this track; there is rubric"),
        (["--recorded", "none.jsonl"], "none.jsonl: no such file of recorded grades"),
        (["--recorded", "empty.toml"], "empty.toml"),
    ],
)
def test_invalid_requests_are_a_one_line_error(
    track: Path, given: list[str], reason: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(track.parent)
    Path("empty.toml").write_text("[scores]\nmin_rating = 3\n")
    (line,) = err(capsys, "compare-graders", track, *given).splitlines()
    assert reason in line


def test_without_grades_or_anything_to_compare_with_the_reason_is_an_error(
    track: Path, two: Two, capsys: Capture
) -> None:
    one = write_recording(track.parent / "one.jsonl", {"only": random_ratings(1)})
    assert compared(track, one).tables.keys() == {"graders", "labels"}
    assert "no grades of embedding yet" in err(capsys, "compare-graders", track)
    (track / "qrels.txt").unlink()
    why = "nothing to compare: it needs official judgments in qrels.txt"
    assert why in err(capsys, "compare-graders", track, "--recorded", one)
    shown = printed(capsys, "compare-graders", track, "--recorded", two[0])
    assert why in shown.err
    assert [row["over"] for row in tsv_table(shown.out)] == ["labels"] * 6 + ["ratings"] * 6


def files(root: Path) -> Mapping[Path, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {path: path.read_bytes() for path in paths}
