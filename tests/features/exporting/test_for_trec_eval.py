"""Files of runs and judgments for trec_eval."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import ir_measures
import pytest
from support import make_small_track, write_run

import converters
import trecexam
from trecexam.cli.main import run


def test_any_run_is_written_in_a_form_that_trec_eval_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track")
    ranking = {"q1": ["q1-d03", "q1-d01"], "q2": ["q2-d02"]}
    for name in ("one/x.run", "two/x.run"):
        write_run(root / "runs" / name, ranking, tag="Anserini")
    packed = root / "runs" / "two" / "x.run"
    packed.with_name("x.run.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    row = {
        "metadata": {"run_id": "rag", "narrative_id": "q1", "narrative": "query number q1"},
        "references": ["q1-d02"],
        "answer": [{"text": "An answer.", "citations": [0]}],
    }
    (root / "runs" / "rag.jsonl").write_text(json.dumps(row) + "\n")
    assert run(["export", "runs", str(root), "-o", str(tmp_path / "made" / "runs")]) == 0
    assert "6 runs written to" in capsys.readouterr().err
    with trecexam.open_track(root) as track:
        runs = track.export.runs()
    files = {path.stem: converters.read(path, "run") for path in (tmp_path / "made" / "runs").iterdir()}
    assert set(files) == {"run0", "run1", "run2", "one_x", "two_x", "rag"}
    for name, own in runs.items():
        again = files[name.replace("/", "_")]
        assert again.name == name.replace("/", "_")
        assert list(again.renamed(name)) == list(own)
    scored = ir_measures.read_trec_run(str(tmp_path / "made" / "runs" / "one_x.run"))
    assert [row.doc_id for row in scored] == ["q1-d03", "q1-d01", "q2-d02"]
    with trecexam.open_track(root) as track:
        assert list(track.export.runs(["run1"])) == ["run1"]
        with pytest.raises(trecexam.TrecexamError, match="no run 'run7'; did you mean"):
            track.export.runs(["run7"])


def test_two_runs_are_never_written_to_the_same_file(
    small_track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(small_track / "runs" / "a.run", {"q1": ["q1-d01"]}, tag="a/b")
    write_run(small_track / "runs" / "b.run", {"q1": ["q1-d02"]}, tag="a_b")
    assert run(["export", "runs", str(small_track), "-o", str(small_track / "made")]) == 2
    assert "a_b.run: two runs would be written here" in capsys.readouterr().err
    assert not (small_track / "made").exists()


def test_official_judgments_are_written_in_a_form_that_trec_eval_accepts(
    small_track: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (small_track / "qrels.txt").write_text("q1 Q0 q1-d01 2 0.9 judge\nq1 Q0 q1-d02 0 0.5 judge\n")
    assert run(["export", "official", str(small_track)]) == 0
    assert capsysbinary.readouterr().out == b"q1 0 q1-d01 2\nq1 0 q1-d02 0\n"
    (small_track / "qrels.txt").unlink()
    assert run(["export", "official", str(small_track)]) == 2
    assert b"official judgments" in capsysbinary.readouterr().err
