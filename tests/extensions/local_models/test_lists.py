"""Lists of labels that a local model writes: held to their length and to the labels, or free."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from exhaustive import made
from support import ask
from tiny_models import save_t5

from trecexam.errors import GraderError
from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.graders import Answer, Cell
from trecexam.graders.prompts import published

PROMPT = published()["NuggetAssign"]
LABELS = [label for label, _ in PROMPT.answers]
RATINGS = dict(PROMPT.answers)


@pytest.fixture(scope="module")
def folders(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    lists = "['support', 'partial_support', 'not_support', 'support'] " * 50
    t5 = save_t5(tmp_path_factory.mktemp("t5") / "t5", further=f"{PROMPT.system} {PROMPT.template} {lists}")
    return {**{name: models[name] for name in ("llama", "llama-base", "gpt2")}, "t5": t5}


MODELS = [("seq2seq", "t5"), ("causal", "llama"), ("causal", "llama-base"), ("causal", "gpt2")]


def cells_of(passages: int, nuggets: int) -> list[Cell]:
    return [
        ask(
            f"{passage} about this " * (passage + 1), f"n {place}", place, doc_id=f"d{passage}", kind="nugget"
        )
        for passage in range(passages)
        for place in range(nuggets)
    ]


def graded(grader: LanguageGrader, cells: Sequence[Cell]) -> dict[Cell, Answer]:
    pairs = [pair for batch in grader.grade(cells) for pair in batch]
    answers = dict(pairs)
    assert len(answers) == len(pairs)
    return {cell: answers[cell] for cell in cells}


@torch.inference_mode()
def next_scores(grader: LanguageGrader, prompt: Sequence[int], written: Sequence[int]) -> torch.Tensor:
    """The logits of the token after what is written, by one plain forward pass."""
    model: Any = grader.backend.model  # type: ignore[attr-defined]
    if grader.backend.name == "seq2seq":
        start = model.config.decoder_start_token_id
        decoder = torch.tensor([[start, *written]])
        return model(input_ids=torch.tensor([prompt]), decoder_input_ids=decoder).logits[0, -1].double()
    return model(input_ids=torch.tensor([[*prompt, *written]])).logits[0, -1].double()


def shares(
    grader: LanguageGrader, prompt: Sequence[int], written: list[int], ways: dict[str, list[int]], at: int = 0
) -> dict[str, float]:
    """P of each label, where only tokens count that a label goes on with, by going through all of them."""
    if len(ways) == 1:
        return dict.fromkeys(ways, 1.0)
    logits = next_scores(grader, prompt, written)
    tokens = sorted({way[at] for way in ways.values()})
    total = torch.logsumexp(logits[tokens], 0)
    found: dict[str, float] = {}
    for token in tokens:
        still = {label: way for label, way in ways.items() if way[at] == token}
        share = math.exp(float(logits[token] - total))
        deeper = shares(grader, prompt, [*written, token], still, at + 1)
        found |= {label: share * part for label, part in deeper.items()}
    return found


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_labels_and_their_probabilities_equal_plain_forward_passes(
    folders: dict[str, Path], name: str, model: str
) -> None:
    grader = made(folders[model], name, prompt="NuggetAssign")
    backend: Any = grader.backend
    cells = cells_of(2, 3)
    answers = graded(grader, cells)
    for start in (0, 3):
        call = cells[start : start + 3]
        items = [cell.item for cell in call]
        text = f"{PROMPT.system}\n\n{PROMPT.list_text(call[0].query_text, items, call[0].text)}"
        (prompt,) = backend.encode([text])
        spelled, written = "", []
        for place, cell in enumerate(call):
            opening = "['" if place == 0 else "', '"
            whole = {label: backend.answers([f"{spelled}{opening}{label}"])[0] for label in LABELS}
            for way in whole.values():
                assert way[: len(written)] == written
            ways = {label: way[len(written) :] for label, way in whole.items()}
            expected = shares(grader, prompt, written, ways)
            answer = answers[cell]
            best = max(expected, key=lambda label: expected[label])
            assert json.loads(answer.raw) == {"label": best, "place": place + 1, "of": 3}
            assert (answer.rating, answer.status) == (RATINGS[best], "ok")
            by_rating = {RATINGS[label]: share for label, share in expected.items()}
            assert answer.probabilities == pytest.approx([by_rating.get(n, 0) for n in range(6)], abs=1e-5)
            spelled, written = f"{spelled}{opening}{best}", written + ways[best]


@pytest.mark.parametrize(("name", "model"), MODELS[:2])
@pytest.mark.slow
def test_lists_are_bit_identical_in_every_batch_and_have_their_own_length(
    folders: dict[str, Path], name: str, model: str
) -> None:
    # One word more each: one prompt in 16 fills the rows of its tile, so that alone it is not padded.
    cells = [
        ask("about " * (passage + 1), f"n {place}", place, doc_id=f"d{passage}", kind="nugget")
        for passage in range(20)
        for place in range(2 if passage < 17 else 4)
    ]
    expected = graded(made(folders[model], name, prompt="NuggetAssign"), cells)
    assert {json.loads(answer.raw)["of"] for answer in expected.values()} == {4, 2}
    assert {answer.status for answer in expected.values()} == {"ok"}
    alone = made(folders[model], name, prompt="NuggetAssign")
    passages = [list(group) for _, group in groupby(cells, key=lambda cell: cell.doc_id)]
    found = {cell: answer for passage in passages for cell, answer in graded(alone, passage).items()}
    assert found == expected


def test_more_than_ten_nuggets_are_split_into_several_lists(folders: dict[str, Path]) -> None:
    grader = made(folders["llama"], "causal", prompt="NuggetAssign2")
    answers = graded(grader, cells_of(1, 13))
    assert [json.loads(answer.raw)["of"] for answer in answers.values()] == [10] * 10 + [3] * 3
    assert {answer.rating for answer in answers.values()} <= {0, 5}
    assert grader.identity["prompts"][0]["group"] == 10


@pytest.mark.parametrize(("name", "model"), MODELS[:2])
def test_a_custom_prompt_is_restricted_to_its_own_labels(
    folders: dict[str, Path], tmp_path: Path, name: str, model: str
) -> None:
    (tmp_path / "mine.toml").write_text(
        'template = "Passage: {context} Nugget List: {nuggets}"\nparser = "assignment"\ngroup = 2\n'
        "max_rating = 1\nanswers = { support = 1, not_support = 0 }\n"
    )
    grader = made(folders[model], name, prompt=str(tmp_path / "mine.toml"))
    answers = graded(grader, cells_of(1, 3))
    assert [json.loads(answer.raw)["of"] for answer in answers.values()] == [2, 2, 1]
    assert {answer.rating for answer in answers.values()} <= {0, 1}


def test_nuggets_that_leave_no_room_for_a_passage_are_asked_in_shorter_lists(
    folders: dict[str, Path],
) -> None:
    cells = [ask("a passage", f"{n} " + "support " * 30, n, kind="nugget") for n in range(8)]
    cells[7] = ask("a passage", "support " * 2_000, 7, kind="nugget")
    backend: Any = made(folders["t5"], "seq2seq", prompt="NuggetAssign").backend
    items = [cell.item for cell in cells[:3]]
    text = f"{PROMPT.system}\n\n{PROMPT.list_text('', items, 'a passage')}"
    room = len(backend.encode([text])[0])
    grader = made(folders["t5"], "seq2seq", prompt="NuggetAssign", max_length=room)
    answers = graded(grader, cells)
    assert [answer.status for answer in answers.values()] == ["ok"] * 7 + ["error"]
    assert [json.loads(answer.raw)["of"] for answer in [*answers.values()][:7]] == [2] * 6 + [1]
    assert "leaves no room for a passage" in answers[cells[7]].raw


def test_a_tokenizer_that_cannot_write_a_list_is_reported(models: dict[str, Path]) -> None:
    with pytest.raises(GraderError, match="cannot write the answer"):
        graded(made(models["t5"], "seq2seq", prompt="NuggetAssign"), cells_of(1, 1))


def test_unreadable_free_lists_are_retried_greedily_then_by_nugget_then_unparsed(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    grader = made(folders["t5"], "seq2seq", prompt="NuggetAssign", decode="beam", max_new_tokens=8)
    asked: list[tuple[str, int, int]] = []

    def generate(jobs: Sequence[Any], beams: int, new_tokens: int) -> Any:
        texts = []
        for job in jobs:
            number, doc_id = len(job.cells), job.cells[0].doc_id
            asked.append((doc_id, number, beams))
            good = str(["support"] * number)
            readable = {
                "d0": True,
                "d1": beams == 1,
                "d2": number == 1 and job.cells[0].item.text != "n 1",
            }
            texts.append(good if readable[doc_id] else "some prose")
        return lambda: texts

    monkeypatch.setattr(grader.backend, "generate", generate)
    answers = graded(grader, cells_of(3, 3))
    assert sorted(asked) == [
        ("d0", 3, 5), ("d1", 3, 1), ("d1", 3, 5), *[("d2", 1, 5)] * 3, ("d2", 3, 1), ("d2", 3, 5)
    ]  # fmt: skip
    unread = [(cell.doc_id, cell.item.text) for cell, answer in answers.items() if answer.status != "ok"]
    assert unread == [("d2", "n 1")]
    assert answers[cells_of(3, 3)[7]] == Answer(None, "unparsed", "some prose")


def test_prose_of_the_model_is_unparsed_and_stays_so_when_read_again(folders: dict[str, Path]) -> None:
    grader = made(folders["t5"], "seq2seq", prompt="NuggetAssign", decode="beam", max_new_tokens=4)
    answers = graded(grader, cells_of(1, 2))
    assert [answer.status for answer in answers.values()] == ["unparsed"] * 2
    for cell, answer in answers.items():
        assert grader.read(cell.item, answer.raw).status == "unparsed"
        with pytest.raises((ValueError, SyntaxError)):
            assert not ast.literal_eval(answer.raw or "(")
