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
from trecexam.extensions.ragval.formats.answers import JudgedAnswer
from trecexam.extensions.ragval.judged_scores import SCORES, System, compare, places, systems_of
from trecexam.extensions.ragval.reporting import ragval_report, remarks


def answer(
    run: str,
    question: str,
    t: float | None,
    r: float | None,
    tokens: tuple[int | None, int | None] = (None, None),
) -> JudgedAnswer:
    return JudgedAnswer(
        question, "", run, n_input_tokens=tokens[0], n_output_tokens=tokens[1], truthfulness=t, relevance=r,
        status="unparsed" if t is None else "ok",
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[JudgedAnswer]:
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


def scored(rows: list[JudgedAnswer], run: str, name: str) -> dict[str, float]:
    return {
        row.question_id: {"truthfulness": row.truthfulness, "relevance": row.relevance}.get(
            name, row.truthfulness + row.relevance
        )
        for row in rows
        if row.run_id == run and row.truthfulness is not None and row.relevance is not None
    }  # type: ignore[return-value]


def test_means_and_intervals_equal_scipy_over_answers_with_scores(
    rows: list[JudgedAnswer],
) -> None:
    systems = systems_of(rows)
    assert [one.run_id for one in systems] == ["a", "b", "c", "d"]
    for one in systems:
        mine = [row for row in rows if row.run_id == one.run_id]
        assert one.n == len(mine)
        assert one.unparsed == sum(row.truthfulness is None for row in mine)
        for name in SCORES:
            values = list(scored(rows, one.run_id, name).values())
            mean = one.mean(name)
            assert mean.n == len(values) == one.n - one.unparsed
            assert mean.mean == pytest.approx(statistics.fmean(values))
            assert mean.sd == pytest.approx(statistics.stdev(values))
            low, high = stats.t.interval(0.95, len(values) - 1, statistics.fmean(values), stats.sem(values))
            assert (mean.low, mean.high) == pytest.approx((low, high))


def test_tokens_are_summed_over_all_answers_and_missing_counts_are_counted(rows: list[JudgedAnswer]) -> None:
    for one in systems_of(rows):
        mine = [row for row in rows if row.run_id == one.run_id]
        assert one.input_tokens.total == sum(row.n_input_tokens or 0 for row in mine)
        assert one.output_tokens.total == sum(row.n_output_tokens or 0 for row in mine)
        assert one.input_tokens.missing == 0
        assert one.output_tokens.missing == sum(row.n_output_tokens is None for row in mine)
    (bare,) = systems_of([answer("x", "q", 1, 1)])
    assert (bare.input_tokens.total, bare.input_tokens.missing) == (None, 1)


def test_pairs_are_compared_on_shared_questions_by_paired_t_test_and_holm(rows: list[JudgedAnswer]) -> None:
    found = compare(systems_of(rows))
    assert len(found) == 3 * 6
    for name in SCORES:
        mine = [one for one in found if one.score == name]
        raw = []
        for one in mine:
            first, second = scored(rows, one.run_a, name), scored(rows, one.run_b, name)
            shared = sorted(first.keys() & second.keys())
            a, b = ([side[q] for q in shared] for side in (first, second))
            test = stats.ttest_rel(a, b)
            assert one.n == len(shared) < 30
            assert one.difference == pytest.approx(statistics.fmean(a) - statistics.fmean(b))
            assert one.p == pytest.approx(test.pvalue)
            assert (one.low, one.high) == pytest.approx(tuple(test.confidence_interval(0.95)))
            raw.append(one.p)
        highest = 0.0
        for place, number in enumerate(np.argsort(raw)):
            highest = min(1.0, max(highest, (len(raw) - place) * raw[number]))
            assert mine[number].p_holm == pytest.approx(highest)


def test_the_relative_position_is_linear_between_baseline_and_oracle(
    rows: list[JudgedAnswer],
) -> None:
    found = places(systems_of(rows), "d", "a")
    assert {one.run_id for one in found} == {"b", "c"}
    for one in found:
        sides = [scored(rows, run, one.score) for run in (one.run_id, "d", "a")]
        shared = set.intersection(*(set(side) for side in sides))
        own, low, high = (statistics.fmean(side[q] for q in shared) for side in sides)
        assert one.n == len(shared)
        assert (one.mean, one.baseline, one.oracle) == pytest.approx((own, low, high))
        assert one.place == pytest.approx((own - low) / (high - low))


def test_with_a_missing_or_reversed_bound_there_is_no_relative_position(
    rows: list[JudgedAnswer],
) -> None:
    systems = systems_of(rows)
    assert places(systems, None, None) == ()
    assert all(math.isnan(one.place) for one in places(systems, "a", "d"))
    for one in places(systems, "d", None):
        assert math.isnan(one.oracle)
        assert math.isnan(one.place)
        assert one.baseline < 5


def test_a_system_without_scores_is_last_and_has_no_mean(rows: list[JudgedAnswer]) -> None:
    systems = systems_of([answer("0", "q1", None, None), *rows])
    last = systems[-1]
    assert (last.run_id, last.n, last.unparsed) == ("0", 1, 1)
    assert math.isnan(last.mean("sum").mean)
    pairs = [one for one in compare(systems) if "0" in (one.run_a, one.run_b)]
    assert len(pairs) == 3 * 4
    assert all(one.n == 0 and math.isnan(one.p) and math.isnan(one.difference) for one in pairs)


def test_one_question_gives_no_interval_and_constant_differences_no_test() -> None:
    (one,) = systems_of([answer("x", "q", 4, 5)])
    assert (one.mean("sum").mean, one.mean("sum").n) == (9, 1)
    assert math.isnan(one.mean("sum").low)
    systems = systems_of([answer(run, f"q{n}", t, 3) for n in range(5) for run, t in (("x", 4), ("y", 3))])
    same = next(one for one in compare(systems) if one.score == "truthfulness")
    assert (same.difference, same.low, same.high) == (1, 1, 1)
    assert math.isnan(same.p)


def test_answers_to_unknown_questions_count_in_means_but_in_no_pair() -> None:
    systems = systems_of([answer(run, q, t, 3) for run, t in (("x", 4), ("y", 2)) for q in ("", "", "q1")])
    assert [one.mean("truthfulness").n for one in systems] == [3, 3]
    assert {one.n for one in compare(systems)} == {1}


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(0, 5), st.sampled_from([None, 1, 1.5, 3, 4.5, 5])),
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

    def seen(systems: tuple[System, ...]) -> list[object]:
        return [
            [(one.run_id, one.n, one.unparsed, repr(one.mean("sum"))) for one in systems],
            [repr(one) for one in compare(systems)],
        ]

    systems = systems_of(rows)
    assert seen(systems) == seen(systems_of(shuffled))
    assert sum(one.n for one in systems) == len(rows)
    for one in systems:
        found = [one.mean(name).mean for name in SCORES]
        if not math.isnan(found[2]):
            assert found[2] == pytest.approx(found[0] + found[1])


def test_questions_answered_only_by_others_are_counted_and_reported() -> None:
    rows = [answer("a", "q1", 5, 5), answer("b", "q1", 4, 4), answer("b", "q2", None, None)]
    rows += [answer("c", "", 2, 2), answer("b", "q3", 1, 1)]
    systems = systems_of(rows)
    assert {one.run_id: one.unanswered for one in systems} == {"a": 2, "b": 0, "c": 0}
    assert (
        "a: no answer to 2 questions that other systems answered; its means cover only the questions that "
        "it answered" in list(remarks(systems))
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
        assert shown["n_retrieved"] == str(sum(bool(line["retrieved"]) for line in lines))


def test_the_systems_are_compared_question_by_question(
    paths: dict[str, Path], published: dict[str, list[dict[str, float]]]
) -> None:
    report = ragval_report(*paths.values())
    rag, closed = (published[name] for name in NAMES)
    # The files have the same questions in the same order.
    assert [line["question"] for line in rag] == [line["question"] for line in closed]
    for one in report.comparisons[:2]:
        assert (one.run_a, one.run_b, one.n) == (*NAMES, 256)
        test = stats.ttest_rel(*([line[one.score] for line in lines] for lines in (rag, closed)))
        assert one.p == pytest.approx(test.pvalue, rel=1e-6)
        assert (one.low, one.high) == pytest.approx(tuple(test.confidence_interval()))
    assert [note.split(": ")[1] for note in report.notes] == [
        "6 of 256 answers are to a question that was answered before (by its text, as they have no ids); "
        "each counts"
    ] * 2


def test_the_numbers_on_the_results_page_equal_the_report(paths: dict[str, Path]) -> None:
    page = (ROOT / "tests" / "benchmarks" / "results" / "ragval.md").read_text()
    report = ragval_report(*paths.values())
    for one in report.systems:
        for name in ("truthfulness", "relevance", "sum"):
            mean = one.mean(name)
            assert f"{mean.mean:.4f} ({mean.low:.2f} to {mean.high:.2f})" in page
        assert f"{one.input_tokens.total:,}" in page
        assert f"{one.output_tokens.total:,}" in page
    for pair in report.comparisons:
        assert f"{pair.difference:.4f} ({pair.low:.2f} to {pair.high:.2f})" in page


def test_replaying_the_recorded_scores_gives_the_recorded_report(
    published: dict[str, list[dict[str, Any]]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("httpx2")
    from ragval import make_track, write_lines
    from scripted_server import Exchange, serving

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
        write_lines(root / "bank.questions.jsonl", asked)
        own = ("question", "answer", "retrieved", "n_input_tokens", "n_output_tokens")
        for name, rows in slices.items():
            write_lines(root / "runs" / f"{name}.jsonl", [{key: row[key] for key in own} for row in rows])
            write_lines(tmp_path / f"{name}.jsonl", rows)
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 48
    capsys.readouterr()
    ours = (root / "out" / "ragval" / "report.tsv").read_text()
    assert run(["ragval", "report", *(str(tmp_path / f"{name}.jsonl") for name in NAMES)]) == 0
    assert capsys.readouterr().out == ours
    assert len(ours.splitlines()) == 3
