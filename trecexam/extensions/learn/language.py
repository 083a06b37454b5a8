"""Detects passages in other languages than English by letters and frequent words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from trecexam.graders.weights import OFFLINE_MODEL

#: From this share of letters outside of Latin script on, or of passages that do not read as English, it is
#: said.
SHARE = 0.3
#: English has at least this share of its most frequent words: 4% of the passages of TREC DL 2019 and 0.1 to
#: 2.3% of those of Cranfield, CISI and Vaswani have fewer; sentences of 17 other languages have 0 to 17%.
_LEAST = 0.2
#: Texts of fewer words than this are in no language that could be known.
_WORDS = 8
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = (
    "the of and to in is that for it was on are as with be by at from this have or an not you which can if "
    "has but we they were their what when how your its will there more one do who all a i"
)
_FREQUENT = frozenset(_ENGLISH.split())


def reads_as_english(text: str) -> bool:
    """Whether the share of frequent English words is that of English; True for short texts."""
    words = _WORD.findall(unicodedata.normalize("NFC", text).lower())
    return len(words) < _WORDS or sum(word in _FREQUENT for word in words) >= _LEAST * len(words)


def odd_languages(passages: Sequence[str], model: str) -> list[str]:
    """Notes on passages that an English encoder may not read, one per line.

    Args:
        passages: a sample of them.
        model: the encoder's name.
    """
    if model == OFFLINE_MODEL:
        advice = (
            f"and {OFFLINE_MODEL.rpartition('/')[2]} reads English: name a model of your language with "
            "`encoder` in [learn], and see `trecexam cross-validate`"
        )
    else:
        advice = f"and {model} may not read that: see `trecexam cross-validate`"
    letters = [letter for text in passages for letter in text if letter.isalpha()]
    foreign = sum(not _is_latin(letter) for letter in letters)
    if foreign > SHARE * len(letters):
        return [f"{foreign / len(letters):.0%} of the passages' letters are not Latin, {advice}"]
    n_foreign = sum(not reads_as_english(text) for text in passages)
    if n_foreign > SHARE * len(passages):
        return [f"{n_foreign / len(passages):.0%} of the passages do not read as English, {advice}"]
    return []


def _is_latin(letter: str) -> bool:
    # Latin Extended Additional has the letters of Vietnamese.
    return ord(letter) <= 0x24F or 0x1E00 <= ord(letter) <= 0x1EFF
