"""`leaderboard --labels learned`: its output and notes, and what `learn` writes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from headings import score_columns
from learnable import WordEncoder, make_learnable, queries_of
from support import Printed, contents, printed, read_jsonl, tsv_table

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.extensions.learn.outputs import LEARNING
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.results.page.page import Page, Section

MEASURES = "nDCG@10", "AP(rel=2)@12", "Judged@10"


def board_of(root: Path, source: Path | None = None) -> trecexam.Leaderboard:
    """Learn, and read the leaderboard."""
    with trecexam.open_track(root) as track:
        track.learn.write(track.learn.labels(source=source))
        return track.leaderboard(labels="learned")


def shown(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Printed:
    """Learn, and print the leaderboard."""
    assert run(["learn", str(root)]) == 0
    return printed(capsys, "leaderboard", root, "--labels", "learned", *options)


def test_the_stored_leaderboard_is_shown_without_an_encoder_and_nothing_is_written(
    learnable: Path, capsys: pytest.CaptureFixture[str], encoder: WordEncoder
) -> None:
    assert run(["learn", str(learnable)]) == 0
    before = contents(learnable / "out")
    encoder.encoded.clear()
    out, err = printed(capsys, "leaderboard", learnable, "--labels", "learned")
    assert encoder.encoded == []
    assert (learnable / "out" / "learned-leaderboard.tsv").read_text() == out
    rows = tsv_table(out)
    columns = [f"{measure}{end}" for measure in MEASURES for end in ("", ".stderr")]
    assert score_columns(rows[0]) == columns
    assert {row["run"] for row in rows} == set("abcd")
    means = [float(row["nDCG@10"]) for row in rows]
    assert means == sorted(means, reverse=True)
    assert "expected over 5 queries, with learned labels for unjudged passages (" in err
    assert contents(learnable / "out") == before


def test_json_has_the_certain_digits_of_the_expected_scores(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(shown(learnable, capsys, "--json")[0])
    assert (value["measures"], value["n_queries"]) == ([*MEASURES], 5)
    queries = queries_of(learnable)
    scores = expected_scores(fit(queries), queries, 10, 2)
    of_runs = dict(zip("abcd", scores.transpose(1, 0, 2), strict=True))
    for row in value["runs"]:
        for measure, of_queries in zip(MEASURES, of_runs[row["run"]], strict=False):
            score = row["scores"][measure]
            assert score["mean"] == pytest.approx(of_queries.mean(), abs=1e-3)
            assert score["stderr"] == pytest.approx(of_queries.std(ddof=1) / 5**0.5, abs=1e-3)
            assert [*score.values()] == [round(figure, 3) for figure in score.values()]


def test_a_track_where_nothing_was_learned_says_what_to_run(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error() -> str:
        (line,) = printed(capsys, "leaderboard", learnable, "--labels", "learned", status=2)[1].splitlines()
        return line

    assert error().endswith(f"no learned labels: run `trecexam learn {learnable}`")
    assert run(["learn", str(learnable)]) == 0
    (learnable / "qrels.txt").write_text((learnable / "qrels.txt").read_text() + "q0 0 q0-d00 2\n")
    assert "judgments changed since labels were learned: run `trecexam learn" in error()
    for path in (learnable / "runs").iterdir():
        path.unlink()
    assert "runs" in error()


def test_arguments_that_learned_labels_do_not_take_are_refused(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["leaderboard", learnable, "--labels", "learned"]
    assert "leave out the measures" in printed(capsys, *command, "-m", "P@5", status=2)[1]
    assert "leave out the measures and `official`" in printed(capsys, *command, "--official", status=2)[1]
    with trecexam.open_track(learnable) as track:
        with pytest.raises(TrecexamError, match="give 'learned'"):
            track.leaderboard(labels="people")  # type: ignore[arg-type]
        track.learn.write(track.learn.labels())
        assert [row.run for row in track.leaderboard(labels="learned", runs=["b"]).rows] == ["b"]
        with pytest.raises(TrecexamError, match="no run 'z'"):
            track.leaderboard(labels="learned", runs=["z"])


def report_sections(root: Path) -> list[Section]:
    """The sections that learned labels add to the report."""
    page = Page()
    with OpenTrack(open_folder(root)) as loaders:
        loader = loaders.first
        assert LEARNING.page is not None
        LEARNING.page(loader.load(), page)
    return page.sections


def test_if_all_is_judged_it_equals_the_official_leaderboard_without_uncertainty(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pooled = {
        tuple(line.split()[0:3:2])
        for path in (learnable / "runs").iterdir()
        for line in path.read_text().splitlines()
    }
    (learnable / "qrels.txt").write_text(
        "".join(f"{query} 0 {doc} {int(doc[-2:]) % 3}\n" for query, doc in sorted(pooled))
    )
    out, err = shown(learnable, capsys)
    assert "(100% of the pool is judged)" in err
    import ir_measures

    qrels = list(ir_measures.read_trec_qrels(str(learnable / "qrels.txt")))
    for row in tsv_table(out):
        ranked = list(ir_measures.read_trec_run(str(learnable / "runs" / f"{row['run']}.run")))
        for name in MEASURES:
            value = ir_measures.parse_measure(name).calc_aggregate(qrels, ranked)
            assert float(row[name]) == pytest.approx(value, abs=1e-3)


# Runs that rank like the encoder.


def make_of_the_encoder(root: Path) -> Path:
    """Ten runs; `cosine` ranks by the encoder's cosine."""
    make_learnable(root, queries=12, docs=24, runs="abcdefghi")
    encoder, lines = WordEncoder(), []
    texts = {row["docid"]: row["text"] for row in read_jsonl(root / "passages.jsonl")}
    for line in (root / "queries.tsv").read_text().splitlines():
        query, text = line.split("\t")
        docs = [doc for doc in texts if doc.startswith(f"{query}-")]
        cosines = encoder.embed([texts[doc] for doc in docs]) @ encoder.embed([text])[0]
        order = np.argsort(-cosines)
        lines += [
            f"{query} Q0 {docs[at]} {rank} {99 - rank} cosine\n" for rank, at in enumerate(order[:12], 1)
        ]
    (root / "runs" / "cosine.run").write_text("".join(lines))
    return root


def test_a_run_similar_to_the_encoder_is_listed(tmp_path: Path) -> None:
    board = board_of(make_of_the_encoder(tmp_path / "track"))
    (note,) = (note for note in board.notes if "encoder" in note)
    assert note.startswith("passages much in the order of the encoder of these labels: cosine; their ranks")


def test_the_report_has_the_section_while_runs_and_judgments_are_unchanged(learnable: Path) -> None:
    def sections() -> list[str]:
        return [section.title for section in report_sections(learnable)]

    assert sections() == []
    assert run(["learn", str(learnable)]) == 0
    assert sections() == ["Leaderboard by learned labels"]
    as_written = (learnable / "qrels.txt").read_text()
    (learnable / "qrels.txt").write_text(as_written + "q0 0 q0-d00 2\n")
    assert sections() == []
    (learnable / "qrels.txt").write_text(as_written)
    assert len(sections()) == 1
    (learnable / "out" / "learned.json").write_text("{}")
    assert sections() == []
