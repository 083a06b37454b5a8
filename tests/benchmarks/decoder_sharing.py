"""What is left to compute where a decoder-only model reads a passage once for all of its questions.

python tests/benchmarks/decoder_sharing.py --shape base --dl19 ../shared/dl19 [--prompts 200]

A Llama of FLAN-T5's width with random weights, as for reproducible.py. Tokens are those that go through the
model, padding counted; the time is the process's own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from language_speed import PROMPT, SHAPES, cells_of, machine, tokenizer_of
from reproducible import answers, grader_of, llama_of

from trecexam.graders.base import Cell

PASSAGES, QUESTIONS = "the passages, each once", "what follows: question, cue and answers"


def measure(model: Any, tokenizer: Any, cells: Sequence[Cell]) -> str:
    """The figures as Markdown."""
    grader = grader_of("causal", model, tokenizer, "cpu", True)
    answers(grader, [cells[:20]])
    tokens: Counter[str] = Counter()
    padding: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    forward = model.forward

    def counting(*, input_ids: torch.Tensor, logits_to_keep: int, **others: Any) -> Any:
        part = PASSAGES if logits_to_keep == 1 else QUESTIONS
        began = time.process_time()
        made = forward(input_ids=input_ids, logits_to_keep=logits_to_keep, **others)
        seconds[part] += time.process_time() - began
        tokens[part] += input_ids.numel()
        padding[part] += int((input_ids == model.config.pad_token_id).sum())
        return made

    model.forward = counting
    began = time.process_time()
    answers(grader, [cells])
    total = time.process_time() - began
    lengths = tokenizer([PROMPT.text("", cell.item, cell.text) for cell in cells])["input_ids"]
    apart = sum(map(len, lengths)) / len(cells)
    lines = [
        f"{len(cells)} prompts of {apart:.0f} tokens on average: {len(cells) / total:.1f} a second of CPU "
        "time.\n",
        "| part | tokens of a prompt | padding of these | of its time |",
        "|---|---:|---:|---:|",
        *(
            f"| {part} | {tokens[part] / len(cells):.1f} | {padding[part] / len(cells):.1f} "
            f"| {seconds[part] / total:.0%} |"
            for part in (PASSAGES, QUESTIONS)
        ),
        f"| outside of the model | | | {1 - seconds.total() / total:.0%} |",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=SHAPES, default="base")
    parser.add_argument("--dl19", type=Path, help="Folder with TREC DL 2019; without it: random words.")
    parser.add_argument("--prompts", type=int, default=200)
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    every = cells_of(given.dl19)
    model = llama_of(given.shape).to(torch.bfloat16)
    print(f"{machine('cpu')}; Llama of the width of FLAN-T5-{given.shape}, bfloat16.\n")
    print(measure(model, tokenizer_of(every), every[: given.prompts]))
