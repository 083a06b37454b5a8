"""What all models in this process have in common: a folder, a tokenizer, a device; and making a grader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.environment import environment_of
from trecexam.graders.language import loading
from trecexam.graders.language.backend import Backend
from trecexam.graders.language.grader import LanguageGrader, chosen_decoding, chosen_prompts
from trecexam.graders.language.tokens import PromptTokens
from trecexam.graders.weights import model_folder


class LocalModel:
    """A model of transformers. Nothing is loaded before it is needed."""

    #: The class of transformers that loads it.
    auto_class: ClassVar[str]
    #: Tokens of a batch that were fastest, by kind of device.
    budgets: ClassVar[Mapping[str, int]]
    #: Whether prompts go into the tokenizer's chat template, where it has one.
    chat: ClassVar[bool] = False
    reproducible: bool = False

    def __init__(self, folder: Path, device: str | None = None, dtype: str = "auto") -> None:
        self.folder = folder
        self._device, self._dtype = device, dtype

    @cached_property
    def tokens(self) -> PromptTokens:
        return PromptTokens(loading.load_tokenizer(self.folder), chat=self.chat)

    @cached_property
    def device(self) -> str:
        return loading.best_device(self._device)

    @cached_property
    def model(self) -> Any:
        dtype = loading.best_dtype(self._dtype, self.device)
        return loading.load_model(self.folder, self.auto_class, self.device, dtype)

    @property
    def environment(self) -> Mapping[str, str] | None:
        """What the model runs on; None before it is loaded."""
        loaded = self.__dict__.get("model")
        return None if loaded is None else environment_of(loaded, reproducible=self.reproducible)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokens.encode(texts)

    def plain(self, text: str) -> str:
        return self.tokens.plain(text)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.tokens.ends(text)

    def budget(self) -> int:
        return self.budgets.get(self.device.split(":")[0], self.budgets["cpu"])


def local_grader(
    settings: GraderSection,
    root: Path,
    make: Callable[[Path, str | None, str], Backend],
    name: str,
    *,
    default: str | None,
    passage_first: bool,
) -> LanguageGrader:
    """A grader by its settings.

    Args:
        make: folder, device, dtype -> the model.
        name: the grader's.
        default: the model where the settings name none.
        passage_first: where the settings do not say.

    Raises:
        GraderError: a package or the model is missing, or the settings do not go together.
    """
    missing = loading.missing_for_models()
    if missing:
        raise GraderError(f"the `{name}` grader cannot run: {missing}")
    model = settings.model or default
    if model is None:
        raise GraderError(f"the `{name}` grader has no model: {loading.HOW_TO_GET}")
    folder = model_folder(model, settings.revision, root, name, loading.HOW_TO_GET)
    first = passage_first if settings.passage_first is None else settings.passage_first
    prompts = chosen_prompts(settings, root, passage_first=first)
    return LanguageGrader(
        make(folder, settings.device, settings.dtype),
        prompts,
        chosen_decoding(settings, prompts),
        Path(model).name,
        folder,
        max_length=settings.max_length,
        max_batch_tokens=settings.max_batch_tokens,
        compat=settings.compat,
        memory=root / ".trecexam" / "weights.json",
    )
