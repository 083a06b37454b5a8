"""A local language model: takes tokens of prompts, returns answers."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import OutOfMemoryError, Plan
from trecexam.extensions.local_models.lists import LabelLists, ListTokens
from trecexam.extensions.local_models.tiles import (
    Tile,
    all_of,
    in_order,
    n_rows,
    padded_length,
    plan_tiles,
    tiles,
)
from trecexam.extensions.local_models.tokens import PromptTokens
from trecexam.graders.environment import environment_of
from trecexam.graders.threads import several_at_once

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig

Result = TypeVar("Result")
Made = TypeVar("Made")

#: Tokens of a tile on a CPU: enough for the one core that reads it.
CPU_TOKENS = 128
#: Tokens of a tile of prompts that texts are written for: each of their tokens reads all weights.
WRITING_TOKENS = {"cuda": 8_192, "cpu": 1_024}
#: The same where any text is written, and the step of these tiles' lengths: most of the time goes into the
#: many tokens of an answer, so that fewer and larger tiles are worth their padding.
FREE_TOKENS, FREE_STEP = {"cuda": 32_768, "cpu": 2_048}, 64
#: Tokens of a batch on a CPU: a tile to write for, for each core. It does not change any answer.
CPU_BUDGET = WRITING_TOKENS["cpu"] * max(2, os.cpu_count() or 1)
#: Into how many parts tiles are cut, at most, where they do not fit into memory.
SMALLEST = 2**16


class LocalModel(ABC):
    """A model of transformers with its tokenizer, loaded when first used.

    Args:
        device: as torch names it; None for the best one here.
        dtype: "auto", or as torch names it.
        reproducible: what a prompt gives is bit for bit the same whatever else is in the batch (`tiles`).
    """

    #: The grader's name.
    name: ClassVar[str]
    #: The class of transformers that loads it.
    auto_class: ClassVar[str]
    #: Tokens of a batch that were fastest, by kind of device.
    budgets: ClassVar[Mapping[str, int]]
    #: Tokens of a tile of prompts, by kind of device.
    reading_tokens: ClassVar[Mapping[str, int]] = {"cuda": 16_384, "cpu": CPU_TOKENS}
    #: Whether prompts go into the tokenizer's chat template, where it has one.
    chat: ClassVar[bool] = False
    #: Whether jobs need their `prefix`.
    wants_prefixes: ClassVar[bool] = False
    #: Whether what it writes begins with the prompt.
    repeats_prompts: ClassVar[bool] = False

    def __init__(
        self,
        folder: Path,
        device: str | None = None,
        dtype: str = "auto",
        *,
        reproducible: bool = False,
    ) -> None:
        self.folder = folder
        self._device, self._dtype = device, dtype
        self.reproducible = reproducible
        self._smaller = 1

    @cached_property
    def tokens(self) -> PromptTokens:
        return PromptTokens(loading.load_tokenizer(self.folder), chat=self.chat)

    @cached_property
    def device(self) -> str:
        return loading.best_device(self._device)

    @cached_property
    def model(self) -> Any:
        dtype = loading.best_dtype(self._dtype, self.device)
        model = loading.load_model(self.folder, self.auto_class, self.device, dtype)
        if self.reproducible:
            from trecexam.graders.activations import part_evenly

            part_evenly(model)
        return model

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The model's environment; None before it is loaded."""
        loaded = self.__dict__.get("model")
        return None if loaded is None else environment_of(loaded)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of whole prompts, special tokens and chat template included. May run in any thread."""
        return self.tokens.encode(texts)

    def plain(self, text: str) -> str:
        """The text without special tokens."""
        return self.tokens.plain(text)

    def token_ends(self, text: str) -> Sequence[int]:
        """The end of each token in a plain text."""
        return self.tokens.ends(text)

    @property
    @abstractmethod
    def pad(self) -> int:
        """The padding token."""

    @property
    @abstractmethod
    def ends(self) -> list[int]:
        """The tokens that end an answer.

        Raises:
            GraderError: the model has no such token.
        """

    @abstractmethod
    def length_limit(self, new_tokens: int) -> int:
        """The maximum length of a prompt with `new_tokens` after it.

        Raises:
            GraderError: none.
        """

    @abstractmethod
    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of permitted answers after a prompt."""

    @abstractmethod
    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        """Starts scoring; the call returned waits for log P(answer, end | prompt), per job and answer.

        Raises:
            OutOfMemoryError: here or in the call returned.
        """

    @abstractmethod
    def padded(self, prompts: Sequence[Sequence[int]], length: int) -> tuple[Tensor, Tensor]:
        """Padded tokens and their mask; shape (prompts, length)."""

    def list_labels(
        self, jobs: Sequence[Job], labels: Sequence[str]
    ) -> Callable[[], list[list[tuple[float, ...]]]]:
        """Starts writing lists of labels; the call returned waits for each label's share, per job and cell.

        See `LabelLists.scores` for what they say.

        Raises:
            GraderError: this model cannot write so.
            OutOfMemoryError: there are too many.
        """
        tokens = ListTokens.of(labels, self.answers, self.folder)
        numbers = [len(job.cells) for job in jobs]
        scores: list[list[tuple[float, ...]]] = [[] for _ in jobs]

        def of(job_indices: Sequence[int]) -> LabelLists:
            lists = LabelLists(tokens, [numbers[job_index] for job_index in job_indices], self.ends[0])
            # A tile is filled up at its end.
            for job_index, row in reversed(list(zip(job_indices, lists.scores, strict=True))):
                scores[job_index] = row
            return lists

        try:
            self.continued([job.tokens for job in jobs], self.decoding(tokens.longest(max(numbers))), of)
        except (ValueError, NotImplementedError) as error:
            raise GraderError(
                f"this model cannot write lists: {loading.line_of(error)}", path=self.folder
            ) from error
        return lambda: scores

    def generate(
        self, jobs: Sequence[Job], beams: int, new_tokens: int
    ) -> Callable[[], list[tuple[str, bool]]]:
        """Starts free-text answering by beam search; the call returned waits for the texts.

        With each text comes whether it was stopped before its end.
        """
        try:
            generated = self.continued([job.tokens for job in jobs], self.decoding(new_tokens, beams=beams))
        except (ValueError, NotImplementedError) as error:
            raise GraderError(
                f'this model does not support `decode = "beam"`: {loading.line_of(error)}', path=self.folder
            ) from error
        return lambda: self.texts(generated.tolist())

    def texts(self, rows: Sequence[Sequence[int]]) -> list[tuple[str, bool]]:
        """Return the texts of generated tokens, and whether each was stopped before its end."""
        ends = set(self.ends)
        # T5 begins an answer with a token that may be one which ends it.
        first = int(not self.repeats_prompts)
        return [
            (text, ends.isdisjoint(row[first:]))
            for text, row in zip(self.tokens.texts(rows), rows, strict=True)
        ]

    def decoding(self, new_tokens: int, *, beams: int = 1, temperature: float = 0.0) -> GenerationConfig:
        """Generation settings: the papers' beam search, greedy, or sampling."""
        from transformers import GenerationConfig

        drawing = {"do_sample": True, "temperature": temperature, "top_k": 0}
        return GenerationConfig(
            **(drawing if temperature > 0 else {"do_sample": False}),
            num_beams=beams,
            early_stopping=beams > 1,
            max_new_tokens=new_tokens,
            pad_token_id=self.pad,
            eos_token_id=self.ends,
            decoder_start_token_id=getattr(self.model.generation_config, "decoder_start_token_id", None),
        )

    def continued(
        self,
        rows: Sequence[Sequence[int]],
        decoding: GenerationConfig,
        lists: Callable[[Sequence[int]], LabelLists] | None = None,
        *,
        free: bool = False,
    ) -> Tensor:
        """The tokens that follow each prompt's, padded at the end; shape (prompts, new tokens).

        Args:
            lists: for places in `rows`, what holds the model to certain tokens there.
            free: any text is written.

        Raises:
            OutOfMemoryError: there are too many.
        """

        def of_tile(tile: Tile) -> Tensor:
            tokens, mask = self.padded([rows[row_index] for row_index in tile.places], tile.length)
            generated: Tensor = self.model.generate(
                input_ids=tokens,
                attention_mask=mask.long(),
                generation_config=decoding,
                logits_processor=None if lists is None else [lists(tile.places)],
            )
            return generated[:, tokens.shape[1] :] if self.repeats_prompts else generated

        lengths, rows_of = self.writing_tiles(rows, free=free)
        return self.texts_in_order(self.in_tiles(lengths, of_tile, rows_of))

    def budget(self) -> int:
        """The token budget of a batch for the device."""
        return self._suiting(self.budgets)

    def least_budget(self) -> int:
        """The smallest token budget: one tile."""
        return self._tile_tokens(self.reading_tokens)

    def plan(self, jobs: Sequence[Job], max_tokens: int) -> Plan:
        """Batches of whole tiles."""
        lengths = [padded_length(job.length) for job in jobs]
        return Plan(*plan_tiles(lengths, self.planned_rows, max_tokens))

    def planned_rows(self, length: int) -> int:
        """The number of prompts of this length per batch."""
        return self.reading_rows(length)

    def _tile_tokens(self, sizes: Mapping[str, int]) -> int:
        return max(1, self._suiting(sizes) // self._smaller)

    def in_tiles(
        self,
        lengths: Sequence[int],
        run: Callable[[Tile], Tensor],
        rows_of: Callable[[int], int],
    ) -> list[tuple[Tile, Tensor]]:
        """Computes prompts tile by tile, or as one tile if results need not be reproducible.

        Args:
            lengths: of the tiles that the prompts go into; of the prompts, where it need not be reproducible.
            run: computes a tile; its result has a row for each of the tile's.
            rows_of: the rows of a tile of a length.

        Raises:
            OutOfMemoryError: it does not fit.
        """

        def cut() -> list[Tile]:
            return tiles(lengths, rows_of) if self.reproducible else [all_of(lengths)]

        return self.fitting(lambda: self.of_each(cut(), run), smallest=len(cut()) == 1)

    def of_each(self, cut: Sequence[Tile], run: Callable[[Tile], Made]) -> list[tuple[Tile, Made]]:
        """Yields each tile with the result of `run`; uses one thread per tile on a CPU if reproducible."""
        import torch

        if not self.reproducible or not self.device.startswith("cpu"):
            return [(tile, run(tile)) for tile in cut]

        def alone(tile: Tile) -> Made:
            with torch.inference_mode():
                return run(tile)

        with several_at_once() as pool:
            return list(zip(cut, pool.map(alone, cut), strict=True))

    def reading_rows(self, length: int) -> int:
        """The rows of a tile of prompts of this length, for scoring."""
        return n_rows(length, self._tile_tokens(self.reading_tokens))

    def writing_rows(self, length: int) -> int:
        """The rows of a tile of prompts of this length, for decoding."""
        return n_rows(length, self._tile_tokens(WRITING_TOKENS))

    def free_rows(self, length: int) -> int:
        """The rows of a tile of prompts of this length, for free text."""
        return n_rows(length, self._tile_tokens(FREE_TOKENS))

    def writing_tiles(
        self, prompts: Sequence[Sequence[int]], *, free: bool
    ) -> tuple[list[int], Callable[[int], int]]:
        """The lengths of tiles for decoding, and the rows of each.

        Args:
            free: any text is written.
        """
        if not self.reproducible:
            return self._lengths(prompts), self.writing_rows
        # At least one token of padding: transformers drops the mask of a tile without padding, and attention
        # without a mask is another kernel, so that a full prompt's bits would depend on its neighbours.
        lengths = [padded_length(len(prompt) + 1, FREE_STEP if free else None) for prompt in prompts]
        return lengths, self.free_rows if free else self.writing_rows

    def _lengths(self, prompts: Sequence[Sequence[int]]) -> list[int]:
        """The padded lengths of prompts without reproducibility."""
        return [len(prompt) for prompt in prompts]

    def fitting(self, run: Callable[[], Result], *, smallest: bool = False) -> Result:
        """Runs a computation.

        Args:
            smallest: it is no more than a tile, so tiles that do not fit into memory are halved, from now
                on; then what they give may differ in its last bits from what it was before.

        Raises:
            OutOfMemoryError: it does not fit.
        """
        import torch

        while True:
            try:
                with torch.inference_mode(), loading.out_of_memory():
                    return run()
            except OutOfMemoryError:
                if not (self.reproducible and smallest and self._smaller < SMALLEST):
                    raise
                self._smaller *= 2

    def texts_in_order(self, parts: Sequence[tuple[Tile, Tensor]]) -> Tensor:
        """`in_order` for tokens of answers, padded at the end to the longest."""
        from torch.nn.functional import pad

        longest = max(tokens.shape[1] for _, tokens in parts)
        return in_order(
            [(tile, pad(tokens, (0, longest - tokens.shape[1]), value=self.pad)) for tile, tokens in parts]
        )

    def _suiting(self, sizes: Mapping[str, int]) -> int:
        return sizes.get(self.device.split(":")[0], sizes["cpu"])
