"""AutoNuggetizer: makes nuggets from passages step by step; prompts, and reading of answers.

Source: Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer
Framework", arXiv:2411.09607, and nuggetizer's released code (castorini/nuggetizer, `Nuggetizer.create`) for
what the paper does not say: passages are numbered anew in each window, lists are written as Python writes
them, and of a list that is too long the first 30 nuggets count; sorted by importance, the first 20 are kept,
as in the paper (the code's own default is 30). Other than there, an answer that cannot be read is requested
once more, with a line that says so, and not up to 500 times at another temperature; and labels that are too
few or too many are requested again, where nuggetizer leaves out the nuggets that got none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial

from trecexam.extensions.banks.generation.generate import Ask, Listed, Steps
from trecexam.extensions.banks.generation.prompts import ItemRequest, prompt_text
from trecexam.extensions.banks.generation.reading import ReadItems, python_list, read_items, tidy
from trecexam.graders.prompts.parsing import as_label, read_labels
from trecexam.graders.replies import ENDED_EARLY, Unread, fence_removed, whole_text
from trecexam.graders.writing.asking import KeepingWriter, Kept
from trecexam.templates import filled

#: Names of the steps in their prompt files.
STAGES = ("creator", "scorer")
#: Passages per creation step, and nuggets per importance step.
WINDOW = 10
#: The maximum number of nuggets during creation.
MOST_CREATED = 30
#: A creation step's answer for estimates: a list of maximum length.
_LONGEST = [f"{n} of thirty nuggets, each of them with as many words as twelve" for n in range(MOST_CREATED)]


@cache
def system_of(stage: str) -> str:
    """Return the system prompt of a stage."""
    return prompt_text(f"nuggetizer-{stage}-system")


def nuggetize(
    request: ItemRequest, passages: Sequence[str], sources: Sequence[KeepingWriter], asks_again: str
) -> Steps:
    """Return the nuggets of a query, vital ones first: listed from windows of its passages, then labelled.

    Args:
        passages: texts, in their order.
        sources: creator and scorer with their system messages; or one source for both without.
        asks_again: a sentence that says how to send prompts again.
    """
    if not passages:
        return Unread("has no passage with a text: neither a relevant one nor a run's")
    writer = sources[0].writer

    def render(stage: str, nuggets: Sequence[str], **values: str) -> str:
        listed = str([writer.plain(nugget) for nugget in nuggets])
        values |= {"query": writer.plain(request.query_text), "nuggets": listed}
        text = filled(prompt_text(f"nuggetizer-{stage}"), values, jinja=False, name="nuggetizer")
        return text if len(sources) > 1 else f"{system_of(stage)}\n\n{text}"

    def created(context: str) -> str:
        sizes = {"nuggets_length": str(len(nuggets)), "creator_max_nuggets": str(MOST_CREATED)}
        return render("creator", nuggets, context=context, **sizes)

    nuggets: Sequence[str] = ()
    importances: list[str] = []
    unread: list[str] = []
    time = ""
    for start in range(0, len(passages), WINDOW):
        window = passages[start : start + WINDOW]
        numbered = "\n".join(f"[{number}] {text}" for number, text in enumerate(window, 1))
        prompt, cut = writer.fitted(created, numbered)
        (reply,) = yield [_ask(sources[0], prompt, longest=_LONGEST, cut=cut)]
        time = max(time, reply.kept.time)
        if isinstance(reply.record, Unread):
            reason = reply.record.reason
            unread.append(f"passages {start + 1} to {start + len(window)} changed no nugget: {reason}")
        else:
            nuggets = reply.record.texts
    windows = [nuggets[start : start + WINDOW] for start in range(0, len(nuggets), WINDOW)]
    replies = yield [
        _ask(
            sources[-1],
            render("scorer", window, num_nuggets=str(len(window))),
            n_labels=len(window),
            longest=["vital"] * len(window),
        )
        for window in windows
    ]
    for window, reply in zip(windows, replies, strict=True):
        time = max(time, reply.kept.time)
        if isinstance(reply.record, Unread):
            first = len(importances) + 1
            last, reason = first + len(window) - 1, reply.record.reason
            unread.append(f"nuggets {first} to {last} got no importance: {reason}")
            importances += [""] * len(window)
        else:
            importances += reply.record.texts
    labelled = sorted(zip(nuggets, importances, strict=True), key=lambda nugget: nugget[1] != "vital")
    return Listed(labelled, time, problem="; ".join([*unread, asks_again] if unread else ()))


def _ask(
    source: KeepingWriter, prompt: str, *, longest: Sequence[str], n_labels: int = 0, cut: bool = False
) -> Ask:
    """Return a prompt, with its retry after an unreadable answer."""
    task, _, asks = prompt.rpartition("\n")
    retry = (
        f"{task}\nAn earlier answer to this could not be read. Return nothing but the whole list, in one "
        f'line, in the form ["a", "b", ...], and no " within a or b.\n{asks}'
    )
    return Ask(source, prompt, partial(_read, n_labels), json.dumps(longest), cut, retry)


def _read(n_labels: int, reply: Kept) -> ReadItems | Unread:
    """Return the first `MOST_CREATED` nuggets or the labels in an answer, or the reason for none."""
    # An incomplete list would lose earlier nuggets.
    text = whole_text(reply.text, cut=reply.cut)
    if isinstance(text, Unread):
        return Unread(f"its answer {text.reason}" if text is ENDED_EARLY else "its answer is empty")
    begins = f"its answer begins '{' '.join(text.split())[:60]}'"
    if n_labels:
        labels = read_labels(text, n_labels, ("vital", "okay"))
        expectation = f"{begins}, and not {n_labels} times vital or okay"
        return Unread(expectation) if labels is None else ReadItems(tuple(map(as_label, labels)))
    nuggets = [nugget for each in read_items(text, "nugget").texts if (nugget := tidy(each))]
    is_empty = python_list(fence_removed(text)) is not None
    return ReadItems(tuple(nuggets[:MOST_CREATED])) if nuggets or is_empty else Unread(begins)
