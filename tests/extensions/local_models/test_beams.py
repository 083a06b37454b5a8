"""Beam search as the papers did it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exhaustive import made

from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.graders import Cell


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
