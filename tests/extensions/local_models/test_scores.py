"""`choices` against an exhaustive search: each permitted answer scored alone by transformers' forward."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from exhaustive import exhaustive, made
from tiny_models import bpe_tokenizer

from trecexam.errors import GraderError
from trecexam.extensions.local_models.choices import ChoiceTree
from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.graders import Cell

KINDS = (
    ("seq2seq", "t5"),
    ("seq2seq", "t5-relu"),
    ("seq2seq", "t5-tied"),
    ("seq2seq", "mt5"),
    ("causal", "llama"),
    ("causal", "llama-base"),
    ("causal", "gpt2"),
)


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_log_probabilities_equal_those_of_transformers(
    models: dict[str, Path], cells: list[Cell], thorough: bool, name: str, model: str
) -> None:
    grader = made(models[model], name)
    jobs = grader._prepare([*zip(cells[: 9 if thorough else 4])])[0]
    answers = [answer for answer, _ in grader.prompts["question"].answers]
    for job, row in zip(jobs, grader.backend.score(jobs, answers, 2_000)(), strict=True):
        assert row == pytest.approx(exhaustive(grader, job.request[0]), abs=1e-4)


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_answers_of_several_tokens_are_scored_whole(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    grader = made(models[model], name, prompt="UMBRELA")
    cell = cells[0]._replace(text="a document", item=cells[0].item._replace(kind="query"))
    jobs = grader._prepare([(cell,)])[0]
    answers = [answer for answer, _ in grader.prompts["query"].answers]
    assert len(jobs[0].tokens) < grader.max_length
    assert grader.backend.score(jobs, answers, 2_000)()[0] == pytest.approx(
        exhaustive(grader, cell), abs=1e-4
    )


def test_the_encoder_output_equals_that_of_transformers(models: dict[str, Path]) -> None:
    for model in ("t5", "t5-relu"):
        backend: Any = made(models[model], "seq2seq").backend
        tokens = torch.randint(3, 300, (3, 21))
        mask = torch.arange(21)[None] < torch.tensor([21, 9, 1])[:, None]
        with torch.inference_mode():
            theirs = backend.model.encoder(tokens, attention_mask=mask.long()).last_hidden_state
            ours = backend.scorer.encode(tokens, mask)
        assert torch.allclose(ours[mask], theirs[mask], atol=1e-5)


def test_an_incompatible_version_of_transformers_is_rejected(
    models: dict[str, Path], cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    grader = made(models["t5"], "seq2seq")
    # Another test's grader may have this model.
    vars(grader.backend).pop("scorer", None)
    activations = {"gelu_pytorch_tanh": torch.tanh}
    monkeypatch.setattr("trecexam.extensions.local_models.t5.ACT2FN", activations)
    with pytest.raises(GraderError, match="computes this model differently from trecexam"):
        list(grader.grade(cells))


def test_indistinguishable_answers_are_rejected() -> None:
    with pytest.raises(ValueError, match="two answers have the same tokens"):
        ChoiceTree([(1, 2), (1, 2)], [0], "cpu")
    with pytest.raises(ValueError, match="without tokens"):
        ChoiceTree([()], [0], "cpu")


# Beam search as the papers did it.


def answers(grader: LanguageGrader, cells: list[Cell]) -> dict[Cell, str]:
    return {cell: answer.raw for batch in grader.grade(cells) for cell, answer in batch}


def test_beam_search_equals_transformers_with_the_settings_of_the_paper(
    models: dict[str, Path], cells: list[Cell]
) -> None:
    grader = made(models["t5"], "seq2seq", decode="beam", max_new_tokens=10)
    backend: Any = grader.backend
    prompt = grader.prompts["question"]
    for cell, raw in answers(grader, cells[:8]).items():
        ids = backend.tokens.tokenizer(
            prompt.text(cell.query_text, cell.item, cell.text), return_tensors="pt", truncation=True
        )
        found = backend.model.generate(
            input_ids=ids["input_ids"], num_beams=5, do_sample=False, early_stopping=True, max_new_tokens=10
        )
        assert raw == backend.tokens.tokenizer.decode(found[0], skip_special_tokens=True).strip()


# Decoder-only architectures against plain forward passes of transformers.


SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 1024}
WINDOW = {"sliding_window": 300}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
#: model_type -> its configuration. Windows are shorter than some prompts here.
MODELS: dict[str, dict[str, Any]] = {
    "codegen": {**GPT, "rotary_dim": 8},
    "cohere2": {**SMALL, **WINDOW},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gemma": {**SMALL, "head_dim": 8},
    "gemma2": {**SMALL, **WINDOW, "head_dim": 8, "query_pre_attn_scalar": 8},
    "gemma3_text": {**SMALL, **WINDOW, "head_dim": 8, "query_pre_attn_scalar": 8},
    "gpt2": GPT,
    "gpt_neox": {key: value for key, value in SMALL.items() if key != "num_key_value_heads"},
    "gpt_oss": {**SMALL, **WINDOW, **EXPERTS, "head_dim": 8},
    "gptj": {**GPT, "rotary_dim": 8},
    "llama": SMALL,
    "mistral": {**SMALL, **WINDOW},
    "mixtral": {**SMALL, **EXPERTS, "sliding_window": None},
    "olmo2": SMALL,
    "opt": {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "phi3": SMALL,
    "qwen2": {**SMALL, "use_sliding_window": False, "sliding_window": 64},
    "qwen3": {**SMALL, "head_dim": 8},
    "qwen3_moe": {
        **SMALL, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    },
    "granite": SMALL,
    "glm4": {**SMALL, "head_dim": 8},
    "olmo3": {**SMALL, **WINDOW},
    "phi": SMALL,
    "smollm3": SMALL,
    "stablelm": SMALL,
    # No trees: attention by distance, by chunks, by windows of another name, or none at all.
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 1024},
    "gpt_neo": {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 64,
        "max_position_embeddings": 1024,
        "attention_types": [[["global", "local"], 1]],
    },
    "llama4_text": {
        **SMALL, "head_dim": 8, "num_local_experts": 2, "intermediate_size_mlp": 64,
        "attention_chunk_size": 64,
    },
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "rwkv": {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    "lfm2": {**SMALL, "layer_types": ["conv", "full_attention"]},
}  # fmt: skip


def saved(folder: Path, name: str, tokenizer: Any, **more: Any) -> Path:
    torch.manual_seed(0)
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = transformers.AutoConfig.for_model(name, vocab_size=len(tokenizer), **ids, **MODELS[name], **more)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return bpe_tokenizer(chat=False)


#: The way of models that take no tree of answers.
OTHER_WAYS = {
    **dict.fromkeys(("bloom", "mpt", "gpt_neo", "llama4_text", "mamba", "lfm2"), "cache"),
    "rwkv": "rows",
}
#: At every commit: plain, with a window, with learned positions, recurrent, and by distance.
FIRST = ("llama", "gemma2", "gpt_oss", "opt", "mamba", "bloom")


@pytest.mark.parametrize(
    "name",
    [*FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in FIRST)],
)
@pytest.mark.parametrize("prompt", ["QuestionSelfRatedUnanswerablePromptWithChoices", "UMBRELA"])
def test_choices_equal_an_exhaustive_search_in_every_architecture(
    name: str, prompt: str, tmp_path: Path, tokenizer: Any, cells: list[Cell]
) -> None:
    """Ratings of one token and of several; prompts shorter and longer than the models' windows."""
    with warnings.catch_warnings():
        # Some models of transformers emit warnings.
        warnings.simplefilter("ignore")
        grader = made(saved(tmp_path / name, name, tokenizer), "causal", prompt=prompt)
        kind = next(iter(grader.item_kinds))
        cells = [cell._replace(item=cell.item._replace(kind=kind)) for cell in cells[:6]]
        jobs = grader._prepare([*zip(cells)])[0]
        answers = [answer for answer, _ in grader.prompts[kind].answers]
        for job, row in zip(jobs, grader.backend.score(jobs, answers, 10_000)(), strict=True):
            assert row == pytest.approx(exhaustive(grader, job.request[0]), abs=1e-3)
    decoder = grader.backend.scorer  # type: ignore[attr-defined]
    assert decoder.method_for(64) == OTHER_WAYS.get(name, "tree")


@pytest.mark.parametrize(("name", "model"), [("seq2seq", "t5"), ("seq2seq", "mt5"), ("causal", "llama")])
def test_choices_equal_an_exhaustive_search(
    models: dict[str, Path], cells: list[Cell], thorough: bool, name: str, model: str
) -> None:
    cells = cells[:: 1 if thorough else 3]
    grader = made(models[model], name)
    graded = {cell: answer for batch in grader.grade(cells) for cell, answer in batch}
    answers = grader.prompts["question"].answers
    assert graded.keys() == set(cells)
    for cell in cells[::9]:
        answer = graded[cell]
        scores = exhaustive(grader, cell)
        shares = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0).tolist()
        assert answer.probabilities is not None
        for (_, rating), share in zip(answers, shares, strict=True):
            assert answer.probabilities[rating] == pytest.approx(share, abs=2e-5)
        first, second = sorted(scores, reverse=True)[:2]
        if first - second > 1e-4:
            assert (answer.raw, answer.rating) == answers[scores.index(first)]
