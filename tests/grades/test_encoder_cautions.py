"""The warning about runs that rank like the grader's encoder."""

from __future__ import annotations

import hashlib
import html
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from support import HashGrader, make_small_track, write_run

import trecexam
from trecexam.graders import Answer, Cell

QUERIES, DOCS = 10, 30
CAUTION = (
    "passages much in the order of the grader's encoder, so scores are likely too high: fused, same; leave "
    "such runs out, or use another grader"
)


def cosine(text: str, item: str) -> float:
    return round(int(hashlib.md5(f"{text}|{item}".encode()).hexdigest()[:6], 16) / 16**6, 4)


class CosineGrader(HashGrader):
    """Grades by numbers in place of cosines."""

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for cell in cells:
            value = cosine(cell.text, cell.item.text)
            yield [(cell, Answer(int(value * 6), "ok", f"{value:.4f}"))]

    def cosines(self, answers: Sequence[str]) -> np.ndarray:
        return np.array(answers, np.float64)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve runs unrelated to the grader, one that ranks like it, one that does so in part."""
    root = make_small_track(tmp_path / "track", queries=QUERIES, docs=DOCS, items=2, config="[track]\n")
    for path in (root / "runs").iterdir():
        path.unlink()
    rng = random.Random(4)
    docs = {f"q{n}": [f"q{n}-d{d:02}" for d in range(DOCS)] for n in range(1, QUERIES + 1)}

    def highest(query_id: str, doc_id: str) -> float:
        text = f"passage {int(doc_id[-2:])} about {query_id}"
        return max(cosine(text, f"question {i} of {query_id}?") for i in range(2))

    for number in range(12):
        rankings = {query_id: rng.sample(ids, DOCS) for query_id, ids in docs.items()}
        write_run(root / "runs" / f"other{number}.run", rankings)
    same = {q: sorted(ids, key=lambda doc_id, q=q: -highest(q, doc_id)) for q, ids in docs.items()}
    write_run(root / "runs" / "same.run", same)
    ranks = {
        q: {doc_id: rng.randrange(DOCS // 3) + ids.index(doc_id) for doc_id in ids} for q, ids in same.items()
    }
    fused = {q: sorted(ids, key=lambda doc_id, q=q: ranks[q][doc_id]) for q, ids in docs.items()}
    write_run(root / "runs" / "fused.run", fused)
    return root


def test_runs_similar_to_the_encoder_are_reported_wherever_the_leaderboard_is_shown(root: Path) -> None:
    with trecexam.open_track(root, grader=CosineGrader()) as track:
        track.update()
        assert CAUTION in track.leaderboard().notes
        assert CAUTION in track.leaderboard(["P@5"]).notes
        assert CAUTION not in track.leaderboard(official=True).notes
    assert CAUTION in html.unescape((root / "out" / "report.html").read_text())


def test_the_warning_depends_on_the_runs_and_needs_enough_of_them(root: Path) -> None:
    with trecexam.open_track(root, grader=CosineGrader()) as track:
        track.update()
        (root / "runs" / "fused.run").unlink()
        track.update()
        (line,) = (line for line in track.leaderboard().notes if "encoder" in line)
        assert "too high: same; " in line
        # Five passages may be in that order by chance.
        lines = (root / "runs" / "same.run").read_text().splitlines(keepends=True)
        (root / "runs" / "same.run").write_text("".join(lines[:5]))
        assert not any("encoder" in line for line in track.leaderboard().notes)
