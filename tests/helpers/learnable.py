"""A track that can be learned from, and an encoder that needs no model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from trecexam.graders.fixed_shapes import EncodedText


class WordEncoder:
    """Encodes a text as the mean of its words' vectors, which hang on the words alone."""

    name = "words"
    identity: Mapping[str, object] = {"words": 1}

    def __init__(self, *_: object) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]:
        for text in texts:
            self.encoded.append(text)
            tokens = np.array([vector(word) for word in text.split()], np.float32)
            mean = tokens.mean(axis=0)
            yield text, EncodedText(mean / np.linalg.norm(mean), tokens)


def vector(word: str) -> np.ndarray:
    rng = np.random.default_rng(int.from_bytes(hashlib.md5(word.encode()).digest()[:4]))
    drawn = rng.normal(size=16)
    return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def make_learnable(
    root: Path, *, queries: int = 5, docs: int = 14, labels: int = 3, runs: str = "abcd"
) -> Path:
    """A track whose passages are as relevant as they have words of their query; two of three are judged."""
    root.mkdir(parents=True)
    rng = np.random.default_rng(5)
    names = [f"q{at}" for at in range(queries)]
    (root / "queries.tsv").write_text("".join(f"{q}\t{q}a {q}b {q}c\n" for q in names))
    (root / "bank.questions.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "query_id": q,
                    "query_text": f"{q}a",
                    "questions": [{"question_id": f"{q}/1", "question_text": f"what of {q}a and {q}b"}],
                }
            )
            + "\n"
            for q in names
        )
    )
    passages, qrels, rankings = [], [], {name: [] for name in runs}
    for q in names:
        ids = [f"{q}-d{at:02}" for at in range(docs)]
        relevant = rng.integers(0, labels, size=docs)
        for at, doc in enumerate(ids):
            words = [f"{q}{letter}" for letter in "abc"][: relevant[at] + 1] * 3 + [
                f"x{rng.integers(40)}"
            ] * 3
            passages.append({"docid": doc, "text": " ".join([*words, doc])})
            if at % 3:
                qrels.append(f"{q} 0 {doc} {relevant[at]}\n")
        for number, name in enumerate(rankings):
            order = np.argsort(-(relevant + rng.normal(size=docs) * (number + 0.5)))
            rankings[name] += [
                f"{q} Q0 {ids[at]} {rank} {99 - rank} {name}\n" for rank, at in enumerate(order[:12], 1)
            ]
    (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in passages))
    (root / "qrels.txt").write_text("".join(qrels))
    (root / "grades.jsonl").write_text("")
    (root / "runs").mkdir()
    for name, lines in rankings.items():
        (root / "runs" / f"{name}.run").write_text("".join(lines))
    (root / "trecexam.toml").write_text("[track]\ndepth = 12\n\n[scores]\nmin_relevant = 2\n")
    return root
