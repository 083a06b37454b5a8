"""Is an answer right? Comparison with an answer key, as EXAM does it."""

from __future__ import annotations

import re
from collections.abc import Collection

from trecexam.graders.prompts.wording import normalised

#: Above this edit similarity two normalised answers are the same (Rubric workbench: fuzz ratio > 80).
SIMILAR = 80.0
_TRUE = frozenset({"yes", "correct", "true"})
_FALSE = frozenset({"no", "incorrect", "false"})


def is_correct(answer: str, key: Collection[str]) -> bool:
    """Whether `answer` is one of the answers in `key`.

    Both are lower-cased, freed of punctuation and stop words, and Porter-stemmed. They are the same when
    the strings match (2 characters or more) or when their edit similarity (insertions and deletions, over
    both lengths) is above 0.8 (the answer has 4 characters or more). Shorter answers must match as they
    are but for case. A key that is just "true" takes yes, correct and true; "false" takes no, incorrect
    and false.

    Source: EXAM (Farzi and Dietz, ICTIR 2024), section on answer verification; Rubric workbench,
    `AnswerKey2Verifier`.
    """
    from rapidfuzz.fuzz import ratio

    plain = _plain(answer)
    keys = {_plain(entry) for entry in key}
    if keys == {"true"}:
        return plain in _TRUE
    if keys == {"false"}:
        return plain in _FALSE
    found = normalised(answer, without_stop_words=True)
    wanted = {normalised(entry, without_stop_words=True) for entry in key}
    if len(found) >= 2 and found in wanted:
        return True
    if len(found) >= 4:
        return any(ratio(found, entry) > SIMILAR for entry in wanted)
    return bool(plain) and plain in keys


def _plain(text: str) -> str:
    return re.sub(r"\s*\.$", "", text.strip()).casefold()
