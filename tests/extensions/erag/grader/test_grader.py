"""The `erag` grader with a local model, and on a cluster worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import save_llama, save_t5

from converters.records import Item
from trecexam.bank.model import asked_digest, item_digest
from trecexam.config import GraderSection
from trecexam.extensions.cluster.remote import recipe_of
from trecexam.graders import Cell, create
from trecexam.graders.base import identity_digest

GOLD = Item("q1", "q1/gold", "Paris", "gold", ("Paris", "paris, France"), query_text="where is it")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    save_llama(root / "llama")
    save_t5(root / "t5")
    return root


def section(models: Path, **settings: Any) -> GraderSection:
    words = {"name": "erag", "model": str(models / "llama"), "device": "cpu", "dtype": "float32"}
    return GraderSection.model_validate({**words, "max_new_tokens": 6, **settings})


def made(models: Path, root: Path | None = None, **settings: Any) -> Any:
    return create(section(models, **settings), root or models, trust_code=True)


def cell(text: str, doc_id: str = "d1", item: Item = GOLD) -> Cell:
    return Cell("q1", "where is it", doc_id, text, item)


def answers(grader: Any, *cells: Cell) -> dict[str, tuple[str, str]]:
    return {
        found.doc_id: (answer.status, answer.raw) for batch in grader.grade(cells) for found, answer in batch
    }


@pytest.mark.parametrize("model", ["llama", "t5"])
def test_a_local_model_answers_from_one_document_at_a_time(models: Path, model: str) -> None:
    cells = [cell(f"The passage number {n} of it.", f"d{n}") for n in range(5)]
    together = answers(made(models, model=str(models / model)), *cells)
    alone: dict[str, tuple[str, str]] = {}
    for one in reversed(cells):
        alone |= answers(made(models, model=str(models / model), max_batch_tokens=1), one)
    assert together == alone
    # A tiny model never ends its answer.
    assert {status for status, _ in together.values()} == {"unparsed"}


def test_a_document_is_cut_at_its_end_to_fit_the_model(models: Path) -> None:
    grader = made(models, max_length=80)
    long = "question number of it " * 100
    found = answers(grader, cell("short", "d1"), cell(long, "d2"), cell(f"who {long}", "d3"))
    assert grader.cut == 2
    assert {status for status, _ in found.values()} == {"unparsed"}
    # A query that fills the context is an error of its cell.
    full = Cell("q1", "question number of it " * 60, "d1", "a document", GOLD)
    assert answers(grader, full)["d1"][0] == "error"
    prompt, cut = grader.prompt(cell(long))
    assert cut
    assert prompt.rstrip().endswith("Query: where is it\n\nAnswer:")
    assert 0 < len(prompt.partition("Document: ")[2].partition("\n\nQuery")[0]) < len(long)


def test_the_identity_has_prompt_and_model_and_no_metric(models: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('template = "{query}: {document}"\n')
    base = identity_digest(made(models).identity)
    assert identity_digest(made(models, metric="f1", max_batch_tokens=9).identity) == base
    own = identity_digest(made(models, tmp_path, prompt="own.toml").identity)
    (tmp_path / "own.toml").write_text('template = "{query}: {document}"\nversion = 2\n')
    again = identity_digest(made(models, tmp_path, prompt="own.toml").identity)
    assert len({base, own, again}) == 3
    assert identity_digest(made(models, max_new_tokens=7).identity) != base


def test_stored_outputs_are_keyed_by_the_query_not_by_its_gold_outputs() -> None:
    mended = GOLD._replace(text="Lyon", gold_answers=("Lyon",))
    other = GOLD._replace(query_text="who is it")
    assert asked_digest(GOLD) == asked_digest(mended) != asked_digest(other)
    assert item_digest(GOLD) != item_digest(mended)
    question = Item("q1", "q1/1", "Paris")
    assert asked_digest(question) == item_digest(question)


def test_a_cluster_worker_makes_the_same_grader_without_the_custom_metric(
    models: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def metric(output, gold):\n    return 0.5\n")
    (tmp_path / "own.toml").write_text('template = "{query}: {document}"\n')
    own = {"metric": "mine:metric", "prompt": "own.toml"}
    grader = made(models, tmp_path, **own)
    worker = recipe_of(grader, section(models, **own), tmp_path)()
    cells = [cell(f"Passage {n}.", f"d{n}") for n in range(3)]
    there = zip(cells, worker(cells)[0], strict=True)
    given = {cell.doc_id: (answer.status, answer.raw) for cell, answer in there if answer is not None}
    assert given == answers(grader, *cells)
