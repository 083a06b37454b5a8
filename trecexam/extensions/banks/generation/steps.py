"""Steps of requests to a model: the prompts of each step, and what is read in the answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.generation.reading import ReadItems, read_items
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import KeepingWriter, Kept


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
