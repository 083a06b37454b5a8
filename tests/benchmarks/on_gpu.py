"""Speed of the local graders on one device, and how far their grades are from those of a CPU.

python tests/benchmarks/on_gpu.py [--device cuda] [--shape large] [--out FILE.md]

Ends within 6 minutes on an H100. Each line is written when it is measured, so that a lost machine leaves what
was done. Models have the published shapes and random weights, on which speed does not depend. Rehearse
without a GPU: `--device cpu --shape tiny`. What a bare machine needs: tests/gpu/carry.sh.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]
os.environ |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "OMP_WAIT_POLICY": "passive"}

import torch  # noqa: E402
from tiny_models import bpe_tokenizer, t5_tokenizer  # noqa: E402

from converters.records import Item  # noqa: E402
from trecexam.config import GraderSection  # noqa: E402
from trecexam.graders import Answer, Cell, create  # noqa: E402
from trecexam.graders.prompts import DEFAULT, named  # noqa: E402
from trecexam.graders.weights import offline_folder, processor_name  # noqa: E402

#: FLAN-T5's shapes (Chung et al., 2022, and T5 1.1's configuration files): d_model, d_ff, layers, heads.
T5 = {"tiny": (64, 128, 2, 2), "base": (768, 2048, 12, 12), "large": (1024, 2816, 24, 16)}
#: Llama 3.2 1B's shape: width, feed-forward width, layers, heads, heads of keys.
LLAMA = {"tiny": (64, 128, 2, 4, 2), "1b": (2048, 8192, 16, 32, 8)}
#: Questions of a passage, and words of a passage and of a question.
QUESTIONS, PASSAGE_WORDS, QUESTION_WORDS = 10, 56, 12
#: Prompts that a CPU grades, too.
COMPARED = 40
#: Files of the offline embedder collected by tests/gpu/carry.sh: configuration and tokenizer.
CARRIED = ROOT / ".gpu" / "embedder"


class Model(NamedTuple):
    """A model on disk. `weights`: of the layers that read the prompt, without embeddings."""

    name: str
    grader: str
    folder: Path
    tokenizer: Any
    weights: int


class Report:
    """A Markdown file that is whole after each line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = False
        path.write_text("")

    def add(self, line: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
        print(line, flush=True)

    @contextmanager
    def attempt(self, what: str) -> Any:
        """Note an exception and continue with the next measurement."""
        try:
            yield
        except Exception as error:
            self.failed = True
            self.add(f"\nFAILED: {what}: {type(error).__name__}: {' '.join(str(error).split())[:500]}\n")


def words_of_docs() -> list[str]:
    texts = [path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "examples").glob("*.md"))]]
    return [word for text in texts for word in text.split() if word.isalpha()]


def cells_of(words: Sequence[str], number: int) -> list[Cell]:
    """Ten questions of each passage, of random words."""
    rng = random.Random(1)
    questions = [" ".join(rng.choices(words, k=QUESTION_WORDS)) + "?" for _ in range(QUESTIONS)]
    items = [Item("q1", f"q1/{at}", question) for at, question in enumerate(questions)]
    lengths = [max(10, round(rng.gauss(PASSAGE_WORDS, 20))) for _ in range(-(-number // QUESTIONS))]
    texts = [" ".join(rng.choices(words, k=length)) for length in lengths]
    return [Cell("q1", "", f"d{at}", text, item) for at, text in enumerate(texts) for item in items][:number]


def save_t5(shape: str, words: Sequence[str], folder: Path, device: str) -> Model:
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = t5_tokenizer(8_000, further=" ".join(words))
    d_model, d_ff, layers, heads = T5[shape]
    config = T5Config(
        vocab_size=32_128, d_model=d_model, d_kv=64, d_ff=d_ff, num_layers=layers, num_heads=heads,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0,
    )  # fmt: skip
    model = saved(lambda: T5ForConditionalGeneration(config), tokenizer, folder, device)
    return Model(f"FLAN-T5-{shape}", "seq2seq", folder, tokenizer, size(model.encoder.block))


def save_llama(shape: str, words: Sequence[str], folder: Path, device: str) -> Model:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = bpe_tokenizer(8_000, chat=True, further=" ".join(words))
    width, inner, layers, heads, key_heads = LLAMA[shape]
    config = LlamaConfig(
        vocab_size=128_256 if shape == "1b" else len(tokenizer), hidden_size=width, intermediate_size=inner,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=key_heads,
        max_position_embeddings=8_192, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, tie_word_embeddings=True,
    )  # fmt: skip
    model = saved(lambda: LlamaForCausalLM(config), tokenizer, folder, device)
    return Model(f"Llama-{shape}", "causal", folder, tokenizer, size(model.model.layers))


def saved(make: Callable[[], Any], tokenizer: Any, folder: Path, device: str) -> Any:
    torch.manual_seed(0)
    # Random weights are made where that is fast.
    with torch.device(device):
        model = make().to(torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def size(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class Busy:
    """Samples how busy the GPU is, as the driver says."""

    def __init__(self, device: str) -> None:
        self._on = device.startswith("cuda")
        self._shares: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Busy:
        if self._on:
            # A model that was measured before may not be freed yet.
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._on:
            self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(0.1):
            try:
                self._shares.append(torch.cuda.utilization())
            except (ImportError, RuntimeError):
                return

    def row(self) -> str:
        """GPU busy and peak memory, as two columns."""
        busy = f"{statistics.mean(self._shares):.0f}%" if self._shares else "not known"
        peak = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if self._on else "not known"
        return f"{busy} | {peak}"


class Grading(NamedTuple):
    answers: dict[Cell, Answer]
    seconds: float
    first: float


def graded(grader: Any, cells: Sequence[Cell], limit: float) -> Grading:
    """Grade until all is done or the limit of seconds has passed."""
    began, first = time.perf_counter(), 0.0
    answers: dict[Cell, Answer] = {}
    for batch in grader.grade(cells):
        answers.update(batch)
        first = first or time.perf_counter() - began
        if time.perf_counter() - began > limit:
            break
    return Grading(answers, time.perf_counter() - began, first)


def grader_of(name: str, folder: Path, device: str, dtype: str) -> Any:
    return create(GraderSection(name=name, model=str(folder), device=device, dtype=dtype), Path())


def product_rate(device: str, dtype: torch.dtype, width: int) -> float:
    """Operations a second of a large matrix product."""
    rows = 65_536 if device.startswith("cuda") else 1_024
    left = torch.randn(rows, width, device=device, dtype=dtype)
    right = torch.randn(4 * width, width, device=device, dtype=dtype)
    rates = []
    for _ in range(6):
        began = time.perf_counter()
        for _ in range(5):
            torch.nn.functional.linear(left, right)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        rates.append(5 * 2 * rows * width * 4 * width / (time.perf_counter() - began))
    return statistics.median(rates[1:])


def measure(report: Report, model: Model, cells: Sequence[Cell], device: str, limit: float) -> None:
    """Add a row on the speed in bfloat16."""
    prompt = named(DEFAULT[0], Path())
    texts = [prompt.text("", cell.item, cell.text) for cell in cells]
    lengths = [len(ids) for ids in model.tokenizer(texts)["input_ids"]]
    grader = grader_of(model.grader, model.folder, device, "bfloat16")
    graded(grader, cells[:64], limit)
    with Busy(device) as busy:
        grading = graded(grader, cells, limit)
    rate = len(grading.answers) / grading.seconds
    operations = 2 * model.weights * statistics.mean(lengths) * rate
    share = operations / product_rate(device, torch.bfloat16, T5["large"][0])
    report.add(
        f"| {model.name} | {len(grading.answers):,} prompts of {statistics.mean(lengths):.0f} tokens | "
        f"{rate:,.1f} | {grading.first:.1f} s | {busy.row()} | {share:.0%} |"
    )


def embedder(into: Path) -> Path | None:
    """The extra `offline`'s embedder, or, made in this new folder, a carried one with random weights."""
    folder = offline_folder()
    if folder is not None or not CARRIED.is_dir():
        return folder
    from transformers import AutoConfig, AutoModel

    shutil.copytree(CARRIED, into)
    torch.manual_seed(4)
    AutoModel.from_config(AutoConfig.from_pretrained(into)).save_pretrained(into)
    return into


def measure_embedder(report: Report, cells: Sequence[Cell], made: Path, device: str, limit: float) -> None:
    """Add a row for each type."""
    folder = embedder(made)
    if folder is None:
        report.add("| embedder | no model here | | | | | |")
        return
    for dtype in ("float32", "bfloat16"):
        grader = grader_of("embedding", folder, device, dtype)
        graded(grader, cells[:16], limit)
        with Busy(device) as busy:
            grading = graded(grader, cells, limit)
        report.add(
            f"| MiniLM, {dtype} | {len(grading.answers):,} passages | "
            f"{len(grading.answers) / grading.seconds:,.1f} | {grading.first:.1f} s | {busy.row()} | |"
        )


def compare(report: Report, model: Model, cells: Sequence[Cell], device: str) -> None:
    """Add a row for each type: how far grades are from those of the CPU in float32."""
    exact = graded(grader_of(model.grader, model.folder, "cpu", "float32"), cells, 60).answers
    for dtype in ("float32", "bfloat16"):
        found = graded(grader_of(model.grader, model.folder, device, dtype), cells, 60).answers
        both = [(exact[cell], found[cell]) for cell in exact if cell in found]
        equal = sum(one.rating == other.rating for one, other in both)
        apart = max(
            abs(a - b)
            for one, other in both
            for a, b in zip(one.probabilities or (), other.probabilities or (), strict=True)
        )
        report.add(f"| {model.name} | {dtype} | {equal} of {len(both)} | {apart:.2g} |")


def tests_of_gpu(report: Report) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    report.failed |= done.returncode != 0
    report.add(f"\n`tests/gpu`: {'passed' if not done.returncode else 'FAILED'}\n")
    report.add(f"```\n{(done.stdout + done.stderr)[-3000:].strip()}\n```")


def machine(device: str) -> str:
    name = torch.cuda.get_device_name() if device.startswith("cuda") else processor_name()
    cores = os.cpu_count()
    return f"{name}; {cores} cores of a CPU, {torch.get_num_threads()} threads; torch {torch.__version__}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", default="large", choices=T5)
    parser.add_argument("--prompts", type=int, help="[default: 4,000; 100 of the tiny shape]")
    parser.add_argument("--seconds", type=float, default=60, help="Limit of each measurement. [default: 60]")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "language-gpu.md")
    given = parser.parse_args()
    device, on_gpu = given.device, given.device.startswith("cuda")
    words = words_of_docs()
    cells = cells_of(words, given.prompts or (100 if given.shape == "tiny" else 4_000))
    report = Report(given.out)
    report.add(f"# Local graders on a {'GPU' if on_gpu else 'CPU'}\n")
    report.add(f"{machine(device)}. Random weights, bfloat16, one round.\n")
    report.add("| model | work | a second | first after | GPU busy | peak memory | of a product's rate |")
    report.add("|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        models = []
        sizes = ((save_t5, given.shape), (save_llama, "1b" if given.shape == "large" else "tiny"))
        for save, shape in sizes:
            with report.attempt(save.__name__):
                models.append(save(shape, words, Path(folder) / save.__name__, device))
                measure(report, models[-1], cells, device, given.seconds)
        with report.attempt("embedder"):
            # A GPU embeds so many prompts' passages within a second.
            number = (4 if on_gpu else 1) * len(cells)
            passages = cells_of(words, QUESTIONS * number)[::QUESTIONS]
            measure_embedder(report, passages, Path(folder) / "embedder", device, given.seconds / 2)
        report.add(
            "\nOf a product's rate: operations of the layers that read a prompt, each token once, beside a "
            "large matrix product of this machine.\n"
        )
        report.add("| beside a CPU in float32 | type | equal ratings | probabilities apart by at most |")
        report.add("|---|---|---:|---:|")
        for model in models:
            with report.attempt(f"agreement of {model.name}"):
                compare(report, model, cells[:COMPARED], device)
    if on_gpu:
        with report.attempt("tests/gpu"):
            tests_of_gpu(report)
    sys.exit(report.failed)
