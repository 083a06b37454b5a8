"""TREC DL 2019, read by naive code, and its tracks: 21 queries, 37 runs, FLAN-T5-large's recorded grades."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from trecexam.cli.main import run

FILES = {
    "--queries": "queries.tsv",
    "--bank": "bank.questions.jsonl.gz",
    "--passages": "passages.jsonl.gz",
    "--qrels": "qrels.txt",
    "--runs": "runs",
    "--recorded": "graded.flan-t5-large.jsonl.gz",
}
#: query -> document -> item -> rating
Ratings = Mapping[str, Mapping[str, Mapping[str, int]]]
#: run -> query -> documents, best first
Rankings = Mapping[str, Mapping[str, list[str]]]


@pytest.fixture(scope="session")
def new_track(dl19: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes an ungraded track, by `trecexam init` with these additional options."""

    def new_track(*options: str) -> Path:
        root = tmp_path_factory.mktemp("dl19") / "track"
        files = [part for option, name in FILES.items() for part in (option, str(dl19 / name))]
        assert run(["init", str(root), *files, *options]) == 0
        shutil.copy(dl19 / "official_leaderboard.json", root)
        return root

    return new_track


@pytest.fixture(scope="session")
def track(new_track: Callable[..., Path]) -> Path:
    """A graded track, read-only for tests."""
    root = new_track()
    assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.fixture(scope="session")
def all_judged(new_track: Callable[..., Path]) -> Path:
    """A graded track with all judged passages in the pool, read-only for tests."""
    root = new_track("--pool-judged")
    assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.fixture(scope="session")
def ratings(dl19: Path) -> Ratings:
    """All recorded ratings, directly from the workbench's file."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    with gzip.open(dl19 / "graded.flan-t5-large.jsonl.gz", "rt") as file:
        for query_id, paragraphs in map(json.loads, file):
            for paragraph in paragraphs:
                found.setdefault(query_id, {})[paragraph["paragraph_id"]] = {
                    r["question_id"]: r["self_rating"] for r in paragraph["exam_grades"][0]["self_ratings"]
                }
    return found


@pytest.fixture(scope="session")
def rankings(dl19: Path) -> Rankings:
    """All runs: scores descending in 64 bits, then docno descending."""

    found: dict[str, dict[str, list[str]]] = {}
    for path in (dl19 / "runs").iterdir():
        rows: dict[str, list[tuple[float, str]]] = {}
        for line in path.read_text().splitlines():
            query_id, _, doc_id, _, score, _ = line.split()
            rows.setdefault(query_id, []).append((float(score), doc_id))
        found[path.stem] = {q: [d for _, d in sorted(entries, reverse=True)] for q, entries in rows.items()}
    return found


@pytest.fixture(scope="session")
def judgments(dl19: Path) -> Mapping[tuple[str, str], int]:
    """(query, document) -> NIST's label."""
    rows = map(str.split, (dl19 / "qrels.txt").read_text().splitlines())
    return {(query_id, doc_id): int(label) for query_id, _, doc_id, label in rows}
