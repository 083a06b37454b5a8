"""The offline grader of support: compares a sentence with the most similar window of the passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.errors import ConversionError
from converters.records import Item
from converters.segment import segments
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders import Cell
from trecexam.inputs.kinds.support_graders import WINDOW, SupportEmbedding, create_recorded

WORDS = ["heat", "pump", "cold", "sea", "salt", "bee"]


class CountedWords(SupportEmbedding):
    """Its vectors count words, so that a cosine can be computed by hand."""

    def embed(self, texts: Sequence[str]) -> Any:
        counts = np.array([[text.count(word) for word in WORDS] for text in texts], np.float32)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def cell(text: str, statement: str) -> Cell:
    return Cell("q", "", "d", text, Item("q", "r/q/1", statement, "statement"))


def answers(*cells: Cell, cuts: tuple[float, ...] = (0.5, 0.9)) -> list[tuple[int | None, str]]:
    grader = CountedWords(Path("none"), cuts)
    graded = {cell: (answer.rating, answer.raw) for batch in grader.grade(cells) for cell, answer in batch}
    return [graded[cell] for cell in cells]


def test_the_best_window_of_a_passage_decides() -> None:
    about_sea = "The sea and the sea, bee. " * 20
    passage = f"{about_sea} A heat pump is a heat pump."
    assert len(segments(passage, WINDOW)) > 1
    ((rating, answer),) = answers(cell(passage, "heat pump"))
    counts = np.array(
        [[part.count(word) for word in WORDS] for part in (passage, *segments(passage, WINDOW))]
    )
    asked = np.array([1, 1, 0, 0, 0, 0])
    cosines = counts @ asked / np.linalg.norm(counts, axis=1) / np.linalg.norm(asked)
    assert float(answer) == pytest.approx(cosines.max(), abs=1e-4)
    assert rating == sum(cosines.max() >= cut for cut in (0.5, 0.9))
    assert cosines.max() > cosines[0]


def test_ratings_are_none_partial_and_full_whatever_the_batches() -> None:
    cells = [
        cell("heat pump", "heat pump"),
        cell("heat cold", "heat pump"),
        cell("sea", "heat"),
        cell("heat", "heat"),
    ]
    assert [rating for rating, _ in answers(*cells)] == [2, 1, 0, 2]


def test_a_passage_cited_by_many_sentences_is_embedded_once_and_batches_are_small() -> None:
    texts = [f"heat pump {n}." for n in range(5)]
    cells = [cell(text, f"pump {place}") for place in range(700) for text in texts]
    grader = CountedWords(Path("none"), (0.5, 0.9))
    embedded: list[str] = []
    embed = grader.embed

    def noting(given: Sequence[str]) -> Any:
        embedded.extend(given)
        return embed(given)

    grader.embed = noting  # type: ignore[method-assign]
    batches = list(grader.grade(iter(cells)))
    assert sorted(cell for batch in batches for cell, _ in batch) == sorted(cells)
    assert max(len(batch) for batch in batches) <= 1000
    # Texts at the end of a batch are embedded twice.
    assert sum(text in texts for text in embedded) < 5 + len(batches)


HEADER = "run\tquery_id\tsentence\tdoc_id\tlabel\n"


def test_recorded_labels_are_matched_by_sentence_and_passage_and_others_stay_ungraded(tmp_path: Path) -> None:
    file = tmp_path / "labels.tsv"
    file.write_text(f"{HEADER}a/b\tq\t2\td\tpartial_support\nx\tq\t1\t\tuncited\na/b\tq\t2\td\tno_support\n")
    grader = create_recorded(GraderSection(name="recorded", recorded="labels.tsv"), tmp_path)
    cells = [
        Cell("q", "", doc_id, "text", Item("q", item_id, "A sentence.", "statement"))
        for item_id, doc_id in (("a/b/q/2", "d"), ("a/b/q/2", "e"), ("a/b/q/1", "d"))
    ]
    assert [(cell, answer.rating) for batch in grader.grade(cells) for cell, answer in batch] == [
        (cells[0], 1)
    ]
    before = grader.identity
    file.write_text(f"{HEADER}x\tq\t1\td\tno_support\n")
    assert create_recorded(GraderSection(name="recorded", recorded="labels.tsv"), tmp_path).identity != before


@pytest.mark.parametrize(
    ("settings", "content", "message"),
    [
        ({}, None, 'needs `recorded = "FILE"`'),
        ({"recorded": "labels.tsv"}, None, "labels.tsv: "),
        ({"recorded": "labels.tsv"}, "run\tlabel\n", "labels.tsv:1: no column `query_id`"),
        ({"recorded": "labels.tsv"}, f"{HEADER}x\tq\t1\td\tfair\n", "labels.tsv:2: 'fair' is not a label"),
    ],
)
def test_an_unusable_recording_is_a_one_line_error(
    tmp_path: Path, settings: dict[str, Any], content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "labels.tsv").write_text(content)
    with pytest.raises((GraderError, ConversionError), match=re.escape(message)):
        grade_recorded(tmp_path, **settings)


def grade_recorded(root: Path, **settings: Any) -> None:
    grader = create_recorded(GraderSection(name="recorded", **settings), root)
    assert grader.identity
    list(grader.grade([cell("text", "A sentence.")]))
