"""Outputs of a track equal what NIST's programs compute from its exported files."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from real_trec_eval import TrecEval
from support import HashGrader, make_small_track

import trecexam
from trecexam.extensions.check.preflight import check_qrels
from trecexam.extensions.check.trec_eval_rules import takes

#: The leaderboard's name of a measure: trec_eval's name, and the lowest relevant label.
NAMES = {
    "nDCG@3": ("ndcg_cut.3", 1), "nDCG": ("ndcg", 1), "P(rel=4)@5": ("P.5", 4), "AP(rel=5)": ("map", 5),
    "RR(rel=5)": ("recip_rank", 5), "R(rel=4)@4": ("recall.4", 4), "Rprec(rel=5)": ("Rprec", 5),
}  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def draw_track(root: Path, seed: int, version: int) -> Path:
    """A graded track whose runs have ties, holes, unpooled passages, and lines in any order."""
    rng = random.Random(seed)
    measures = ", ".join(f'"{name}"' for name in NAMES)
    make_small_track(root, config=f"[track]\ndepth = 5\n[scores]\nmeasures = [{measures}]\n", queries=4)
    # 10 compares doubles, as is done here: what only differs past a float's precision is a tie in 9.
    scores = ["0", "1", "1.0", "2", "-3.5", "1e3"] + (["1.00000001", "1e-50"] if version == 10 else [])
    for path in (root / "runs").iterdir():
        lines = [
            f"q{query} Q0 q{query}-d{doc:02} {rng.randrange(9)} {rng.choice(scores)} {path.stem}\n"
            for query in rng.sample(range(1, 6), 4)
            for doc in rng.sample(range(16), rng.randint(1, 12))
        ]
        rng.shuffle(lines)
        path.write_text("".join(lines))
    config = root / "trecexam.toml"
    config.write_text(f"{config.read_text()}[report]\nwrite = false\n")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
    return root


def test_the_leaderboard_equals_trec_eval_on_the_exported_qrels(
    tmp_path: Path, trec_eval: TrecEval, thorough: bool
) -> None:
    compared, tracks = 0, 12 if thorough else 5
    for seed in range(tracks):
        root = draw_track(tmp_path / str(seed), seed, trec_eval.version)
        ours: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for row in table(root / "out" / "per_query.tsv"):
            ours[row["run"], row["measure"]][row["query_id"]] = float(row["value"])
        judged = {line.split()[0] for line in (root / "out" / "rubric.qrels").read_text().splitlines()}
        # A query without pooled passages has no line there: trec_eval cannot count it.
        for row in table(root / "out" / "leaderboard.tsv") if len(judged) == 4 else ():
            for name in NAMES:
                ours[row["run"], name]["all"] = float(row[name])
        for (run, name), values in ours.items():
            called, level = NAMES[name]
            printed = trec_eval.evaluate(
                root / "out" / "rubric.qrels", root / "runs" / f"{run}.run", [called], "-c", "-l", str(level)
            )
            # Version 9 prints no line for a topic that the run lacks; it counts as 0 in the mean.
            by_topic = dict.fromkeys(values, 0.0)
            by_topic |= {
                topic: float(value) for (topic, _), value in printed.values.items() if topic in values
            }
            # It prints four decimals, and the table has six.
            assert values == pytest.approx(by_topic, rel=0, abs=0.0000506), (seed, run, name)
            compared += len(values)
    assert compared > 0.9 * tracks * 3 * len(NAMES) * 5


def test_exported_qrels_are_accepted_and_exported_subtopics_rejected_as_check_says(
    tmp_path: Path, trec_eval: TrecEval
) -> None:
    root = draw_track(tmp_path, 1, trec_eval.version)
    run = next((root / "runs").iterdir())
    for name in ("rubric.qrels", "rubric.subtopics.qrels"):
        qrels = root / "out" / name
        accepted = trec_eval.evaluate(qrels, run, ["map"], "-c").accepted
        assert takes(check_qrels(qrels), trec_eval.version) == accepted == (name == "rubric.qrels")


@pytest.mark.parametrize("options", [{"label": "count"}, {"binary": True}, {"min_rating": 2}])
def test_all_forms_of_exported_qrels_are_accepted(
    tmp_path: Path, trec_eval: TrecEval, options: dict[str, Any]
) -> None:
    root = draw_track(tmp_path, 2, trec_eval.version)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        rows = track.qrels(**options)
    path = tmp_path / "exported.qrels"
    path.write_text("".join(f"{r.query_id} 0 {r.doc_id} {r.relevance}\n" for r in rows))
    run = next((root / "runs").iterdir())
    assert trec_eval.evaluate(path, run, ["map"], "-c").accepted
