from __future__ import annotations

import gzip
import json
import math
import random
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from scipy import stats
from support import ROOT

from trecexam.cli.main import run
from trecexam.extensions.ragval.formats.answers import AnswerRow
from trecexam.extensions.ragval.reporting import SCORES, ragval_report, report_of
from trecexam.scores.leaderboard import interval


def answer(
    run: str,
    question: str,
    t: float | None,
    r: float | None,
    tokens: tuple[int | None, int | None] = (None, None),
) -> AnswerRow:
    return AnswerRow(
        question, "", run, n_input_tokens=tokens[0], n_output_tokens=tokens[1], truthfulness=t, relevance=r,
        status="unparsed" if t is None else "ok",
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[AnswerRow]:
    """Four systems on thirty questions, each with some missing."""
    chance = random.Random(3)
    found = []
    for name, good in (("a", 0.9), ("b", 0.7), ("c", 0.4), ("d", 0.1)):
        for n in range(30):
            kind = chance.random()
            if kind < 0.1:
                continue
            t, r = (chance.choice([4, 4.5, 5] if chance.random() < good else [1, 1.5, 2]) for _ in "tr")
            counted = (chance.randrange(99), None if kind < 0.2 else chance.randrange(99))
            found.append(answer(name, f"q{n}", *((None, None) if kind < 0.15 else (t, r)), counted))
    chance.shuffle(found)
    return found


def scored(rows: list[AnswerRow], run: str, name: str) -> dict[str, float]:
    return {
        row.question_id: {"truthfulness": row.truthfulness, "relevance": row.relevance}.get(
            name, row.truthfulness + row.relevance
        )
        for row in rows
        if row.run_id == run and row.truthfulness is not None and row.relevance is not None
    }  # type: ignore[return-value]


def test_means_and_standard_errors_are_over_answers_with_scores(rows: list[AnswerRow]) -> None:
    report = report_of(rows)
    assert [one.run for one in report.board.rows] == ["a", "b", "c", "d"]
    for one, shown in zip(report.board.rows, report.table, strict=True):
        mine = [row for row in rows if row.run_id == one.run]
        assert (shown["n"], shown["unparsed"]) == (len(mine), sum(row.truthfulness is None for row in mine))
        for name in SCORES:
            values = list(scored(rows, one.run, name).values())
            score = one.scores[name]  # type: ignore[call-overload]
            assert shown[name] == score.mean == pytest.approx(statistics.fmean(values))
            assert score.stderr == pytest.approx(stats.sem(values))


def test_tokens_are_summed_and_answers_without_them_are_counted(rows: list[AnswerRow]) -> None:
    report = report_of(rows)
    for shown in report.table:
        mine = [row for row in rows if row.run_id == shown["run_id"]]
        assert shown["n_input_tokens"] == sum(row.n_input_tokens or 0 for row in mine)
        assert shown["n_output_tokens"] == sum(row.n_output_tokens or 0 for row in mine)
        missing = sum(row.n_output_tokens is None for row in mine)
        note = f"{shown['run_id']}: {missing} of {len(mine)} answers do not give their output tokens"
        assert any(line.startswith(note) for line in report.notes) == (missing > 0)
    (bare,) = report_of([answer("x", "q", 1, 1)]).table
    assert bare["n_input_tokens"] is None


def test_a_system_without_scores_is_last_and_has_no_mean(rows: list[AnswerRow]) -> None:
    report = report_of([answer("0", "q1", None, None), *rows])
    *_, last = report.table
    assert (last["run_id"], last["n"], last["unparsed"]) == ("0", 1, 1)
    assert math.isnan(last["sum"])


def test_answers_to_unknown_questions_count_in_means() -> None:
    report = report_of([answer(run, q, t, 3) for run, t in (("x", 4), ("y", 2)) for q in ("", "", "q1")])
    assert [(one["n"], one["unparsed"], one["sum"]) for one in report.table] == [(3, 0, 7), (3, 0, 5)]


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(0, 5), st.sampled_from([None, 1, 1.5, 3, 4.5, 5])),
        min_size=1,
        max_size=15,
        unique_by=lambda row: row[:2],
    ),
    st.randoms(),
)
def test_the_order_of_lines_does_not_matter_and_nothing_is_lost(
    given_rows: list[tuple[str, int, float | None]], chance: random.Random
) -> None:
    rows = [answer(run, f"q{n}", t, t) for run, n, t in given_rows]
    shuffled = rows.copy()
    chance.shuffle(shuffled)
    report = report_of(rows)
    assert report.to_json() == report_of(shuffled).to_json()
    assert sum(one["n"] for one in report.table) == len(rows)


def test_questions_answered_only_by_others_are_counted_and_reported() -> None:
    rows = [answer("a", "q1", 5, 5), answer("b", "q1", 4, 4), answer("b", "q2", None, None)]
    rows += [answer("c", "", 2, 2), answer("b", "q3", 1, 1)]
    assert report_of(rows).notes == (
        "a: no answer to 2 questions that other systems answered; its means cover only the questions that "
        "it answered",
    )


# Published answers of a closed-book baseline and a naive RAG system, 256 each, with a judge's scores.


NAMES = ("K_f.naive_rag", "K_f.baseline")


@pytest.fixture(scope="module")
def paths() -> dict[str, Path]:
    return {name: outside(f"ragval/{name}.jsonl.gz") for name in NAMES}


@pytest.fixture(scope="module")
def published(paths: dict[str, Path]) -> dict[str, list[dict[str, float]]]:
    return {
        name: [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        for name, path in paths.items()
    }


def test_the_recorded_means_are_reproduced_exactly(
    paths: dict[str, Path], published: dict[str, list[dict[str, float]]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ragval", "report", *map(str, paths.values())]) == 0
    header, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert [row[0] for row in rows] == list(NAMES)
    for row in rows:
        shown = dict(zip(header, row, strict=True))
        lines = published[shown["run_id"]]
        assert (shown["n"], shown["unparsed"]) == ("256", "0")
        means = {key: sum(line[key] for line in lines) / 256 for key in ("truthfulness", "relevance")}
        for key, mean in (*means.items(), ("sum", sum(means.values()))):
            assert shown[key] == f"{mean:.4f}"
        for key in ("n_input_tokens", "n_output_tokens"):
            assert shown[key] == str(sum(line[key] for line in lines))


def test_replaying_the_recorded_scores_gives_the_recorded_report(
    published: dict[str, list[dict[str, Any]]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("httpx2")
    from ragval import make_track
    from scripted_server import Exchange, serving
    from text_files import put_rows

    # Some blocks are duplicates; a question is in a bank once.
    slices = {
        name: list({row["question"]: row for row in rows}.values())[:24] for name, rows in published.items()
    }
    said = {(row["question"], row["answer"]): row for rows in slices.values() for row in rows}
    prompt = re.compile(r"User query: (.*)\n\nChatbot generated answer: (.*)\n\nKnowledge block: ", re.DOTALL)

    def recorded(exchange: Exchange) -> None:
        found = prompt.match(exchange.prompt)
        assert found is not None
        row = said[found[1], found[2]]
        exchange.say(json.dumps({key: row[key] for key in ("relevance", "truthfulness")}))

    with serving(recorded) as server:
        root = make_track(tmp_path / "track", server.url)
        (root / "trecexam.toml").write_text(
            (root / "trecexam.toml").read_text().replace('key_env = "TEST_KEY"\n', "")
        )
        asked = [
            {key: row[key] for key in ("title", "content", "url", "date", "question")}
            for row in slices[NAMES[0]]
        ]
        put_rows(root / "bank.questions.jsonl", *asked)
        own = ("question", "answer", "n_input_tokens", "n_output_tokens")
        for name, rows in slices.items():
            put_rows(root / "runs" / f"{name}.jsonl", *({key: row[key] for key in own} for row in rows))
            put_rows(tmp_path / f"{name}.jsonl", *rows)
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 48
    capsys.readouterr()
    ours = (root / "out" / "ragval" / "report.tsv").read_text()
    assert run(["ragval", "report", *(str(tmp_path / f"{name}.jsonl") for name in NAMES)]) == 0
    assert capsys.readouterr().out == ours
    assert len(ours.splitlines()) == 3


def test_the_numbers_on_the_results_page_equal_the_report(
    paths: dict[str, Path], published: dict[str, list[dict[str, float]]]
) -> None:
    page = (ROOT / "tests" / "benchmarks" / "results" / "ragval.md").read_text()
    report = ragval_report(*paths.values())
    for one, shown in zip(report.board.rows, report.table, strict=True):
        for name in SCORES:
            score = one.scores[name]  # type: ignore[call-overload]
            low, high = interval(score, one.n_answered)
            assert f"{score.mean:.4f} ({low:.2f} to {high:.2f})" in page
        assert f"{shown['n_input_tokens']:,}" in page
        assert f"{shown['n_output_tokens']:,}" in page
    assert report.notes == ()
    # The files have the same questions in the same order.
    rag, closed = (published[name] for name in NAMES)
    assert [line["question"] for line in rag] == [line["question"] for line in closed]
    total = np.zeros(256)
    for name in ("truthfulness", "relevance"):
        test = stats.ttest_rel(*([line[name] for line in lines] for lines in (rag, closed)))
        difference = np.array([a[name] - b[name] for a, b in zip(rag, closed, strict=True)])
        assert f"| {name} | {difference.mean():.4f} (" in page
        assert f"| {test.pvalue:.1e} |" in page
        total += difference
    assert f"| sum | {total.mean():.4f} (" in page
