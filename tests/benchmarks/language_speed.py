"""Speed of grading self-rating prompts, compared with the published code on the same model.

python tests/benchmarks/language_speed.py --shape base --dl19 ../shared/dl19 [--device cuda] [--out FILE.md]

Both sides get the same prompts (TREC DL 2019 passages and questions), the same tokenizer (trained on those
passages) and the same random weights of FLAN-T5's shape: speed does not depend on the weights. The
published code is the Rubric workbench's: transformers' `generate` on the ten questions of a passage, 5 beams,
`max_length=512`, early stopping, float32. Random weights never end an answer, so it is made to end after two
tokens: 80% of FLAN-T5-large's recorded answers to this prompt on TREC DL 2019 are "0", which is two tokens in
its vocabulary. Without that it would generate 512.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from converters.records import Item  # noqa: E402
from trecexam.extensions.local_models.grader import Decoding, LanguageGrader  # noqa: E402
from trecexam.extensions.local_models.seq2seq import Seq2SeqBackend  # noqa: E402
from trecexam.graders.base import Cell  # noqa: E402
from trecexam.graders.prompts import published  # noqa: E402

#: FLAN-T5's shapes: d_model, d_ff, layers, heads (Chung et al., 2022, and T5 1.1's configuration files).
SHAPES = {
    "tiny": (64, 128, 2, 2),
    "small": (512, 1024, 8, 6),
    "base": (768, 2048, 12, 12),
    "large": (1024, 2816, 24, 16),
    "xl": (2048, 5120, 24, 32),
}
VOCABULARY, D_KV = 32128, 64
PROMPT = published()["QuestionSelfRatedUnanswerablePromptWithChoices"]


class Timing(NamedTuple):
    """Medians over rounds, of one way to run the model."""

    what: str
    prompts: int
    seconds: float

    @property
    def rate(self) -> float:
        """Prompts a second."""
        return self.prompts / self.seconds


def cells_of(folder: Path | None) -> list[Cell]:
    """Ten questions of each passage: of TREC DL 2019, or made of random words with like lengths."""
    if folder is None:
        rng = random.Random(1)
        words = [
            f"{a}{b}" for a in ("ra", "lo", "mi", "ten", "so") for b in ("ker", "lin", "dos", "pa", "tum")
        ]
        passages = [" ".join(rng.choices(words, k=round(rng.gauss(56, 20)) + 30)) for _ in range(2000)]
        banks = {"q1": [" ".join(rng.choices(words, k=14)) + "?" for _ in range(10)]}
        pairs = [("q1", text) for text in passages]
    else:
        import converters

        banks = {}
        for item in converters.read(folder / "bank.questions.jsonl.gz"):
            banks.setdefault(item.query_id, []).append(item.text)
        texts = {passage.doc_id: passage.text for passage in converters.read(folder / "passages.jsonl.gz")}
        judged = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
        pairs = [(q, texts[doc]) for q, _, doc, _ in judged if q in banks and doc in texts]
        random.Random(1).shuffle(pairs)
    return [
        Cell(query, "", f"d{place}", text, Item(query, f"{query}/{number}", question))
        for place, (query, text) in enumerate(pairs)
        for number, question in enumerate(banks[query][:10])
    ]


def tokenizer_of(cells: Sequence[Cell]) -> Any:
    """A tokenizer of T5's kind, trained on the passages: about as many tokens a word as T5's."""
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram
    from tokenizers.trainers import UnigramTrainer
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = UnigramTrainer(
        vocab_size=16_000, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    texts = [*{cell.text for cell in cells}, *{cell.item.text for cell in cells}, PROMPT.template]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def model_of(shape: str) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    d_model, d_ff, layers, heads = SHAPES[shape]
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=VOCABULARY, d_model=d_model, d_kv=D_KV, d_ff=d_ff, num_layers=layers, num_heads=heads,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config).eval()


def encoder_flops(shape: str, length: float) -> float:
    """Floating-point operations of the encoder's matrix products for a prompt of so many tokens."""
    d_model, d_ff, layers, heads = SHAPES[shape]
    inner = heads * D_KV
    per_token = 2 * (4 * d_model * inner + 3 * d_model * d_ff) + 4 * length * inner
    return layers * per_token * length


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def grader_of(model: Any, tokenizer: Any, device: str, dtype: torch.dtype) -> LanguageGrader:
    """The `seq2seq` grader on a model in memory."""
    from trecexam.extensions.local_models.tokens import PromptTokens

    folder = Path(tempfile.mkdtemp())
    model.config.save_pretrained(folder)
    backend = Seq2SeqBackend(folder, device)
    made = backend.__dict__
    made["tokens"], made["model"] = PromptTokens(tokenizer), model.to(device=device, dtype=dtype)
    return LanguageGrader(backend, [PROMPT], Decoding("choices"), "random", Path(), max_length=512)


def time_ours(grader: LanguageGrader, cells: Sequence[Cell], rounds: int) -> Timing:
    list(grader.grade(cells[:64]))
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        done = sum(map(len, grader.grade(cells)))
        seconds.append(time.perf_counter() - began)
        assert done == len(cells)
    return Timing("trecexam, choices", len(cells), statistics.median(seconds))


def time_published(
    model: Any, tokenizer: Any, cells: Sequence[Cell], device: str, rounds: int, *, batch: int
) -> Timing:
    """`generate` on the questions of one passage at a time, `batch` of them together."""
    from transformers import GenerationConfig, LogitsProcessor

    class EndAfterTwo(LogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            # The first of them is the one that starts the decoder.
            if input_ids.shape[1] < 3:
                scores[:, tokenizer.eos_token_id] = -float("inf")
                return scores
            ended = torch.full_like(scores, -float("inf"))
            ended[:, tokenizer.eos_token_id] = 0
            return ended

    settings = GenerationConfig(
        num_beams=5, max_length=512, early_stopping=True, eos_token_id=1, pad_token_id=0,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = model.to(device=device, dtype=torch.float32)
    texts = [PROMPT.text("", cell.item, cell.text) for cell in cells]

    def once(texts: Sequence[str]) -> None:
        for place in range(0, len(texts), batch):
            inputs = tokenizer(texts[place : place + batch], padding=True, return_tensors="pt").to(device)
            with torch.inference_mode():
                found = model.generate(
                    input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"],
                    generation_config=settings, logits_processor=[EndAfterTwo()],
                )  # fmt: skip
            tokenizer.batch_decode(found, skip_special_tokens=True)

    once(texts[:10])
    wait(device)
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        once(texts)
        wait(device)
        seconds.append(time.perf_counter() - began)
    what = "published, ten questions in a batch" if batch == 10 else "published, one by one (batch_size=1)"
    return Timing(what, len(cells), statistics.median(seconds))


def peak(shape: str, device: str, dtype: torch.dtype) -> float:
    """Operations a second of a large matrix product, such as the encoder's, on this machine."""
    d_model, d_ff, _, _ = SHAPES[shape]
    rows = 65_536 if device.startswith("cuda") else 2_048
    left = torch.randn(rows, d_model, device=device, dtype=dtype)
    right = torch.randn(2 * d_ff, d_model, device=device, dtype=dtype)
    rates = []
    for _ in range(12):
        wait(device)
        began = time.perf_counter()
        for _ in range(5):
            torch.nn.functional.linear(left, right)
        wait(device)
        rates.append(5 * 2 * rows * d_model * 2 * d_ff / (time.perf_counter() - began))
    return statistics.median(rates[2:])


def measure(shape: str, device: str, folder: Path | None, prompts: int, rounds: int) -> str:
    """The figures as Markdown."""
    cells = cells_of(folder)
    tokenizer = tokenizer_of(cells)
    some = cells[: prompts - prompts % 10]
    lengths = [len(ids) for ids in tokenizer([PROMPT.text("", c.item, c.text) for c in some])["input_ids"]]
    model = model_of(shape)
    slow = some[: max(20, len(some) // (10 if device == "cpu" else 20) // 10 * 10)]
    baseline = [time_published(model, tokenizer, slow, device, rounds, batch=size) for size in (10, 1)]
    lines = [
        f"Prompts: {len(some):,} of {'TREC DL 2019' if folder else 'random words'}, "
        f"{statistics.mean(lengths):.0f} tokens on average ({min(lengths)} to {max(lengths)}); "
        f"the published way on {len(slow)} of them. Medians of {rounds} rounds. FLAN-T5-{shape}'s shape, "
        "random weights.\n",
        "| way | type | prompts a second | x ten in a batch | x one by one | of the encoder's floor |",
        "|---|---|---|---|---|---|",
    ]
    for timing in baseline:
        times = [timing.rate / base.rate for base in baseline]
        lines.append(f"| {timing.what} | float32 | {timing.rate:.2f} | {times[0]:.1f} | {times[1]:.1f} | |")
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        ours = time_ours(grader_of(model, tokenizer, device, dtype), some, rounds)
        floor = statistics.mean(encoder_flops(shape, length) for length in lengths) / peak(
            shape, device, dtype
        )
        times = [ours.rate / base.rate for base in baseline]
        lines.append(
            f"| {ours.what} | {name} | {ours.rate:.2f} | {times[0]:.1f} | {times[1]:.1f} | "
            f"{ours.rate * floor:.0%} |"
        )
    lines.append(
        "\nThe encoder's floor is the time its matrix products would take at the rate of one large product "
        "of its feed-forward layer on this machine."
    )
    return "\n".join(lines) + "\n"


def machine(device: str) -> str:
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    found = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]  # fmt: skip
    name = found[0] if found else platform.processor()
    return f"{torch.get_num_threads()} cores of {name}, torch {torch.__version__}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=SHAPES, default="base")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dl19", type=Path, help="Folder with TREC DL 2019; without it: random words.")
    parser.add_argument("--prompts", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Markdown file to write.")
    given = parser.parse_args()
    options = (
        f"--shape {given.shape} --device {given.device} --prompts {given.prompts} --rounds {given.rounds}"
    )
    report = f"# Language-model graders\n\n{machine(given.device)}. Made by\n"
    report += f"`python tests/benchmarks/language_speed.py {options}`.\n\n"
    report += measure(given.shape, given.device, given.dl19, given.prompts, given.rounds)
    if given.out:
        given.out.write_text(report)
    print(report)
