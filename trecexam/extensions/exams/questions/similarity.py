"""Similarity of candidates to the passage and to each other, by words and by sentence embeddings.

Source: the exam paper and its released code (`SimilarityChecker`). Words are compared without case and
punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from trecexam.bank.likeness import words
from trecexam.extensions.exams.exam_file import ExamQuestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: Texts -> unit vectors, shape (n_texts, dimension).
    Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def jaccard(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    """Jaccard similarity of two bags of words, 0..1; 0 without words."""
    shared = sum(min(count, second.get(word, 0)) for word, count in first.items())
    every = sum(first.values()) + sum(second.values()) - shared
    return shared / every if every else 0.0


def in_passage(choices: Sequence[str], documentation: str) -> list[float]:
    """For each candidate the Jaccard similarity to the closest n words of the passage.

    n is the mean length of the candidates in words, rounded down, at least 1; a shorter passage counts
    as a whole.
    """
    choice_words = [words(choice) for choice in choices]
    n = max(1, sum(map(len, choice_words)) // len(choice_words))
    tokens = words(documentation)
    best = [0.0] * len(choice_words)
    bags = [Counter(each) for each in choice_words]
    vocabularies = [frozenset(each) for each in choice_words]
    seen: set[tuple[str, ...]] = set()
    for start in range(max(1, len(tokens) - n + 1)):
        window = tokens[start : start + n]
        if window in seen:
            continue
        seen.add(window)
        for choice_index, bag in enumerate(bags):
            if not vocabularies[choice_index].isdisjoint(window):
                best[choice_index] = max(best[choice_index], jaccard(bag, Counter(window)))
    return best


def bag(choice: str) -> Counter[str]:
    """A candidate's words with their counts; a candidate without words counts as one word."""
    return Counter(words(choice) or (choice.strip(),))


def extra(similarities: Sequence[float], correct: int) -> float:
    """Similarity to the passage of the closest wrong candidate minus that of the right one; -1..1."""
    wrong = max(value for choice_index, value in enumerate(similarities) if choice_index != correct)
    return wrong - similarities[correct]


def extra_jaccard(question: ExamQuestion) -> float:
    """`extra` by Jaccard similarity of words."""
    return extra(in_passage(question.choices, question.documentation), question.correct)


def intra_jaccard(question: ExamQuestion) -> float:
    """The highest Jaccard similarity of two candidates' words; 1 if both have the same or no words."""
    bags = [bag(choice) for choice in question.choices]
    return max(jaccard(first, second) for first, second in combinations(bags, 2))


def by_embedding(questions: Sequence[ExamQuestion], embed: Embed) -> tuple[list[float], list[float]]:
    """`extra` and the highest cosine of two candidates of each question, by sentence embeddings."""
    texts = dict.fromkeys(text for each in questions for text in (*each.choices, each.documentation))
    vectors = dict(zip(texts, embed(list(texts)), strict=True))
    outside, inside = [], []
    for question in questions:
        choices = [vectors[choice] for choice in question.choices]
        passage = vectors[question.documentation]
        outside.append(extra([float(choice @ passage) for choice in choices], question.correct))
        inside.append(max(float(first @ second) for first, second in combinations(choices, 2)))
    return outside, inside
