from __future__ import annotations

import math
import re
import string
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.page.listing import Address, in_order, listed
from trecexam.extensions.page.marking import marked
from trecexam.extensions.page.urls import Urls, name_of, segment

urls = Urls()

names = st.text(max_size=30)


@given(names)
def test_a_name_is_recovered_from_its_segment(name: str) -> None:
    if not any("\ud800" <= c <= "\udfff" for c in name):
        assert name_of(segment(name)) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "~", "~2E", "a/b", "a#b?c", "%2F", "é\udc80", "../../etc"]
)
def test_a_segment_has_only_characters_that_no_proxy_resolves_or_decodes(name: str) -> None:
    found = segment(name)
    assert re.fullmatch(r"[A-Za-z0-9_.~\-]+", found)
    assert found.strip(".")
    assert name_of(found) == name


@given(names, names)
def test_two_names_never_have_the_same_segment(one: str, other: str) -> None:
    if one != other and not any("\ud800" <= c <= "\udfff" for c in one + other):
        assert segment(one) != segment(other)


def test_query_parameters_are_encoded_and_no_others_are_added() -> None:
    address = urls.passage("q/1", "d&2", item="i=3", page=None, sort="")
    assert address == "/query/q~2F1/passage/d~262?item=i%3D3"
    assert parse_qs(urlsplit(urls.result("queries", q="a & b")).query) == {"q": ["a & b"]}


def at(**given: str) -> Address:
    return Address("/x", given)


def test_all_pages_together_are_the_table() -> None:
    rows = list(range(120))
    pages = [listed(rows, at(page=str(n))) for n in (1, 2, 3)]
    assert [row for page in pages for row in page.rows] == rows
    assert [(page.first, page.page, page.pages) for page in pages] == [(1, 1, 3), (51, 2, 3), (101, 3, 3)]


@pytest.mark.parametrize("page", ["0", "-3", "99", "x", "9" * 5000, "²", ""])
def test_a_page_number_out_of_range_gives_the_nearest_page(page: str) -> None:
    assert listed(list(range(120)), at(page=page)).page == (3 if page == "99" else 1)


def test_rows_without_a_value_come_last_in_both_directions() -> None:
    rows = [3, None, 1, math.nan, 2]
    keys = {"value": lambda row: row}
    assert list(in_order(rows, at(sort="value"), keys, "value").rows)[:3] == [1, 2, 3]
    assert list(in_order(rows, at(sort="-value"), keys, "value").rows)[:3] == [3, 2, 1]


def test_another_order_starts_at_the_first_page_and_paging_keeps_the_order() -> None:
    address = at(sort="-m0", page="3", q="a b")
    assert address.but(sort="m0") == "/x?sort=m0&q=a+b"
    assert address.but(page=4) == "/x?sort=-m0&page=4&q=a+b"


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
