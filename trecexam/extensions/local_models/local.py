"""A local language model from prompt tokens to answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job, on_device
from trecexam.extensions.local_models.batching import Budget, plan
from trecexam.extensions.local_models.lists import LabelLists
from trecexam.extensions.local_models.tokens import PromptTokens
from trecexam.files.stamps import stamp
from trecexam.graders.weights import environment_on, shared_model

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig

    from trecexam.extensions.local_models.choices import ChoiceTree

#: Tokens per batch for scoring answers, and for writing answers.
SCORING, WRITING = {"cuda": 32_768, "cpu": 4_096}, {"cuda": 131_072, "cpu": 16_384}
#: Prompts of the first window and of later windows: a GPU must not wait for a slow tokenizer, and a CPU soon
#: turns to more useful cells.
WINDOWS = {"cuda": (2_048, 16_384), "cpu": (512, 1_024)}


class LocalModel(ABC):
    """A model of transformers with its tokenizer, loaded when first used.

    Args:
        device: device name; None for the best device.
        dtype: "auto", or as torch names it.
    """

    #: The grader's name.
    name: ClassVar[str]
    #: Class of transformers that loads the model.
    auto_class: ClassVar[str]
    #: True for decoder-only models, which use chat templates and repeat the prompt in their output.
    decoder_only: ClassVar[bool] = False
    #: Default model.
    default_model: ClassVar[str | None] = None

    def __init__(self, folder: Path, device: str | None = None, dtype: str = "auto") -> None:
        self.folder = folder
        self._device, self._dtype = device, dtype
        self._budgets: dict[tuple[int, int, int], Budget] = {}
        self._trees: dict[tuple[str, ...], ChoiceTree] = {}

    @classmethod
    def shared(cls, folder: Path, device: str | None, dtype: str) -> Self:
        """Return the process's shared model of these files, or a new model."""
        files = tuple(stamp(path) for path in sorted(folder.iterdir()))
        key = cls, folder.absolute(), device, dtype, files
        return shared_model(key, lambda: cls(folder, device, dtype))

    @cached_property
    def tokens(self) -> PromptTokens:
        return PromptTokens(loading.load_tokenizer(self.folder), decoder_only=self.decoder_only)

    @cached_property
    def device(self) -> str:
        return loading.best_device(self._device)

    @cached_property
    def model(self) -> Any:
        dtype = loading.best_dtype(self._dtype, self.device)
        return loading.load_model(self.folder, self.auto_class, self.device, dtype)

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The model's environment, with sizes of batches that memory limits; None before it is loaded."""
        loaded = self.__dict__.get("model")
        if loaded is None:
            return None
        lowered = sorted(str(budget.tokens) for budget in self._budgets.values() if budget.lowered)
        weights = next(loaded.parameters())
        environment = environment_on(weights.device, str(weights.dtype).removeprefix("torch."))
        return environment | ({"batch_tokens": " ".join(lowered)} if lowered else {})

    @cached_property
    def ends(self) -> list[int]:
        """The tokens that end an answer; chat models have one for the turn and one for the text."""
        configured = self.model.generation_config.eos_token_id
        ids = [] if configured is None else [configured] if isinstance(configured, int) else list(configured)
        if not ids and self.tokens.tokenizer.eos_token_id is not None:
            ids = [self.tokens.tokenizer.eos_token_id]
        if not ids:
            raise GraderError("this model has no token that ends an answer (eos_token_id)", path=self.folder)
        return sorted(set(ids))

    @property
    def pad(self) -> int:
        """The padding token."""
        token: int | None = self.tokens.tokenizer.pad_token_id
        return self.ends[0] if token is None else token

    @abstractmethod
    def length_limit(self, new_tokens: int) -> int:
        """Return the maximum length of a prompt with `new_tokens` after it."""

    @abstractmethod
    def log_probabilities(self, jobs: Sequence[Job[Any]], tree: ChoiceTree, max_tokens: int) -> Tensor:
        """Return log P(answer, end | prompt), shape (jobs, answers)."""

    def score(
        self, jobs: Sequence[Job[Any]], answers: Sequence[str], max_tokens: int
    ) -> Callable[[], list[list[float]]]:
        """Start scoring; the call returned waits for log P(answer, end | prompt), per job and answer.

        Raises:
            OutOfMemoryError: here or in the call returned.
        """
        import torch

        with torch.inference_mode(), loading.out_of_memory():
            scores = self.log_probabilities(jobs, self._tree(answers), max_tokens)
            on_cuda = scores.device.type == "cuda"
            scores = scores.to("cpu", non_blocking=on_cuda)
            arrived = torch.cuda.current_stream(scores.device).record_event() if on_cuda else None

        def result() -> list[list[float]]:
            with loading.out_of_memory():
                if arrived is not None:
                    arrived.synchronize()
                rows: list[list[float]] = scores.tolist()
            return rows

        return result

    def _tree(self, answers: Sequence[str]) -> ChoiceTree:
        from trecexam.extensions.local_models.choices import ChoiceTree

        key = tuple(answers)
        if key not in self._trees:
            self._trees[key] = ChoiceTree(self.tokens.answers(answers), self.ends, self.device)
        return self._trees[key]

    def width(self, length: int) -> int:
        """Return the length of a batch whose longest prompt has this length."""
        return length

    def padded(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return tokens and their mask, shape (prompts, length)."""
        import torch

        lengths = on_device(list(map(len, prompts)), self.device)[:, None]
        width = self.width(max(map(len, prompts)))
        tokens = on_device(prompts, self.device, self.pad, width, left=self.decoder_only)
        columns = torch.arange(width, device=self.device)
        return tokens, (columns.flip(0) if self.decoder_only else columns) < lengths

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

    def write(
        self, prompts: Sequence[Sequence[int]], decoding: GenerationConfig, lists: LabelLists | None = None
    ) -> list[tuple[str, bool]]:
        """Return the text after each prompt, and True if it was cut off.

        Args:
            lists: restricts the model to permitted tokens.

        Raises:
            GraderError: the model does not support this decoding.
            OutOfMemoryError: there are too many prompts.
        """
        import torch

        try:
            with torch.inference_mode(), loading.out_of_memory():
                tokens, mask = self.padded(prompts)
                generated = self.model.generate(
                    input_ids=tokens,
                    attention_mask=mask.long(),
                    generation_config=decoding,
                    logits_processor=None if lists is None else [lists],
                )
                # T5's start token of an answer may equal an end token.
                rows: list[list[int]] = generated[:, tokens.shape[1] if self.decoder_only else 1 :].tolist()
        except (ValueError, NotImplementedError) as error:
            raise GraderError(
                f"transformers cannot write texts with this model: {loading.line_of(error)}", path=self.folder
            ) from error
        ends = set(self.ends)
        texts = self.tokens.texts(rows)
        return [(text, ends.isdisjoint(row)) for text, row in zip(texts, rows, strict=True)]

    def budget(self, max_tokens: int | None, new_tokens: int = 0, beams: int = 1) -> Budget:
        """Return the budget of batches; the lowered one if memory ran out in such batches before.

        Args:
            max_tokens: tokens; None for a default by device.
        """
        import torch

        sizes = WRITING if new_tokens else SCORING
        suitable = sizes.get(self.device.split(":")[0], sizes["cpu"])
        if new_tokens and self.device.startswith("cuda"):
            # The default is for a card of 32 GiB, mostly for caches of answers.
            suitable *= max(1, torch.cuda.get_device_properties(self.device).total_memory // 2**35)
        budget = Budget(max_tokens or suitable, new_tokens, beams)
        return self._budgets.setdefault((budget.tokens, new_tokens, beams), budget)

    @property
    def windows(self) -> tuple[int, int]:
        """Prompts of the first window and of later ones."""
        return WINDOWS.get(self.device.split(":")[0], WINDOWS["cpu"])

    def plan(self, jobs: Sequence[Job[Any]], budget: Budget) -> list[list[int]]:
        """Cut jobs into batches within a budget."""
        sizes = [(self.width(job.length) + budget.new_tokens) * budget.beams for job in jobs]
        return plan(sizes, budget.tokens)
