from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support import Terminal, make_small_track, record_grades

import converters
from trecexam.cli.main import run
from trecexam.extensions.check.preflight import check_qrels, check_run
from trecexam.extensions.check.trec_eval_rules import takes

RECORDED = '[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n'
TIED = "q1 Q0 a 1 2 t\nq1 Q0 b 2 2 t\n"
BROKEN = "q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n"


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """A track with a recording of all grades that it needs."""
    root = make_small_track(tmp_path / "track", config=RECORDED)
    (root / "grades.jsonl").write_text("")
    record_grades(root)
    assert run(["watch", str(root), "--once"]) == 0
    return root


def put(tmp_path: Path, text: str, name: str = "my.run") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def run_check(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int) -> tuple[str, str]:
    capsys.readouterr()
    assert run(["check", *map(str, arguments)]) == status
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return told.out, told.err


def test_an_accepted_file_gives_status_0_and_its_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = run_check(capsys, put(tmp_path, TIED), status=0)
    header, row = (line.split("\t") for line in out.splitlines())
    assert header == ["line", "severity", "trec_eval", "reason"]
    assert row[:3] == ["2", "warning", "9, 10"]
    assert "trec_eval 9 accepts this run file" in err


def test_a_rejected_file_gives_status_1_and_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = run_check(capsys, put(tmp_path, BROKEN), status=1)
    assert out.splitlines()[1].startswith("2\tfatal\t9, 10\tdocno 'a' occurs twice")
    assert "trec_eval 10 rejects this run file" in err


def test_the_result_depends_on_the_chosen_trec_eval_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "# by hand\nq1 0 a 1\n", "q.txt")
    run_check(capsys, path, status=1)
    run_check(capsys, path, "--trec-eval", "9", status=1)
    out, err = run_check(capsys, path, "--trec-eval", "10", status=0)
    assert out.count("\n") == 1
    assert "trec_eval 9" not in err


def test_the_as_option_decides_the_type_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "q1 0 a 1\n")
    run_check(capsys, path, status=0)
    out, _ = run_check(capsys, path, "--as", "run", status=1)
    assert "has 4 columns" in out


def test_a_file_that_is_neither_run_nor_qrels_is_a_one_line_error_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "add --as run or --as qrels" in run_check(capsys, put(tmp_path, "hello\n", "x"), status=2)[1]
    assert "no such file" in run_check(capsys, tmp_path / "none.run", status=2)[1]
    assert "No such file" in run_check(capsys, tmp_path / "none", "--as", "qrels", status=2)[1]


def test_fix_writes_an_accepted_file_and_lists_its_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = tmp_path / "fixed.run"
    out, err = run_check(capsys, put(tmp_path, BROKEN), "--fix", fixed, status=1)
    assert "2\tfixed\t\tdocno 'a' of topic 'q1' left out" in out
    assert str(fixed) in err
    assert run_check(capsys, fixed, status=0)[0].count("\n") == 1
    value = json.loads(run_check(capsys, fixed, "--fix", tmp_path / "again.run", "--json", status=0)[0])
    assert value["findings"] == []
    assert (tmp_path / "again.run").read_bytes() == fixed.read_bytes()


def test_scores_with_a_decimal_comma_are_named_and_never_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_terminal: Terminal
) -> None:
    path = put(tmp_path, "q,1 Q0 a,0 1 10,5 t\nq,1 Q0 b 2 10,25 t\nq,1 Q0 c 3 10 t\n")
    fixed = tmp_path / "fixed"
    out, err = run_check(capsys, path, status=1)
    reason = "the score '10,5' has a decimal comma: it is read as 10 (and 1 more of this kind)"
    assert f"1\tsilent\t9, 10\t{reason}\n" in out
    assert "my.run: accepted, but 2 scores are read wrongly; to write points: awk " in err
    with on_terminal():
        assert reason in " ".join(run_check(capsys, path, status=1)[0].split())
    _, err = run_check(capsys, path, "--fix", fixed, status=2)
    assert not fixed.exists()
    assert "my.run:1: nothing was written: the score '10,5' has a decimal comma, and trec_eval would " in err
    # The command in the message keeps the whole score, and commas of ids.
    command = err.partition("to write points: ")[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    points = tmp_path / "points.run"
    assert points.read_text() == path.read_text().replace("10,", "10.")
    run_check(capsys, points, "--fix", fixed, status=0)
    scores = [row.score for row in converters.read(fixed, "run")]
    assert scores == [10.5, 10.25, 10.0]


def test_fix_overwrites_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = put(tmp_path, TIED), put(tmp_path, "mine\n", "other")
    (tmp_path / "link").hardlink_to(path)
    assert "never overwritten" in run_check(capsys, path, "--fix", path, status=2)[1]
    assert "never overwritten" in run_check(capsys, path, "--fix", tmp_path / "link", status=2)[1]
    assert "other content" in run_check(capsys, path, "--fix", other, status=2)[1]
    assert "without .gz" in run_check(capsys, path, "--fix", tmp_path / "x.gz", status=2)[1]
    assert (path.read_text(), other.read_text()) == (TIED, "mine\n")
    run_check(capsys, path, "--fix", tmp_path / "new", status=0)
    run_check(capsys, path, "--fix", tmp_path / "new", status=0)


def test_with_a_track_unknown_topics_and_docnos_are_reported(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = next(iter((graded / "runs").glob("*.run")))
    assert run_check(capsys, good, "--track", graded, status=0)[0].count("\n") == 1
    known = good.read_text().split()[2]
    out, _ = run_check(
        capsys, put(tmp_path, f"q1 Q0 {known} 1 1 t\nx Q0 y 1 1 t\n"), "--track", graded, status=0
    )
    assert "topic 'x' is not in the track" in out
    assert "docno 'y' is not in the track" in out
    assert "judged topic 'q2' is missing" in out
    out, _ = run_check(capsys, put(tmp_path, f"x Q0 {known} 1 1 t\n"), "--track", graded, status=1)
    assert "the qrels have none of its topics" in out
    out, _ = run_check(capsys, put(tmp_path, "x 0 y 1\n", "x.qrels"), "--track", graded, status=0)
    assert out.count("is not in the track") == 2


def test_every_file_that_trecexam_writes_for_trec_eval_passes(graded: Path, tmp_path: Path) -> None:
    options = [[], ["--binary"], ["--label", "count"], ["--label", "max", "--min-answers", "2"]]
    exported = [tmp_path / f"{n}.qrels" for n in range(len(options))]
    for path, option in zip(exported, options, strict=True):
        assert run(["export", "qrels", str(graded), "-o", str(path), *option]) == 0
    for path in [graded / "out" / "rubric.qrels", *exported]:
        assert not check_qrels(path), path
        assert run(["check", str(path)]) == 0
    for path in (graded / "runs").glob("*.run"):
        written = tmp_path / path.name
        converters.write(converters.read(path, "run"), written, "run")
        assert all(takes(check_run(written), version) for version in (9, 10))


@pytest.mark.parametrize("content", ['{"q1": {"d1": 1.5}}', "qid,docno,score\nq1,d1,1.5\n"])
def test_json_and_tables_are_rejected_and_nothing_is_fixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path = tmp_path / "x.run"
    path.write_text(content)
    assert run(["check", str(path)]) == 1
    assert f"trecexam convert {path} OUT --to run" in capsys.readouterr().out
    assert run(["check", str(path), "--fix", str(tmp_path / "fixed.run")]) == 2
    assert not (tmp_path / "fixed.run").exists()
