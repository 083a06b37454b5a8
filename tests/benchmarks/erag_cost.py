"""Cost of eRAG with a document per prompt and with all k in one: prints the tables of results/erag.md.

    python tests/benchmarks/erag_cost.py [--tokens 400]

The page says what is measured. Each way and kind of attention runs in its own process, with increasing k.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--only", nargs=2, metavar=("WAY", "ATTENTION"))
    options = parser.parse_args()
    if options.only:
        print(json.dumps(list(measured(*options.only, options.tokens))))
        return
    for attention in ATTENTIONS:
        each, together = (child(way, attention, options.tokens) for way in WAYS)
        print(f"\n## `{attention}`\n")
        print("| k | seconds, each by itself | seconds, all together | ratio | MB, each | MB, all | ratio |")
        print("|---" * 7 + "|")
        for one, all_ in zip(each, together, strict=True):
            ratios = all_.seconds / one.seconds, all_.megabytes / max(1, one.megabytes)
            print(
                f"| {one.k} | {one.seconds:.2f} | {all_.seconds:.2f} | {ratios[0]:.1f} "
                f"| {one.megabytes:.0f} | {all_.megabytes:.0f} | {ratios[1]:.0f} |"
            )


if __name__ == "__main__":
    main()
