"""What a writer is: prompts in, texts out. It knows neither queries nor banks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trecexam.errors import GraderError
from trecexam.extension import provided
from trecexam.graders.base import Estimate
from trecexam.graders.meter import Meter
from trecexam.graders.replies import Unwritten, WrittenText


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
        meter: counts what is paid for; None where nothing is.
        environment: what a model in this process runs on; None before it is loaded, and of others.
        is_here: True for a model in this process, which costs nothing but time.
    """

    model: str
    new_tokens: int
    seed: int | None

    @property
    def identity(self) -> Mapping[str, Any]: ...

    @property
    def meter(self) -> Meter | None: ...

    @property
    def environment(self) -> Mapping[str, str] | None: ...

    @property
    def is_here(self) -> bool: ...

    def plain(self, text: str) -> str:
        """Return the text with nothing in it that the model would take for a control token."""
        ...

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        """Return the prompt, `render` of a plain text, with as much of `text` as the model takes."""
        ...

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        """Yield (prompt, text), as they come, in any order. A list may be empty: then it is still at work.

        Raises:
            UngradedError: it gave what it can give now.
            GraderError: it cannot write at all; the message says what to do.
        """
        ...

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        """Return what it would take to answer these; asks nobody."""
        ...


@dataclass(frozen=True)
class LocalModelSettings:
    """Which model writes, where its files are on every machine, and how it writes.

    Attributes:
        kind: "causal" or "seq2seq".
        temperature: 0 writes what is most probable.
        new_tokens: that an answer may have.
        max_batch_tokens: of prompts and answers together; None for what suits the device.
        system: what stands before each prompt, as not all chat templates know a system's message.
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


def models_here() -> Any:
    """Return what has language models of this process write: `MODELS` of the extension local_models."""
    return provided("models")


@contextlib.contextmanager
def naming(section: str) -> Iterator[None]:
    """Have errors that send the reader to [grader] name the section that counts instead."""
    try:
        yield
    except GraderError as error:
        if section == "grader":
            raise
        raise type(error)(
            error.reason.replace("[grader]", f"[{section}]"), path=error.path, line=error.line
        ) from error.__cause__
