"""Holes and simulations on TREC DL 2019, compared with ir_measures and naive file reading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import pytest
from ir_measures import nDCG

import trecexam

Qrels = dict[tuple[str, str], int]
Rankings = Mapping[str, Mapping[str, list[str]]]


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
    rows = {one["run"]: one for one in report.table.records()}
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
        rows = opened.simulate(["nDCG@10"], judgments=True, repeats=3).table.records()
    assert [one["n_removed"] for one in rows] == [434, 868, 1302, 1736, 2170, 2603, 3037, 3471, 3905]
    for one in rows:
        assert one["tau.fill"] > one["tau.holes"]
        assert one["difference.fill"] < one["difference.holes"]
    assert rows[-1]["tau.fill"] > 0.75
