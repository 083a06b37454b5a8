"""What a language model behind a grader does: tokens of prompts in, answers out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from trecexam.extensions.local_models.batching import Plan
from trecexam.graders.base import Cell
from trecexam.graders.prompts import Prompt


class Job(NamedTuple):
    """A tokenised prompt about a cell, or about several. Jobs of one `group` may share their first tokens.

    `prefix` of these are what every prompt about this passage begins with, whatever it asks; 0 where that is
    not known.
    """

    cells: tuple[Cell, ...]
    prompt: Prompt
    tokens: Sequence[int]
    group: int
    prefix: int = 0

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return len(self.tokens)


class ModelOutput(NamedTuple):
    """What a model said: its text, or in `choices` the best answer and each answer's probability.

    Where it was asked for a list held to permitted labels, `listed` has an output for each of them.
    """

    text: str
    probabilities: tuple[float, ...] | None = None
    listed: tuple[ModelOutput, ...] = ()


class Backend(Protocol):
    """A model with its tokenizer. Nothing is loaded before it is needed."""

    #: The grader's name.
    name: str

    @property
    def environment(self) -> Mapping[str, str] | None:
        """What it runs on, see `Grader`; None before it is loaded."""
        ...

    @property
    def wants_prefixes(self) -> bool:
        """Whether it wants to know the `prefix` of jobs."""
        ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of whole prompts, special tokens and chat template included. May run in any thread."""
        ...

    def plain(self, text: str) -> str:
        """The text with nothing in it that would be read as a special token."""
        ...

    def token_ends(self, text: str) -> Sequence[int]:
        """Where each token of a plain text ends in it."""
        ...

    def length_limit(self, new_tokens: int) -> int:
        """How many tokens a prompt may have where `new_tokens` may follow.

        Raises:
            GraderError: none.
        """
        ...

    def budget(self) -> int:
        """Tokens of a batch that suit the device."""
        ...

    def least_budget(self) -> int:
        """Tokens that go through the model at once in any case."""
        ...

    def plan(self, jobs: Sequence[Job], max_tokens: int) -> Plan:
        """Cuts jobs into batches; see `batching.plan`."""
        ...

    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        """Starts scoring; the call returned waits for log P(answer, end | prompt), per job and answer.

        Raises:
            OutOfMemoryError: here or in the call returned.
        """
        ...

    def list_labels(
        self, jobs: Sequence[Job], labels: Sequence[str]
    ) -> Callable[[], list[list[tuple[float, ...]]]]:
        """Starts writing lists of labels; the call returned waits for each label's share, per job and cell.

        Raises:
            OutOfMemoryError: here or in the call returned.
        """
        ...

    def generate(self, jobs: Sequence[Job], beams: int, new_tokens: int) -> Callable[[], list[str]]:
        """Starts free-text answering by beam search; the call returned waits for the texts."""
        ...
