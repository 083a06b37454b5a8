"""Nuggets assigned to whole responses by a server, and the resulting TREC RAG scores."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("httpx2")

from assigning import assign, label_of, nuggets_in, passage_in
from scripted_server import serving

import trecexam
from trecexam.cli.main import run

Nuggets = Mapping[str, list[tuple[str, str]]]
QUERIES = [f"q{number}" for number in range(4)]


def nuggetizer_scores(assignments: list[str], importances: list[str]) -> dict[str, float]:
    """The scores of one answer by nuggetizer's `calculate_nugget_scores` and arXiv:2411.09607."""
    strict = [float(label == "support") for label in assignments]
    partial = [{"support": 1.0, "partial_support": 0.5}.get(label, 0.0) for label in assignments]
    vital = [importance == "vital" for importance in importances]
    weights = [1.0 if each else 0.5 for each in vital]

    def share(values: list[float], of: list[float]) -> float:
        total = sum(of)
        return sum(value * weight for value, weight in zip(values, of, strict=True)) / total if total else 0.0

    all_of_it = [1.0] * len(vital)
    return {
        "strict_vital_score": share(strict, [float(each) for each in vital]),
        "strict_all_score": share(strict, all_of_it),
        "strict_weighted_score": share(strict, weights),
        "vital_score": share(partial, [float(each) for each in vital]),
        "all_score": share(partial, all_of_it),
        "weighted_score": share(partial, weights),
    }


@pytest.fixture
def nuggets() -> Nuggets:
    rng = random.Random(21)
    # One query has more nuggets than fit into a call, one has no vital nugget.
    numbers = dict(zip(QUERIES, (3, 14, 10, 5), strict=True))
    return {
        query_id: [
            (f"Nugget {n} of {query_id}.", "okay" if query_id == "q3" else rng.choice(["vital", "okay"]))
            for n in range(numbers[query_id])
        ]
        for query_id in QUERIES
    }


@pytest.fixture
def root(tmp_path: Path, nuggets: Nuggets) -> Path:
    root = tmp_path / "track"
    (root / "runs").mkdir(parents=True)
    lines = (
        {"qid": query_id, "query": f"what of {query_id}?",
         "nuggets": [{"text": text, "importance": importance} for text, importance in listed]}
        for query_id, listed in nuggets.items()
    )  # fmt: skip
    (root / "bank.nuggets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("a", "b", "c"):
        # A system may skip a query.
        answered = QUERIES[: 3 if name == "c" else 4]
        rows = [
            {"run_id": name, "topic_id": query_id, "answer": [
                {"text": f"Sentence {n} of {name} on {query_id}.", "citations": []} for n in range(60)]}
            for query_id in answered
        ]  # fmt: skip
        (root / "runs" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def test_scores_of_whole_responses_equal_those_of_nuggetizer(root: Path, nuggets: Nuggets) -> None:
    with serving(assign) as server:
        (root / "trecexam.toml").write_text(
            '[track]\nunit = "response"\n[grader]\nname = "openai"\nmodel = "tiny"\nprompt = "NuggetAssign"\n'
            f'base_url = "{server.url}"\n'
        )
        assert run(["watch", str(root), "--once"]) == 0
        calls = [(passage_in(prompt), nuggets_in(prompt)) for prompt in server.seen]
    assert len(calls) == sum(server.seen.values()) == 3 * (1 + 2 + 1 + 1) - 1
    texts = {
        (name, query_id): " ".join(f"Sentence {n} of {name} on {query_id}." for n in range(60))
        for name in ("a", "b", "c")
        for query_id in QUERIES
    }
    assert {passage for passage, _ in calls} == {text for key, text in texts.items() if key != ("c", "q3")}
    expected: dict[tuple[str, str], dict[str, float]] = {}
    for (name, query_id), text in texts.items():
        importances = [importance for _, importance in nuggets[query_id]]
        labels = [label_of(nugget, text) for nugget, _ in nuggets[query_id]]
        labels = ["not_support"] * len(labels) if (name, query_id) == ("c", "q3") else labels
        expected[name, query_id] = nuggetizer_scores(labels, importances)
    measures = sorted(next(iter(expected.values())))
    with trecexam.open_track(root) as track:
        board = track.leaderboard(measures)
        default = [str(measure) for measure in track.leaderboard().measures][:2]
    assert default == ["all_score@20", "vital_score@20"]
    for row in board.rows:
        for measure, score in zip(measures, row.scores, strict=True):
            values = [expected[row.run, query_id][measure] for query_id in QUERIES]
            assert score.mean == pytest.approx(sum(values) / len(values), abs=1e-12)
    assert {row.run for row in board.rows} == {"a", "b", "c"}
    assert len({expected["a", query_id]["all_score"] for query_id in QUERIES}) > 1
