"""The published prompts, byte for byte as their authors give them; the texts are in `texts/`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

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


def _prompt(
    name: str,
    asks: str,
    parser: str,
    answers: tuple[tuple[str, int], ...],
    scale: tuple[int, int],
    source: str,
    text: str | None = None,
    **more: Any,
) -> Prompt:
    """Make a prompt of the text with its name, or another name.

    Args:
        scale: the best rating, and from which on a passage counts.
    """
    path = Path(__file__).parent / "texts" / f"{text or name}.txt"
    # Only the newline that ends the file is not the prompt's; trailing blanks are.
    template = path.read_bytes().decode("utf-8").removesuffix("\n")
    return Prompt(name, "1", template, asks, parser, answers, *scale, source, **more)


@cache
def published() -> Mapping[str, Prompt]:
    """Return every prompt that comes with the package, by name."""
    answer = "QuestionCompleteConciseUnanswerablePromptWithChoices"
    keyed = "QuestionCompleteConcisePromptWithAnswerKey2"
    verified = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
    no_answers: tuple[tuple[str, int], ...] = ()
    six, two = (5, 4), (1, 1)
    # What `exam_verify_answer --t5-verification` asks, alone and after the answer.
    verification = _prompt("AnswerVerification", "question", "yes_no", (("yes", 1), ("no", 0)), two, EXAM)
    assigning: dict[str, Any] = {"system": _ASSIGNER, "group": GROUP}
    some = (ASSIGNMENTS[0], ASSIGNMENTS[2])
    prompts = (
        _prompt("QuestionSelfRatedUnanswerablePromptWithChoices", "question", "rating", _SIX, six, RUBRIC),
        _prompt("NuggetSelfRatedPrompt", "nugget", "rating", _SIX, six, RUBRIC),
        _prompt(answer, "question", "answer", no_answers, two, RUBRIC),
        _prompt("NuggetExtractionPrompt", "nugget", "answer", no_answers, two, RUBRIC),
        _prompt(keyed, "question", "answer_key", no_answers, two, EXAM, answer),
        verification,
        _prompt(verified, "question", "answer", no_answers, two, EXAM, answer, verification=verification),
        *(
            _prompt(name, "query", "yes_no", _YES_NO, two, source)
            for name, source in (
                ("Sun", SUN),
                ("Sun_few", SUN),
                ("FagB", FAGGIOLI),
                ("FagB_few", FAGGIOLI),
                ("HELM", HELM),
            )
        ),
        _prompt("Thomas", "query", "rating", _THREE, (2, 1), THOMAS),
        # On its own scale, as on TREC DL's, a passage is relevant from 2 on.
        _prompt("UMBRELA", "query", "final_score", _FINAL, (3, 2), UMBRELA),
        _prompt("NuggetAssign", "nugget", "assignment", ASSIGNMENTS, six, NUGGETIZER, **assigning),
        _prompt("NuggetAssign2", "nugget", "assignment", some, six, NUGGETIZER, **assigning),
        _prompt("TRECRAG2024Support", "statement", "support", SUPPORT, (2, 1), THAKUR),
    )
    return {prompt.name: prompt for prompt in prompts}
