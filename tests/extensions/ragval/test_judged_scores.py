from __future__ import annotations

import gzip
import json
import math
import random
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from scipy import stats

from trecexam.cli.main import run
from trecexam.extensions.ragval.formats.answers import AnswerRow
from trecexam.extensions.ragval.reporting import SCORES, report_of


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
