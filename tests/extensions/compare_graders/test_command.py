"""`trecexam compare-graders`: graders against the official side and with each other, and bad input."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from support import (
    HashGrader,
    all_notes,
    err,
    hashed_rating,
    labels_of,
    make_small_track,
    out,
    printed,
    tsv_table,
    write_jsonl,
    write_run,
)

import converters
import trecexam
from trecexam.errors import TrecexamError

Rows = list[dict[str, str]]
#: (query_id, doc_id, item_id) -> rating
Ratings = Mapping[tuple[str, str, str], int]
QUERIES, DOCS, ITEMS = ("q1", "q2", "q3"), range(12), range(4)


def table(capsys: pytest.CaptureFixture[str], *arguments: object) -> Rows:
    return tsv_table(out(capsys, "compare-graders", *arguments))


def pairs_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> Rows:
    """The table of pairs of graders, as in a TSV."""
    found = json.loads(out(capsys, "compare-graders", *arguments, "--json"))["pairs"]
    return [{key: "" if value is None else text(value) for key, value in row.items()} for row in found]


def text(value: object) -> str:
    return f"{value:z.6f}" if isinstance(value, float) else str(value)


def random_ratings(seed: int, *, near: Ratings | None = None) -> Ratings:
    """A rating of every cell, or one close to another grader's."""
    rng = random.Random(seed)
    ratings = {}
    for q, d, i in itertools.product(QUERIES, DOCS, ITEMS):
        cell = (q, f"{q}-d{d:02}", f"{q}/{i}")
        ratings[cell] = (
            rng.choice((0, 0, 0, 0, 0, 1, 2, 3, 4, 5)) if near is None or rng.random() < 0.4 else near[cell]
        )
    return ratings


def write_recording(path: Path, by_prompt: Mapping[str, Ratings]) -> Path:
    return write_jsonl(
        path,
        (
            {"query_id": q, "doc_id": d, "item_id": i, "rating": rating, "answer": str(rating)}
            | {"model": "m", "prompt": prompt}
            for prompt, ratings in by_prompt.items()
            for (q, d, i), rating in ratings.items()
        ),
    )


def cohens_kappa(pairs: Sequence[tuple[int, int]]) -> float:
    n = len(pairs)
    po = sum(a == b for a, b in pairs) / n
    levels = {level for pair in pairs for level in pair}
    pe = sum(sum(a == x for a, _ in pairs) * sum(b == x for _, b in pairs) for x in levels) / n**2
    return (po - pe) / (1 - pe) if pe != 1 else math.nan


def formatted(value: float) -> str:
    return "" if math.isnan(value) else f"{value:z.6f}"


def weighted(pairs: Sequence[tuple[int, int]], power: int) -> float:
    n = len(pairs)
    observed = sum(abs(a - b) ** power for a, b in pairs) / n
    expected = sum(abs(a - b) ** power for a, _ in pairs for _, b in pairs) / n**2
    return 1 - observed / expected


def tau_b(x: Sequence[float], y: Sequence[float]) -> float:
    concordant = discordant = tied_x = tied_y = 0
    for i, j in itertools.combinations(range(len(x)), 2):
        a, b = x[i] - x[j], y[i] - y[j]
        tied_x += a == 0
        tied_y += b == 0
        concordant += a * b > 0
        discordant += a * b < 0
    n = len(x) * (len(x) - 1) / 2
    return (concordant - discordant) / math.sqrt((n - tied_x) * (n - tied_y))


def rankings(root: Path) -> dict[str, dict[str, list[str]]]:
    runs: dict[str, dict[str, list[str]]] = {}
    for path in sorted((root / "runs").glob("*.run")):
        for entry in converters.read(path, "run"):
            runs.setdefault(path.stem, {}).setdefault(entry.query_id, []).append(entry.doc_id)
    return runs


def pooled(root: Path, depth: int = 8) -> set[tuple[str, str]]:
    return {(q, d) for run in rankings(root).values() for q, docs in run.items() for d in docs[:depth]}


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
def two(tmp_path: Path) -> tuple[Path, dict[str, Ratings]]:
    """A recording of two prompts, and its content."""
    first = random_ratings(1)
    by_prompt = {"first": first, "second": random_ratings(2, near=first)}
    return write_recording(tmp_path / "two.jsonl", by_prompt), by_prompt


def relevant(reaches: Callable[[str, str], bool], of_run: Mapping[str, list[str]], k: int) -> int:
    """Mean precision at k, times k and the number of queries: a whole number, so that ties are ties."""
    return sum(reaches(q, d) for q in QUERIES for d in of_run[q][:k])


def test_each_prompt_of_a_recording_is_compared_with_the_official_side_per_threshold(
    track: Path, two: tuple[Path, dict[str, Ratings]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, by_prompt = two
    with (track / "trecexam.toml").open("a") as file:
        file.write('[scores]\nmeasures = ["P(rel=4)@5"]\nofficial_measures = ["P@5"]\nmin_relevant = 2\n')
    found = table(capsys, track, "--recorded", path)
    assert [(row["grader"], row["min_rating"]) for row in found] == [
        (prompt, str(t)) for prompt in by_prompt for t in range(1, 6)
    ]
    judged, runs = labels_of(track / "qrels.txt"), rankings(track)
    for row in found:
        ratings, t = by_prompt[row["prompt"]], int(row["min_rating"])
        assert (row["model"], row["measure"]) == ("m", "P@5" if t == 1 else f"P(rel={t})@5")
        ours = [relevant(lambda q, d: label(ratings, q, d) >= t, of_run, 5) for of_run in runs.values()]  # noqa: B023
        official = [relevant(lambda q, d: judged[q, d] >= 1, of_run, 5) for of_run in runs.values()]
        assert row["kendall_tau"] == formatted(math.nan if len(set(ours)) == 1 else tau_b(ours, official))
        pairs = [(int(label(ratings, q, d) >= t), int(judged[q, d] >= 2)) for q, d in pooled(track)]
        assert row["kappa"] == formatted(cohens_kappa(pairs))
        assert int(row["n_judged"]) == len(pairs)
    assert len({row["kendall_tau"] for row in found}) > 4


def test_kappa_between_two_graders_equals_a_naive_count(
    track: Path, two: tuple[Path, dict[str, Ratings]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, by_prompt = two
    first, second = by_prompt.values()
    pool = sorted(pooled(track))
    over = {
        "labels": [(label(first, q, d), label(second, q, d)) for q, d in pool],
        "ratings": [(first[q, d, f"{q}/{i}"], second[q, d, f"{q}/{i}"]) for q, d in pool for i in ITEMS],
    }
    found = pairs_of(capsys, track, "--recorded", path)
    assert [(row["over"], row["min_rating"]) for row in found] == [
        (each, t) for each in over for t in ("", "1", "2", "3", "4", "5")
    ]
    for row in found:
        graded, t = over[row["over"]], row["min_rating"]
        assert row["other_min_rating"] == t
        pairs = [(int(a >= int(t)), int(b >= int(t))) for a, b in graded] if t else graded
        assert (row["n"], row["grader_only"], row["other_only"]) == (str(len(pairs)), "0", "0")
        assert row["agreement"] == f"{sum(a == b for a, b in pairs) / len(pairs):.6f}"
        assert row["kappa"] == formatted(cohens_kappa(pairs))
        # Fewer than five queries.
        assert row["kappa.low"] == row["kappa.high"] == ""
        assert row["kappa.linear"] == ("" if t else f"{weighted(pairs, 1):z.6f}")
        assert row["kappa.quadratic"] == ("" if t else f"{weighted(pairs, 2):z.6f}")


def test_cells_rated_by_only_one_grader_are_excluded_and_counted(
    track: Path, tmp_path: Path, two: tuple[Path, dict[str, Ratings]], capsys: pytest.CaptureFixture[str]
) -> None:
    part = {cell: rating for cell, rating in two[1]["second"].items() if cell[0] != "q3"}
    few = write_recording(tmp_path / "few.jsonl", {"second": part})
    whole = write_recording(tmp_path / "whole.jsonl", {"first": two[1]["first"]})
    arguments = "compare-graders", track, "--recorded", whole, "--recorded", few
    labels = pairs_of(capsys, *arguments[1:])[0]
    n = {q: sum(query == q for query, _ in pooled(track)) for q in QUERIES}
    assert (labels["n"], labels["grader_only"], labels["other_only"]) == (
        str(n["q1"] + n["q2"]), str(n["q3"]), "0"
    )  # fmt: skip
    line = f"few: {4 * n['q3']} of {4 * sum(n.values())} cells have no rating"
    shown = printed(capsys, *arguments)
    assert line in shown.err
    assert "whole:" not in shown.err
    assert {(row["grader"], row["unrated_cells"]) for row in tsv_table(shown.out)} == {
        ("whole", "0"), ("few", str(4 * n["q3"]))
    }  # fmt: skip


def test_stored_grades_are_used_and_nothing_is_graded_or_stored(
    track: Path, two: tuple[Path, dict[str, Ratings]]
) -> None:
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        opened.update()
    before = files(track)
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        compared = opened.compare_graders(recorded=[two[0]], measures=["P@5"])
        alone = opened.compare_graders(measures=["P@5"])
    assert files(track) == before
    own = compared.table["grader"][0]
    names = set(compared.table["grader"])
    assert names == {own, "first", "second"}
    assert [row for row in compared.table if row["grader"] == own] == list(alone.table)
    first = two[1]["first"]
    texts = {(q, d): f"passage {int(d[-2:])} about {q}" for q, d in pooled(track)}
    expected = [
        (hashed_rating(text, f"question {i} of {q}?"), first[q, d, f"{q}/{i}"])
        for (q, d), text in texts.items()
        for i in ITEMS
    ]
    (row,) = [
        row
        for row in compared.tables["pairs"]
        if (row["other_grader"], row["over"], row["min_rating"]) == ("first", "ratings", None)
        and row["grader"] == own
    ]
    assert row["kappa"] == pytest.approx(cohens_kappa(expected))


def test_ratings_of_a_person_do_not_count_for_any_grader(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = table(capsys, graded)
    with trecexam.open_track(graded) as opened:
        rating = next(r for r in opened.grades() if r["rating"] == 0)
        cell = rating["query_id"], rating["doc_id"]
        opened.override(*cell, 5, item=rating["item_id"], who="ann", why="it says so")
    assert table(capsys, graded) == before
    left_out = "left out: people's ratings that replace a grader's (overrides.tsv)"
    assert left_out in all_notes(capsys, "compare-graders", graded)


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
    track: Path,
    tmp_path: Path,
    two: tuple[Path, dict[str, Ratings]],
    given: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.toml").write_text("[scores]\nmin_rating = 3\n")
    (line,) = err(capsys, "compare-graders", track, *given).splitlines()
    assert reason in line


def test_a_single_grader_has_no_agreement_and_missing_grades_are_an_error(
    track: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_recording(tmp_path / "one.jsonl", {"only": random_ratings(1)})
    found = json.loads(out(capsys, "compare-graders", track, "--recorded", one, "--json"))
    assert found.keys() == {"graders", "labels", "notes"}
    with (
        trecexam.open_track(track, grader=HashGrader()) as opened,
        pytest.raises(TrecexamError, match="no grades of embedding yet"),
    ):
        opened.compare_graders()


def test_without_an_official_side_graders_are_compared_only_with_each_other(
    track: Path, two: tuple[Path, dict[str, Ratings]], capsys: pytest.CaptureFixture[str]
) -> None:
    (track / "qrels.txt").unlink()
    one = write_recording(track.parent / "one.jsonl", {"only": random_ratings(1)})
    why = "nothing to compare: it needs official judgments in qrels.txt"
    assert why in err(capsys, "compare-graders", track, "--recorded", one)
    shown = printed(capsys, "compare-graders", track, "--recorded", two[0])
    assert why in shown.err
    assert [row["over"] for row in tsv_table(shown.out)] == ["labels"] * 6 + ["ratings"] * 6


def files(root: Path) -> Iterable[tuple[str, bytes]]:
    return sorted(
        (str(path), path.read_bytes())
        for path in root.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    )
