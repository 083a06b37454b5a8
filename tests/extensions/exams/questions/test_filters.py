"""Which questions are removed."""

from __future__ import annotations

import pytest
from exams import question
from outside import outside

from trecexam.extensions.exams.filtering import (
    _PATTERNS,
    not_self_contained,
    read_patterns,
)


@pytest.mark.parametrize(
    "stem",
    [
        "According to the documentation, what does a heat pump need to run?",
        "What is the main result that the authors of this work present here?",
        'What is a pump\'s duty, as discussed in "Pumps and Their Ways" at length?',
        "What is a pump\u2019s duty, as one reads of the \u201cHandbook of Pumps\u201d by Ada?",
        "As described in section three, how is the outer coil defrosted in winter?",
        "Which of these is the reason that is mentioned above for the loud noise?",
        "What does this passage say on how the outer coil is defrosted in winter?",
        "Based on the text, how long does it take to defrost the outer coil at all?",
        "In this PAPER, which of the coils is the one that is defrosted in winter?",
    ],
)
def test_a_stem_that_refers_to_its_text_is_removed(stem: str) -> None:
    assert list(not_self_contained([question(stem=stem)])) == [0]


@pytest.mark.parametrize(
    "stem",
    [
        "Which of the following is the part of a heat pump that needs electric power?",
        "Which abstract class does the document object model of a browser define first?",
        "What context does an electrician need before opening the section of a pump?",
        "Which newspapers reported that researchers had paperless offices that year?",
    ],
)
def test_a_self_contained_stem_is_kept(stem: str) -> None:
    assert not not_self_contained([question(stem=stem)])


def test_the_published_patterns_are_included() -> None:
    published = read_patterns(outside("prompts/self-contained.txt"))
    assert read_patterns(_PATTERNS)[: len(published)] == published
