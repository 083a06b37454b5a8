"""Citation labels by people replace those of the grader, from the command line to out/."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cited import GOOD, PASSAGES, make_cited_track, response, write_responses
from scripted_server import serving
from support import printed, tsv_rows

pytest.importorskip("httpx2")

from cited import judging

import trecexam
from trecexam.cli.main import run
from trecexam.errors import StoreError

#: Has the sentence of `good` on salt, and twice that of `poor` on cats.
SHARED = (
    response(
        "shared", "q1", ("Cats purr.", [0]), ("Cats purr.", [1]), references=["q1-heat", "q1-cost"]
    ),
    response("shared", "q2", ("The sea is salt.", [0]), references=["q2-sea"]),
)  # fmt: skip
ANN = ["--who", "ann", "--why", "read it"]


@pytest.fixture(scope="module")
def labelled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with serving(judging) as server:
        root = make_cited_track(tmp_path_factory.mktemp("people") / "track", server.url)
        write_responses(root / "runs" / "shared.jsonl", *SHARED)
        with trecexam.open_track(root) as track:
            track.update()
        yield root


@pytest.fixture
def root(labelled_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(labelled_once, tmp_path / "people"))


def give(root: Path, query: str, doc: str, sentence: str, *more: str) -> int:
    return run(["override", str(root), "--query", query, "--doc", doc, "--item", sentence, *more])


def labels(root: Path) -> dict[tuple[str, str, str, str], tuple[str, str]]:
    run(["watch", str(root), "--once"])
    rows = [tuple(row.values()) for row in tsv_rows(root / "out" / "support.tsv")]
    return {row[:4]: (row[4], row[5] if len(row) > 5 else "") for row in rows}


def scores(root: Path) -> dict[str, tuple[float, ...]]:
    with trecexam.open_track(root) as track:
        return {row.run: tuple(s.mean for s in row.scores) for row in track.leaderboard().rows}


def test_a_label_by_a_person_counts_in_all_responses_with_that_sentence_and_citation(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = scores(root)
    assert give(root, "q1", "q1-heat", "poor:1", "--rating", "full", *ANN) == 0
    assert "full_support (ann) in place of the grader's no_support" in capsys.readouterr().err
    now = labels(root)
    assert now["poor", "q1", "1", "q1-heat"] == ("full_support", "ann")
    assert now["shared", "q1", "1", "q1-heat"] == ("full_support", "ann")
    # The same sentence with another passage, and another sentence with the same one, are other cells.
    assert now["shared", "q1", "2", "q1-cost"] == ("no_support", "")
    assert now["good", "q1", "1", "q1-heat"] == ("full_support", "")
    after = scores(root)
    assert after["good"] == before["good"]
    assert after["poor"][0] - before["poor"][0] == pytest.approx(1 / 3 / 2)
    assert after["shared"][:2] == pytest.approx([before["shared"][0] + 0.5 / 2] * 2)
    (line,) = tsv_rows(root / "overrides.support.tsv")
    assert line["item_id"].startswith("statement:")
    assert "poor" not in "".join(line.values())


@pytest.mark.parametrize(
    ("words", "label"),
    [("full", 2), ("partial", 1), ("no", 0), ("No_Support", 0), ("2", 2), ("1", 1), ("0", 0)],
)
def test_a_label_is_given_as_a_word_or_a_code(root: Path, words: str, label: int) -> None:
    assert give(root, "q2", "q2-sea", "good:1", "--rating", words, *ANN) == 0
    assert [row["rating"] for row in tsv_rows(root / "overrides.support.tsv")] == [str(label)]


@pytest.mark.parametrize(
    ("query", "doc", "sentence", "rating", "text"),
    [
        ("q1", "q1-heat", "poor:1", "3", "is not on the grader's scale, 0..2"),
        (
            "q1",
            "q1-heat",
            "good:2",
            "1",
            "not cited by this sentence, or not looked at: those looked at are '",
        ),
        ("q1", "q1-heat", "poor:9", "1", "has no sentence 9: it has 3, counted from 1"),
        ("q1", "q1-heat", "poor:x", "1", "name it by RUN:N, as in support.tsv"),
        ("q9", "q1-heat", "poor:1", "1", "no response to query 'q9'"),
        ("q1", "q1-heat", "statement:0123456789abcdef", "1", "support.tsv"),
        ("q1", "q1-heat", "poor:1", "most", "'most' is not a rating: give 0..2, or no_support"),
    ],
)
def test_an_invalid_label_is_a_one_line_error(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    query: str,
    doc: str,
    sentence: str,
    rating: str,
    text: str,
) -> None:
    assert give(root, query, doc, sentence, "--rating", rating, *ANN) == 2
    assert text in capsys.readouterr().err
    assert not (root / "overrides.support.tsv").exists()


def test_the_provenance_is_in_every_output_and_a_withdrawal_restores_all(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outputs() -> dict[str, bytes]:
        names = ("support.tsv", "support_runs.tsv", "leaderboard.tsv")
        return {name: (root / "out" / name).read_bytes() for name in names}

    before = outputs()
    counts = json.loads((root / "out" / "manifest.json").read_text())["counts"]
    assert (counts["cells"], counts["ok"], counts["no_text_cells"], counts["human_cells"]) == (6, 5, 1, 0)
    assert give(root, "q1", "q1-cost", "good:2", "--rating", "no", *ANN) == 0
    assert run(["watch", str(root), "--once"]) == 0
    (line,) = (row for row in tsv_rows(root / "out" / "support.tsv") if row["who"])
    assert (line["run"], line["sentence"], line["label"], line["who"]) == ("good", "2", "no_support", "ann")
    (human,) = tsv_rows(root / "out" / "human.tsv")
    assert (human["rating"], human["machine"], human["who"], human["state"]) == ("0", "1", "ann", "counts")
    counts = json.loads((root / "out" / "manifest.json").read_text())["counts"]
    assert (counts["cells"], counts["ok"], counts["no_text_cells"], counts["human_cells"]) == (6, 5, 1, 1)
    page = (root / "out" / "report.html").read_text()
    assert "1 label of people in place of the grader" in page
    assert "in 1 cell and for 0 passages as a whole (ann)" in printed(capsys, "leaderboard", root).err
    assert run(["override", str(root), "--list"]) == 0
    assert "\tann\tread it\t" in capsys.readouterr().out
    assert run(["status", str(root), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["cells"], status["ok"], status["human_cells"], status["no_text_cells"]) == (6, 5, 1, 1)
    assert status["rated_by"] == "ann"
    with trecexam.open_track(root) as track:
        assert track.override.summary() == {"cells": 1, "passages": 0, "who": ["ann"]}
    assert give(root, "q1", "q1-cost", "good:2", "--withdraw", *ANN) == 0
    assert "back to the grader's partial_support" in capsys.readouterr().err
    assert run(["watch", str(root), "--once"]) == 0
    assert outputs() == before


def test_a_passage_without_text_can_be_labelled(root: Path) -> None:
    assert labels(root)["poor", "q1", "2", "lost"] == ("no_text", "")
    assert give(root, "q1", "lost", "poor:2", "--rating", "partial", *ANN) == 0
    assert labels(root)["poor", "q1", "2", "lost"] == ("partial_support", "ann")


def test_a_label_waits_for_its_sentence_and_is_rejected_for_another_text(
    root: Path,
) -> None:
    assert give(root, "q2", "q2-sea", "good:1", "--rating", "no", *ANN) == 0
    kept = {name: (root / "runs" / name).read_bytes() for name in ("good.jsonl", "shared.jsonl")}

    def state() -> tuple[str, list[str]]:
        with trecexam.open_track(root) as track:
            return str(track.override.ratings().table.rows[0][-1]), [
                row.reason for row in track.override.ratings().rejected
            ]

    for name in kept:
        write_responses(root / "runs" / name, GOOD[0])
    assert state() == ("not cited", [])
    for name, content in kept.items():
        (root / "runs" / name).write_bytes(content)
    assert state() == ("counts", [])
    passages = {**PASSAGES, "q2-sea": "The sea is dry."}
    (root / "passages.jsonl").write_text(
        "".join(json.dumps({"docid": doc_id, "text": text}) + "\n" for doc_id, text in passages.items())
    )
    (reason,) = state()[1]
    assert "another text of this passage" in reason


def test_written_labels_can_be_recorded_with_the_same_scores(root: Path, tmp_path: Path) -> None:
    give(root, "q1", "q1-heat", "poor:1", "--rating", "full", *ANN)
    give(root, "q1", "q1-cost", "good:2", "--rating", "no", *ANN)
    give(root, "q1", "lost", "poor:2", "--rating", "partial", *ANN)
    ours = labels(root)
    # A copy of overrides.tsv in another folder of the same track says the same.
    other = Path(shutil.copytree(root, tmp_path / "other"))
    assert labels(other) == ours
    # A recorded label needs no text of the passage.
    (other / "overrides.support.tsv").unlink()
    (other / "labels.tsv").write_bytes((root / "out" / "support.tsv").read_bytes())
    (other / "trecexam.toml").write_text('[graders.support]\nname = "recorded"\nrecorded = "labels.tsv"\n')
    with trecexam.open_track(other) as track:
        track.update()
    assert scores(other) == scores(root)


def test_agreement_compares_the_grader_of_support_with_people(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(capsys, "agreement", root, "--grader", "support", status=2).err
    assert f"no person labelled a citation yet: `trecexam serve {root}`, or `trecexam override" in said
    give(root, "q1", "q1-heat", "poor:1", "--rating", "full", *ANN)
    give(root, "q2", "q2-sea", "good:1", "--rating", "full", *ANN)
    give(root, "q1", "lost", "poor:2", "--rating", "no", *ANN)
    shown = printed(capsys, "agreement", root, "--grader", "support")
    assert shown.out.splitlines() == [
        "label\tpeople: no_support\tpeople: partial_support\tpeople: full_support",
        "no_support\t0\t0\t1",
        "partial_support\t0\t0\t0",
        "full_support\t0\t0\t1",
    ]
    assert "2 citations with both labels, 50% with the same" in shown.err
    assert "3 have only a label of the grader, 1 only one of people" in shown.err
    # po = 1/2, pe = (1 x 0 + 1 x 2) / 4.
    assert "Cohen's kappa 0.00, with linear weights 0.00" in shown.err
    assert run(["agreement", str(root), "--min-rating", "2"]) == 2
    assert "the grader support labels citations: give no thresholds" in capsys.readouterr().err


@pytest.mark.parametrize("lose", ["store", "folder"])
def test_paid_labels_are_not_requested_again_without_confirmation(
    root: Path, lose: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if lose == "folder":
        shutil.rmtree(root / ".trecexam")
    else:
        for path in (root / ".trecexam").glob("grades.sqlite*"):
            path.unlink()
    assert run(["watch", str(root), "--once"]) == 2
    assert "the 5 cells that were graded once would be graded again, which costs" in capsys.readouterr().err
    with trecexam.open_track(root) as track:
        assert track.grading.lost() == 5
        with pytest.raises(StoreError):
            track.update()
    assert not (root / ".trecexam" / "grades.sqlite").exists()
