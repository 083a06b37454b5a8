from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from headings import score_columns
from support import ROOT, err, make_small_track, out, write_run

from trecexam.cli.main import run
from trecexam.config import load_config
from trecexam.config.track_config import config_class
from trecexam.errors import TrecexamError
from trecexam.files.track_lock import track_lock


def test_leaderboard_and_exports_equal_the_files_in_out(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = graded / "out"
    assert out(capsys, "export", "qrels", graded) == (files / "rubric.qrels").read_text()
    assert run(["export", "subtopics", str(graded), "-o", str(tmp_path / "s.qrels")]) == 0
    assert (tmp_path / "s.qrels").read_bytes() == (files / "rubric.subtopics.qrels").read_bytes()
    assert out(capsys, "leaderboard", graded) == (graded / "out" / "leaderboard.tsv").read_text()
    assert json.loads(out(capsys, "leaderboard", graded, "--json")) == json.loads(
        (graded / "out" / "leaderboard.json").read_text()
    )


def test_requested_measures_are_the_columns_and_the_first_one_sorts(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, "leaderboard", graded, "-m", "Cover(rel=3)@5", "-m", "P@3")
    header, *rows = [line.split("\t") for line in text.splitlines()]
    assert score_columns(header) == ["Cover(rel=3)@5", "Cover(rel=3)@5.stderr", "P@3", "P@3.stderr"]
    values = [float(row[header.index("Cover(rel=3)@5")]) for row in rows]
    assert values == sorted(values, reverse=True)


def test_export_rules_change_the_labels(graded: Path, tmp_path: Path) -> None:
    def labels(*options: str) -> dict[str, int]:
        target = tmp_path / "x.qrels"
        assert run(["export", "qrels", str(graded), "-o", str(target), *options]) == 0
        return {line.split()[2]: int(line.split()[3]) for line in target.read_text().splitlines()}

    ratings: dict[str, list[int]] = {}
    for row in map(json.loads, (graded / "grades.jsonl").read_text().splitlines()):
        ratings.setdefault(row["doc_id"], []).append(row["rating"])
    at = {doc: {t: sum(r >= t for r in values) for t in range(6)} for doc, values in ratings.items()}
    assert labels() == {doc: max(values) for doc, values in ratings.items()}
    assert labels("--label", "count", "--min-rating", "3") == {doc: n[3] for doc, n in at.items()}
    assert labels("--binary") == {doc: int(n[4] >= 1) for doc, n in at.items()}
    assert labels("--binary", "--min-answers", "2", "--min-rating", "3") == {
        doc: int(n[3] >= 2) for doc, n in at.items()
    }
    assert labels("--min-answers", "2") == {doc: sorted(v)[-2] for doc, v in ratings.items()}


def test_exported_grades_can_be_read_by_the_recorded_grader(graded: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(graded, again, ignore=shutil.ignore_patterns("out", ".trecexam"))
    assert run(["export", "grades", str(graded), "-o", str(tmp_path / "exported.jsonl")]) == 0
    (tmp_path / "exported.jsonl").replace(again / "grades.jsonl")
    assert run(["watch", str(again), "--once"]) == 0
    for name in ("rubric.qrels", "leaderboard.tsv", "per_query.tsv"):
        assert (again / "out" / name).read_bytes() == (graded / "out" / name).read_bytes()


def test_status_shows_counts_and_the_running_process_and_reading_changes_nothing(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in graded.rglob("*") if p.is_file() and ".sqlite" not in p.name}

    before = state()
    for command in (["leaderboard"], ["correlate"], ["status"], ["export", "qrels"]):
        run([*command, str(graded)])
    assert state() == before
    values = json.loads(out(capsys, "status", graded, "--json"))
    assert values["runs"] == 3
    assert values["cells"] == values["ok"] == values["stored_grades"]
    assert values["missing"] == 0
    assert values["watched_by"] is None
    with track_lock(graded / ".trecexam" / "lock"):
        assert f"watched_by\tprocess {os.getpid()}" in out(capsys, "status", graded)


def test_reading_commands_and_watch_say_how_many_files_and_lines_were_rejected(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("bad", "worse"):
        (graded / "runs" / f"{name}.run").write_text("q1 Q0 q1-d00 1 high x\n")
    with (graded / "passages.jsonl").open("a") as passages:
        passages.write("no passage\n")
    command = f"`trecexam watch {graded} --once` lists them in out/rejected.tsv"
    assert err(capsys, "leaderboard", graded, status=0).endswith(f"rejected: 2 files, 1 line; {command}\n")
    told = err(capsys, "watch", graded, "--once", status=1)
    assert "3 runs; nothing to grade; rejected: 2 files, 1 line (out/rejected.tsv); " in told
    # Even when nothing is new.
    for shown in (told, err(capsys, "watch", graded, "--once", status=1)):
        assert "rejected: runs/bad.run:1: the score (column 5) is not a number" in shown
    header, *rows = (line.split("\t") for line in out(capsys, "status", graded).splitlines())
    assert header == ["name", "value"]
    assert ["rejected", "2 files, 1 line"] in rows
    assert all(len(row) == 2 and row[1] and "{" not in row[1] for row in rows)


def test_settings_that_change_no_value_are_not_in_the_manifest_and_change_no_output(graded: Path) -> None:
    manifests = []
    for more in ("", '\n[watch]\nsettle = 9.0\n[cells]\norder = "bank"\n[generator]\nname = "openai"\n'):
        with (graded / "trecexam.toml").open("a") as settings:
            settings.write(more)
        assert run(["watch", str(graded), "--once"]) == 0
        manifests.append(json.loads((graded / "out" / "manifest.json").read_text()))
    before, after = manifests
    assert before["config"] == after["config"]
    assert before["outputs"] == after["outputs"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["watch", "nowhere", "--once"], "nowhere: no such track folder; make one with `trecexam init`"),
        (["export", "qrels", ".", "-o", "ouput/a.txt"], "ouput/a.txt: the folder ouput does not exist"),
        (["leaderboard"], "Missing argument 'TRACK'"),
        (["leaderbord", "x"], "No such command 'leaderbord'; did you mean leaderboard?"),
        (["bank", "mytrack"], "No such command 'mytrack'; give a command first: generate, check, diff"),
        (["export", "qrels", ".", "--min-rating", "9"], "9 is not in the range 1<=x<=5"),
        (["init", "x", "--grader", "gpt"], "'gpt'; known here: causal, embedding, erag"),
    ],
)
def test_wrong_usage_is_a_one_line_error_with_status_2(
    graded_once: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    reason: str,
) -> None:
    monkeypatch.chdir(graded_once)
    text = err(capsys, *arguments)
    assert reason in text
    assert text.startswith("trecexam: ")
    assert text.count("\n") == 1


def test_a_closed_pipe_is_not_an_error(graded: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m trecexam export grades {graded} | head -c 10 >/dev/null",
        shell=True, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.stderr == ""


def test_config_prints_every_setting_and_the_same_track(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made = make_small_track(tmp_path / "source"), tmp_path / "made"
    given = [f"--bank={source / 'bank.questions.jsonl'}", f"--qrels={source / 'qrels.txt'}"]
    assert run(["init", str(made), *given]) == 0
    config = made / "trecexam.toml"
    short, whole = load_config(config), out(capsys, "config", made)
    config.write_text(whole)
    assert load_config(config).model_dump() == short.model_dump()
    for section, info in config_class().model_fields.items():
        if section != "graders":
            assert f"[{section}]\n" in whole
            for name in info.annotation.model_fields:  # type: ignore[union-attr]
                assert f"{name} = " in whole or f", {name}" in whole
    defaults = out(capsys, "config")
    assert all(line.startswith(("#", "[")) for line in defaults.splitlines() if line)
    assert "nothing to do" in err(capsys, "init", made, *given, status=0)
    assert "with other settings" in err(capsys, "init", made, *given, "--pool-judged")


def test_init_copies_all_files_and_prints_their_destinations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_small_track(tmp_path / "source")
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress((source / "passages.jsonl").read_bytes()))
    write_run(source / "runs" / "deep" / "x.run", {"q1": ["q1-d00"]})
    given = {
        "--queries": source / "queries.tsv",
        "--bank": source / "bank.questions.jsonl",
        "--passages": tmp_path / "p.jsonl.gz",
        "--qrels": source / "qrels.txt",
        "--runs": source / "runs",
    }
    arguments = ["init", str(tmp_path / "made"), *(str(word) for pair in given.items() for word in pair)]
    assert run(arguments) == 0
    made = tmp_path / "made"
    names = {p.relative_to(made).as_posix() for p in made.rglob("*") if p.is_file()}
    assert names == {
        "queries.tsv",
        "bank.questions.jsonl",
        "passages.jsonl.gz",
        "qrels.txt",
        "trecexam.toml",
        "runs/run0.run",
        "runs/run1.run",
        "runs/run2.run",
        "runs/deep/x.run",
    }
    config = load_config(made / "trecexam.toml")
    assert config.grader.name == "embedding"
    assert config.track.bank == ["bank.questions.jsonl"]
    before = {p: p.stat().st_mtime_ns for p in made.rglob("*")}
    assert run(arguments) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert {p: p.stat().st_mtime_ns for p in made.rglob("*")} == before
    assert run(["init", str(tmp_path / "linked"), "--link", "--bank", str(given["--bank"])]) == 0
    assert (tmp_path / "linked" / "bank.questions.jsonl").is_symlink()


def test_init_never_overwrites_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make_small_track(tmp_path / "source")
    made = tmp_path / "made"
    made.mkdir()
    (made / "qrels.txt").write_text("mine\n")
    text = err(capsys, "init", made, "--qrels", source / "qrels.txt", "--runs", source / "runs")
    assert "a different file stands here already" in text
    assert (made / "qrels.txt").read_text() == "mine\n"
    assert not (made / "runs").exists()


def test_with_debug_an_error_is_raised_with_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(TrecexamError, match="trecexam init"):
        run(["--debug", "status", str(tmp_path)])


def test_an_unwritable_output_is_a_one_line_error(small_track: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:  # noqa: PTH123 - it is a device
        done = subprocess.run(
            [sys.executable, "-m", "trecexam", "graders"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    assert done.stderr == "trecexam: the output cannot be written: No space left on device\n"


@pytest.fixture
def init_files(tmp_path: Path) -> dict[str, Path]:
    """A file for each option of `init`."""
    source = make_small_track(tmp_path / "source")
    (source / "queries.jsonl").write_text('{"query_id": "q1", "text": "query number q1"}\n')
    ratings = [{"llm": "m", "self_ratings": [{"question_id": "q1/0", "self_rating": 3}]}]
    pool = ["q1", [{"paragraph_id": "q1-d00", "text": "a text", "exam_grades": ratings}]]
    (source / "pool.jsonl").write_text(json.dumps(pool) + "\n")
    return {
        "queries": source / "queries.tsv",
        "passages": source / "passages.jsonl",
        "bank": source / "bank.questions.jsonl",
        "qrels": source / "qrels.txt",
        "runs": source / "runs" / "run0.run",
        "recorded": source / "pool.jsonl",
    }


@pytest.mark.parametrize(
    ("option", "other", "reason"),
    [
        ("runs", "bank", "looks like a test bank, and was given as --runs; is --bank meant?"),
        ("qrels", "runs", "looks like a run, and was given as --qrels; is --runs meant?"),
        ("passages", "qrels", "looks like qrels"),
        ("bank", "passages", "looks like passages, and was given as --bank; is --passages meant?"),
        ("recorded", "runs", "looks like a run"),
        ("queries", "recorded", "looks like a graded pool, and was given as --queries; is --recorded meant?"),
    ],
)
def test_init_rejects_a_file_of_a_clearly_different_format(
    init_files: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    option: str,
    other: str,
    reason: str,
) -> None:
    text = err(capsys, "init", tmp_path / "made", f"--{option}", init_files[other])
    assert text.startswith(f"trecexam: {init_files[other]}: {reason}")
    assert not (tmp_path / "made").exists()


def test_init_accepts_matching_files_and_files_of_ambiguous_format(
    init_files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for option, path in init_files.items():
        text = err(capsys, "init", tmp_path / option, f"--{option}", path, status=0)
        assert "looks like" not in text
    lines = {
        # Nuggets with the query's text; {"id", "text"} are queries or passages; answers are runs.
        "queries": ['{"qid": "q1", "query": "what?", "nuggets": [{"text": "a"}]}',
                    '{"id": "q", "text": "t"}'],
        "runs": ['{"query_id": "q1", "run_id": "r", "text": "an answer"}', "q1 Q0 d1 x 3 run", "junk",
                 '{"question_id": "b1", "question": "why?", "answer": "so", "run_id": "r"}'],
        "recorded": ["q1 0 d1 2"],
        "qrels": ["q1 Q0 d1 3 0.9 run", "q1 facet/1 d1 2"],
    }  # fmt: skip
    for option, examples in lines.items():
        for number, line in enumerate(examples):
            path = tmp_path / f"{option}{number}.txt"
            path.write_text(line + "\n")
            made = tmp_path / f"{option}{number}"
            assert "looks like" not in err(capsys, "init", made, f"--{option}", path, status=0)
