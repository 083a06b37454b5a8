"""`init --from FOLDER`, and how a track uses these files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from outside import outside
from support import HashGrader, err, make_small_track

import converters
import trecexam
from trecexam.cli.main import run
from trecexam.folder import TrackFolder
from trecexam.inputs import run_columns
from trecexam.scaffold import look_into

HEADER = "query-id\tcorpus-id\tscore\n"
TRAIN = f"{HEADER}q1\td1\t2\n"
BEIR = {
    "corpus.jsonl": '{"_id": "d1", "title": "Pumps", "text": "They move heat."}\n'
    '{"_id": "d2", "title": "Bees", "text": "They make honey."}\n',
    "queries.jsonl": '{"_id": "q1", "text": "heat pumps"}\n{"_id": "q2", "text": "bees"}\n',
    "qrels/test.tsv": f"{HEADER}q2\td2\t1\n",
    "runs/bm25.tsv": "q1 d1 1\nq1 d2 2\nq2 d2 1\n",
    "runs/other.run": "x Q0 d1 1 2.0 other\n",
    "README.md": "A test collection.\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in BEIR.items():
        path = tmp_path / "beir" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "beir"


def init_messages(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    shown = err(capsys, "init", "track", *words, status=0)
    return [line for line in shown.splitlines() if line.startswith(("took", "left out"))]


def test_a_beir_folder_becomes_a_track(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        "left out README.md: in none of the supported formats",
        "took corpus.jsonl as passages",
        "took qrels/test.tsv as qrels",
        "took queries.jsonl as queries",
        "took runs/bm25.tsv as runs",
        "took runs/other.run as runs",
    ]
    assert init_messages(capsys, "--from", "beir") == lines
    # A second run changes nothing.
    assert init_messages(capsys, "--from", "beir") == lines
    track = TrackFolder.open(Path("track"))
    assert [path.name for path in track.run_files()] == ["bm25.tsv", "other.run"]
    assert track.qrels().read_text() == BEIR["qrels/test.tsv"]  # type: ignore[union-attr]


def test_two_files_of_one_role_are_named_and_nothing_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "qrels" / "train.tsv").write_text(TRAIN)
    (folder / "more.jsonl").write_text(BEIR["queries.jsonl"])
    assert err(capsys, "init", "track", "--from", "beir") == (
        "trecexam: beir: 2 files can be the queries: more.jsonl, queries.jsonl; choose one: "
        "--queries beir/more.jsonl\n"
    )
    assert not Path("track").exists()
    lines = init_messages(
        capsys, "--from", "beir", "--queries", "beir/queries.jsonl", "--qrels", "beir/qrels/train.tsv"
    )
    assert "left out qrels/test.tsv: --qrels is given" in lines
    assert "took qrels/train.tsv as qrels: an option names it" in lines
    assert Path("track/qrels.txt").read_text() == TRAIN
    # One file may have two roles: as judgments, and as recorded grades.
    (folder / "qrels" / "test.tsv").unlink()
    assert run(["init", "both", "--from", "beir", "--queries", "beir/queries.jsonl", *(
        word for option in ("--qrels", "--recorded") for word in (option, "beir/qrels/train.tsv")
    )]) == 0  # fmt: skip
    assert Path("both/qrels.txt").read_text() == Path("both/train.tsv").read_text() == TRAIN


def test_pipes_devices_and_dead_links_are_left_out_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "runs" / "pipe.run")
    (folder / "runs" / "zero.run").symlink_to("/dev/zero")
    (folder / "runs" / "gone.run").symlink_to("nowhere")
    lines = init_messages(capsys, "--from", "beir")
    assert "left out runs/gone.run: a link to a file that is gone" in lines
    assert "left out runs/pipe.run: a pipe or a device" in lines
    assert "left out runs/zero.run: a pipe or a device" in lines
    assert len(TrackFolder.open(Path("track")).run_files()) == 2


def test_a_track_is_no_source_of_files_and_neither_is_the_out_of_one_inside(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "trecexam.toml").write_text("")
    shown = err(capsys, "init", "track", "--from", "beir")
    assert "beir: is a track already: `trecexam watch beir --once` updates it" in shown
    assert not Path("track").exists()
    inner = folder / "mine" / "out"
    inner.mkdir(parents=True)
    (folder / "trecexam.toml").rename(folder / "mine" / "trecexam.toml")
    (inner / "leaderboard.tsv").write_text("q1\theat pumps\nq2\tbees\n" * 50)
    lines = init_messages(capsys, "--from", "beir")
    assert "took queries.jsonl as queries" in lines
    assert not [line for line in lines if "leaderboard" in line]


def test_a_collection_is_told_from_queries_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.md").write_text("nothing\n")
    shown = err(capsys, "init", tmp_path / "track", "--from", tmp_path)
    assert "no file here is in a format that a track takes" in shown
    (tmp_path / "collection.tsv").write_text("7\tThey move heat.\n8\tThey make honey.\n")
    (tmp_path / "b.tsv").write_text("q1\theat pumps\nq2\tbees\n")
    (tmp_path / "top.run").write_text("q1 Q0 7 1 2.0 top\nq2 Q0 8 1 2.0 top\n")
    roles = {each.path.name: each.role for each in look_into(tmp_path, but=tmp_path / "track")}
    assert roles == {"b.tsv": "queries", "collection.tsv": "passages", "notes.md": None, "top.run": "runs"}


@pytest.mark.parametrize(
    ("name", "roles"), [("rag24", ["runs", "queries", "runs"]), ("rag25", ["bank", "queries", "recorded"])]
)
def test_a_downloaded_rag_track_is_set_up_with_its_graders(
    tmp_path: Path, name: str, roles: list[str | None]
) -> None:
    download, track = outside(name), tmp_path / "track"
    assert [found.role for found in look_into(download, but=track)] == roles
    assert run(["init", str(track), "--from", str(download), "--rag", "--link"]) == 0
    assert list(TrackFolder.open(track).config.graders) == ["nuggets", "support", "umbrela", "rubric"]


def test_umbrela_judgments_grade_by_text(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track", queries=1, docs=3)
    texts = {p.doc_id: p.text for p in converters.read(root / "passages.jsonl")}
    labels = {"q1-d00": 3, "q1-d01": 0, "q1-d02": 2}
    (root / "judged.jsonl").write_text(
        "".join(
            json.dumps({"query": "query number q1", "passage": texts[doc_id], "judgment": label}) + "\n"
            for doc_id, label in labels.items()
        )
    )
    (root / "trecexam.toml").write_text(
        '[report]\nwrite = false\n[grader]\nname = "recorded"\nrecorded = "judged.jsonl"\n'
    )
    with trecexam.open_track(root) as track:
        track.update()
        assert {row.doc_id: row.relevance for row in track.qrels()} == labels
        board = track.leaderboard(["nDCG@10"])
        assert max(row.scores[0].mean for row in board.rows) == pytest.approx(1.0)


def test_ragas_samples_are_scored_one_by_one(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    samples = [
        {"user_input": f"query number q{n}", "response": f"Text {n}.", "retrieved_contexts": ["c"]}
        for n in (1, 2, 9)
    ]
    (root / "runs" / "mysys.jsonl").write_text("".join(json.dumps(row) + "\n" for row in samples))
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        values = track.per_query(["P(rel=4)@5"], runs=["mysys"])
        expected = dict(zip(values["query_id"], values["value"], strict=True))
        rows = list(track.export.responses("mysys", ["P(rel=4)@5"]))
        assert rows == [
            {**samples[0], "P(rel=4)@5": expected["q1"]},
            {**samples[1], "P(rel=4)@5": expected["q2"]},
            samples[2],
        ]
        with pytest.raises(trecexam.TrecexamError, match="has no generated responses"):
            list(track.export.responses("run0"))


def test_run_metadata_is_stored_and_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_columns, "LEAST", 1)
    root = make_small_track(tmp_path / "track")
    path = root / "runs" / "run0.run"
    path.write_text("# ir_metadata.start\n# tag: mine\n# ir_metadata.end\n" + path.read_text())
    columns = run_columns.RunColumns(tmp_path / "columns")
    assert [columns.read(path).metadata, columns.read(path).renamed("x").metadata] == ["tag: mine"] * 2
    assert run(["export", "runs", str(root), "-o", str(tmp_path / "plain")]) == 0
    assert run(["export", "runs", str(root), "-o", str(tmp_path / "annotated"), "--metadata"]) == 0
    plain, annotated = (tmp_path / name / "run0.run" for name in ("plain", "annotated"))
    assert (
        annotated.read_text() == "# ir_metadata.start\n# tag: mine\n# ir_metadata.end\n" + plain.read_text()
    )
    assert converters.read(annotated).metadata == "tag: mine"


def test_a_file_that_is_no_run_is_named_with_its_line_as_watch_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "good.run": b"q1 Q0 q1-d00 1 2.0 good\n",
        "noise": b"\x8f\x01\x00\xff\n\x00\x07",
        "wide.run": "q1 Q0 d1 1 2.0 wide\n".encode("utf-16"),
        "words.run": b"q1 Q0 d1 1 2.0 words\nnot a line of a run\n",
    }
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    small, root = make_small_track(tmp_path / "small"), tmp_path / "track"
    options = ["--bank", small / "bank.questions.jsonl", "--passages", small / "passages.jsonl"]
    shown = err(capsys, "init", root, "--runs", folder, *options, status=0)
    named = [line for line in shown.splitlines() if line.startswith("rejected: ")]
    assert [line.split(": ")[1] for line in named] == ["runs/noise:1", "runs/wide.run:1", "runs/words.run:2"]
    assert "a NUL byte" in named[0]
    assert "iconv -f UTF-16" in named[1]
    assert "the score (column 5) is not a number" in named[2]
    with trecexam.open_track(root, grader=HashGrader()) as track:
        assert [f"rejected: {row}" for row in track.files.rejected() if row.lost == "file"] == named
