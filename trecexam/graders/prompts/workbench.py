"""How the Rubric workbench's released code reads answers, which is not how its paper does.

Self-ratings: an expression of unanswerability becomes 1 and every other text 0, "5: The answer ..." too
(`SelfRaterStrict.check_answer_rating`, whose test of `check_unanswer` is the wrong way round). Direct
prompts: whatever is not "yes", "correct" or "true" becomes 0 (`DirectGradingPrompt.check_answer`).
Kept for `compat = "workbench"`, so that published figures can be had again.
"""

from __future__ import annotations

import re
from functools import cache

from trecexam.graders.prompts.answer_key import UNANSWERABLE, stemmer
from trecexam.graders.prompts.parsing import Reading


@cache
def _expressions() -> tuple[str, ...]:
    # The workbench stems the whole text as if it were one word.
    return tuple(map(stemmer(), UNANSWERABLE))


def _answered(answer: str) -> bool:
    from rapidfuzz.fuzz import ratio

    stemmed = stemmer()(answer.lower())
    if answer in UNANSWERABLE or not stemmed:
        return False
    # Whole percents: fuzzywuzzy rounds.
    return not any(round(ratio(stemmed, expression)) > 80 for expression in _expressions())


def read(parser: str, answer: str, max_rating: int) -> Reading:
    """Read a self-rating ("rating"), a direct answer ("yes_no") or an extracted one ("answer")."""
    if parser == "rating":
        match = re.fullmatch(r"[^\w]*([0-9])[^\w]*", answer)
        if match and int(match[1]) <= 5:
            return Reading(int(match[1]) if int(match[1]) <= max_rating else 0, "ok")
        return Reading(0 if _answered(answer) else 1, "ok")
    relevant = parser == "answer" or answer.lower() in {"yes", "correct", "true"}
    return Reading(int(_answered(answer) and relevant), "ok")
