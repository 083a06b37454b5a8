"""The published prompts, byte for byte as their authors give them; the texts are in `texts/`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trecexam.graders.base import Scale
from trecexam.graders.prompts.assignments import ASSIGNMENTS, GROUP
from trecexam.graders.prompts.model import SCALES, Prompt, usual_answers

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
