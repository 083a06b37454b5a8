"""Is an answer right? Comparison with an answer key, as EXAM does it."""

from __future__ import annotations

from collections.abc import Collection

from converters.records import Item
from trecexam.graders.prompts.wording import normalised, unpunctuated

#: Above this edit similarity two normalised answers are the same (Rubric workbench: fuzz ratio > 80).
SIMILAR = 80.0
_TRUE = frozenset({"yes", "correct", "true"})
_FALSE = frozenset({"no", "incorrect", "false"})


def is_correct(answer: str, key: Collection[str]) -> bool:
    """Whether `answer` is one of the answers in `key`.

    Both are lower-cased, freed of punctuation and stop words, and Porter-stemmed. They are the same when
    the strings match (2 characters or more) or when their edit similarity (insertions and deletions, over
    both lengths) is above 0.8 (the answer has 4 characters or more). What is shorter than 2 characters then
    must match exactly, but for case and a mark at its end. A key that is just "true" takes yes, correct
    and true; "false" takes no, incorrect and false.

    Source: EXAM (Farzi and Dietz, ICTIR 2024), section on answer verification; Rubric workbench,
    `AnswerKey2Verifier`.
    """
    from rapidfuzz.fuzz import ratio

    plain, keys = unpunctuated(answer), {unpunctuated(entry) for entry in key}
    for word, means in (("true", _TRUE), ("false", _FALSE)):
        if word in keys and keys <= means:
            return plain in means
    normal = normalised(answer, without_stop_words=True)
    normal_keys = {normalised(entry, without_stop_words=True) for entry in key}
    if len(normal) >= 2 and normal in normal_keys:
        return True
    if len(normal) >= 4:
        return any(ratio(normal, entry) > SIMILAR for entry in normal_keys)
    short = {_closed(entry) for entry in key}
    return _closed(answer) in short - {""}


def correct_answer(item: Item) -> str:
    """The answer key as a prompt names it; of several answers any is right.

    "all of the above" and "none of the above" name choices, as `exam_verify_answer` of EXAM does.
    """
    key = " or ".join(item.gold_answers)
    choices = [text for _, text in item.choices]
    for all_or_none, start, joint in (("all", "all of ", " and "), ("none", "neither ", " nor ")):
        if choices and key.strip().lower() == f"{all_or_none} of the above":
            return start + joint.join(choices)
    return key


def _closed(text: str) -> str:
    return text.strip().rstrip(".!?,;:)").casefold()
