"""Support of unusual responses, labels without a grader, and answers with extra text."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from cited import GOOD, POOR, judging, make_cited_track, response, write_responses
from forked import start_forked
from forked import trecexam as trecexam_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_server import Exchange, serving
from support import tsv_rows, until

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.support.tables import SupportTables
from trecexam.folder import TrackFolder
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.run_grades import cited_values
from trecexam.scores.measures import measure
from trecexam.scores.support import support_scores

pytest.importorskip("httpx2")


def labels(file: Path) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in tsv_rows(file)]


def test_a_rejected_run_is_reported_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        bad = response("bad", "q1", ("Pumps move heat.", [0.5]), references=["q1-heat"])
        write_responses(root / "runs" / "bad.jsonl", bad)
        other = response("good", "q9", ("Why?", []), references=["q1-heat"])
        write_responses(root / "runs" / "good.jsonl", *GOOD, other)
        assert run(["watch", str(root), "--once"]) == 1
        shown = capsys.readouterr().err
        assert "rejected: runs/bad.jsonl:1: a citation is neither a place nor an id: 0.5" in shown
        assert "runs/good.jsonl: 1 of its 3 queries are not among the grader's queries" in shown
        assert [row["run"] for row in tsv_rows(root / "out" / "support_runs.tsv")] == ["good", "poor"]


def test_recorded_labels_need_no_model_and_no_texts(tmp_path: Path) -> None:
    root = make_cited_track(tmp_path / "track", name="recorded", recorded="labels.tsv")
    (root / "labels.tsv").write_text(
        "run\tquery_id\tsentence\tdoc_id\tlabel\ngood\tq2\t1\tq2-sea\tfull_support\n"
        "poor\tq1\t2\tlost\tpartial_support\n"
    )
    (root / "passages.jsonl").unlink()
    assert run(["watch", str(root), "--once"]) == 0
    assert "3 citations of passages without a text" in (root / "out" / "report.html").read_text()
    means = {row["run"]: float(row["SupportP"]) for row in tsv_rows(root / "out" / "leaderboard.tsv")}
    assert means == {"good": 0.5, "poor": pytest.approx(1 / 2 / 3 / 2, abs=1e-6)}


def test_an_empty_answer_leaves_out_only_its_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        empty, blank = GOOD[0] | {"answer": []}, POOR[0] | {"answer": [{"text": " \n", "citations": [0]}]}
        write_responses(root / "runs" / "good.jsonl", empty, GOOD[1])
        write_responses(root / "runs" / "poor.jsonl", blank)
        assert run(["watch", str(root), "--once"]) == 1
        shown = capsys.readouterr().err
    assert "rejected: runs/good.jsonl:1: the response to query 'q1' has no text" in shown
    assert "rejected: runs/poor.jsonl:1: the response to query 'q1' has no text" in shown
    (row,) = tsv_rows(root / "out" / "support_runs.tsv")
    # 1 for q2, and 0 for the query without an answer.
    assert (row["run"], row["responses"], float(row["SupportP"])) == ("good", "1", 0.5)


def test_unusual_citations_are_counted_by_type(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, citations="all")
        references = ["q1-heat", "q1-cost"]
        odd = response(
            "odd",
            "q1",
            ("Pumps move heat.", [0] * 100),
            ("Pumps cost money.", [-1, 99, "q1-cost", 1]),
            ("No such.", ["nowhere", 10**12]),
            ("\u200f\u202e\u0645\u0631\u062d\u0628\u0627\x1b[31m\x00", [0]),
            ("  ", [0]),
            references=references,
        )
        write_responses(root / "runs" / "odd.jsonl", odd)
        with trecexam.open_track(root) as track:
            track.update()
    mine = [row for row in labels(root / "out" / "support.tsv") if row[0] == "odd"]
    assert mine == [
        ("odd", "q1", "1", "q1-heat", "full_support"),
        ("odd", "q1", "2", "q1-cost", "full_support"),
        ("odd", "q1", "2", "", "out_of_range"),
        ("odd", "q1", "2", "", "out_of_range"),
        ("odd", "q1", "3", "nowhere", "no_text"),
        ("odd", "q1", "3", "", "out_of_range"),
        ("odd", "q1", "4", "q1-heat", "no_support"),
    ]
    values = {row["run"]: row for row in tsv_rows(root / "out" / "support_runs.tsv")}["odd"]
    assert (values["out_of_range"], values["no_text"], float(values["sentences"])) == ("3", "1", 4)
    assert float(values["SupportP"]) == pytest.approx(2 / 7 / 2, abs=1e-6)
    assert float(values["SupportR"]) == pytest.approx(2 / 4 / 2, abs=1e-6)


def test_after_a_kill_only_pending_prompts_are_sent_again(tmp_path: Path) -> None:
    def judging_slowly(exchange: Exchange) -> None:
        time.sleep(0.05)
        judging(exchange)

    with serving(judging_slowly) as server:
        root = make_cited_track(tmp_path / "track", server.url, concurrency=2)
        sentences = [(f"Pumps move heat {n} times.", [0]) for n in range(60)]
        for name in ("one", "two"):
            write_responses(
                root / "runs" / f"{name}.jsonl", response(name, "q1", *sentences, references=["q1-heat"])
            )
        command = ["watch", str(root), "--once"]
        child = start_forked(trecexam_command, command, folder=tmp_path, output=tmp_path / "printed")
        until(lambda: len(server.bodies) >= 30)
        child.kill()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL
        assert run(command) == 0
        # Sentences shared by two runs are sent once; 4 belong to the other runs.
        assert len(server.seen) == 64
        again = sum(server.seen.values()) - 64
        assert again <= 16
        assert {row[4] for row in labels(root / "out" / "support.tsv") if row[0] in {"one", "two"}} == {
            "partial_support"
        }
        assert run(command) == 0
        assert sum(server.seen.values()) == 64 + again


# Weighted precision and recall of support, against explicit sums.


def test_a_response_of_four_sentences_has_the_scores_of_the_definition() -> None:
    # Full, partial, none, and a sentence without citations.
    precision, recall, f1 = support_scores([(1.0,), (0.5,), (0.0,), ()])
    assert (precision, recall) == (1.5 / 3, 1.5 / 4)
    assert f1 == pytest.approx(2 * 0.5 * 0.375 / 0.875)


def test_each_citation_counts_for_precision_and_the_best_one_for_recall() -> None:
    assert support_scores([(0.5, 1.0, 0.0), ()])[:2] == (0.5, 0.5)


def test_without_citations_or_sentences_all_scores_are_0() -> None:
    assert support_scores([(), ()]) == (0, 0, 0)
    assert support_scores([]) == (0, 0, 0)


def test_the_measures_have_names_and_are_not_official_measures() -> None:
    assert [str(measure(name)) for name in ("SupportP", "SupportR", "SupportF1")] == [
        "SupportP",
        "SupportR",
        "SupportF1",
    ]
    with pytest.raises(ValueError, match="official judgments do not have"):
        measure("SupportP", official=True)
    with pytest.raises(ValueError, match="takes no parameters"):
        measure("SupportP@5")
    with pytest.raises(ValueError, match="did you mean SupportF1"):
        measure("SupportF")


REFERENCES = ["a", "b", "c"]
CITATIONS = st.lists(st.integers(-2, 4) | st.sampled_from([*REFERENCES, "elsewhere"]), max_size=5)
ANSWERS = st.lists(
    st.tuples(st.sampled_from(["One.", "Two two.", "  ", "\u200f\u0645."]), CITATIONS), max_size=7
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    ANSWERS,
    st.dictionaries(
        st.tuples(st.integers(1, 7), st.sampled_from([*REFERENCES, "elsewhere"])), st.integers(0, 2)
    ),
    st.sampled_from(["first", "all"]),
)
def test_scores_of_any_response_equal_the_definition_on_its_json(
    tmp_path: Path, answer: list[Any], labels: dict[tuple[int, str], int], citations: Literal["first", "all"]
) -> None:
    # An additional sentence, so that there is text.
    answer = [*answer, ("Last.", [0])]
    row = {"run_id": "r", "topic_id": "q", "references": REFERENCES}
    row["answer"] = [{"text": text, "citations": cited} for text, cited in answer]
    labels = labels | {(len(answer), "a"): 1}
    root = tmp_path / "track"
    # The labels of a file are stored: those of another response do not count here.
    shutil.rmtree(root, ignore_errors=True)
    (root / "runs").mkdir(parents=True)
    (root / "runs" / "r.jsonl").write_text(json.dumps(row) + "\n")
    (root / "queries.tsv").write_text("q\ta question\nnot answered\tanother one\n")
    (root / "trecexam.toml").write_text(
        f'[graders.support]\nname = "recorded"\nrecorded = "labels.tsv"\ncitations = "{citations}"\n'
    )
    names = ("no_support", "partial_support", "full_support")
    lines = (f"r\tq\t{place}\t{doc}\t{names[rating]}\n" for (place, doc), rating in labels.items())
    (root / "labels.tsv").write_text("run\tquery_id\tsentence\tdoc_id\tlabel\n" + "".join(lines))
    with trecexam.open_track(root) as opened:
        opened.grading.grade()
    with OpenTrack(TrackFolder.open(root)) as loaders:
        loader = loaders.first
        track = loader.load()
        values = cited_values(track, ["r"], ["q", "not answered"])
        table = SupportTables(track).labels()

    #: A duplicate sentence has one label per passage: that of its first citation.
    label_of: dict[tuple[str, str], int] = {}
    cited_weights, sentence_weights, uncited = [], [], 0
    for place, (text, cited) in enumerate(answer, 1):
        if not text.strip():
            continue
        in_range = [
            c if isinstance(c, str) else REFERENCES[c] for c in cited if isinstance(c, str) or 0 <= c < 3
        ]
        outside = len([c for c in cited if not isinstance(c, str) and not 0 <= c < 3])
        looked_at = sorted(set(in_range), key=in_range.index)
        for doc_id in looked_at[:1] if citations == "first" else looked_at:
            label_of.setdefault((text.strip(), doc_id), labels.get((place, doc_id), 0))
        weights = [label_of.get((text.strip(), doc_id), 0) / 2 for doc_id in looked_at] + [0.0] * outside
        weights = weights[:1] if citations == "first" else weights
        cited_weights += weights
        sentence_weights.append(max([0.0, *weights]))
        uncited += not cited
    precision = sum(cited_weights) / len(cited_weights)
    recall = sum(sentence_weights) / len(sentence_weights)
    both = precision + recall
    assert values[0, 0] == pytest.approx([precision, recall, 2 * precision * recall / both if both else 0])
    assert not values[0, 1].any()
    assert sum(row[4] == "uncited" for row in table.rows) == uncited
