"""Support of unusual responses, labels without a grader, and answers with extra text."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from cited import GOOD, POOR, make_cited_track, response, write_responses
from forked import start_forked
from forked import trecexam as trecexam_command
from scripted_server import Exchange, serving
from support import tsv_rows, until

pytest.importorskip("httpx2")

from cited import judging

import trecexam
from trecexam.cli.main import run


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


def test_a_sentence_of_two_runs_is_recorded_with_the_citations_of_each(tmp_path: Path) -> None:
    root = make_cited_track(tmp_path / "track", name="recorded", recorded="labels.tsv")
    for run_, cited in (("one", 0), ("two", 1)):
        given = response(run_, "q1", ("Pumps do.", [cited]), references=["q1-heat", "q1-cost"])
        write_responses(root / "runs" / f"{run_}.jsonl", given)
    (root / "labels.tsv").write_text(
        "run\tquery_id\tsentence\tdoc_id\tlabel\none\tq1\t1\tq1-heat\tfull_support\n"
        "two\tq1\t1\tq1-cost\tpartial_support\n"
    )
    # Cells that are not in the file stay ungraded.
    assert run(["watch", str(root), "--once"]) == 1
    known = {row[:4]: row[4] for row in labels(root / "out" / "support.tsv")}
    assert known["one", "q1", "1", "q1-heat"] == "full_support"
    assert known["two", "q1", "1", "q1-cost"] == "partial_support"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"key_env": "NO_SUCH_KEY"}, "another one in `key_env` in [graders.support]"),
        ({"name": "embedding", "model": "no/such"}, "or set `model` in [graders.support]"),
        ({"budget_tokens": 1}, "`budget_tokens` = 1 in [graders.support] is reached"),
    ],
)
def test_an_error_names_the_settings_section_it_belongs_to(
    tmp_path: Path, settings: dict[str, object], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, **settings)
        assert run(["watch", str(root), "--once"]) in {1, 2}
        shown = capsys.readouterr().err
        assert reason in shown
        assert "[grader]" not in shown


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
