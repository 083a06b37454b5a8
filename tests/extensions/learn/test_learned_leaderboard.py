"""`leaderboard --labels learned`: its output and notes, and what `learn` writes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable, make_misleading, most_retrieved_alone
from support import printed, tsv_table

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.extensions.learn.outputs import LEARNING
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.results.page.page import Page, Section

MEASURES = "nDCG@10", "AP(rel=2)@12"


def board_of(root: Path, source: Path | None = None) -> trecexam.Leaderboard:
    """Learn, and read the leaderboard."""
    with trecexam.open_track(root) as track:
        track.learn.write(track.learn.labels(source=source))
        return track.leaderboard(labels="learned")


def shown(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, str]:
    """Learn, and print the leaderboard."""
    assert run(["learn", str(root)]) == 0
    return printed(capsys, "leaderboard", root, "--labels", "learned", *options)


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in root.rglob("*")
        if ".trecexam" not in path.parts and path.is_file()
    }


def test_with_most_of_the_pool_judged_intervals_are_shown_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], encoder: WordEncoder
) -> None:
    track = make_learnable(tmp_path / "track", hidden=7)
    assert run(["learn", str(track)]) == 0
    before = contents(track)
    encoder.encoded.clear()
    out, err = printed(capsys, "leaderboard", track, "--labels", "learned")
    assert encoder.encoded == []
    rows = tsv_table(out)
    columns = [f"{measure}{end}" for measure in MEASURES for end in ("", ".low", ".high")]
    assert list(rows[0]) == ["run", *columns, "Judged@10"]
    assert {row["run"] for row in rows} == set("abcd")
    means = [float(row["nDCG@10"]) for row in rows]
    assert means == sorted(means, reverse=True)
    for row in rows:
        for measure in MEASURES:
            low, mean, high = (float(row[f"{measure}{end}"]) for end in (".low", "", ".high"))
            assert low < mean < high
            assert 0 < mean < 1
    assert "expected over 5 queries" in err
    assert contents(track) == before


@pytest.mark.slow
@pytest.mark.parametrize("design", ["few", "most retrieved"])
def test_with_few_or_only_most_retrieved_judgments_there_are_no_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], design: str
) -> None:
    root = make_learnable(tmp_path / "track", queries=6, docs=20)
    if design == "few":
        lines = (root / "qrels.txt").read_text().splitlines(keepends=True)
        (root / "qrels.txt").write_text("".join(lines[::2]))
    else:
        most_retrieved_alone(root, 6)
    out, err = shown(root, capsys)
    how = "a random 3" if design == "few" else "the most retrieved 6.0 passages of a query are judged"
    assert how in err
    assert "no intervals, because too few of them would contain the true value" in err
    for row in tsv_table(out):
        assert {row[f"{measure}.{end}"] for measure in MEASURES for end in ("low", "high")} == {""}
    out, _ = printed(capsys, "leaderboard", root, "--labels", "learned", "--json")
    assert {row[f"{measure}.low"] for row in json.loads(out)["leaderboard"] for measure in MEASURES} == {None}


def test_json_has_the_certain_digits_of_the_expected_scores(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(shown(learnable, capsys, "--json")[0])
    assert (value["measures"], value["n_queries"]) == ([*MEASURES], 5)
    with OpenTrack(open_folder(learnable)) as loaders:
        loader = loaders.first
        loaded = loader.load()
        queries = gather_data(loaded, encoder=WordEncoder()).queries
        scores = expected_scores(fit(queries), queries, 10, 2, fits=False)
    means = dict(zip(loaded.runs, scores.means.T.tolist(), strict=True))
    for row in value["leaderboard"]:
        figures = [row[measure] for measure in MEASURES]
        assert figures == pytest.approx(means[row["run"]], abs=1e-3)
        assert figures == [round(figure, 3) for figure in figures]


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


# A track on which another method orders the runs better.

DOUBTS = "with half of the judgments hidden `unjudged = 0` orders the runs better than learned labels"


def report_sections(root: Path) -> list[Section]:
    """The sections that learned labels add to the report."""
    page = Page()
    with OpenTrack(open_folder(root)) as loaders:
        loader = loaders.first
        assert LEARNING.page is not None
        LEARNING.page(loader.load(), page)
    return page.sections


def test_if_learned_labels_mislead_one_note_names_the_better_method_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_misleading(tmp_path / "track")
    out, err = shown(root, capsys)
    assert len(tsv_table(out)) == 8
    assert err.startswith(f"{DOUBTS} (loss 0.")
    assert err.count("orders the runs better") == 1
    assert f"use `trecexam leaderboard {root} --official`" in err
    value = json.loads(printed(capsys, "leaderboard", root, "--labels", "learned", "--json")[0])
    assert value["notes"][0].startswith(DOUBTS)
    assert len(value["leaderboard"]) == 8
    (section,) = report_sections(root)
    assert (
        f'<p class="note">{DOUBTS.replace("`unjudged = 0`", "<code>unjudged = 0</code>")}' in section.content
    )


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
    assert "all of the pool is judged" in err
    import ir_measures

    qrels = list(ir_measures.read_trec_qrels(str(learnable / "qrels.txt")))
    for row in tsv_table(out):
        ranked = list(ir_measures.read_trec_run(str(learnable / "runs" / f"{row['run']}.run")))
        for name in MEASURES:
            value = ir_measures.parse_measure(name).calc_aggregate(qrels, ranked)
            assert float(row[name]) == pytest.approx(value, abs=1e-3)
            assert float(row[f"{name}.low"]) < value < float(row[f"{name}.high"])


# Runs that rank like the encoder.


def make_of_the_encoder(root: Path) -> Path:
    """Ten runs; `cosine` ranks by the encoder's cosine."""
    make_learnable(root, queries=12, docs=24, runs="abcdefghi")
    encoder, lines = WordEncoder(), []
    texts = {
        row["docid"]: row["text"]
        for row in map(json.loads, (root / "passages.jsonl").read_text().splitlines())
    }
    for line in (root / "queries.tsv").read_text().splitlines():
        query, text = line.split("\t")
        docs = [doc for doc in texts if doc.startswith(f"{query}-")]
        cosines = encoder.encode([texts[doc] for doc in docs]) @ encoder.encode([text])[0]
        order = np.argsort(-cosines)
        lines += [
            f"{query} Q0 {docs[at]} {rank} {99 - rank} cosine\n" for rank, at in enumerate(order[:12], 1)
        ]
    (root / "runs" / "cosine.run").write_text("".join(lines))
    return root


def test_a_run_similar_to_the_encoder_is_listed_with_its_rank_without_the_cosine(
    tmp_path: Path,
) -> None:
    root = make_of_the_encoder(tmp_path / "track")
    board = board_of(root)
    with OpenTrack(open_folder(root)) as loaders:
        loader = loaders.first
        track_ = loader.load()
        queries = gather_data(track_, encoder=WordEncoder()).queries
        names = list(track_.runs)
    blind = fit(queries, without=("cosine",))
    means = expected_scores(blind, queries, 10, 2, draws=100, fits=False).means[0]
    without = sorted(names, key=lambda name: -means[names.index(name)]).index("cosine") + 1
    here = board.ranks[list(board["run"]).index("cosine")]
    (note,) = (note for note in board.notes if "encoder" in note)
    assert note.startswith("1 run ranks passages much like the encoder of these labels")
    assert f"cosine {here} ({without});" in note


# The output of `learn`.


def test_learn_writes_the_leaderboard_that_is_printed(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = shown(learnable, capsys)
    assert (learnable / "out" / "learned-leaderboard.tsv").read_text() == out
    assert (
        "learned-leaderboard.tsv" in json.loads((learnable / "out" / "learned.json").read_text())["outputs"]
    )


def test_the_report_has_the_section_while_runs_and_judgments_are_unchanged(learnable: Path) -> None:
    def sections() -> list[str]:
        return [section.title for section in report_sections(learnable)]

    assert sections() == []
    assert run(["learn", str(learnable)]) == 0
    assert sections() == ["Leaderboard by learned labels"]
    board, as_written = learnable / "out" / "learned-leaderboard.tsv", (learnable / "qrels.txt").read_text()
    (learnable / "qrels.txt").write_text(as_written + "q0 0 q0-d00 2\n")
    assert sections() == []
    (learnable / "qrels.txt").write_text(as_written)
    assert len(sections()) == 1
    board.write_text(board.read_text() + "\n")
    assert sections() == []
