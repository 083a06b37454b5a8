"""AutoNuggetizer: makes nuggets from passages step by step; prompts, and reading of answers.

Source: Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer
Framework", arXiv:2411.09607, and nuggetizer's released code (castorini/nuggetizer, `Nuggetizer.create`) for
what the paper does not say: passages are numbered anew in each window, lists are written as Python writes
them, and of a list that is too long the first 30 nuggets count; sorted by importance, the first 20 are kept,
as in the paper (the code's own default is 30). Other than there, a prompt is sent once, and not up to 500
times at another temperature until its answer can be read; and of labels that are too few or too many none
counts, where nuggetizer leaves out the nuggets that got none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from converters.run import Run
from trecexam.bank.model import QUERY
from trecexam.extensions.banks.generation.prompts import Ask, ItemRequest, Listed, Steps, prompt_text
from trecexam.extensions.banks.generation.reading import ReadItems, read_items, tidy
from trecexam.folder import TrackFolder
from trecexam.graders.prompts.parsing import as_label, read_labels
from trecexam.graders.replies import ENDED_EARLY, Unread, fence_removed, whole_text
from trecexam.graders.writing.asking import KeepingWriter, Kept
from trecexam.inputs.inputs import Needs, read_inputs
from trecexam.inputs.pool import Texts, document_texts
from trecexam.templates import filled

#: Names of the steps in their prompt files.
STAGES = ("creator", "scorer")
#: The default number of passages per query.
PASSAGES = 50
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
        return Listed((), "has no passage with a text: neither a relevant one nor a run's")
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
    for start in range(0, len(passages), WINDOW):
        window = passages[start : start + WINDOW]
        numbered = "\n".join(f"[{number}] {text}" for number, text in enumerate(window, 1))
        prompt, cut = writer.fitted(created, numbered)
        (updated,) = yield [Ask(sources[0], prompt, partial(_read, 0), json.dumps(_LONGEST), cut)]
        if isinstance(updated, Unread):
            numbers = f"passages {start + 1} to {start + len(window)}"
            unread.append(f"{numbers} changed no nugget: {updated.reason}")
        else:
            nuggets = updated.texts
    windows = [nuggets[start : start + WINDOW] for start in range(0, len(nuggets), WINDOW)]
    labels = yield [
        Ask(
            sources[-1],
            render("scorer", window, num_nuggets=str(len(window))),
            partial(_read, len(window)),
            json.dumps(["vital"] * len(window)),
        )
        for window in windows
    ]
    for window, of_window in zip(windows, labels, strict=True):
        if isinstance(of_window, Unread):
            first = len(importances) + 1
            numbers = f"nuggets {first} to {first + len(window) - 1}"
            unread.append(f"{numbers} got no importance: {of_window.reason}")
        importances += [""] * len(window) if isinstance(of_window, Unread) else of_window.texts
    labelled = sorted(zip(nuggets, importances, strict=True), key=lambda nugget: nugget[1] != "vital")
    return Listed(labelled, "; ".join([*unread, asks_again] if unread else ()))


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
    is_list = nuggets or fence_removed(text).strip() == "[]"
    return ReadItems(tuple(nuggets[:MOST_CREATED])) if is_list else Unread(begins)


def nugget_passages(
    folder: TrackFolder, query_ids: Sequence[str], number: int
) -> Mapping[str, Sequence[str]]:
    """Return query_id -> texts of the first relevant passages, or else of the top-ranked passages.

    Relevant passages come in the order of their labels (the highest first), then of their best rank in any
    run, then of their ids; top-ranked ones by rank and id. Without ranked passages, cited passages of
    responses are used. Texts of responses and passages without a text are no source.
    """
    if not query_ids:
        return {}
    # Responses rank what they cite.
    section = folder.config.track.model_copy(update={"pool": "citations", "unit": "passage"})
    citing = replace(folder, config=folder.config.model_copy(update={"track": section}))
    # The bank's queries need no nuggets.
    inputs = read_inputs(citing, Needs(frozenset((QUERY,)), known_queries=query_ids), bank_files=())
    ranked = [run for name, run in inputs.runs.items() if name not in inputs.dropped.generated]
    cited = [run for name, run in inputs.runs.items() if name in inputs.dropped.generated]
    min_relevant = folder.config.scores.min_relevant
    ordered: dict[str, list[str]] = {}
    for query_id in query_ids:
        best = _best_ranks(ranked, query_id, number) or _best_ranks(cited, query_id, number)
        judged = inputs.judged.get(query_id, {}).items()
        labels = {doc_id: label for doc_id, label in judged if label >= min_relevant}
        ordered[query_id] = sorted(
            labels or best, key=lambda each: (-labels.get(each, 0), best.get(each, number), each)
        )
    needed = {doc_id for doc_ids in ordered.values() for doc_id in doc_ids}
    document_store = Texts(folder)
    read = bool(needed) and (document_store.has_source or needed.isdisjoint(inputs.dropped.documents))
    texts = document_texts(needed, inputs, document_store, read=read)[0]
    return {
        query_id: tuple(texts[doc_id] for doc_id in doc_ids if texts.get(doc_id, "").strip())[:number]
        for query_id, doc_ids in ordered.items()
    }


def _best_ranks(runs: Iterable[Run], query_id: str, number: int) -> dict[str, int]:
    """Return doc_id -> best rank in any run, within the first passages of each run."""
    best: dict[str, int] = {}
    for run in runs:
        for rank, doc_id in enumerate(run.ranking(query_id, number)):
            best[doc_id] = min(rank, best.get(doc_id, rank))
    return best
