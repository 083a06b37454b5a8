"""Prompts that make a language model write items, published ones and files of users; and their steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from trecexam.errors import GraderError
from trecexam.extensions.banks.generation.reading import Kind, ReadItems, read_items
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import KeepingWriter, Kept
from trecexam.templates import TemplateFile, filled, published_prompt, read_own_prompt, slots

#: Slots of a template. `query_text`, `query` and `query_title` are the same: the query's text.
SLOTS = ("query_text", "query", "query_title", "query_subtopic")
#: The prompt that reads passages, step by step.
NUGGETIZER = "nuggetizer"


class ItemRequest(NamedTuple):
    """A request for the items of a query or of one of its sub-topics.

    `subtopic` and `facet_id` are "" and None for the whole query.
    """

    query_id: str
    query_text: str
    subtopic: str = ""
    facet_id: str | None = None

    def __str__(self) -> str:
        return f"{self.query_id} ({self.subtopic})" if self.subtopic else self.query_id


@dataclass(frozen=True)
class ItemPrompt:
    """A prompt that makes a language model write items.

    Attributes:
        name: name stored with each item.
        template: the text, with slots in braces (or Jinja's, where `jinja` is set).
        kind: kind of the written items: "question" or "nugget".
        number: requested number of items; None if unspecified.
    """

    name: str
    template: str
    kind: Kind
    number: int | None = None
    jinja: bool = False

    @property
    def by_subtopic(self) -> bool:
        """True if the prompt is sent for each sub-topic of a query."""
        return "query_subtopic" in slots(self.template, jinja=self.jinja)

    def text(self, request: ItemRequest, plain: Callable[[str], str] = str) -> str:
        """Return the prompt for one query. A slot's name inside a query stays unchanged.

        Args:
            plain: cleans filled-in texts, for example of control tokens.
        """
        query = plain(request.query_text)
        values = {**dict.fromkeys(SLOTS, query), "query_subtopic": plain(request.subtopic)}
        return filled(self.template, values, jinja=self.jinja, name=self.name)


class ItemPromptFile(TemplateFile):
    """Settings in the TOML file of a user's prompt."""

    writes: Kind | None = Field(
        None, description='What is written. Unset: nuggets, where the text has "nuggets" in quotes.'
    )
    number: int | None = Field(None, ge=1, description="Items to keep of an answer. Unset: all.")


@cache
def published() -> Mapping[str, ItemPrompt]:
    """Return the prompts of the Rubric workbench, and the AutoNuggetizer's, by name.

    Source: Dietz, "A Workbench for Autograding Retrieve/Generate Systems" (SIGIR 2024), and its released
    code (TREMA-UNH/rubric-grading-workbench, exam_pp/question_generation.py), with the code's sentences on
    JSON; where the code breaks a line within the text, there is a single blank, as in print. `subtopics`
    and `subtopic-nuggets` are those for TREC CAR's section headings. `nuggetizer` is the first of several
    steps, see `trecexam.extensions.banks.generation.nuggetizing`.
    """
    prompts = (
        ItemPrompt("questions", prompt_text("questions"), "question", 10),
        ItemPrompt("nuggets", prompt_text("nuggets"), "nugget", 10),
        ItemPrompt("subtopics", prompt_text("subtopics"), "question"),
        ItemPrompt("subtopic-nuggets", prompt_text("subtopic-nuggets"), "nugget"),
        ItemPrompt(NUGGETIZER, prompt_text("nuggetizer-creator"), "nugget", 20),
    )
    return {prompt.name: prompt for prompt in prompts}


def prompt_text(name: str) -> str:
    """Return the published text of that name, without the line break that ends its file."""
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    return path.read_bytes().decode("utf-8").removesuffix("\n")


def named(name: str, root: Path) -> ItemPrompt:
    """Return the published prompt of that name, or the prompt in a file here or in the folder `root`."""
    if Path(name).suffix.lower() not in PROMPT_SUFFIXES:
        return published_prompt(name, published())
    path = next((path for path in (Path(name), root / name) if path.is_file()), None)
    if path is None:
        raise GraderError("no such prompt file", path=name)
    own = read_own_prompt(path, ItemPromptFile, SLOTS, {"query": SLOTS[:3]})
    has_nuggets = re.search(r"[\"']nuggets[\"']", own.template)
    kind: Kind = own.file.writes or ("nugget" if has_nuggets else "question")
    return ItemPrompt(own.digest_name, own.template, kind, own.file.number, own.jinja)


class Ask(NamedTuple):
    """A prompt of a step.

    Attributes:
        source: the writer that answers the prompt.
        read: returns the texts in an answer, or the reason for none.
        longest: an answer of maximum length, for estimates.
        cut: True if passages were cut to fit the model.
    """

    source: KeepingWriter
    prompt: str
    read: Callable[[Kept], ReadItems | Unread]
    longest: str = ""
    cut: bool = False


class Listed(NamedTuple):
    """The items that a model listed for a request.

    `items` are (text, importance), with importance "" if unknown. `cut`: the list ends early. `problem` names
    unreadable steps; "" for none. `time` is that of the last answer, ISO 8601.
    """

    items: Sequence[tuple[str, str]]
    problem: str = ""
    cut: bool = False
    time: str = ""


#: Generator of a request's steps: yields the prompts of a step, and receives what was read in each answer.
Steps = Generator[Sequence[Ask], Sequence[ReadItems | Unread], Listed]
#: Returns the stored answer to a prompt, or the reason for none; None if the prompt must be sent.
GetAnswer = Callable[[Ask], Kept | Unread | None]


def single_step(request: ItemRequest, prompt: ItemPrompt, source: KeepingWriter, asks_again: str) -> Steps:
    """Return the items in the answer to one prompt."""

    def read(reply: Kept) -> ReadItems | Unread:
        items = read_items(reply.text, prompt.kind, cut=reply.cut)
        start = " ".join(reply.text.split())[:60]
        which = f"that begins '{start}'" if start else "that is empty"
        early = " and ends early: raise `max_new_tokens`" if reply.cut else f"; {asks_again}"
        return items if items.texts else Unread(f"no items in an answer {which}{early}")

    (items,) = yield [Ask(source, prompt.text(request, source.writer.plain), read)]
    if isinstance(items, Unread):
        return Listed((), items.reason)
    return Listed([(text, "") for text in items.texts], cut=items.cut)


def played(steps: Steps, get: GetAnswer) -> Listed | None:
    """Return the result of a request's steps; None if a prompt has no answer yet."""
    time = ""
    try:
        asks = next(steps)
        while True:
            answers = [(ask, answer) for ask in asks if (answer := get(ask)) is not None]
            if len(answers) < len(asks):
                return None
            time = max([time, *(answer.time for _, answer in answers if isinstance(answer, Kept))])
            asks = steps.send([ask.read(each) if isinstance(each, Kept) else each for ask, each in answers])
    except StopIteration as end:
        listed: Listed = end.value
        return listed._replace(time=time)
