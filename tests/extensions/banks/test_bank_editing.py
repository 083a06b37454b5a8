from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside

from converters.errors import ConversionError
from converters.fields import made_id
from converters.records import Item
from trecexam.extensions.banks.bank_editing import (
    edits_of,
    items_of,
    new_id,
    with_item,
    with_retired,
    with_text,
)

NOTE = {"who": "Ann", "when": "2026-07-01T10:00:00+00:00", "why": ""}
LINES = (
    '{"query_id": "q1", "questions": [{"question_id": "q1/1", "question_text": "Why?", "score": 1.5},'
    ' {"question_text": "When \\u00e9?", "question_id": null}], "n": 123456789012345678901234567890}'
)


def plain(content: bytes) -> list[bytes]:
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).splitlines(keepends=True)


def changed_lines(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines that differ, without common lines at both ends."""
    before, after = plain(old), plain(new)
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return before, after


def test_an_edit_changes_the_text_and_its_author_only() -> None:
    new = with_text(LINES.encode(), "bank", "q1/1", "Why so?", NOTE).decode()
    noted = ', "edits": [{"who": "Ann", "when": "2026-07-01T10:00:00+00:00", "before": "Why?"}]'
    assert new == LINES.replace('"Why?", "score": 1.5', f'"Why so?", "score": 1.5{noted}')


def test_an_item_keeps_its_id_when_the_id_was_made_from_its_text() -> None:
    item_id = made_id("q1", "When é?")
    new = with_text(LINES.encode(), "bank", item_id, "When ü?", NOTE)
    assert [(item.item_id, item.text) for item in items_of(new, "bank")][1] == (item_id, "When ü?")
    assert b"\\u00fc" in new  # escaped, as the line has it


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('{"query_id": "q1", "qid": "a", "question": "Why?", "correct": "x", "correctKey": "A"}', "question"),
        ('{"query_id": "q1", "question_id": "a", "question_text": "Why?"}', "question_text"),
        ('{"query_id": "q1", "nugget_id": "a", "nugget": "Why?", "importance": "vital"}', "nugget"),
        ('{"query_id": "q1", "items": [{"id": "a", "kind": "nugget", "text": "Why?"}]}', "text"),
        ('{"query_id": "q1", "items": [{"nugget_id": "a", "nugget_text": "Why?"}]}', "nugget_text"),
        ('{"qid": "q1", "query": "the query", "nuggets": [{"text": "Why?", "id": "a"}]}', "text"),
    ],
)
def test_banks_can_be_edited_in_every_form(line: str, key: str) -> None:
    content = f"{line}\r\n".encode()
    new = with_retired(with_text(content, "bank", "a", "How?", NOTE), "bank", "a", retired=True, note=NOTE)
    assert f'"{key}": "How?"'.encode() in new
    (item,) = items_of(new, "bank")
    (was,) = items_of(content, "bank")
    assert item == was._replace(text="How?", retired=True)
    assert new.endswith(b"}\r\n")
    back = with_retired(new, "bank", "a", retired=False, note=NOTE)
    assert items_of(back, "bank") == [was._replace(text="How?")]
    assert [sorted(edit) for edit in edits_of(back, "bank", "q1")["a"]] == [
        ["before", "when", "who"],
        ["retired", "when", "who"],
        ["retired", "when", "who"],
    ]


def test_editing_one_of_two_nuggets_with_the_same_text_keeps_the_other() -> None:
    content = b'{"qid": "q1", "nuggets": [{"text": "a"}, {"text": "a"}, {"text": "b"}]}\n'
    ids = [made_id("q1", "a"), f"{made_id('q1', 'a')}-2", made_id("q1", "b")]
    for changed in ids:
        after = items_of(with_text(content, "bank", changed, "c", NOTE), "bank")
        assert [(item.item_id, item.text) for item in after] == [
            (item_id, "c" if item_id == changed else text) for item_id, text in zip(ids, "aab", strict=True)
        ]
        after = items_of(with_retired(content, "bank", changed, retired=True, note=NOTE), "bank")
        assert [item.item_id for item in after if item.retired] == [changed]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b'{"query_id": "q1", "question_id": "a", "question": "x"}\n{"query_id": "q1"}\n',
            "bank:2: .*no text",
        ),
        (b'{"query_id": "q1", "question": "x"}\n\0', "bank:2: a NUL byte"),
        (b"not JSON\n", "bank:1: not valid JSON"),
        (
            gzip.compress(b'{"query_id": "q1", "question": "x"}', mtime=0)[:-9],
            "bank: the gzip data is damaged",
        ),
        (b'\xff{"query_id": "q1", "question": "x"}', "bank:1: not UTF-8"),
        (b'{"query_id": "q1", "question_id": "b", "question": "x"}\n', "bank: the file has no item 'a'"),
        (
            b'{"query_id": "q1", "question_id": "a", "question": "x"}\n' * 2,
            "bank:2: item id 'a' occurs twice",
        ),
    ],
)
def test_an_unreadable_bank_is_not_changed(content: bytes, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        with_text(content, "bank", "a", "y", NOTE)


def test_a_new_item_is_added_to_the_list_of_its_query_with_the_same_keys() -> None:
    content = (
        b'{"query_id":"q1","items":[{"id":"1","kind":"nugget","text":"a"}]}\n{"query_id":"q2","question":"x"}'
    )
    new = with_item(content, "bank", Item("q1", "2", "b", "nugget", importance="vital"), {})
    added = b',{"id":"2","kind":"nugget","text":"b","importance":"vital","edits":[{"added":true}]}]'
    assert new == content.replace(b"]}\n", added + b"}\n")


def test_a_new_item_of_another_kind_or_query_gets_its_own_line() -> None:
    content = b'{"qid": "q1", "nuggets": [{"text": "a"}]}\r\n{"qid": "q2", "nuggets": [{"text": "b"}]}'
    one = with_item(content, "bank", Item("q1", "1", "Why?"), {})
    two = with_item(one, "bank", Item("q3", "1b", "How?"), {})
    first, second = plain(content)
    line = b'{"query_id": "%s", "question_id": "%s", "question": "%s", "edits": [{"added": true}]}'
    assert plain(two) == [
        first,
        line % (b"q1", b"1", b"Why?") + b"\r\n",
        second + b"\r\n",
        line % (b"q3", b"1b", b"How?"),
    ]
    assert [item.item_id for item in items_of(two, "bank") if item.kind == "question"] == ["1", "1b"]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (("q1/1", "q1/2", "q1/10"), "q1/11"),
        (("q1/q1", "q1/q2"), "q1/q3"),
        (("q1-01", "q1-02"), "q1-03"),
        (("1", "2"), "4"),  # 3 belongs to another query
        (("q1/1", "other/2"), made_id("q1", "new")),
        ((made_id("q1", "x"),), made_id("q1", "new")),
        ((), made_id("q1", "new")),
    ],
)
def test_a_new_id_continues_the_numbering_and_is_unique(ids: tuple[str, ...], expected: str) -> None:
    everyone = {**dict.fromkeys(ids, "q1"), "3": "q2"}
    assert new_id("q1", "new", everyone) == expected
    assert new_id("q1", "new", {**everyone, made_id("q1", "new"): "q2"}) != made_id("q1", "new")


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12).filter(
    lambda text: text.strip() != ""
)
UNKNOWN = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.floats(-9, 9).filter(bool),
        "boost": st.floats(allow_nan=False, allow_infinity=False),
        "x": st.lists(st.text(max_size=3)),
        "y": st.none(),
    },
)


@st.composite
def banks(draw: st.DrawFn) -> bytes:
    """A bank of several forms, line ends and ways to write JSON."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        query_id = f"q{draw(st.integers(1, 2))}"
        texts = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
        form = draw(st.sampled_from(("questions", "items", "single", "old", "nugget", "nuggetizer")))
        ids = [f"{query_id}/{number}/{place}" for place in range(len(texts))]
        row: dict[str, Any]
        extra = draw(UNKNOWN)
        if form == "questions":
            entries = [
                {"question_id": i, **extra, "question_text": t} for i, t in zip(ids, texts, strict=True)
            ]
            row = {"query_id": query_id, "questions": entries, **extra}
        elif form == "items":
            entries = [{"nugget_text": t, "nugget_id": i, **extra} for i, t in zip(ids, texts, strict=True)]
            row = {"items": entries, "query_id": query_id}
        elif form == "nuggetizer":
            row = {"qid": query_id, "nuggets": [{"text": f"{t}{number}", **extra} for t in texts], **extra}
        elif form == "old":
            row = {"query_id": query_id, "qid": ids[0], "question": texts[0], "choices": {"A": "x"}, **extra}
        else:
            key = "nugget" if form == "nugget" else "question"
            row = {key: texts[0], "query_id": query_id, f"{key}_id": ids[0], **extra}
        blank = draw(st.sampled_from(((", ", ": "), (",", ":"))))
        line = json.dumps(row, ensure_ascii=draw(st.booleans()), separators=blank)
        lines.append(draw(st.sampled_from(("", "", "\n", " \r\n"))) + line)
    end = draw(st.sampled_from(("\n", "\r\n")))
    whole = end.join(lines) + draw(st.sampled_from(("", end)))
    content = draw(st.sampled_from((b"", b"\xef\xbb\xbf"))) + whole.encode()
    return gzip.compress(content) if draw(st.booleans()) else content


@given(banks(), st.data())
def test_any_sequence_of_edits_is_stored_and_leaves_other_lines_unchanged(
    content: bytes, data: st.DataObject
) -> None:
    model = items_of(content, "bank")
    for step in range(data.draw(st.integers(1, 5))):
        item = data.draw(st.sampled_from(model))
        what = data.draw(st.sampled_from(("edit", "retire", "add")))
        old, text = content, f"{data.draw(TEXTS)} {step}"
        if what == "edit":
            content = with_text(content, "bank", item.item_id, text, NOTE)
            model = [one._replace(text=text) if one == item else one for one in model]
        elif what == "retire":
            content = with_retired(content, "bank", item.item_id, retired=not item.retired, note=NOTE)
            model = [one._replace(retired=not item.retired) if one == item else one for one in model]
        else:
            item_id = new_id(item.query_id, text, {one.item_id: one.query_id for one in model})
            content = with_item(content, "bank", Item(item.query_id, item_id, text, item.kind), NOTE)
        found = items_of(content, "bank")
        if what == "add":
            (added,) = [one for one in found if one.item_id == item_id]
            assert added == Item(item.query_id, item_id, text, item.kind)
            # It is the last one of its query and kind.
            alike = [one for one in found if (one.query_id, one.kind) == (added.query_id, added.kind)]
            assert alike[-1] == added
            assert [one for one in found if one != added] == model
            model = found
        assert found == model
        assert (content[:2] == b"\x1f\x8b") == (old[:2] == b"\x1f\x8b")
        before, after = changed_lines(old, content)
        assert len(after) <= 2
        assert len(before) <= 1
        if len(after) == 2:
            # The former last line has a line end now.
            assert after[0].rstrip(b"\r\n") == before[0]


@pytest.mark.parametrize(
    "name", ["dl19/bank.questions.jsonl.gz", "car-y3/*.jsonl*", "rag25/*nuggets*.jsonl*"]
)
def test_published_banks_can_be_edited(name: str) -> None:
    path = outside(name)
    content = path.read_bytes()
    items = items_of(content, path)
    for place in (0, len(items) // 2, len(items) - 1):
        item = items[place]
        new = with_text(content, path, item.item_id, "Is this édited?", NOTE)
        expected = [one._replace(text="Is this édited?") if one == item else one for one in items]
        assert items_of(new, path) == expected
        before, after = changed_lines(content, new)
        assert len(before) == len(after) == 1
        assert len(after[0]) - len(before[0]) < 400
