"""Levels of Bloom's revised taxonomy and types of questions, from word lists."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_TEXTS = Path(__file__).parent / "texts"
_WORD = re.compile(r"\w+(?:'\w+)?")


@cache
def bloom_words() -> Mapping[str, frozenset[str]]:
    """Return level -> words, lowest level first, as published with the exam paper."""
    levels: dict[str, list[str]] = json.loads((_TEXTS / "bloom.json").read_bytes())
    return {level: frozenset(words) for level, words in levels.items()}


@cache
def _american() -> Mapping[str, frozenset[str]]:
    return {level: frozenset(map(_with_z, words)) for level, words in bloom_words().items()}


@cache
def _types() -> Mapping[str, Any]:
    types: dict[str, Any] = json.loads((_TEXTS / "question-types.json").read_bytes())
    return types


def question_types() -> tuple[str, ...]:
    """Return all question types, "other" last."""
    return (*_types()["types"], "other")


def bloom_levels(question: str) -> tuple[str, ...]:
    """Return the levels whose lemmas the question contains, from the lowest; often none.

    Source: Krathwohl, "A Revision of Bloom's Taxonomy" (2002), with the exam paper's words. Words count as
    any part of speech: "the state of the valve" has the level Remembering, too.
    """
    lemmas = {_lemma(word) for word in _words(question)}
    return tuple(level for level, words in _american().items() if words & lemmas)


def question_type(question: str) -> str:
    """Return the first question word of the last sentence; "other" without one.

    A "when" or "where" that only joins clauses ("When a valve leaks, what ...?") counts only without another
    question word.
    """
    data = _types()
    sentence = re.split(r"(?<=[.!?])\s+", question.strip())[-1]
    words = [data["forms"].get(word, word) for word in _words(sentence)]
    following = [*words[1:], ""]
    question_words = [pair for pair in zip(words, following, strict=False) if pair[0] in data["types"]]
    sure = (
        word
        for word, after in question_words
        if word not in data["conjunctions"] or after in data["auxiliaries"]
    )
    return next(sure, question_words[0][0] if question_words else "other")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("\u2019", "'"))


@lru_cache(maxsize=100_000)
def _lemma(word: str) -> str:
    from simplemma import lemmatize

    return _with_z(lemmatize(word, lang="en"))


def _with_z(word: str) -> str:
    """Return a word in its spelling with z: analyse becomes analyze."""
    return re.sub(r"(?<=[iy])se$", "ze", word)
