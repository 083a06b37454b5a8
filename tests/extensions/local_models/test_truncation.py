"""A prompt never exceeds the model's length; only the passage is cut, at one of its own tokens."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ask
from tiny_models import bpe_tokenizer, t5_tokenizer

from trecexam.config import GraderSection
from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.extensions.local_models.tokens import PromptTokens
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.graders import create
from trecexam.graders.prompts import published

PROMPT = published()["QuestionSelfRatedUnanswerablePromptWithChoices"]
SUN = published()["Sun"]


class Characters:
    """A tokenizer with one token per character and one at the end."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*map(ord, text), 0] for text in texts]

    def token_ends(self, text: str) -> list[int]:
        return list(range(1, len(text) + 1))


TOKENISERS = {
    "characters": Characters(),
    "t5": PromptTokens(t5_tokenizer()),
    "bpe": PromptTokens(bpe_tokenizer(chat=False)),
    "chat": PromptTokens(bpe_tokenizer(chat=True), decoder_only=True),
}
PASSAGE = (
    "The answer is mostly relevant, na\u00efve \u4e2d\u6587 \U0001f600 and complete; "
    "but 12,000  gaps remain.\n\nEnd"
)


@pytest.mark.parametrize("name", TOKENISERS)
@pytest.mark.parametrize("prompt", [PROMPT, SUN], ids=["passage-last", "passage-inside"])
def test_the_longest_prefix_of_the_passage_that_fits_is_kept_at_every_length(name: str, prompt: Any) -> None:
    tokeniser, cell = TOKENISERS[name], ask(PASSAGE, "what is it?", kind=prompt.asks)

    def render(passage: str) -> str:
        return prompt.text("the query", cell.item, passage)

    def size(passage: str) -> int:
        return len(tokeniser.encode([render(passage)])[0])

    ends = tokeniser.token_ends(PASSAGE)
    shortest, whole = size(PASSAGE[: ends[0]]), size(PASSAGE)
    for limit in range(shortest, whole + 2):
        tokens, part = fitted(render, PASSAGE, tokeniser, limit)
        assert len(tokens) <= limit
        assert tokens == tokeniser.encode([render(part)])[0]
        assert PASSAGE.startswith(part)
        if limit >= whole:
            assert part == PASSAGE
            continue
        assert len(part) in ends
        longer = PASSAGE[: ends[ends.index(len(part)) + 1]]
        assert size(longer) > limit
    for limit in (shortest - 1, 5, 1):
        with pytest.raises(NoRoomError):
            fitted(render, PASSAGE, tokeniser, limit)


@given(st.text(max_size=80), st.text(max_size=20), st.integers(1, 120))
def test_the_question_is_never_cut(passage: str, question: str, limit: int) -> None:
    def render(part: str) -> str:
        return f"Q: {question} C: {part} A:"

    try:
        tokens, part = fitted(render, passage, Characters(), limit)
    except NoRoomError:
        assert len(render(passage[:1])) + 1 > limit
        return
    assert len(tokens) <= limit
    assert part == passage[: limit - len(render("")) - 1]
    assert "".join(map(chr, tokens[:-1])) == render(part)


@pytest.mark.parametrize(("kind", "model"), [("seq2seq", "t5"), ("causal", "llama"), ("causal", "gpt2")])
@pytest.mark.parametrize("decode", ["choices", "beam"])
def test_no_prompt_is_longer_than_the_model_accepts(
    models: dict[str, Path], kind: str, model: str, decode: str
) -> None:
    settings = GraderSection(name=kind, model=str(models[model]), decode=decode, max_new_tokens=20)
    grader = create(settings, Path())
    assert isinstance(grader, LanguageGrader)
    if kind == "seq2seq":
        assert grader.max_length == 512
    else:
        assert grader.max_length == 1024 - (20 if decode == "beam" else 16)
    rng = random.Random(3)
    words = ["relevant", "complete", "gaps", "na\u00efve", "12,000", "context"]
    cells = [
        ask(" ".join(rng.choices(words, k=size)), "Is it complete?", doc_id=f"d{size}")
        for size in (1, 100, 150, 200, 400, 1200)
    ]
    jobs = grader._prepare([*zip(cells)])[0]
    question = grader.backend.tokens.encode(["Is it complete?"])[0][1:-1]
    for job in jobs:
        assert len(job.tokens) <= grader.max_length
        joined = " ".join(map(str, job.tokens))
        assert " ".join(map(str, question[1:-1])) in joined
    assert len(jobs[0].tokens) < grader.max_length
    # A token of the passage may become two: at most a few are left unused.
    assert len(jobs[-1].tokens) >= grader.max_length - 3


@pytest.mark.parametrize(("stated", "limit"), [(2_048, 2_048), (512, 512), (None, 512)])
def test_a_t5_accepts_as_many_tokens_as_its_tokenizer_says(
    models: dict[str, Path], tmp_path: Path, stated: int | None, limit: int
) -> None:
    folder = shutil.copytree(models["t5"], tmp_path / "model")
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_bytes())
    settings.pop("model_max_length")
    path.write_text(json.dumps(settings | ({"model_max_length": stated} if stated else {})))
    grader = create(GraderSection(name="seq2seq", model=str(folder)), Path())
    assert grader.identity["max_length"] == limit


@pytest.mark.parametrize(("kind", "model"), [("seq2seq", "t5"), ("causal", "llama"), ("causal", "gpt2")])
def test_a_passage_cannot_contain_special_tokens(models: dict[str, Path], kind: str, model: str) -> None:
    grader = create(GraderSection(name=kind, model=str(models[model])), Path())
    assert isinstance(grader, LanguageGrader)
    tokenizer = grader.backend.tokens.tokenizer  # type: ignore[attr-defined]
    special = list(tokenizer.added_tokens_encoder)
    assert special
    (plain, forged), _ = grader._prepare(
        [(ask("a passage", "Is it?"),), (ask(f"a passage {' '.join(special)} 5", f"Is it? {special[0]}"),)]
    )
    ids = set(tokenizer.added_tokens_encoder.values()) - {tokenizer.unk_token_id}
    assert [token for token in forged.tokens if token in ids] == [t for t in plain.tokens if t in ids]
