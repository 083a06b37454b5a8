"""A grader of support as an organizer runs it, with a scripted server as the model."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from cited import GOOD, PASSAGES, POOR, judging, label_of, make_cited_track, response, write_responses
from forked import start_forked
from forked import trecexam as trecexam_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outside import outside
from scripted_server import Exchange, Scripted, serving
from support import printed, tsv_rows, until

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.support.tables import SupportTables
from trecexam.folder import TrackFolder
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.run_grades import cited_values
from trecexam.scores.support import support_scores

pytest.importorskip("httpx2")


WEIGHT = {"full_support": 1.0, "partial_support": 0.5}


def graded_now(root: Path) -> int:
    return run(["watch", str(root), "--once"])


def page(root: Path) -> str:
    return (root / "out" / "report.html").read_text()


def labels(root: Path) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in tsv_rows(root / "out" / "support.tsv")]


def naive(table: list[dict[str, str]], run_: str, queries: tuple[str, ...]) -> tuple[float, float, float]:
    """Mean precision, recall and F1 of a run, from the rows of support.tsv."""
    of_queries = []
    for query in queries:
        sentences: dict[str, list[float]] = {}
        cited = []
        for row in table:
            if (row["run"], row["query_id"]) == (run_, query):
                weights = sentences.setdefault(row["sentence"], [0.0])
                if row["label"] != "uncited":
                    weights.append(WEIGHT.get(row["label"], 0.0))
                    cited.append(weights[-1])
        p = sum(cited) / len(cited) if cited else 0.0
        r = sum(max(weights) for weights in sentences.values()) / len(sentences) if sentences else 0.0
        of_queries.append((p, r, 2 * p * r / (p + r) if p + r else 0.0))
    return tuple(sum(values) / len(queries) for values in zip(*of_queries, strict=True))  # type: ignore[return-value]


def prompts_sent(server: Scripted) -> list[str]:
    return [str(body["messages"][-1]["content"]) for body in server.bodies]


def test_each_sentence_is_graded_once_with_its_first_cited_passage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        assert run(["watch", str(root), "--estimate"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("4\t")
        assert not server.bodies
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 4
        prompt = outside("prompts/support.txt").read_text().removesuffix("\n")
        filled = prompt.replace("{statement}", "Pumps move heat.").replace("{citation}", PASSAGES["q1-heat"])
        assert filled in prompts_sent(server)
        assert labels(root) == [
            ("good", "q1", "1", "q1-heat", "full_support"),
            ("good", "q1", "2", "q1-cost", "partial_support"),
            ("good", "q1", "3", "", "uncited"),
            ("good", "q2", "1", "q2-sea", "full_support"),
            ("poor", "q1", "1", "q1-heat", "no_support"),
            ("poor", "q1", "2", "lost", "no_text"),
            ("poor", "q1", "3", "", "out_of_range"),
        ]
        good, poor = tsv_rows(root / "out" / "support_runs.tsv")
        assert (good["run"], good["responses"], good["out_of_range"], good["no_text"]) == (
            "good",
            "2",
            "0",
            "0",
        )
        assert (poor["run"], poor["responses"], poor["out_of_range"], poor["no_text"]) == (
            "poor",
            "1",
            "1",
            "1",
        )
        assert [float(good[name]) for name in ("SupportP", "SupportR")] == [(0.75 + 1) / 2, (0.5 + 1) / 2]
        assert [float(good[name]) for name in ("uncited", "words", "sentences", "citations")] == [
            0.25, 5.5, 2, 1,
        ]  # fmt: skip
        assert float(poor["SupportF1"]) == 0
        assert "1 citation of passages without a text, first &#39;lost&#39;" in page(root)
        assert "1 citation out of range" in page(root)
        # The second time nothing is graded; a changed response has only its new sentence graded.
        assert graded_now(root) == 0
        assert len(server.bodies) == 4
        changed = json.loads(json.dumps(GOOD[0]))
        changed["answer"][1]["text"] = "Pumps cost money."
        write_responses(root / "runs" / "good.jsonl", changed, GOOD[1])
        assert graded_now(root) == 0
        assert len(server.bodies) == 5
        assert labels(root)[1] == ("good", "q1", "2", "q1-cost", "full_support")


def test_updates_grade_support_and_show_it_in_leaderboard_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, measures=["SupportF1", "SupportP"])
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 4
        assert run(["watch", str(root), "--once"]) == 0
        assert "nothing new" in capsys.readouterr().err
    board = tsv_rows(root / "out" / "leaderboard.tsv")
    table = tsv_rows(root / "out" / "support.tsv")
    assert [row["run"] for row in board] == ["good", "poor"]
    for row in board:
        p, _, f1 = naive(table, row["run"], ("q1", "q2"))
        assert (float(row["SupportF1"]), float(row["SupportP"])) == pytest.approx((f1, p), abs=1e-6)
    assert float(board[0]["SupportP.stderr"]) == pytest.approx((1 - 0.75) / 2)
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    assert {"support.tsv", "support_runs.tsv"} <= manifest["outputs"].keys()
    assert "Support by cited passages" in (root / "out" / "report.html").read_text()
    capsys.readouterr()
    assert run(["leaderboard", str(root), "-m", "SupportR"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "run\tqueries\tSupportR\tSupportR.stderr"


def test_without_the_section_support_measures_are_a_one_line_error(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["leaderboard", str(graded), "-m", "SupportP"]) == 2
    assert "add a section [graders.support] to trecexam.toml" in capsys.readouterr().err


def test_a_run_of_passages_has_no_support(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        (root / "runs" / "bm25.run").write_text("q1 Q0 q1-heat 1 2.0 bm25\n")
        with trecexam.open_track(root) as track:
            track.update()
            assert {row.run for row in track.leaderboard().rows} == {"good", "poor"}
            assert {row["run"] for row in tsv_rows(root / "out" / "support_runs.tsv")} == {"good", "poor"}
        # A single grader selected by its prompt alone uses all runs.
        config = root / "trecexam.toml"
        config.write_text(
            config.read_text().replace("[graders.support]", '[grader]\nprompt = "TRECRAG2024Support"')
        )
        with trecexam.open_track(root) as track:
            track.update()
            board = track.leaderboard()
            assert {row.run: row.scores[0].mean for row in board.rows}["bm25"] == 0
            assert any(
                "1 of 3 runs: no generated responses, so 0 in SupportP" in line for line in board.notes
            )
            assert {row["run"] for row in tsv_rows(root / "out" / "support_runs.tsv")} == {"good", "poor"}


def test_truncated_responses_lose_the_rest(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        long = response("long", "q1", ("word " * 399, [0]), ("Pumps move heat.", [0]), references=["q1-heat"])
        write_responses(root / "runs" / "long.jsonl", long)
        assert run(["watch", str(root), "--once"]) == 0
        assert (
            "long: 1 response over a limit of the track (&#39;q1&#39;): &#39;q1&#39; has 402 words"
            in page(root)
        )
        whole = {row["run"]: row for row in tsv_rows(root / "out" / "support_runs.tsv")}
        config = root / "trecexam.toml"
        config.write_text("[track]\ntruncate = 400\n" + config.read_text())
        assert run(["watch", str(root), "--once"]) == 0
        assert "responses are cut after 400 words" in page(root)
        cut = {row["run"]: row for row in tsv_rows(root / "out" / "support_runs.tsv")}
        assert [float(table["long"]["words"]) for table in (whole, cut)] == [402, 400]
        assert [table["long"]["over_limit"] for table in (whole, cut)] == ["1", "1"]
        assert whole["good"] == cut["good"]
        # The truncated sentence is a different one, and was graded.
        assert "Statement: Pumps\n" in prompts_sent(server)[-1]


def test_an_update_stopped_by_a_budget_is_incomplete_and_the_next_one_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, concurrency=1, budget_tokens=900)
        assert run(["watch", str(root), "--once"]) == 1
        assert "budget_tokens" in capsys.readouterr().err
        assert not json.loads((root / "out" / "manifest.json").read_text())["complete"]
        assert "not_graded" in {label[-1] for label in labels(root)}
        assert "not graded yet; they count as no support" in page(root)
        config = root / "trecexam.toml"
        config.write_text(config.read_text().replace("budget_tokens = 900", ""))
        assert run(["watch", str(root), "--once"]) == 0
        assert json.loads((root / "out" / "manifest.json").read_text())["complete"]
        assert len(server.bodies) == 4


def test_answers_without_a_label_count_as_no_support(tmp_path: Path) -> None:
    with serving(lambda exchange: exchange.say("I am not sure.")) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        assert graded_now(root) == 1
        assert "4 citations with an answer that has no label" in page(root)
        assert {label[-1] for label in labels(root)} == {"unparsed", "uncited", "no_text", "out_of_range"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"prompt": "UMBRELA"}, "is of the kind support, which asks about statement"),
        ({"name": "embedding", "cut_points": [0.5]}, "in rising order"),
        ({"name": "embedding", "cut_points": [0.1, 0.2, 0.3, 0.4, 0.5]}, "give 2 cosines in rising order"),
        ({"name": "recorded"}, 'needs `recorded = "FILE"`'),
        ({"citation": "all"}, "did you mean `citations`?"),
    ],
)
def test_settings_that_cannot_grade_support_are_rejected(
    tmp_path: Path, settings: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_cited_track(tmp_path / "track", **settings)
    assert reason in printed(capsys, "watch", root, "--once", status=2).err


def test_scores_equal_explicit_sums_over_the_labels(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, citations="all")
        assert graded_now(root) == 0
        table = tsv_rows(root / "out" / "support.tsv")
        assert ("good", "q1", "1", "q1-cost", "partial_support") in labels(root)
        for row in tsv_rows(root / "out" / "support_runs.tsv"):
            expected = naive(table, row["run"], ("q1", "q2"))
            values = tuple(float(row[name]) for name in ("SupportP", "SupportR", "SupportF1"))
            assert values == pytest.approx(expected, abs=1e-6)
            texts = {**PASSAGES, "lost": ""}
            for label in (each for each in table if each["doc_id"] in PASSAGES):
                (given,) = [
                    r
                    for r in (*GOOD, *POOR)
                    if (r["run_id"], r["topic_id"]) == (label["run"], label["query_id"])
                ]
                statement = given["answer"][int(label["sentence"]) - 1]["text"]
                assert label["label"] == label_of(statement, texts[label["doc_id"]])
        before = len(server.bodies)
        path = root / "trecexam.toml"
        path.write_text(path.read_text().replace('citations = "all"', ""))
        assert graded_now(root) == 0
        assert len(server.bodies) == before
        assert len(tsv_rows(root / "out" / "support.tsv")) == len(table) - 1


# Support of unusual responses, labels without a grader, and answers with extra text.


def labels_in(file: Path) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in tsv_rows(file)]


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
    mine = [row for row in labels_in(root / "out" / "support.tsv") if row[0] == "odd"]
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
        assert {row[4] for row in labels_in(root / "out" / "support.tsv") if row[0] in {"one", "two"}} == {
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
