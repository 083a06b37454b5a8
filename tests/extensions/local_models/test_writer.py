"""Text generation with tiny local models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import save_llama, save_t5

from trecexam.config import GeneratorSection, GraderSection, TrackConfig
from trecexam.extensions.local_models.writer import LocalWriter
from trecexam.graders import create
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import create_writer

PROMPTS = ["what is the cost of it", "who was that", "how do they fly and where to do they go then"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {"causal": save_llama(root / "llama"), "seq2seq": save_t5(root / "t5")}


def made(models: dict[str, Path], kind: str, **settings: object) -> LocalWriter:
    words = {
        "name": kind,
        "model": str(models[kind]),
        "device": "cpu",
        "dtype": "float32",
        "max_new_tokens": 12,
        **settings,
    }
    config = TrackConfig(generator=GeneratorSection.model_validate(words))
    writer = create_writer(config, models[kind].parent)
    assert isinstance(writer, LocalWriter)
    return writer


def texts(writer: Writer, prompts: list[str]) -> dict[str, WrittenText | Unwritten]:
    return {prompt: found for batch in writer.write(prompts) for prompt, found in batch}


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_a_generated_text_does_not_depend_on_batches_or_order(models: dict[str, Path], kind: str) -> None:
    together = texts(made(models, kind), PROMPTS)
    alone = {}
    for prompt in reversed(PROMPTS):
        alone.update(texts(made(models, kind, max_batch_tokens=1), [prompt]))
    assert together == alone
    assert all(isinstance(found, WrittenText) for found in together.values())


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_with_sampling_the_same_seed_gives_the_same_text(models: dict[str, Path], kind: str) -> None:
    first = texts(made(models, kind, temperature=2.0, seed=1), PROMPTS)
    assert texts(made(models, kind, temperature=2.0, seed=1), PROMPTS[::-1]) == first
    assert texts(made(models, kind, temperature=2.0, seed=2), PROMPTS) != first


def test_an_answer_that_reached_the_token_limit_is_marked_as_cut(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = made(models, "causal", max_new_tokens=3)
    assert all(found.cut for found in texts(writer, PROMPTS).values() if isinstance(found, WrittenText))
    generate = writer.backend.model.generate
    end = writer.backend.ends[0]

    def ending(**inputs: Any) -> Any:
        found = generate(**inputs).clone()
        found[:, -1] = end
        return found

    monkeypatch.setattr(writer.backend.model, "generate", ending)
    assert not any(found.cut for found in texts(writer, PROMPTS).values() if isinstance(found, WrittenText))


def test_a_prompt_that_is_too_long_is_reported_and_the_others_are_answered(models: dict[str, Path]) -> None:
    long = "word " * 3000
    found = texts(made(models, "causal"), [long, *PROMPTS])
    assert isinstance(found[long], Unwritten)
    assert "and the prompt has" in found[long].reason
    assert all(isinstance(found[prompt], WrittenText) for prompt in PROMPTS)


def test_control_tokens_of_a_model_are_removed_from_prompts(models: dict[str, Path]) -> None:
    writer = made(models, "causal")
    special = next(iter(writer.backend.tokens.tokenizer.all_special_tokens))
    assert special not in writer.plain(f"a {special} b")


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_writers_and_graders_of_the_same_model_share_it_while_one_of_them_exists(
    models: dict[str, Path], kind: str
) -> None:
    first, second = made(models, kind, seed=1), made(models, kind, seed=2)
    assert first.backend is second.backend
    assert made(models, kind, dtype="bfloat16").backend is not first.backend
    section = GraderSection(name=kind, model=str(models[kind]), device="cpu", dtype="float32")
    grader: Any = create(section, models[kind].parent)
    assert grader.backend is first.backend
