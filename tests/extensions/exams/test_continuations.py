"""log P(continuation | prompt) against a plain forward pass of each pair."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tiny_models import save_gpt2, save_llama

from trecexam.extensions.exams import continuations
from trecexam.extensions.exams.continuations import PromptContinuations, scored, tokens_of
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


def prompts_of(backend: CausalBackend) -> list[PromptContinuations]:
    prompts = backend.encode(PROMPTS)
    return [
        PromptContinuations(p, tokens_of(backend, texts)) for p, texts in zip(prompts, TEXTS, strict=True)
    ]


def log_likelihoods_by_forward_pass(backend: CausalBackend, one: PromptContinuations) -> list[float]:
    found = []
    for tokens in one.continuations:
        row = torch.tensor([[*one.prompt, *tokens]])
        with torch.inference_mode():
            steps = torch.log_softmax(backend.model(input_ids=row).logits[0].double(), dim=-1)
        start = len(one.prompt) - 1
        found.append(sum(float(steps[start + place, token]) for place, token in enumerate(tokens)))
    return found


@pytest.mark.parametrize(("budget", "share"), [(1, True), (10_000, True), (10_000, False)])
def test_log_probabilities_equal_a_plain_forward_pass(
    backend: CausalBackend, budget: int, share: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not share:
        from trecexam.extensions.local_models import shared_prefix

        monkeypatch.setattr(shared_prefix, "can_share", lambda config, length: False)
    made = prompts_of(backend)
    found = dict(pair for batch in scored(backend, made, budget) for pair in batch)
    assert sorted(found) == [0, 1, 2]
    for place, one in enumerate(made):
        assert [each.log_probability for each in found[place]] == pytest.approx(
            log_likelihoods_by_forward_pass(backend, one), abs=1e-3
        )
        assert [each.tokens for each in found[place]] == [len(tokens) for tokens in one.continuations]


def test_a_prompt_goes_through_the_model_once_for_all_its_continuations(
    backend: CausalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prompts_of(backend)
    seen: list[int] = []
    forward = backend.model.forward

    def counted(*args: object, **kwargs: object) -> object:
        seen.append(kwargs["input_ids"].numel())  # type: ignore[attr-defined]
        return forward(*args, **kwargs)

    monkeypatch.setattr(backend.model, "forward", counted)
    list(scored(backend, made[2:], 10_000))
    width = max(map(len, made[2].continuations))
    assert seen == [len(made[2].prompt) - 1, 4 * width]


def test_a_batch_too_large_for_memory_is_halved(
    backend: CausalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prompts_of(backend)
    wanted = [found for batch in scored(backend, made, 10_000) for _, found in sorted(batch)]
    together, sizes = continuations._together, []

    def small(backend: CausalBackend, asked: list[PromptContinuations]) -> list[float]:
        sizes.append(len(asked))
        if len(asked) > 1:
            raise continuations.OutOfMemoryError
        return together(backend, asked)

    monkeypatch.setattr(continuations, "_together", small)
    found = [found for batch in scored(backend, made, 10_000) for _, found in sorted(batch)]
    assert sizes == [3, 1, 2, 1, 1]
    for one, two in zip(found, wanted, strict=True):
        assert [each.log_probability for each in one] == pytest.approx(
            [each.log_probability for each in two], abs=1e-3
        )
