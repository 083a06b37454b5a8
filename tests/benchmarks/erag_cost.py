"""Cost of eRAG with one document per prompt, compared with all k documents in one prompt.

python tests/benchmarks/erag_cost.py [--tokens 400] [--out FILE.md]

The claim of Salemi and Zamani (SIGIR 2024, section 3): for l tokens of output and k documents of d tokens,
attention costs l*k*d^2 document by document, and l*k^2*d^2 for all of them together. The model is a Llama
with random weights: cost does not depend on their values. Both variants generate equally many tokens per
answer, with a cache of keys and values; eRAG generates k answers. Seconds are CPU time of one core, which
other load changes little.

Each variant and kind of attention runs in a separate process with increasing k. The figure is the peak
resident memory of that process above the memory with its model loaded.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KS = (1, 2, 5, 10, 20)
WAYS = ("each", "all")
ATTENTIONS = ("eager", "sdpa")
ANSWER = 4


class Cost(NamedTuple):
    """Of one query: `megabytes` is the peak above the loaded model."""

    k: int
    seconds: float
    megabytes: float


def measured(way: str, attention: str, tokens: int) -> Iterator[Cost]:
    """The cost for each k, in this process."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=tokens * max(KS) + ANSWER,
        attn_implementation=attention, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()

    def answer(length: int) -> None:
        prompt = torch.randint(1, 1000, (1, length))
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
            max_new_tokens=ANSWER, min_new_tokens=ANSWER,
        )  # fmt: skip

    with torch.inference_mode():
        answer(8)
        loaded = peak()
        for k in KS:
            began = time.process_time()
            for _ in range(k if way == "each" else 1):
                answer(tokens if way == "each" else k * tokens)
            yield Cost(k, time.process_time() - began, peak() - loaded)


def peak() -> float:
    """The most resident memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(way: str, attention: str, tokens: int) -> list[Cost]:
    """The same in a process of its own."""
    words = [sys.executable, __file__, "--tokens", str(tokens), "--only", way, attention]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [Cost(*row) for row in json.loads(done.stdout)]


def page(tokens: int) -> str:
    """The figures as Markdown."""
    import torch

    pairs = [(way, attention) for attention in ATTENTIONS for way in WAYS]
    found = {pair: child(*pair, tokens) for pair in pairs}
    lines = [
        "# What eRAG costs: a document at a time, or all k together",
        "",
        f"One core of {platform.machine()}, torch {torch.__version__}. Made by",
        f"`python tests/benchmarks/erag_cost.py --tokens {tokens}`.",
        "",
        f"One query; documents of {tokens} tokens; {ANSWER} tokens an answer. A Llama of 4 layers, 128 wide,",
        "4 heads, float32, random weights, keys and values cached. Memory is the process's peak above that",
        "with the model loaded. By the claim, attention takes k times the work where all are together. The",
        "other layers' work is the same both ways.",
    ]
    for attention, says in zip(
        ATTENTIONS,
        (
            "all of the attention matrix in memory, as the claim counts it",
            "fused, the matrix never whole: what current models run with",
        ),
        strict=True,
    ):
        each, together = (found[way, attention] for way in WAYS)
        lines += [
            "",
            f"## `{attention}`: {says}",
            "",
            "| k | seconds, each by itself | seconds, all together | ratio | MB, each | MB, all | ratio |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += (
            f"| {one.k} | {one.seconds:.2f} | {all_.seconds:.2f} | {all_.seconds / one.seconds:.1f} "
            f"| {one.megabytes:.0f} | {all_.megabytes:.0f} | {all_.megabytes / max(1, one.megabytes):.0f} |"
            for one, all_ in zip(each, together, strict=True)
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--only", nargs=2, metavar=("WAY", "ATTENTION"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(list(measured(*options.only, options.tokens))))
        return
    text = page(options.tokens)
    if options.out:
        options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
