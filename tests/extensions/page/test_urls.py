from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.page import urls

names = st.text(max_size=30)


@given(names)
def test_a_name_is_recovered_from_its_segment(name: str) -> None:
    if not any("\ud800" <= c <= "\udfff" for c in name):
        assert urls.name_of(urls.segment(name)) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "~", "~2E", "a/b", "a#b?c", "%2F", "é\udc80", "../../etc"]
)
def test_a_segment_has_only_characters_that_no_proxy_resolves_or_decodes(name: str) -> None:
    segment = urls.segment(name)
    assert re.fullmatch(r"[A-Za-z0-9_.~\-]+", segment)
    assert segment.strip(".")
    assert urls.name_of(segment) == name


@given(names, names)
def test_two_names_never_have_the_same_segment(one: str, other: str) -> None:
    if one != other and not any("\ud800" <= c <= "\udfff" for c in one + other):
        assert urls.segment(one) != urls.segment(other)


def test_query_parameters_are_encoded_and_no_others_are_added() -> None:
    address = urls.passage("q/1", "d&2", "i=3", page=None, sort="")
    assert address == "/query/q~2F1/passage/d~262?item=i%3D3"
    assert parse_qs(urlsplit(urls.search(q="a & b")).query) == {"q": ["a & b"]}
