"""The script of examples/evidence.md, on a tiny collection."""

import gzip
import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from scipy.stats import kendalltau
from support import ROOT

import trecexam

pytest.importorskip("sentence_transformers")


@pytest.mark.slow
def test_each_grader_has_a_row_of_json_and_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo, source = ROOT / "examples" / "track", tmp_path / "data" / "collections" / "tiny"
    shutil.copytree(demo, source, ignore=shutil.ignore_patterns("bank*", "*.jsonl", "*.toml"))
    texts = map(json.loads, (demo / "passages.jsonl").read_text().splitlines())
    short = "".join(json.dumps(row | {"text": " ".join(row["text"].split()[:12])}) + "\n" for row in texts)
    (source / "passages.jsonl.gz").write_bytes(gzip.compress(short.encode()))
    stored = tmp_path / "work" / "rows.jsonl"
    lines = [line.split() for run in source.glob("runs/*.run") for line in run.read_text().splitlines()]
    ranked = sorted({(query_id, doc_id) for query_id, _, doc_id, *_ in lines})
    (source / "qrels.txt").write_text("".join(f"{q} 0 {d} {n % 3}\n" for n, (q, d) in enumerate(ranked)))
    monkeypatch.setattr(sys, "argv", ["", "tiny", "--data", str(tmp_path / "data"), "--rows", str(stored)])
    runpy.run_path(str(ROOT / "tests" / "benchmarks" / "evidence.py"), run_name="__main__")
    rows = [json.loads(line) for line in stored.read_text().splitlines()]
    assert [row["grader"] for row in rows] == ["embedding", "learned, 10 judged"]
    with trecexam.open_track(stored.parent / "tiny" / "embedding") as track:
        sides = [track.leaderboard("nDCG@10", official=official) for official in (False, True)]
    ours, theirs = ({row.run: row.scores[0].mean for row in side.rows} for side in sides)
    assert rows[0]["tau"] == pytest.approx(
        kendalltau(list(ours.values()), [theirs[r] for r in ours]).statistic
    )
    assert "|tiny|embedding|8|6|" in capsys.readouterr().out
