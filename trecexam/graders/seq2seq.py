"""The `seq2seq` grader: FLAN-T5 and kin, on transformers' T5 classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Factory
from trecexam.graders.language import loading
from trecexam.graders.language.backend import Job
from trecexam.graders.language.choices import ChoiceTree
from trecexam.graders.language.grader import LanguageGrader, chosen_decoding, chosen_prompts
from trecexam.graders.language.tokens import PromptTokens, answer_tokens
from trecexam.graders.weights import model_folder

if TYPE_CHECKING:
    import torch

    from trecexam.graders.language.t5 import T5Scorer

#: The model of the Rubric and EXAM papers.
FLAN_T5_LARGE = "google/flan-t5-large"
#: T5's relative positions know no end, but it was trained on so many tokens.
T5_LENGTH = 512
#: Batches that were fastest: large on a GPU, small enough for a processor's cache elsewhere.
BUDGET = {"cuda": 65_536, "cpu": 2_048}


class Seq2SeqBackend:
    """A T5 model. Loaded when it is first needed."""

    name = "seq2seq"

    def __init__(self, folder: Path, device: str | None = None, dtype: str = "auto") -> None:
        self.folder = folder
        self._device, self._dtype = device, dtype

    @cached_property
    def tokens(self) -> PromptTokens:
        return PromptTokens(loading.load_tokenizer(self.folder))

    @cached_property
    def device(self) -> str:
        return loading.best_device(self._device)

    @cached_property
    def model(self) -> Any:
        from trecexam.graders.language.t5 import SUPPORTED

        dtype = loading.best_dtype(self._dtype, self.device)
        model = loading.load_model(self.folder, "AutoModelForSeq2SeqLM", self.device, dtype)
        found = type(model).__name__
        if found not in SUPPORTED:
            raise GraderError(
                f"the `seq2seq` grader runs {' and '.join(SUPPORTED)}; this model is a {found}",
                path=self.folder,
            )
        return model

    @cached_property
    def end(self) -> int:
        """The token that ends an answer."""
        found: int | None = self.tokens.tokenizer.eos_token_id
        if found is None:
            raise GraderError("this model has no token that ends an answer (eos_token_id)", path=self.folder)
        return found

    @cached_property
    def scorer(self) -> T5Scorer:
        from trecexam.graders.language.t5 import T5Scorer

        with loading.out_of_memory():
            return T5Scorer(self.model)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokens.encode(texts)

    def plain(self, text: str) -> str:
        return self.tokens.plain(text)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.tokens.ends(text)

    def length_limit(self, new_tokens: int) -> int:
        return min(loading.written_limit(self.folder), T5_LENGTH)

    def budget(self) -> int:
        return BUDGET.get(self.device.split(":")[0], BUDGET["cpu"])

    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        import torch

        tree = ChoiceTree.of(answer_tokens(self.tokens.tokenizer, answers, self.folder))
        with torch.inference_mode(), loading.out_of_memory():
            tokens, mask = self._padded(jobs)
            hidden = self.scorer.encode(tokens, mask)
            scores = self.scorer.log_probabilities(hidden, mask, tree, self.end)

        def result() -> list[list[float]]:
            with loading.out_of_memory():
                found: list[list[float]] = scores.tolist()
            return found

        return result

    def generate(self, jobs: Sequence[Job], beams: int, new_tokens: int) -> Callable[[], list[str]]:
        import torch

        with torch.inference_mode(), loading.out_of_memory():
            tokens, mask = self._padded(jobs)
            found = self.model.generate(
                input_ids=tokens,
                attention_mask=mask.long(),
                generation_config=loading.beam_search(
                    self.model, beams, new_tokens, self.tokens.tokenizer.pad_token_id, self.end
                ),
            )
        return lambda: self.tokens.texts(found.tolist())

    def _padded(self, jobs: Sequence[Job]) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens padded at the end, and True where there is a token; shape (jobs, longest)."""
        import torch

        # Tensor cores, and the attention kernel's bias, want lengths in steps of 8.
        step = 8 if self.device.startswith("cuda") else 1
        longest = -(-max(job.length for job in jobs) // step) * step
        pad = self.tokens.tokenizer.pad_token_id
        rows = [[*job.tokens, *[pad] * (longest - job.length)] for job in jobs]
        tokens = torch.tensor(rows, device=self.device)
        lengths = torch.tensor([job.length for job in jobs], device=self.device)
        return tokens, torch.arange(longest, device=self.device)[None] < lengths[:, None]


def _create(settings: GraderSection, root: Path) -> LanguageGrader:
    missing = loading.missing_packages()
    if missing:
        raise GraderError(f"the `seq2seq` grader cannot run: {missing}")
    model = settings.model or FLAN_T5_LARGE
    folder = model_folder(model, settings.revision, root, "seq2seq", loading.HOW_TO_GET)
    prompts = chosen_prompts(settings, root, passage_first=bool(settings.passage_first))
    return LanguageGrader(
        Seq2SeqBackend(folder, settings.device, settings.dtype),
        prompts,
        chosen_decoding(settings, prompts),
        Path(model).name,
        folder,
        max_length=settings.max_length,
        max_batch_tokens=settings.max_batch_tokens,
        compat=settings.compat,
        memory=root / ".trecexam" / "weights.json",
    )


FACTORY = Factory(
    summary="FLAN-T5 and kin (T5, mT5): the published Rubric and EXAM graders",
    missing=loading.missing_packages,
    create=_create,
)
