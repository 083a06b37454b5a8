"""Prompts: published ones by name, a user's from a file; and the base of graders that send prompts.

Texts of published prompts are in `texts/`, byte for byte as their authors give them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders.base import Cell, Grader, Scale
from trecexam.graders.prompts.custom import load_prompt
from trecexam.graders.prompts.model import SCALES, Prompt, usual_answers
from trecexam.graders.prompts.parsing import ASSIGNMENTS, GROUP
from trecexam.graders.replies import json_value
from trecexam.templates import published_prompt

#: Asked where the track names no prompt: the paper's self-rating of each kind of item.
DEFAULT = ("QuestionSelfRatedUnanswerablePromptWithChoices", "NuggetSelfRatedPrompt")

__all__ = ["DEFAULT", "Prompt", "chosen_prompts", "load_prompt", "named", "published"]

RUBRIC = "Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024"
EXAM = "Farzi and Dietz, An Exam-based Evaluation Approach Beyond Traditional Relevance Judgments, ICTIR 2024"
SUN = "Sun et al., Is ChatGPT Good at Search?, EMNLP 2023"
FAGGIOLI = "Faggioli et al., Perspectives on Large Language Models for Relevance Judgment, ICTIR 2023"
THOMAS = "Thomas et al., Large Language Models can Accurately Predict Searcher Preferences, SIGIR 2024"
HELM = "Liang et al., Holistic Evaluation of Language Models, TMLR 2023"
NUGGETIZER = "Pradeep et al., Initial Nugget Evaluation Results for TREC 2024 RAG, arXiv 2411.09607"
THAKUR = "Thakur et al., Support Evaluation for the TREC 2024 RAG Track, arXiv 2504.15205"
UMBRELA = "Upadhyay et al., UMBRELA, arXiv 2406.06519"

_ASSIGNER = (
    "You are NuggetizeAssignerLLM, an intelligent assistant that can label a list of atomic nuggets based on "
    "if they are captured by a given passage."
)


def _prompt(
    name: str,
    asks: str,
    parser: str,
    source: str,
    max_rating: int = 5,
    answers: tuple[tuple[str, int], ...] | None = None,
    text: str | None = None,
    **more: Any,
) -> Prompt:
    """Make a prompt of the text with its name, or another name."""
    path = Path(__file__).parent / "texts" / f"{text or name}.txt"
    # Only the newline that ends the file is not the prompt's; trailing blanks are.
    template = path.read_bytes().decode("utf-8").removesuffix("\n")
    scale = Scale.up_to(SCALES.get(parser, max_rating))
    answers = usual_answers(parser, scale.max_rating) if answers is None else answers
    return Prompt(name, "1", template, asks, parser, answers, *scale, source, **more)


@cache
def published() -> Mapping[str, Prompt]:
    """Return every prompt that comes with the package, by name."""
    answer = "QuestionCompleteConciseUnanswerablePromptWithChoices"
    keyed = "QuestionCompleteConcisePromptWithAnswerKey2"
    verified = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
    # What `exam_verify_answer --t5-verification` asks, alone and after the answer.
    verification = _prompt("AnswerVerification", "question", "yes_no", EXAM, answers=(("yes", 1), ("no", 0)))
    assigning: dict[str, Any] = {"system": _ASSIGNER, "group": GROUP}
    some = (ASSIGNMENTS[0], ASSIGNMENTS[2])
    prompts = (
        _prompt("QuestionSelfRatedUnanswerablePromptWithChoices", "question", "rating", RUBRIC),
        _prompt("NuggetSelfRatedPrompt", "nugget", "rating", RUBRIC),
        _prompt(answer, "question", "answer", RUBRIC),
        _prompt("NuggetExtractionPrompt", "nugget", "answer", RUBRIC),
        _prompt(keyed, "question", "answer_key", EXAM, text=answer),
        verification,
        _prompt(verified, "question", "answer", EXAM, text=answer, verification=verification),
        *(_prompt(name, "query", "yes_no", SUN) for name in ("Sun", "Sun_few")),
        *(_prompt(name, "query", "yes_no", FAGGIOLI) for name in ("FagB", "FagB_few")),
        _prompt("HELM", "query", "yes_no", HELM),
        _prompt("Thomas", "query", "rating", THOMAS, 2),
        # On its own scale, as on TREC DL's, a passage is relevant from 2 on.
        _prompt("UMBRELA", "query", "final_score", UMBRELA, 3),
        _prompt("NuggetAssign", "nugget", "assignment", NUGGETIZER, **assigning),
        _prompt("NuggetAssign2", "nugget", "assignment", NUGGETIZER, answers=some, **assigning),
        _prompt("TRECRAG2024Support", "statement", "support", THAKUR),
    )
    return {prompt.name: prompt for prompt in prompts}


def named(name: str, root: Path) -> Prompt:
    """Return the published prompt of that name, or the one in a file of the track folder `root`.

    Raises:
        GraderError: there is none; the message names the nearest.
    """
    if Path(name).suffix.lower() in PROMPT_SUFFIXES:
        path = root / name
        if not path.is_file():
            raise GraderError("no such prompt file; see `prompt` in [grader] of trecexam.toml", path=path)
        return load_prompt(path)
    return published_prompt(name, published())


def chosen_prompts(settings: GraderSection, root: Path, *, passage_first: bool) -> list[Prompt]:
    """Return the prompts that the settings name, or the paper's self-ratings."""
    names = DEFAULT if settings.prompt is None else (settings.prompt,)
    prompts = [named(name, root) for name in names]
    return [prompt.passage_first() for prompt in prompts] if passage_first else prompts


def with_verdict(answer: str, verdict: str) -> str:
    """Return what is stored of an answer and a model's verdict on it."""
    return json.dumps({"answer": answer, "verification": verdict}, ensure_ascii=False)


def verdict_in(text: str) -> str | None:
    """Return the verdict that `with_verdict` stored; None for other texts."""
    stored = json_value(text)
    verdict = stored.get("verification") if isinstance(stored, dict) else None
    return verdict if isinstance(verdict, str) else None


def reader(prompts: Sequence[Prompt], compat: str | None) -> Callable[..., int | None]:
    """Return the reader of answers to prompts, one for each kind of item: (item, answer, cut off) -> rating.

    `compat` is that of `Prompt.read`.
    """
    prompt_of = {prompt.asks: prompt for prompt in prompts}

    # A model says the same few things of a million cells.
    @lru_cache(maxsize=65_536)
    def rating(kind: str, key: tuple[str, ...], text: str, cut: bool) -> int | None:
        prompt, item = prompt_of[kind], Item("", "", "", kind, key)
        if prompt.verification is None:
            return prompt.read(text, item, compat, cut=cut)
        verdict = verdict_in(text)
        return None if verdict is None else prompt.verification.read(verdict, item, compat, cut=cut)

    return lambda item, text, cut=False: rating(item.kind, item.gold_answers, text, cut)


def prompted_reading(settings: GraderSection, root: Path) -> dict[str, Any]:
    """Return the readers of stored answers, see `Factory`."""
    return {"read": reader(chosen_prompts(settings, root, passage_first=False), settings.compat)}


class PromptedGrader(Grader):
    """Has a prompt for each kind of item, and reads the answers to it; see `reader`."""

    def __init__(self, prompts: Sequence[Prompt], compat: str | None) -> None:
        self.prompts: Mapping[str, Prompt] = {prompt.asks: prompt for prompt in prompts}
        self.compat = compat
        self.read = reader(prompts, compat)
        self.item_kinds = frozenset(self.prompts)
        self.scale = Scale(max(p.max_rating for p in prompts), max(p.min_rating for p in prompts))
        self.needs_query_text = any(prompt.needs_query_text for prompt in prompts)
        self.asks_lists = any(prompt.group > 1 for prompt in prompts)

    def _calls(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, ...]]:
        """Yield the cells of each prompt: one by one, or several of a passage, in their order."""
        for (_, _, kind), same in groupby(cells, lambda cell: (cell.query_id, cell.text, cell.item.kind)):
            while call := tuple(islice(same, self.prompts[kind].group)):
                yield call

    def _filled(
        self, prompt: Prompt, cells: Sequence[Cell], passage: str, plain: Callable[[str], str]
    ) -> str:
        """Return the prompt of a call's cells with a passage; `plain` takes special tokens out of texts."""
        items = [
            item._replace(
                text=plain(item.text),
                gold_answers=tuple(map(plain, item.gold_answers)),
                choices=tuple((key, plain(text)) for key, text in item.choices),
            )
            for item in (cell.item for cell in cells)
        ]
        return prompt.list_text(plain(cells[0].query_text), items, plain(passage))
