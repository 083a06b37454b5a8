"""The published prompts, byte for byte as their authors give them; the texts are in `texts/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from trecexam.graders.prompts.assignments import ASSIGNMENTS, GROUP
from trecexam.graders.prompts.model import Prompt
from trecexam.graders.prompts.parsing import SUPPORT

RUBRIC = "Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024"
EXAM = "Farzi and Dietz, An Exam-based Evaluation Approach Beyond Traditional Relevance Judgments, ICTIR 2024"
SUN = "Sun et al., Is ChatGPT Good at Search?, EMNLP 2023"
FAGGIOLI = "Faggioli et al., Perspectives on Large Language Models for Relevance Judgment, ICTIR 2023"
THOMAS = "Thomas et al., Large Language Models can Accurately Predict Searcher Preferences, SIGIR 2024"
HELM = "Liang et al., Holistic Evaluation of Language Models, TMLR 2023"
NUGGETIZER = "Pradeep et al., Initial Nugget Evaluation Results for TREC 2024 RAG, arXiv 2411.09607"
THAKUR = "Thakur et al., Support Evaluation for the TREC 2024 RAG Track, arXiv 2504.15205"
UMBRELA = "Upadhyay et al., UMBRELA, arXiv 2406.06519"

_SIX = tuple((str(rating), rating) for rating in (5, 4, 3, 2, 1, 0))
_THREE = (("2", 2), ("1", 1), ("0", 0))
_YES_NO = (("Yes", 1), ("No", 0))
#: What nuggetizer tells its model.
_ASSIGNER = (
    "You are NuggetizeAssignerLLM, an intelligent assistant that can label a list of atomic nuggets based on "
    "if they are captured by a given passage."
)
_FINAL = tuple((f"##final score: {rating}", rating) for rating in (3, 2, 1, 0))


def _text(name: str) -> str:
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    # Only the newline that ends the file is not the prompt's; trailing blanks are.
    return path.read_bytes().decode("utf-8").removesuffix("\n")


def _self_rating(name: str, asks: str) -> Prompt:
    return Prompt(name, "1", _text(name), asks, "rating", _SIX, source=RUBRIC)


def _free(name: str, asks: str, parser: str, source: str, text: str | None = None) -> Prompt:
    return Prompt(name, "1", _text(text or name), asks, parser, max_rating=1, min_rating=1, source=source)


def _verified(name: str, text: str, verification: Prompt) -> Prompt:
    return replace(_free(name, "question", "answer", EXAM, text), verification=verification)


def _direct(name: str, source: str) -> Prompt:
    return Prompt(
        name, "1", _text(name), "query", "yes_no", _YES_NO, max_rating=1, min_rating=1, source=source
    )


def _assigning(name: str, answers: tuple[tuple[str, int], ...]) -> Prompt:
    return Prompt(
        name,
        "1",
        _text(name),
        "nugget",
        "assignment",
        answers,
        source=NUGGETIZER,
        system=_ASSIGNER,
        group=GROUP,
    )


@cache
def published() -> Mapping[str, Prompt]:
    """Every prompt that comes with the package, by name."""
    answer = "QuestionCompleteConciseUnanswerablePromptWithChoices"
    permitted = (("yes", 1), ("no", 0))
    verification = Prompt(
        "AnswerVerification", "1", _text("AnswerVerification"), "question", "yes_no", permitted, 1, 1, EXAM
    )
    prompts = (
        _self_rating("QuestionSelfRatedUnanswerablePromptWithChoices", "question"),
        _self_rating("NuggetSelfRatedPrompt", "nugget"),
        _free(answer, "question", "answer", RUBRIC),
        _free("NuggetExtractionPrompt", "nugget", "answer", RUBRIC),
        _free("QuestionCompleteConcisePromptWithAnswerKey2", "question", "answer_key", EXAM, text=answer),
        # What `exam_verify_answer --t5-verification` asks, alone and after the answer.
        verification,
        _verified("QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2", answer, verification),
        _direct("Sun", SUN),
        _direct("Sun_few", SUN),
        _direct("FagB", FAGGIOLI),
        _direct("FagB_few", FAGGIOLI),
        _direct("HELM", HELM),
        Prompt("Thomas", "1", _text("Thomas"), "query", "rating", _THREE, 2, 1, THOMAS),
        # On its own scale, as on TREC DL's, a passage is relevant from 2 on.
        Prompt("UMBRELA", "1", _text("UMBRELA"), "query", "final_score", _FINAL, 3, 2, UMBRELA),
        _assigning("NuggetAssign", ASSIGNMENTS),
        _assigning("NuggetAssign2", (ASSIGNMENTS[0], ASSIGNMENTS[2])),
        Prompt(
            "TRECRAG2024Support",
            "1",
            _text("TRECRAG2024Support"),
            "statement",
            "support",
            SUPPORT,
            2,
            1,
            THAKUR,
        ),
    )
    return {prompt.name: prompt for prompt in prompts}
