"""Labels and runs for ranx."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, HashGrader

import converters
import trecexam
from trecexam import TrecexamError

RANX = """
import json, sys
import ranx, trecexam
with trecexam.open_track(sys.argv[1]) as track:
    runs = track.export.ranx_runs()
    board = track.per_query(["nDCG@5", "P(rel=4)@5"], library="pyarrow").to_pylist()
    values = {
        measure: {
            name: dict(zip(sorted(qrels.keys()), ranx.evaluate(qrels, run, metric, False).tolist()))
            for name, run in runs.items()
        }
        for measure, metric, qrels in (
            ("nDCG@5", "ndcg@5", track.export.ranx_qrels()),
            ("P(rel=4)@5", "precision@5", track.export.ranx_qrels(binary=True, min_rating=4)),
        )
    }
    best = runs["run0"].run["q1"]
    print(json.dumps([values, board, [[str(key), float(value)] for key, value in best.items()]]))
"""


@pytest.mark.slow
def test_ranx_gets_our_values_with_trec_eval_order_of_ties_and_the_run_scores(graded: Path) -> None:
    lines = [line.split() for line in (graded / "runs" / "run0.run").read_text().splitlines()]
    rows = [
        f"{q} {zero} {doc_id} {rank} {int(rank) // 4 * -0.1} run0\n" for q, zero, doc_id, rank, *_ in lines
    ]
    (graded / "runs" / "run0.run").write_text("".join(rows))
    # ranx compiles on first use, which takes a minute.
    done = subprocess.run(
        [sys.executable, "-c", RANX, graded],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values, board, best = json.loads(done.stdout)
    assert len(board) == 3 * 3 * 2
    for row in board:
        assert values[row["measure"]][row["run"]][row["query_id"]] == pytest.approx(row["value"]), row
    own = converters.read(graded / "runs" / "run0.run", "run")
    assert [doc_id for doc_id, _ in best] == own.ranking("q1")
    assert [score for _, score in best] == pytest.approx(own.scores[: own.count("q1")].tolist())
    assert len({score for _, score in best}) == len(best)


def test_without_ranx_the_error_names_its_extra(small_track: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ranx", None)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        for call in (track.export.ranx_qrels, track.export.ranx_runs):
            with pytest.raises(TrecexamError, match=r"pip install ranx$"):
                call()
