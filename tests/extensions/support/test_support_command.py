"""A grader of support as an organizer runs it, with a scripted server as the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cited import GOOD, PASSAGES, POOR, label_of, make_cited_track, response, write_responses
from outside import outside
from scripted_server import Scripted, serving
from support import printed, tsv_rows

pytest.importorskip("httpx2")

from cited import judging

import trecexam
from trecexam.cli.main import run

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


def test_a_track_needs_no_bank_for_support_alone(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        (root / "bank.nuggets.jsonl").unlink()
        assert graded_now(root) == 0
    (good, poor) = tsv_rows(root / "out" / "support_runs.tsv")
    assert (good["run"], float(good["SupportP"]), poor["responses"]) == ("good", 0.875, "1")


def test_other_commands_work_with_support_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, measures=["SupportP"])
        assert run(["watch", str(root), "--once"]) == 0
        worse = json.loads(json.dumps(GOOD).replace("move heat", "sing songs").replace("salt", "blue"))
        write_responses(root / "runs" / "good.jsonl", *worse)
        assert run(["watch", str(root), "--once"]) == 0
        board = tsv_rows(root / "out" / "leaderboard.tsv")
        assert [float(row["SupportP"]) for row in board] == [0.5, 0]
        log = tsv_rows(root / "out" / "history.tsv")
        assert {row["run"]: row["mean.after"] for row in log}["good"] == "0.500000"
        capsys.readouterr()
        assert run(["leaderboard", str(root), "--official"]) == 2
        said = printed(capsys, "leaderboard", root, "-m", "nDCG@10", status=2).err
        assert "needs labels of documents, but the grader support labels citations" in said
        assert run(["verify", "grading", str(root)]) == 0
        shown = capsys.readouterr().out
        # A cell is a sentence with its citation: with other passages it is not a cell.
        assert "missing" not in shown
        assert len(shown.splitlines()) == 1 + 5
        said = printed(capsys, "verify", "grid", root, status=2).err
        assert "so it has no grid: see its cells with `trecexam verify grading`" in said
        for view in ("missing", "spurious"):
            assert run(["verify", view, str(root)]) == 2
            assert "the grader support labels no documents that runs rank" in capsys.readouterr().err
        with trecexam.open_track(root) as track:
            board = track.leaderboard()
            assert {"good", "poor"} == {row.run for row in board.rows}
            assert len(list(track.compare().measures)) == 1
            assert track.grading.counts().missing == 0
            assert track.grading.counts().cells == 5


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


def test_a_custom_prompt_grades_support(tmp_path: Path) -> None:
    with serving(lambda exchange: exchange.say("Full support.")) as server:
        root = make_cited_track(tmp_path / "track", server.url, prompt="mine.toml")
        (root / "mine.toml").write_text(
            "template = 'Does {citation} say {statement}? full_support, partial_support or no_support'\n"
            'parser = "support"\n'
        )
        with trecexam.open_track(root) as track:
            track.update()
        assert {row[-1] for row in labels(root) if row[3] in PASSAGES} == {"full_support"}
        assert any(text.startswith("Does The sea is salt. say") for text in prompts_sent(server))


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
