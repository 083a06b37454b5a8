"""Warnings about values that depend on which runs are pooled, wherever a leaderboard is shown."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import ir_measures
import pytest
from ir_measures import Measure, Qrel, ScoredDoc
from support import ROOT, HashGrader, make_small_track, update

import trecexam
from trecexam.scores.measures import COVER, DIVERSITY, depends_on_pool, measure, pool_measures

FREE, OF_POOL = ["P(rel=4)@8", "Cover(rel=4)@8"], ["nDCG@8", "AP(rel=4)", "nCover(rel=4)@8", "alpha_nDCG@8"]
CAUTION = (
    "values of nDCG@8, AP(rel=4), nCover(rel=4)@8, alpha_nDCG@8 depend on this pool of 3 runs; do not "
    "compare them with values from other pools; `pool_judged = true` in [track] adds the passages of "
    "official judgments"
)
#: Inputs that a measure may need.
SHAPES = ("", "@5", "(max_rel=5)", "(max_rel=5)@5", "(recall=0.5)", "(rel=4)@5")
GIVEN = ("SetP(relative=True)", "Compat(normalize=False)", "NumRet(rel=4)", "Cover(weights='equal')", "R@3")


def _measures() -> Iterator[Measure]:
    for kind in {each.NAME: each for each in ir_measures.measures.registry.values()}.values():
        for name in (f"{kind.NAME}{shape}" for shape in SHAPES):
            try:
                yield measure(name)
            except ValueError:
                continue
    yield from map(measure, GIVEN)


def value(of: Measure, ratings: dict[tuple[str, int], int], ranking: list[str]) -> float:
    """Of a run on qrels of these ratings; labels are best ratings, subtopics the items that are reached."""
    if of.NAME in COVER | DIVERSITY:
        items = of.NAME in COVER
        qrels = [Qrel("q", doc, n if items or n >= 4 else 0, str(item)) for (doc, item), n in ratings.items()]
    else:
        best = {doc: max(n for (d, _), n in ratings.items() if d == doc) for doc, _ in ratings}
        qrels = [Qrel("q", doc, label) for doc, label in best.items()]
    scored = [ScoredDoc("q", doc, -rank) for rank, doc in enumerate(ranking)]
    return next(iter(ir_measures.iter_calc([of], qrels, scored))).value


@pytest.mark.parametrize("of", tuple(_measures()), ids=str)
def test_a_measure_depends_on_the_pool_if_passages_of_other_runs_change_its_value(of: Measure) -> None:
    if of.NAME.startswith(("ECover", "Support")):
        # Their qrels have probabilities, or do not exist: both use only the run's own passages and the bank.
        assert not depends_on_pool(of)
        return
    changes = False
    for seed in range(12):
        draw = random.Random(seed)
        own, others = [f"d{n}" for n in range(8)], [f"x{n}" for n in range(12)]
        alone = {(doc, item): draw.choice([0, 0, 2, 4, 5]) for doc in own for item in range(1, 5)}
        # Accuracy divides by zero if all or no passages are relevant.
        alone |= {(own[0], item): 0 for item in range(1, 5)} | {(own[1], 1): 5}
        # Items that no passage of this run reaches.
        alone |= {(doc, item): 0 for doc in own for item in (5, 6)}
        added = {(doc, item): draw.choice([0, 0, 4, 5]) for doc in others for item in range(1, 7)}
        changes |= value(of, alone, own) != value(of, alone | added, own)
    assert depends_on_pool(of) == changes


def test_the_docs_name_each_measure_that_depends_on_the_pool() -> None:
    page = (ROOT / "examples" / "what-may-i-compare.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith("These depend on the pool:"))
    # If this fails, a measure of scores/columns/measures/ sets `depends_on_pool`, but the page lacks it.
    assert re.findall(r"`([^`]+)`", line) == list(pool_measures())


def cautions(root: Path, measures: list[str] | None = None, **how: bool) -> tuple[str, ...]:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        return tuple(
            line for line in track.leaderboard(measures, **how).notes if "nothing is graded" not in line
        )


def test_one_line_names_the_measures_the_runs_and_a_remedy(small_track: Path) -> None:
    assert cautions(small_track) == (CAUTION,)
    assert cautions(small_track, ["P(rel=4)@8", "RR(rel=4)", "Cover(rel=4)@8", "Success(rel=4)@3"]) == ()
    assert cautions(small_track, ["nDCG@8"], official=True) == ()
    (small_track / "qrels.txt").unlink()
    (line,) = cautions(small_track, ["nDCG@8"])
    assert line.endswith(" pools; report how many runs were pooled, and to which depth")


def test_a_cutoff_beyond_the_depth_is_reported_where_it_is_asked_for(small_track: Path) -> None:
    (small_track / "trecexam.toml").write_text('[track]\ndepth = 4\n[scores]\nmeasures = ["P(rel=4)@6"]\n')
    assert cautions(small_track) == cautions(small_track, ["P(rel=4)@6", "RR(rel=4)", "P(rel=4)@4"]) == ()
    line = "deeper than the pool (depth 4), outside which nothing is relevant: P(rel=4)@5"
    assert cautions(small_track, ["P(rel=4)@5", "P(rel=4)@3"]) == (line,)
    for path in (small_track / "runs").iterdir():
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if int(line.split()[3]) <= 4))
    assert cautions(small_track, ["P(rel=4)@5"]) == ()


def test_queries_that_no_run_answers_are_reported(small_track: Path) -> None:
    def without(query_id: str) -> tuple[str, ...]:
        for path in (small_track / "runs").iterdir():
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in lines if not line.startswith(query_id)))
        return cautions(small_track, ["P(rel=4)@8"])

    assert without("nothing") == ()
    assert without("q2") == ("in no run, and so 0: 1 of the 3 queries of the bank: q2",)
    config = small_track / "trecexam.toml"
    config.write_text(config.read_text() + '[scores]\naverage = "answered"\n')
    (line,) = cautions(small_track, ["P(rel=4)@8"])
    assert line.endswith("flatters runs that skip queries: 3 of 3 runs")


def test_qrels_used_as_grades_are_a_pool_that_runs_do_not_change(small_track: Path) -> None:
    (small_track / "llm.qrels").write_bytes((small_track / "qrels.txt").read_bytes())
    for name in ("bank.jsonl", "queries.tsv"):
        (small_track / name).unlink(missing_ok=True)
    (small_track / "trecexam.toml").write_text(
        '[track]\ndepth = 8\nbank = []\n[grader]\nname = "recorded"\nrecorded = "llm.qrels"\n'
    )

    def of_run0() -> float:
        with trecexam.open_track(small_track) as track:
            track.update()
            board = track.leaderboard(["nDCG@8"])
            assert board.notes == ()
            (row,) = (row for row in board.rows if row.run == "run0")
            return row.scores[0].mean

    together = of_run0()
    for path in (small_track / "runs").glob("run[12].run"):
        path.unlink()
    assert of_run0() == together > 0


def test_a_cutoff_beyond_all_ranks_and_equal_runs_are_reported(small_track: Path) -> None:
    first, *others = sorted((small_track / "runs").iterdir())
    lines = [line.split() for line in first.read_text().splitlines()]
    short = [line for line in lines if int(line[3]) <= 3]
    for path in others:
        # The same passages in another order.
        turned = ([*line[:4], str(-float(line[4])), path.stem] for line in short)
        path.write_text("".join(" ".join(line) + "\n" for line in turned))
    first.write_text("".join(" ".join(line) + "\n" for line in short))
    update(small_track)
    few = "no run has more than 3 ranks, so P(rel=4)@6 is at most 0.500"
    same = f"all {1 + len(others)} runs have the same P(rel=4)@"
    assert cautions(small_track, ["P(rel=4)@6"]) == (f"{few}; {same}6: ask for nDCG@3",)


def test_the_first_default_measure_does_not_depend_on_the_pool(tmp_path: Path) -> None:
    expected = {
        "max": [*FREE, *OF_POOL],
        "count": ["P@8", "Cover(rel=4)@8", "nDCG@8", "AP", "nCover(rel=4)@8", "alpha_nDCG@8"],
        "expected": ["P(rel=4)@8", "ECover(rel=4)@8", "Cover(rel=4)@8", *OF_POOL],
    }
    for label, names in expected.items():
        root = make_small_track(tmp_path / label, config=f'[track]\ndepth = 8\n[scores]\nlabel = "{label}"\n')
        with trecexam.open_track(root, grader=HashGrader()) as track:
            board = track.leaderboard()
        assert list(board.measures) == names, label
