from __future__ import annotations

import pytest

from trecexam.extensions.banks.checks import junk_in


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1. How does it rain?", "a number before it"),
        ("    10. How does it rain? ", "a number before it"),
        ("['1. How does it rain?']", "a number before it"),
        ("'2. How does it rain?',", "a number before it"),
        ("[3] How does it rain?", "a number before it"),
        ("(4) How does it rain?", "a number before it"),
        ("Question 5: How does it rain?", "a number before it"),
        ("Q6. How does it rain?", "a number before it"),
        ("- How does it rain?", "a bullet before it"),
        ("\u2022 How does it rain?", "a bullet before it"),
        ("question_set = [", "the beginning of a list"),
        ("questions = [Q1, Q2, Q3]", "the beginning of a list"),
        ("Question: how does it rain?", "a label before it"),
        ("Sure! Ten questions follow", "a reply of the model, not an item"),
        ("Here are ten concise questions:", "a reply of the model, not an item"),
        ("I cannot do so as an AI language model", "a reply of the model, not an item"),
        ("```json", "Markdown in it"),
        ("**How** does it rain?", "Markdown in it"),
        ("What matters for {query_text}?", "a placeholder of the prompt in it"),
        ('"How does it rain?",', "brackets, quotes or commas of a list around it"),
        ('How does it rain?"]}', "brackets, quotes or commas of a list around it"),
        ('{"questions": ["How', "brackets, quotes or commas of a list around it"),
        ("[How does it rain?", "brackets, quotes or commas of a list around it"),
        ("How does it rain?]", "brackets, quotes or commas of a list around it"),
        ('"How does it rain?"', "quotes around it"),
        ('"How does it rain?', "quotes around it"),
        ("\u201cHow does it rain?\u201d", "quotes around it"),
        ("'How does it rain?'", "quotes around it"),
        ("Questions about rain:", "ends with ':'"),
        ("third party ends patient life,", "ends with ','"),
        ("How does it rain?\nHow does it snow?", "several lines in one item"),
        ("],", "contains no words"),
        ("...", "contains no words"),
    ],
)
def test_leftovers_of_a_model_answer_are_reported_as_junk(text: str, what: str) -> None:
    assert junk_in(text) == what


@pytest.mark.parametrize(
    "text",
    [
        "How does it rain?",
        " How does it rain? ",
        "59% of US teens have been bullied",
        "6 million people",
        "90 % of variation",
        "1984 was written by Orwell",
        "2.5 litres a day",
        '"Inactivated" is a main type of vaccine.',
        'Which is better, "a" or "b"',
        '"A" and "B"',
        "'Til death",
        "the dogs' owner",
        "f(x) = x [see above]",
        "[Sic] is a note",
        "\\frac{a}{b} is a ratio",
        "What does the ** operator do?",
        "Facts about rain",
        "-40 is the same in both scales",
        "Of course it rains",
        "Warum regnet es?",
        "为什么下雨?",
        "other victims: roma",
    ],
)
def test_ordinary_items_are_not_reported_as_junk(text: str) -> None:
    assert junk_in(text) is None
