"""Topics in SGML, XML and JSON: published by TREC since 1992, and malicious ones."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_files import put

import converters
from converters import ConversionError, Query
from converters.lines import read_whole
from converters.topics import MAX_DEPTH, MAX_TOPIC

UNCLOSED = """
<top>

<num> Number: 401
<title> foreign minorities, Germany

<desc> Description:
What language and cultural differences impede the integration
of foreign minorities in Germany?

<narr> Narrative:
A relevant document will focus on the causes.

</top>

<top>
<num> Number: 402 <title> behavioral   genetics
<desc> Description: What is happening in 1995 20 years on?
</top>
"""
CLOSED = """<?xml version="1.0"?>
<topics>
<top><num>Number: 401</num><title>foreign minorities, Germany</title><desc>What?</desc></top>
<top>
  <num>402</num>
  <title>
    behavioral genetics
  </title>
  <narr>no</narr>
</top>
</topics>
"""
WEB = """<?xml version="1.0" encoding="UTF-8"?>
<webtrack2009>
  <topic number="401" type="faceted">
    <query>foreign minorities,
      Germany</query>
    <description>Find <b>all</b>.</description>
    <subtopic number="1" type="inf">not <query>this</query></subtopic>
  </topic>
  <topic number="402" type="ambiguous"><description>no</description>
    <query><![CDATA[behavioral]]> genetics</query></topic>
</webtrack2009>
"""
EXPECTED = [Query("401", "foreign minorities, Germany"), Query("402", "behavioral genetics")]
DIALECTS = {
    "unclosed": UNCLOSED,
    "closed": CLOSED,
    "one line": "<top> <num> Number: 401 <title> foreign minorities, Germany <desc> x <narr> y </top>"
    "<top> <num> Number: 402 <title> behavioral genetics <desc> z </top>",
    "web": WEB,
    "title": '<topics><topic id="401"><title>foreign minorities, Germany</title></topic>'
    "<topic><number>402</number><title>behavioral genetics</title></topic></topics>",
    "text of the element": '<topics task="trials">\n<topic number="401">\n foreign minorities, Germany\n'
    '</topic>\n<topic number="402">behavioral genetics</topic></topics>',
    "indri": "<parameters><query><number>401</number><text>foreign minorities, Germany</text></query>"
    "<query><number>402</number><text>behavioral genetics</text></query></parameters>",
    "object": json.dumps(dict(EXPECTED)),
    "object over lines": json.dumps(dict(EXPECTED), indent=2),
    "list": json.dumps([query._asdict() for query in EXPECTED]),
    "list over lines": json.dumps([{"number": int(q), "title": t} for q, t in EXPECTED], indent="\t"),
}


def refused(path: Path) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, "queries"))
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_every_dialect_is_recognised_and_read(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = put(tmp_path, pack(DIALECTS[name].encode()))
    assert converters.sniff(path) == "queries"
    assert list(converters.read(path)) == EXPECTED


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # The first topics of TREC have labels in their fields.
        (
            "<top>\n<head> Tipster Topic Description\n<num> Number:  051\n<dom> Domain: Economics\n"
            "<title> Topic:  Airbus Subsidies\n<smry> Summary:\nx\n<def> Definition(s):\n</top>\n",
            Query("051", "Airbus Subsidies"),
        ),
        # A topic without a title has its description.
        (
            "<top>\n<num> Number: 201\n<desc> Description:\nWhat\nis it?\n</top>\n",
            Query("201", "What is it?"),
        ),
        (
            '<topics><topic number="1"><title/><description>What?</description></topic></topics>',
            Query("1", "What?"),
        ),
        # Ampersands and words in angle brackets stay in a text.
        (
            "<top>\n<num> 1\n<title> AT&T, R&amp;D &lt; 5 <i>and</i> so\n<docid> no\n</top>\n",
            Query("1", "AT&T, R&D < 5 <i>and</i> so"),
        ),
    ],
)
def test_a_topic_is_read_with_its_text(tmp_path: Path, content: str, expected: Query) -> None:
    assert list(converters.read(put(tmp_path, content))) == [expected]


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("<top>\n<num> 1\n<title> x\n<top>\n", 4, "begins inside the one of line 1"),
        ("<top>\n<num> Number:\n<title> x\n</top>", 1, "a topic without a number"),
        ("<top>\n<num> 1\n<title> x\n</top>\noops\n", 5, "text outside of <top>...</top>: 'oops'"),
        ("<top>\n<num> 1\n<title> x\n</top>\n<num> 2\n", 5, "<num> is outside"),
        ("<top>\n<num> 1<title> x</top>\n<top>\n<num> 1<title> y</top>", 3, "'1' occurs twice (first"),
        ("<top>\n<num> 1\n<title> " + "x" * (MAX_TOPIC + 9), 3, "longer than 1 MiB"),
        ('<topics>\n<topic number="1">\n<query>x</query>\n', 4, "not valid XML: no element found"),
        ('<topics>\n<topic id="1"><narrative>x</narrative></topic></topics>', 2, "topic '1' has no text"),
        ('<topics>\n<topic id="1"><query>&x;</query></topic></topics>', 2, "undefined entity"),
        ('{"1": "x",\n "2": ["y"]}', 2, "query '2' has no text"),
        ('{"1": "x",\n "2": "y",\n\n "1": "z"}', 4, "query '1' occurs twice (first on line 1)"),
        ('{"1": "x",\n " ": "y"}', 2, "a query without an id"),
        ('{\n"id": "1",\n"title": "x"}', 2, '"id" is a field, not a query id'),
        ('{"1": "\\ud800"}', 1, "not valid JSON"),
        ('[{"id": 1, "title": "x"},\n{"id": 2}]', 2, "query '2' has no text"),
        ('[{"id": 1, "title": "x"},\n{"title": "y"}]', 2, 'no "query_id" or "qid" or "id"'),
        ('[{"id": 1, "title": "x"},\n 5]', 2, "not a JSON object"),
    ],
)  # fmt: skip
def test_a_bad_topic_is_reported(tmp_path: Path, content: str, line: int | None, reason: str) -> None:
    error = refused(put(tmp_path, content))
    assert reason in error.reason
    assert error.line == line


def test_a_billion_laughs_file_is_rejected_at_its_first_entity(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">\n' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE topics [\n<!ENTITY l0 "lol">\n{entities}]>\n'
    bomb += '<topics><topic number="1"><query>&l9;</query></topic></topics>\n'
    error = refused(put(tmp_path, bomb))
    assert (error.line, error.reason.split(";")[0]) == (3, "declares the entity 'l0'")


@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY x SYSTEM "{}">', '<!ENTITY % x SYSTEM "{}"> %x;', '<!ENTITY x PUBLIC "a" "{}">'],
)
def test_external_entities_are_not_read(tmp_path: Path, declaration: str) -> None:
    secret = put(tmp_path, "secret", "secret")
    text = f"<!DOCTYPE t [\n{declaration.format(secret.as_uri())}\n]>\n"
    error = refused(put(tmp_path, f'{text}<topics><topic id="1"><query>&x;</query></topic></topics>'))
    assert error.line == 2
    assert "entities are rejected" in error.reason


def test_an_external_dtd_is_not_read(tmp_path: Path) -> None:
    dtd = put(tmp_path, '<!ENTITY x "secret">', "topics.dtd")
    start = f'<!DOCTYPE topics SYSTEM "{dtd.as_uri()}">\n<topics>\n'
    path = put(tmp_path, start + '<topic id="1"><query>x</query></topic></topics>')
    assert list(converters.read(path)) == [Query("1", "x")]
    error = refused(put(tmp_path, start + '<topic id="1"><query>&x;</query></topic></topics>'))
    assert (error.line, "'&x;' is not declared here" in error.reason) == (3, True)


def test_deep_nesting_is_rejected(tmp_path: Path) -> None:
    path = put(tmp_path, '<topics>\n<topic id="1"><query>' + "<b>" * 100_000)
    error = refused(path)
    assert (error.line, f"more than {MAX_DEPTH} deep" in error.reason) == (2, True)
    assert refused(put(tmp_path, '{"1": "x", "2": ' + "[" * 100_000)).line == 1
    nested = "[" * 1000 + "]" * 1000
    assert refused(put(tmp_path, '[{"id": 1, "title": ' + nested + "}]")).line == 1


@pytest.mark.parametrize(
    "content",
    [
        "<" + "a" * 1_000_000,
        "<top>\n<num>1<title>" + "x <foo>" * 100_000 + "</top>",
        "<top>" + "<a " * 300_000,
        "<topics>" + "<a " * 300_000,
        '{"a' + "\\" * 1_000_000,
        "[{" + '"a":' * 300_000,
    ],
)
def test_recognising_a_format_takes_bounded_time_for_any_content(tmp_path: Path, content: str) -> None:
    began = time.process_time()
    for name in ("queries", None):
        with contextlib.suppress(ConversionError):
            list(converters.read(put(tmp_path, content), name))
    assert time.process_time() - began < 5


def test_a_document_has_a_maximum_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("converters.lines.MAX_WHOLE", 2**20)
    path = put(tmp_path, b"<topics>\n" + b"x" * 999_999 + b"\n" + b"y" * 99_999)
    with pytest.raises(ConversionError, match=":3: the file is larger than 1 MiB"):
        read_whole(path)


@pytest.mark.parametrize("query_id", ["{1", "[{1", "<top>", "<?xml", "id"])
def test_a_first_query_id_that_looks_like_another_dialect_is_read_back(tmp_path: Path, query_id: str) -> None:
    queries = [Query(query_id, "query"), Query("<topic>", "<num>")]
    converters.write(queries, tmp_path / "q.tsv", "queries")
    assert list(converters.read(tmp_path / "q.tsv", "queries")) == queries


names = ("top", "num", "title", "topic", "topics", "query")
tags = [f"<{slash}{name}>" for slash in ("", "/") for name in names]
xml = ['<topic id="1">', "<!DOCTYPE t [", "<!ENTITY a 'b'>", "]>", "&a;", "&#0;", "<![CDATA[", "]]>"]
xml += ["<?xml version='1.0' encoding='utf-7'?>", "<a:b xmlns:a='c'>", "<!--", "-->"]
other = ["Number: 1", "1", "x", " ", "\n", "\r", "é", "{", "[{", "}", "]", '"1"', ":", ",", '"id"', '"text"']
pieces = st.sampled_from([*tags, *xml, *other, "\\ud800"])


@given(st.lists(pieces, max_size=30).map("".join), st.sampled_from(["", "<top>", "<topics>", "[{", '{"1":']))
def test_any_mark_up_gives_queries_or_a_conversion_error(tmp_path: Path, content: str, start: str) -> None:
    path = put(tmp_path, start + content)
    for name in ("queries", None):
        found: list[Any] = []
        with contextlib.suppress(ConversionError):
            found += converters.read(path, name)
        assert all(not isinstance(row, Query) or (row.query_id.strip() and row.text.strip()) for row in found)


xml_text = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" "), min_size=1
)


@given(st.dictionaries(xml_text.filter(str.strip), xml_text.filter(str.strip), min_size=1, max_size=5))
def test_output_of_an_xml_writer_is_read(tmp_path: Path, texts: dict[str, str]) -> None:
    from xml.etree import ElementTree

    root = ElementTree.Element("topics")
    expected = {}
    for query_id, text in texts.items():
        topic = ElementTree.SubElement(root, "topic", number=query_id)
        ElementTree.SubElement(topic, "query").text = text
        expected[" ".join(query_id.split())] = " ".join(text.split())
    if len(expected) == len(texts):
        path = put(tmp_path, ElementTree.tostring(root))
        assert dict(converters.read(path, "queries")) == expected
