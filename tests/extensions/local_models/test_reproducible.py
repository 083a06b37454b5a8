"""Reproducible grades: bit-identical whatever else is graded in the same batch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from support import ask
from tiny_models import bpe_tokenizer, save_llama, save_t5
from torch.nn import functional

from trecexam.config import GraderSection
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.extensions.local_models.tiles import padded_length, plan_tiles, shared_length, tiles
from trecexam.graders import Answer, Cell, create
from trecexam.graders.activations import evenly_parted

MODELS = [("seq2seq", "t5"), ("seq2seq", "mt5"), ("causal", "llama"), ("causal", "gpt2"), ("causal", "bloom")]
#: The answer of a cell, and log P of each permitted answer by the model.
Bits = tuple[Answer, tuple[float, ...]]


@pytest.fixture(scope="module")
def folders(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny models, and one that cannot share prefixes."""
    folder = tmp_path_factory.mktemp("models") / "bloom"
    torch.manual_seed(3)
    tokenizer = bpe_tokenizer(chat=False)
    config = transformers.BloomConfig(
        hidden_size=32, n_layer=2, n_head=4, vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id
    )
    transformers.BloomForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {**models, "bloom": folder}


def made(folder: Path, name: str, dtype: str, **settings: Any) -> LanguageGrader:
    section = GraderSection(name=name, model=str(folder), device="cpu", dtype=dtype, **settings)
    grader = create(section, Path())
    assert isinstance(grader, LanguageGrader)
    return grader


def bits(
    grader: LanguageGrader, parts: Iterator[Sequence[Cell]] | Sequence[Sequence[Cell]]
) -> dict[Cell, Bits]:
    """The answers when these parts are graded one update after the other."""
    scores: dict[Cell, tuple[float, ...]] = {}
    score = grader.backend.score

    def kept(jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        result = score(jobs, answers)

        def rows() -> list[list[float]]:
            values = result()
            scores.update({job.cells[0]: tuple(row) for job, row in zip(jobs, values, strict=True)})
            return values

        return rows

    grader.backend.score = kept  # type: ignore[method-assign]
    try:
        answers = {cell: answer for part in parts for batch in grader.grade(part) for cell, answer in batch}
    finally:
        grader.backend.score = score  # type: ignore[method-assign]
    return {cell: (answer, scores.get(cell, ())) for cell, answer in answers.items()}


def splits(cells: Sequence[Cell], rng: random.Random) -> Iterator[Sequence[Cell]]:
    """The cells in random order, in updates of random sizes."""
    rest = rng.sample(cells, len(cells))
    while rest:
        size = rng.choice([1, 2, 5, len(cells)])
        yield rest[:size]
        rest = rest[size:]


# In bfloat16 the order of sums matters most. T5 has an encoder, Llama shares prefixes, BLOOM cannot.
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "bfloat16"])
@pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (each[1] not in ("t5", "llama", "bloom")))
        for each in MODELS
    ],
)
def test_an_answer_is_bit_identical_whatever_else_is_graded(
    folders: dict[str, Path], cells: list[Cell], thorough: bool, name: str, model: str, dtype: str
) -> None:
    # Models without prefix sharing are slow.
    cells = cells[: (12 if model == "bloom" else 48) if thorough else 10]
    expected = bits(made(folders[model], name, dtype), [cells])
    assert len({answer.probabilities for answer, _ in expected.values()}) > len(cells) // 2
    for seed, budget in enumerate((None, 1, 3_000)):
        rng = random.Random(seed)
        # A process that resumes after a kill loads the model again.
        grader = made(folders[model], name, dtype, max_batch_tokens=budget)
        assert bits(grader, splits(cells, rng)) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_activation_does_not_depend_on_the_number_of_threads_or_its_position(
    threads: Callable[[int], None], dtype: torch.dtype
) -> None:
    row = torch.randn(1, 37, 1_088, generator=torch.Generator().manual_seed(1)).to(dtype)
    for plain in (functional.silu, partial(functional.gelu, approximate="tanh"), torch.sigmoid):
        threads(1)
        expected = plain(row)
        for number, rows in product((1, 3, 4, 7, 16), (1, 2, 9)):
            threads(number)
            values = evenly_parted(plain)(row.expand(rows, -1, -1))
            assert all(torch.equal(value, expected[0]) for value in values)


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "bfloat16"])
@pytest.mark.parametrize(("name", "model"), [("seq2seq", "wide-t5"), ("causal", "wide-llama")])
def test_an_answer_is_the_same_with_any_number_of_threads(
    wide: dict[str, Path],
    cells: list[Cell],
    threads: Callable[[int], None],
    thorough: bool,
    name: str,
    model: str,
    dtype: str,
) -> None:
    cells = cells[: 16 if thorough else 7]
    threads(1)
    expected = bits(made(wide[model], name, dtype), [cells])
    for number in (2, 4) if thorough else (4,):
        threads(number)
        assert bits(made(wide[model], name, dtype), [cells[5:], cells[:5]]) == expected


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "bfloat16"])
def test_a_list_is_the_same_with_any_number_of_threads(
    wide: dict[str, Path], threads: Callable[[int], None], thorough: bool, dtype: str
) -> None:
    cells = [
        ask("about " * (3 * passage + 1), f"n {place}", place, doc_id=f"d{passage}", kind="nugget")
        for passage in range(3 if thorough else 2)
        for place in range(2)
    ]
    found = []
    for number in (1, 2, 4) if thorough else (1, 4):
        threads(number)
        grader = made(wide["wide-llama"], "causal", dtype, prompt="NuggetAssign")
        found.append({cell: answer for batch in grader.grade(cells) for cell, answer in batch})
        assert torch.get_num_threads() == number
    assert all(answers == found[0] for answers in found)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models whose products and activations torch splits among threads."""
    root = tmp_path_factory.mktemp("wide")
    return {
        "wide-t5": save_t5(root / "t5", inner=1_088),
        "wide-llama": save_llama(root / "llama", inner=3_072, width=768),
    }


@pytest.mark.parametrize(("name", "model"), [("seq2seq", "t5"), ("causal", "llama")])
def test_a_generated_text_is_the_same_whatever_else_is_generated(
    folders: dict[str, Path], cells: list[Cell], thorough: bool, name: str, model: str
) -> None:
    words = {"decode": "beam", "beams": 2, "max_new_tokens": 4}
    cells = cells[: 16 if thorough else 8]
    grader = made(folders[model], name, "bfloat16", **words)
    expected = bits(grader, [cells])
    assert bits(grader, splits(cells, random.Random(1))) == expected


def test_with_batches_of_any_shape_answers_differ(folders: dict[str, Path], cells: list[Cell]) -> None:
    """Otherwise these tests would show little."""
    grader = made(folders["t5"], "seq2seq", "bfloat16")
    grader.backend.reproducible = False
    assert bits(grader, [cells]) != bits(grader, splits(cells, random.Random(1)))


LENGTHS = st.lists(st.integers(1, 600), max_size=60)


@given(LENGTHS, st.integers(1, 3_000))
def test_the_shape_of_a_tile_depends_only_on_the_length_of_its_prompts(
    lengths: list[int], tokens: int
) -> None:
    padded = [*map(padded_length, lengths)]
    assert all(own <= tile < own + 16 for own, tile in zip(lengths, padded, strict=True))
    cut = tiles(padded, lambda length: max(1, tokens // length))
    assert sorted(place for tile in cut for place in tile.places[: tile.n_prompts]) == [*range(len(lengths))]
    for tile in cut:
        assert len(tile.places) == max(1, tokens // tile.length)
        assert {padded[place] for place in tile.places} == {tile.length}


@given(LENGTHS, st.integers(1, 3_000), st.integers(1, 5_000))
def test_batches_are_whole_tiles_and_incomplete_tiles_wait(
    lengths: list[int], tokens: int, max_tokens: int
) -> None:
    padded = [*map(padded_length, lengths)]
    batches, left = plan_tiles(padded, lambda length: max(1, tokens // length), max_tokens)
    assert sorted([*left, *(place for batch in batches for place in batch)]) == [*range(len(lengths))]
    for batch in batches:
        size = sum(padded[place] for place in batch)
        assert size <= max_tokens or len(batch) == 1
        if max_tokens >= tokens:
            whole = {length: max(1, tokens // length) for length in map(padded.__getitem__, batch)}
            assert all(sum(padded[p] == length for p in batch) % rows == 0 for length, rows in whole.items())
    for length in {padded[place] for place in left}:
        assert sum(padded[place] == length for place in left) < max(1, tokens // length)


def test_the_shared_prefix_is_shorter_than_a_prompt_and_a_multiple_of_the_step() -> None:
    tokens = [*range(40)]
    assert shared_length(tokens, tokens) == 32
    assert shared_length(tokens[:33], tokens) == 32
    assert shared_length(tokens[:32], tokens) == 16
    assert shared_length(tokens, [*range(31), 99]) == 16
    assert shared_length(tokens, ()) == 0
