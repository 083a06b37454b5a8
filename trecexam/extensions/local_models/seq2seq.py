"""The `seq2seq` grader: FLAN-T5 and similar ones, on transformers' T5 classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.choices import ChoiceTree
from trecexam.extensions.local_models.grader import LanguageGrader, local_grader, local_reading
from trecexam.extensions.local_models.local import CPU_BUDGET, LocalModel
from trecexam.extensions.local_models.tiles import Tile, in_order, padded_length
from trecexam.extensions.local_models.tokens import answer_tokens
from trecexam.graders.base import Factory

if TYPE_CHECKING:
    import torch

    from trecexam.extensions.local_models.t5 import T5Scorer

#: The model of the Rubric and EXAM papers.
FLAN_T5_LARGE = "google/flan-t5-large"
#: How far, in nats, an answer's log-probability may differ from transformers' own: bfloat16 rounds by less.
MOST_DIFFERENCE = 1.0
#: Rows of tiles in which answers are scored, by kind of device, and the steps of their lengths.
ANSWER_ROWS, ANSWER_STEP = {"cuda": 128, "cpu": 8}, 128
#: T5's relative positions know no end, but it was trained on so many tokens.
T5_LENGTH = 512


class Seq2SeqBackend(LocalModel):
    """A T5 model, loaded when first used."""

    name = "seq2seq"
    auto_class = "AutoModelForSeq2SeqLM"
    # Large on a GPU, small enough for a processor's cache elsewhere.
    budgets: ClassVar = {"cuda": 65_536, "cpu": CPU_BUDGET}

    @cached_property
    def model(self) -> Any:
        from trecexam.extensions.local_models.t5 import SUPPORTED

        model = super().model
        architecture = type(model).__name__
        if architecture not in SUPPORTED:
            raise GraderError(
                f"the `seq2seq` grader runs {' and '.join(SUPPORTED)}; this model is a {architecture}",
                path=self.folder,
            )
        return model

    @cached_property
    def end(self) -> int:
        """The token that ends an answer."""
        token: int | None = self.tokens.tokenizer.eos_token_id
        if token is None:
            raise GraderError("this model has no token that ends an answer (eos_token_id)", path=self.folder)
        return token

    @property
    def ends(self) -> list[int]:
        return [self.end]

    @property
    def pad(self) -> int:
        token: int = self.tokens.tokenizer.pad_token_id
        return token

    @cached_property
    def scorer(self) -> T5Scorer:
        from trecexam.extensions.local_models.t5 import T5Scorer

        with loading.out_of_memory():
            scorer = T5Scorer(self.model)
            off = scorer.difference(self.model, self.end)
        if not off <= MOST_DIFFERENCE:
            raise GraderError(
                "the installed transformers computes this model differently from trecexam "
                f"(by {off:.2g} nats): "
                'set `decode = "beam"` in [grader], which uses transformers alone, and please report it',
                path=self.folder,
            )
        return scorer

    def length_limit(self, new_tokens: int) -> int:
        return min(loading.written_limit(self.folder), T5_LENGTH)

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        return answer_tokens(self.tokens.tokenizer, texts, self.folder)

    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        tree = ChoiceTree.of(self.answers(answers))
        rows = [job.tokens for job in jobs]
        scores = self._scores(rows, tree)

        def result() -> list[list[float]]:
            with loading.out_of_memory():
                values: list[list[float]] = scores.tolist()
            return values

        return result

    def _scores(self, rows: Sequence[Sequence[int]], tree: ChoiceTree) -> torch.Tensor:
        """log P(answer, end | prompt), shape (prompts, answers).

        Prompts are read in tiles of few rows, so that few are filled up in vain; answers, a tenth of the
        work, are scored in tiles of more, as each reads all weights of the decoder.
        """
        import torch

        hidden: list[torch.Tensor] = [torch.empty(0)] * len(rows)
        # Made once, before threads need it.
        scorer = self.scorer

        def read(tile: Tile) -> torch.Tensor:
            tokens, mask = self.padded([rows[row_index] for row_index in tile.places], tile.length)
            return scorer.encode(tokens, mask)

        for tile, states in self.in_tiles([padded_length(len(row)) for row in rows], read, self.reading_rows):
            for row_index, state in zip(tile.places[: tile.n_prompts], states, strict=False):
                hidden[row_index] = state[: len(rows[row_index])]

        def answer(tile: Tile) -> torch.Tensor:
            like = hidden[tile.places[0]]
            states = like.new_zeros(len(tile.places), tile.length, like.shape[1])
            mask = torch.zeros(states.shape[:2], dtype=torch.bool, device=like.device)
            for tile_row, row_index in enumerate(tile.places):
                states[tile_row, : len(rows[row_index])] = hidden[row_index]
                mask[tile_row, : len(rows[row_index])] = True
            return scorer.log_probabilities(states, mask, tree, self.end)

        lengths = [padded_length(len(row), ANSWER_STEP) for row in rows]
        return in_order(self.in_tiles(lengths, answer, self._answer_rows))

    def _answer_rows(self, length: int) -> int:
        return self._suiting(ANSWER_ROWS)

    def planned_rows(self, length: int) -> int:
        return max(self.reading_rows(length), self._answer_rows(length))

    def _lengths(self, prompts: Sequence[Sequence[int]]) -> list[int]:
        # Tensor cores, and the attention kernel's bias, want lengths in steps of 8.
        step = 8 if self.device.startswith("cuda") else 1
        return [-(-len(prompt) // step) * step for prompt in prompts]

    def padded(self, prompts: Sequence[Sequence[int]], length: int) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        rows = [[*prompt, *[self.pad] * (length - len(prompt))] for prompt in prompts]
        tokens = torch.tensor(rows, device=self.device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        return tokens, torch.arange(length, device=self.device)[None] < lengths[:, None]


def _create(settings: GraderSection, root: Path) -> LanguageGrader:
    return local_grader(settings, root, Seq2SeqBackend, default=FLAN_T5_LARGE, passage_first=False)


FACTORY = Factory(
    summary="FLAN-T5 and similar ones (T5, mT5): the published Rubric and EXAM graders",
    missing=loading.missing_for_models,
    create=_create,
    standard=True,
    reading=local_reading,
)
