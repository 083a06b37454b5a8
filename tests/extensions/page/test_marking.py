from __future__ import annotations

import string
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.page.marking import marked

PASSAGE = (
    "Heat pumps move heat. An air-source heat pump finds heat in outdoor air, even when it is freezing; "
    "the refrigerant boils at a very low temperature. Backup heating is needed below -25 °C."
)


def found(passage: str, answer: str) -> list[str]:
    pieces = marked(passage, answer)
    assert "".join(text for text, _ in pieces) == passage
    return [text for text, is_marked in pieces if is_marked]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("the refrigerant boils", ["the refrigerant boils"]),
        ("THE REFRIGERANT,\n boils!", ["the refrigerant boils"]),
        ("air source heat pump", ["air-source heat pump"]),
        ("heat", ["Heat"]),
        ("eat pumps", []),  # not a part of a word
        ("Below -25 °C.", ["below -25 °C"]),
        ("", []),
        ("4", []),
        ("Rating: 4/5", []),
        ("5 out of 5", []),
        ("[4]", []),
        ("Unanswerable", []),
        ("unanswerable.", []),
        ("No answer", []),
        ("something else entirely, of which nobody spoke", []),
    ],
)
def test_the_text_of_an_answer_is_highlighted(answer: str, expected: list[str]) -> None:
    assert found(PASSAGE, answer) == expected


def test_each_sentence_of_an_answer_is_highlighted_where_it_occurs() -> None:
    answer = "Backup heating is needed below -25. Heat pumps move heat. And this is not said here."
    assert found(PASSAGE, answer) == ["Heat pumps move heat", "Backup heating is needed below -25"]


def test_a_number_of_several_digits_is_highlighted_and_not_taken_for_a_rating() -> None:
    assert found("It was built in 1889 in Paris.", "1889") == ["1889"]


@pytest.mark.parametrize(
    "passage",
    ["", " ", "<b>&amp;</b> heat", "حرارة المضخة الهوائية", "熱泵在寒冷中運作。很好", "👩‍🔬🔥 heat"],
)
def test_scripts_markup_and_emoji_are_unchanged(passage: str) -> None:
    for answer in ("heat", "المضخة الهوائية", "熱泵在寒冷中運作", passage):
        found(passage, answer)
    assert found("a <b>hot</b> pump", "hot") == ["hot"]
    assert found("حرارة المضخة الهوائية", "المضخة الهوائية") == ["المضخة الهوائية"]


WORDS = st.text(st.sampled_from("abß .,İé\u0301\n<&"), max_size=60)


@given(st.one_of(WORDS, st.text(max_size=60)), st.one_of(WORDS, st.text(max_size=60)))
def test_the_pieces_always_add_up_to_the_passage(passage: str, answer: str) -> None:
    pieces = marked(passage, answer)
    assert "".join(text for text, _ in pieces) == passage
    assert all(text for text, _ in pieces)
    assert all(one[1] != other[1] for one, other in pairwise(pieces))


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=4, max_size=40), st.data())
def test_words_of_the_passage_are_found(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 2))
    end = data.draw(st.integers(start + 1, len(words)))
    quoted = " ".join(words[start:end])
    assert found(" ".join(words), quoted.upper()) in ([quoted], []) or quoted in ("no", "na", "none", "yes")
