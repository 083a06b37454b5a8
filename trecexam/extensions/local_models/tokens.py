"""Conversion of texts to tokens and back, in the same way for every model."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from trecexam.errors import GraderError

#: A base model's answer follows this; only where the words of the answer begin depends on it.
CUE = "Answer:"
#: Fixed date for chat templates (Llama 3's default), so that answers do not depend on the day.
TODAY = datetime.datetime(2024, 7, 26)


class PromptTokens:
    """A tokenizer for a grader's prompts.

    Args:
        tokenizer: a fast tokenizer of transformers.
        decoder_only: answers follow the prompt, which is wrapped in the tokenizer's chat template, if any.
    """

    def __init__(self, tokenizer: Any, *, decoder_only: bool = False) -> None:
        self.tokenizer = tokenizer
        self.chat = decoder_only and bool(getattr(tokenizer, "chat_template", None))
        self._cue = CUE if decoder_only and not self.chat else None
        # Items of a passage are consecutive.
        self.token_ends = lru_cache(maxsize=64)(self._token_ends)
        self.plain = lru_cache(maxsize=1024)(self._plain)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of whole prompts, never cut."""
        if not texts:
            return []
        if self.chat:
            texts = [self._chat(text) for text in texts]
        # verbose=False: too long prompts are cut later, in the passage only.
        encoded: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=not self.chat, truncation=False, padding=False, verbose=False
        )["input_ids"]
        return encoded

    def _plain(self, text: str) -> str:
        """Return the text without the tokenizer's special tokens.

        A passage that spells "</s>" or "<|end|>" must not end the prompt, nor speak in the model's place.
        """
        return self._special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)

    @cached_property
    def _special(self) -> re.Pattern[str]:
        added = (str(token.content) for token in self.tokenizer.added_tokens_decoder.values())
        spelled = sorted((text for text in added if len(text.strip()) > 1), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, spelled)) or r"(?!)")

    def _token_ends(self, text: str) -> list[int]:
        """Return the end of each token in a plain text, without tokens of zero width."""
        offsets = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )["offset_mapping"]
        # A character may have several tokens: cut only after a whole character.
        return sorted({end for start, end in offsets if end > start})

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of tokens, without special tokens and surrounding white space."""
        return [text.strip() for text in self.tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def _chat(self, text: str) -> str:
        try:
            rendered: str = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": text}],
                tokenize=False,
                add_generation_prompt=True,
                strftime_now=TODAY.strftime,
                # Disable thinking (Qwen 3).
                enable_thinking=False,
            )
        except Exception as error:
            # A template is third-party code and can raise any error.
            raise GraderError(
                f"this model's chat template fails: {error}", path=self.tokenizer.name_or_path
            ) from error
        return rendered

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of permitted answers after a prompt.

        Raises:
            GraderError: the tokenizer cannot write an answer, or cannot tell two of them apart.
        """
        encoded = [self._answer(text) for text in texts]
        unknown = self.tokenizer.unk_token_id
        for text, tokens in zip(texts, encoded, strict=True):
            if not tokens or (unknown is not None and unknown in tokens):
                reason = f"this model's tokenizer cannot write the answer '{text}'"
            elif encoded.count(tokens) > 1:
                reason = f"this model's tokenizer changes the answer '{text}' into another one"
            else:
                continue
            raise GraderError(reason, path=self.tokenizer.name_or_path)
        return encoded

    def _answer(self, text: str) -> list[int]:
        texts = [text] if self._cue is None else [self._cue, f"{self._cue} {text}", f" {text}"]
        tokens = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        if self._cue is None:
            return list(tokens[0])
        before, whole, alone = tokens
        return list(whole[len(before) :] if whole[: len(before)] == before else alone)
