"""log P(continuation | prompt) against a plain forward pass of each pair."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tiny_models import save_gpt2, save_llama

from trecexam.extensions.exams.choosing import tokens_of
from trecexam.extensions.local_models.causal import CausalBackend

PROMPTS = ["What is the number of the passage about q1?", "Is it", "Question 3 of 5: " * 12]
TEXTS = [
    ["A) a", "B) the passage", "C) 5", "D) question number of q2 q3"],
    ["Yes", "No"],
    ["A", "B", "C", "D"],
]


@pytest.fixture(scope="module", params=["gpt2", "llama", "chat"])
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CausalBackend:
    folder = tmp_path_factory.mktemp(request.param)
    saved = save_gpt2(folder) if request.param == "gpt2" else save_llama(folder, chat=request.param == "chat")
    return CausalBackend(saved, "cpu", "float32")


def log_likelihood(backend: CausalBackend, prompt: list[int], tokens: list[int]) -> float:
    """By one forward pass."""
    row = torch.tensor([[*prompt, *tokens]])
    with torch.inference_mode():
        steps = torch.log_softmax(backend.model(input_ids=row).logits[0].double(), dim=-1)
    start = len(prompt) - 1
    return sum(float(steps[start + place, token]) for place, token in enumerate(tokens))


@pytest.mark.parametrize("way", ["tree", "cache", "rows"])
def test_log_probabilities_equal_a_plain_forward_pass(
    backend: CausalBackend, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.scorer, "method_for", lambda length: way)
    for prompt, texts in zip(backend.tokens.encode(PROMPTS), TEXTS, strict=True):
        tokens = tokens_of(backend, texts)
        expected = [log_likelihood(backend, prompt, continuation) for continuation in tokens]
        assert backend.scorer.continued(prompt, tokens) == pytest.approx(expected, abs=1e-3)


def test_a_prompt_goes_through_the_model_once_for_all_its_continuations(
    backend: CausalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prompt,), tokens = backend.tokens.encode(PROMPTS[:1]), tokens_of(backend, TEXTS[0])
    assert backend.scorer.works("tree")
    seen: list[int] = []
    forward = backend.model.forward

    def counted(*args: object, **kwargs: object) -> object:
        seen.append(kwargs["input_ids"].numel())  # type: ignore[attr-defined]
        return forward(*args, **kwargs)

    monkeypatch.setattr(backend.model, "forward", counted)
    backend.scorer.continued(prompt, tokens)
    assert len(seen) == 1
    assert seen[0] <= len(prompt) + sum(map(len, tokens))
