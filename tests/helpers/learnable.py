"""A track for learning, and an encoder that needs no model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from support import read_jsonl, write_jsonl

import trecexam
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder


class WordEncoder:
    """Encodes a text as the mean of its words' vectors, which depend only on the words."""

    model = "words"
    identity: Mapping[str, object] = {"words": 1}

    def __init__(self, *_: object) -> None:
        self.encoded: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.encoded.extend(texts)
        means = np.array([np.mean([vector(word) for word in text.split()], axis=0) for text in texts])
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def fit_once(patch: pytest.MonkeyPatch) -> None:
    """Makes logistic regressions of the same numbers be fitted once, for tests learn the same tracks."""
    from sklearn.linear_model import LogisticRegression

    fitted: dict[bytes, dict[str, object]] = {}
    fit = LogisticRegression.fit

    def remembered(model: LogisticRegression, table: object, *targets: np.ndarray) -> LogisticRegression:
        dense = table.toarray() if hasattr(table, "toarray") else np.ascontiguousarray(table)
        key = repr((dense.shape, model.C, model.max_iter)).encode()
        key += b"".join(array.tobytes() for array in (dense, *targets))
        if key not in fitted:
            fitted[key] = vars(fit(model, table, *targets))
        vars(model).update(fitted[key])
        return model

    patch.setattr(LogisticRegression, "fit", remembered)


def queries_of(root: Path) -> tuple[QueryPassages, ...]:
    """What is learned from on a track."""
    with OpenTrack(open_folder(root)) as opened:
        return gather_data(opened.first.load(bank_needed=False)).queries


def grade_by(
    root: Path, rating: Callable[[str], int], docs: Iterable[str] | None = None, **more: str
) -> None:
    """Records a rating for each passage, or each of `docs`, and grades the track by this recording."""
    rows = []
    for doc in docs or [row["docid"] for row in read_jsonl(root / "passages.jsonl")]:
        query = doc.split("-")[0]
        cell = {"query_id": query, "doc_id": doc, "item_id": f"{query}/1"}
        rows.append({**cell, "rating": rating(doc), **more})
    write_jsonl(root / "grades.jsonl", rows)
    config = root / "trecexam.toml"
    grader = '\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n'
    config.write_text(config.read_text().replace(grader, "") + grader)
    with trecexam.open_track(root) as track:
        track.grading.grade()


def vector(word: str) -> np.ndarray:
    rng = np.random.default_rng(int.from_bytes(hashlib.md5(word.encode()).digest()[:4]))
    drawn = rng.normal(size=16)
    return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def make_learnable(
    root: Path, *, queries: int = 5, docs: int = 14, labels: int = 3, runs: str = "abcd", hidden: int = 3
) -> Path:
    """A track whose passages are relevant in proportion to the words they share with their query.

    Args:
        hidden: one in this many is not judged.
    """
    rng = np.random.default_rng(5)
    names = [f"q{at}" for at in range(queries)]
    passages, qrels, rankings = [], [], {name: [] for name in runs}
    for q in names:
        ids = [f"{q}-d{at:02}" for at in range(docs)]
        relevant = rng.integers(0, labels, size=docs)
        for at, doc in enumerate(ids):
            words = [f"{q}{letter}" for letter in "abc"][: relevant[at] + 1] * 3 + [
                f"x{rng.integers(40)}"
            ] * 3
            passages.append({"docid": doc, "text": " ".join([*words, doc])})
            if at % hidden:
                qrels.append(f"{q} 0 {doc} {relevant[at]}\n")
        for number, name in enumerate(rankings):
            order = np.argsort(-(relevant + rng.normal(size=docs) * (number + 0.5)))
            rankings[name] += [
                f"{q} Q0 {ids[at]} {rank} {99 - rank} {name}\n" for rank, at in enumerate(order[:12], 1)
            ]
    asked = {q: (f"{q}a", f"what of {q}a and {q}b") for q in names}
    config = "[track]\ndepth = 12\n\n[scores]\nmin_relevant = 2\n"
    return _written(root, asked, passages, qrels, rankings, config)


def _written(
    root: Path,
    asked: Mapping[str, tuple[str, str]],
    passages: Sequence[Mapping[str, str]],
    qrels: Sequence[str],
    rankings: Mapping[str, Sequence[str]],
    config: str,
) -> Path:
    """Write a track.

    Args:
        asked: query_id -> the query's text in the bank, and its one question.
        rankings: run -> its lines.
    """
    (root / "runs").mkdir(parents=True)
    (root / "queries.tsv").write_text("".join(f"{q}\t{q}a {q}b {q}c\n" for q in asked))
    bank = (
        {
            "query_id": q,
            "query_text": text,
            "questions": [{"question_id": f"{q}/1", "question_text": question}],
        }
        for q, (text, question) in asked.items()
    )
    write_jsonl(root / "bank.questions.jsonl", bank)
    write_jsonl(root / "passages.jsonl", passages)
    (root / "qrels.txt").write_text("".join(qrels))
    (root / "grades.jsonl").write_text("")
    for run, lines in rankings.items():
        (root / "runs" / f"{run}.run").write_text("".join(lines))
    (root / "trecexam.toml").write_text(config)
    return root
