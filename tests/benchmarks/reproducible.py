"""What `[grader] reproducible` costs, and how many answers differ without it.

python tests/benchmarks/reproducible.py --shape base --dl19 ../shared/dl19 [--device cuda] [--out FILE.md]

Random weights of FLAN-T5's shape (seq2seq), and of a Llama of its width (causal); prompts as for
language_speed.py. Both settings take turns, in bfloat16; on a CPU the time is CPU time, so that
other load does not count. The answers are compared between one update of all cells and random updates
of 1 to 50, bit for bit.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from language_speed import PROMPT, SHAPES, VOCABULARY, cells_of, machine, model_of, tokenizer_of

from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.extensions.local_models.grader import Decoding, LanguageGrader
from trecexam.extensions.local_models.seq2seq import Seq2SeqBackend
from trecexam.extensions.local_models.tokens import PromptTokens
from trecexam.graders.base import Answer, Cell


def llama_of(shape: str) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    d_model, d_ff, layers, _ = SHAPES[shape]
    heads = d_model // 64
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=d_model, intermediate_size=d_ff, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=max(1, heads // 4), max_position_embeddings=2048,
        eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def grader_of(name: str, model: Any, tokenizer: Any, device: str, reproducible: bool) -> LanguageGrader:
    kind = {"seq2seq": Seq2SeqBackend, "causal": CausalBackend}[name]
    backend = kind(Path(), device, reproducible=reproducible)
    backend.__dict__.update(tokens=PromptTokens(tokenizer), model=model)
    backend.length_limit = lambda new_tokens: 512  # type: ignore[method-assign]
    prompt = PROMPT.passage_first() if name == "causal" else PROMPT
    return LanguageGrader(backend, [prompt], Decoding("choices"), "random", Path(), max_length=512)


def answers(grader: LanguageGrader, parts: Sequence[Sequence[Cell]]) -> dict[Cell, Answer]:
    return {cell: answer for part in parts for batch in grader.grade(part) for cell, answer in batch}


def updates(cells: Sequence[Cell]) -> list[Sequence[Cell]]:
    rng = random.Random(3)
    rest = rng.sample(cells, len(cells))
    parts = []
    while rest:
        size = rng.randint(1, 50)
        parts.append(rest[:size])
        rest = rest[size:]
    return parts


def measure(name: str, model: Any, tokenizer: Any, cells: Sequence[Cell], device: str, rounds: int) -> str:
    """A row of the table for each setting."""
    clock = time.perf_counter if device.startswith("cuda") else time.process_time
    graders = {on: grader_of(name, model, tokenizer, device, on) for on in (False, True)}
    seconds: dict[bool, list[float]] = {False: [], True: []}
    rows = []
    for grader in graders.values():
        answers(grader, [cells[:20]])
    for _ in range(rounds):
        for on, grader in graders.items():
            began = clock()
            answers(grader, [cells])
            seconds[on].append(clock() - began)
    for on, grader in graders.items():
        began = clock()
        apart = answers(grader, updates(cells))
        in_parts = clock() - began
        whole = answers(grader, [cells])
        texts = sum(whole[cell].raw != apart[cell].raw for cell in cells)
        differing = sum(whole[cell] != apart[cell] for cell in cells)
        least = min(seconds[on])
        rows.append(
            f"| {name} | {'yes' if on else 'no'} | {len(cells) / least:.2f} "
            f"| {least / min(seconds[False]) - 1:+.1%} | {len(cells) / in_parts:.2f} | {texts} "
            f"| {differing} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=SHAPES, default="base")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dl19", type=Path, help="Folder with TREC DL 2019; without it: random words.")
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Markdown file to write.")
    given = parser.parse_args()
    cells = cells_of(given.dl19)
    tokenizer = tokenizer_of(cells)
    lines = [
        f"# What reproducible grades cost\n\n{machine(given.device)}; shape {given.shape}, random weights, "
        f"bfloat16; {given.prompts} prompts, the fastest of {given.rounds} rounds. Made by "
        "tests/benchmarks/reproducible.py.\n",
        "| grader | reproducible | prompts a second, one update | cost | the same, updates of 1 to 50 "
        "| other answers in those | other answers or probabilities |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, make in (("seq2seq", model_of), ("causal", llama_of)):
        model = make(given.shape).to(device=given.device, dtype=torch.bfloat16)
        lines.append(measure(name, model, tokenizer, cells[: given.prompts], given.device, given.rounds))
    report = "\n".join(lines) + "\n"
    if given.out:
        given.out.write_text(report)
    print(report)
