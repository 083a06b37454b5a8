"""Published answers of a closed-book baseline and a naive RAG system, 256 each, with a judge's scores."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from outside import outside
from scipy import stats
from support import ROOT

from trecexam.cli.main import run
from trecexam.extensions.ragval.reporting import ragval_report

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
