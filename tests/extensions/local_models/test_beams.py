"""`choices` compared with 5-beam search: how often they agree, and the two reasons for differences."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from exhaustive import exhaustive, made
from support import ask
from tiny_models import save_t5, teach

from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.graders import Cell
from trecexam.graders.prompts import named

WORDS = ["answer", "question", "context", "passage", "rating", "relevant", "complete", "gaps"]
#: 6 words that are asked for in 12 passages of one or two of them.
SHORT = [
    ask(f"{first} {second}", word, number, doc_id=f"d{first}{second}")
    for number, word in enumerate(WORDS[:6])
    for first, second in zip(WORDS + WORDS[:4], WORDS[3:] + WORDS[:7], strict=True)
]


@pytest.fixture(scope="module")
def trained_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that gives a rating and then ends, as FLAN-T5 does, with some uncertainty between ratings.

    With a custom short prompt in `short.toml`: so small a model cannot learn a long one.
    """
    root = tmp_path_factory.mktemp("taught")
    (root / "short.toml").write_text('template = "{question} : {context}"')
    prompt = named("short.toml", root)
    rng = random.Random(11)
    lessons = []
    for cell in SHORT:
        text = prompt.text(cell.query_text, cell.item, cell.text)
        rating = WORDS.index(cell.item.text)
        for _ in range(6):
            lessons.append((text, str(rng.choice((rating, (rating + 1) % 6, rng.randint(0, 5))))))
        lessons.append((text, "relevant"))
    teach(save_t5(root / "tiny-t5", varied=False), lessons)
    return root


def answers(grader: LanguageGrader, cells: list[Cell]) -> dict[Cell, str]:
    return {cell: answer.raw for batch in grader.grade(cells) for cell, answer in batch}


def test_beam_search_equals_transformers_with_the_settings_of_the_paper(
    models: dict[str, Path], cells: list[Cell]
) -> None:
    grader = made(models["t5"], "seq2seq", decode="beam", max_new_tokens=10)
    backend: Any = grader.backend
    prompt = grader.prompts["question"]
    for cell, raw in answers(grader, cells[:8]).items():
        ids = backend.tokens.tokenizer(
            prompt.text(cell.query_text, cell.item, cell.text), return_tensors="pt", truncation=True
        )
        found = backend.model.generate(
            input_ids=ids["input_ids"], num_beams=5, do_sample=False, early_stopping=True, max_new_tokens=10
        )
        assert raw == backend.tokens.tokenizer.decode(found[0], skip_special_tokens=True).strip()


# The model is trained first. Choices are the most probable, and beams equal those of transformers.
@pytest.mark.slow
@pytest.mark.parametrize("beams", [5, 2, 1])
def test_if_beam_search_returns_a_permitted_answer_choices_mostly_agree(
    trained_model: Path, beams: int
) -> None:
    """Every disagreement has one of two reasons, and `choices` has the more probable answer.

    - length: beam search divides by the number of tokens, so that the longer answer may win with less
      probability (in T5's vocabulary "0" is two tokens and the other ratings are one; here it is the
      other way round);
    - pruned: the better answer's first token was not among the beams kept.
    """
    settings = {"prompt": str(trained_model / "short.toml")}
    chosen = made(trained_model / "tiny-t5", "seq2seq", **settings)
    free = made(
        trained_model / "tiny-t5", "seq2seq", decode="beam", beams=beams, max_new_tokens=10, **settings
    )
    permitted = [answer for answer, _ in chosen.prompts["question"].answers]
    tokenizer: Any = chosen.backend.tokens.tokenizer  # type: ignore[attr-defined]
    sizes = {text: len(tokenizer(text)["input_ids"]) for text in permitted}
    best, found = answers(chosen, SHORT), answers(free, SHORT)
    reasons = Counter[str]()
    for cell, raw in found.items():
        if raw not in permitted:
            reasons["other text"] += 1
        elif raw == best[cell]:
            reasons["same"] += 1
        else:
            scores = dict(zip(permitted, exhaustive(chosen, cell), strict=True))
            assert scores[best[cell]] >= scores[raw] - 1e-4
            by_length = {text: score / sizes[text] for text, score in scores.items()}
            reasons["length" if by_length[raw] > by_length[best[cell]] else "pruned"] += 1
    print(f"{beams} beams, {len(SHORT)} cells: {dict(reasons)}")
    assert len(set(sizes.values())) == 2
    permitted_answers = reasons["same"] + reasons["length"] + reasons["pruned"]
    assert permitted_answers >= 20
    assert len(set(best.values())) >= 3
    assert reasons["same"] >= 0.7 * permitted_answers
