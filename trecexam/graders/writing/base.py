"""What a writer is: prompts in, texts out. It knows neither queries nor banks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trecexam.errors import GraderError
from trecexam.extension import extensions, named
from trecexam.graders.base import Estimate, Usage

if TYPE_CHECKING:
    from trecexam.graders.server.meter import Meter


class WrittenText(NamedTuple):
    """What a model wrote. `cut`: it was stopped before its end.

    `tokens_in` and `tokens_out` are as a server counts them; None where nobody does.
    """

    text: str
    cut: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None


class Unwritten(NamedTuple):
    """In place of a text: why there is none, as follows "the model ..."; `refused`: it will not say."""

    reason: str
    refused: bool = False


class Fitted(NamedTuple):
    """A prompt that a model can take, and whether the text in it had to be cut for that."""

    prompt: str
    cut: bool


class Writer(Protocol):
    """Writes answers to prompts.

    Attributes:
        model: its name, stored with its texts.
        new_tokens: the most tokens of an answer.
        seed: of its random numbers; None where none is set.
        identity: everything that can change a text, but the prompt; known before any model is loaded.
        used: what it took since it was made; nothing where tokens are not counted.
        paid: whether answers on their way may have to be paid for, wanted or not.
        meter: counts what is paid for; None where nothing is.
        environment: what a model in this process runs on; None before it is loaded, and of others.
    """

    @property
    def model(self) -> str: ...

    @property
    def new_tokens(self) -> int: ...

    @property
    def seed(self) -> int | None: ...

    @property
    def identity(self) -> Mapping[str, Any]: ...

    @property
    def used(self) -> Usage: ...

    @property
    def paid(self) -> bool: ...

    @property
    def meter(self) -> Meter | None: ...

    @property
    def environment(self) -> Mapping[str, str] | None: ...

    def plain(self, text: str) -> str:
        """The text with nothing in it that the model would take for a control token."""
        ...

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        """The prompt with as much of `text` as the model takes: its end is cut, and nothing else.

        Args:
            render: the text, plain already -> the prompt.
        """
        ...

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        """(prompt, text), as they come, in any order. A list may be empty: then it is still at work.

        Raises:
            UngradedError: it gave what it can give now.
            GraderError: it cannot write at all; the message says what to do.
        """
        ...

    def estimate(self, prompts: Sequence[str], before: Usage) -> Estimate:
        """What it would take to answer these, after what it took before; asks nobody."""
        ...

    def cost(self, used: Usage) -> float | None:
        """The money that so many tokens take; None where no prices are set."""
        ...

    def start_from(self, before: Usage) -> None:
        """Tells it what it took before, for budgets."""
        ...


@dataclass(frozen=True)
class LocalModelSettings:
    """Which model writes, where its files are on every machine, and how it writes.

    Attributes:
        kind: "causal" or "seq2seq".
        temperature: 0 writes what is most probable.
        new_tokens: that an answer may have.
        max_batch_tokens: of prompts and answers together; None for what suits the device.
        system: what the model is told before each prompt. Not all chat templates know a system's message,
            so it is at the head of the prompt.
        max_length: tokens of a prompt; None for what the model takes.
    """

    kind: str
    folder: Path
    name: str
    temperature: float
    seed: int | None
    new_tokens: int
    device: str | None = None
    dtype: str = "auto"
    max_batch_tokens: int | None = None
    system: str = ""
    max_length: int | None = None


class ModelsHere(Protocol):
    """Language models in this process; an extension declares them as `models`.

    Attributes:
        default: the model of `seq2seq` where none is named.
        how_to_get: what to do where there is no model, as an error says it.
    """

    default: str
    how_to_get: str

    def missing(self) -> str:
        """What must be installed first; "" where nothing is missing."""
        ...

    def writer(self, settings: LocalModelSettings, memory: Path | None, section: str) -> LocalWriting:
        """The writer; it loads nothing before its first prompt.

        Args:
            memory: where digests of weights are kept.
            section: of trecexam.toml, that errors name.
        """
        ...


class LocalWriting(Writer, Protocol):
    """A writer that is a model in this process.

    Attributes:
        is_here: whether it runs here, and not on another machine.
    """

    is_here: bool

    def complete(self, prompts: Sequence[str]) -> list[WrittenText | Unwritten]:
        """A text for each prompt, in their order: what a worker of a cluster does."""
        ...


@cache
def models_here() -> ModelsHere:
    """The one that is installed.

    Raises:
        GraderError: none is.
    """
    at = next((extension.models for extension in extensions() if extension.models is not None), None)
    if at is None:
        raise GraderError("no extension here runs a language model: name a server in `base_url`")
    models: ModelsHere = named(at)
    return models


@contextlib.contextmanager
def naming(section: str) -> Iterator[None]:
    """Has errors that send the reader to [grader] name the section that counts instead."""
    try:
        yield
    except GraderError as error:
        if section == "grader":
            raise
        raise type(error)(
            error.reason.replace("[grader]", f"[{section}]"), path=error.path, line=error.line
        ) from error.__cause__
