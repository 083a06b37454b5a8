"""`trecexam bank generate`: asks a model for what the bank lacks, and adds what it wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from converters.records import Item, Origin
from trecexam.bank.lines import merged
from trecexam.errors import TrecexamError
from trecexam.features.banks.generation.making import Dropped, items_of, known_texts
from trecexam.features.banks.generation.plan import Plan
from trecexam.features.banks.generation.prompts import ItemPrompt, Wanted
from trecexam.features.banks.generation.reading import read_items
from trecexam.files.atomic import replace as replace_file
from trecexam.graders.base import Estimate, Usage
from trecexam.graders.writing import Writer
from trecexam.graders.writing.asking import ask_all, unanswered
from trecexam.graders.writing.kept_answers import Kept, KeptAnswers


@dataclass(frozen=True)
class Failure:
    """A query, or a sub-topic of one, that has got no items, or not all; and why."""

    wanted: Wanted
    reason: str
    partly: bool = False


@dataclass(frozen=True)
class Generated:
    """What came of it.

    Attributes:
        output: the file with the items; `written` says whether it was changed.
        asked: prompts that the model answered now; `reused` those that it had answered before.
        items: new items; `replaced`: items that gave way to them.
        failures: in the order of the queries.
        used, cost: what it took now, and the money where prices are set.
        why: why it ended early, "" where it did not.
    """

    output: Path
    written: bool
    asked: int
    reused: int
    queries: int
    items: int
    replaced: int
    dropped: Dropped
    failures: tuple[Failure, ...]
    used: Usage
    cost: float | None
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether every query has got its items, whole."""
        return not self.failures and not self.why


@dataclass(frozen=True)
class Made:
    """Items of one answer."""

    wanted: Wanted
    items: tuple[Item, ...]


def prompts_of(plan: Plan, prompt: ItemPrompt, writer: Writer) -> dict[Wanted, str]:
    """What the model is asked for each query."""
    return {wanted: prompt.text(wanted, writer.plain) for wanted in plan.wanted}


def estimate(plan: Plan, prompt: ItemPrompt, writer: Writer, answers: KeptAnswers) -> Estimate:
    """What it would take; prompts that were answered before take nothing. Asks nobody."""
    texts = prompts_of(plan, prompt, writer)
    return writer.estimate(unanswered(texts.values(), answers), answers.used)


def generate(
    plan: Plan,
    prompt: ItemPrompt,
    writer: Writer,
    answers: KeptAnswers,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Generated:
    """Asks, reads, and adds the items to the file, which is written once, at the end.

    Each answer is kept as it comes: what is killed goes on where it was, and asks nothing twice.

    Args:
        progress: is told how many of how many prompts are answered.
        stop: asked again and again; True ends it early, with what there is. Requests that are on their way to
            a server get `LAST_ANSWERS` seconds.

    Raises:
        GraderError: the model cannot be asked at all. What it had answered is kept, and in the file.
        TrecexamError: the file was changed meanwhile, or cannot be written.
    """
    texts = prompts_of(plan, prompt, writer)
    asked = ask_all(
        writer,
        texts.values(),
        answers,
        progress,
        stop,
        lambda: _write(plan, _made(plan, prompt, writer, texts, answers)[0]),
    )
    made, failures, dropped = _made(plan, prompt, writer, texts, answers)
    failures += [
        Failure(wanted, f"the model {asked.unwritten[text]}")
        for wanted, text in texts.items()
        if text in asked.unwritten
    ]
    order = {wanted: place for place, wanted in enumerate(plan.wanted)}
    written, replaced = _write(plan, made)
    return Generated(
        plan.output,
        written,
        asked.new,
        asked.reused,
        len({one.wanted.query_id for one in made if one.items}),
        sum(len(one.items) for one in made),
        replaced,
        dropped,
        tuple(sorted(failures, key=lambda failure: order[failure.wanted])),
        writer.used,
        writer.cost(writer.used),
        asked.why,
    )


def _made(
    plan: Plan, prompt: ItemPrompt, writer: Writer, texts: Mapping[Wanted, str], answers: KeptAnswers
) -> tuple[list[Made], list[Failure], Dropped]:
    """The items of all answers there are, and what could not be read."""
    known = {query_id: known_texts(items) for query_id, items in plan.kept.items()}
    made: list[Made] = []
    failures: list[Failure] = []
    dropped = Dropped()
    for wanted in plan.wanted:
        kept = answers.get(texts[wanted])
        if kept is None:
            continue
        origin = Origin(prompt.name, writer.model, writer.seed, kept.time, "")
        found = read_items(kept.text, prompt.kind, cut=kept.cut)
        items, left_out = items_of(wanted, found, prompt, origin, known.setdefault(wanted.query_id, set()))
        dropped = dropped.plus(left_out)
        made.append(Made(wanted, items))
        if not found.texts:
            failures.append(Failure(wanted, _unread(kept)))
        elif not items:
            failures.append(Failure(wanted, f"no item is left of its answer: {left_out}"))
        elif found.cut and (prompt.number is None or len(items) < prompt.number):
            reason = f"its answer ends early, after {len(items)} items: raise `max_new_tokens`"
            failures.append(Failure(wanted, reason, partly=True))
    return made, failures, dropped


def _unread(kept: Kept) -> str:
    start = " ".join(kept.text.split())[:60]
    said = f"that begins '{start}'" if start else "that is empty"
    if kept.cut:
        return f"no items in an answer {said} and ends early: raise `max_new_tokens`"
    return f"no items in an answer {said}: set another `seed`, `temperature` or `model`, or another prompt"


def _write(plan: Plan, made: Sequence[Made]) -> tuple[bool, int]:
    """Whether the file was changed, and how many items gave way to new ones.

    Raises:
        TrecexamError: somebody else changed the file meanwhile, or it cannot be written.
    """
    new = [(item, one.wanted.query_text) for one in made for item in one.items]
    if not new:
        return False, 0
    numbers: set[int] = set()
    places: dict[str, int] = {}
    for one in made:
        going = plan.dropped.get((one.wanted.query_id, one.wanted.facet_id), ())
        if one.items and going:
            numbers.update(going)
            places.setdefault(one.wanted.query_id, going[0])
    now = plan.output.read_bytes() if plan.output.exists() else b""
    if now != plan.content:
        raise TrecexamError(
            "was edited while the model was asked, and is left as it is; start again: the answers are kept "
            "and nothing is asked twice",
            path=plan.output,
        )
    content = merged(now, numbers, new, places)
    # A link stays a link.
    return replace_file(Path(os.path.realpath(plan.output)), content), len(numbers)
