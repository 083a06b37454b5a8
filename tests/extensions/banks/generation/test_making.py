"""Which items of a model's answer are accepted, and how they are written to the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.bank import read_bank
from converters.bank_lines import scan_bank
from converters.records import Item, Origin
from trecexam.errors import GraderError
from trecexam.extensions.banks.generation.making import DroppedItems, items_of, known_texts
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest, load_prompt, published
from trecexam.extensions.banks.lines import item_line, merged, replaceable

ORIGIN = Origin("questions", "m", 7, "2026-11-21T10:00:00Z", "")
WANTED = ItemRequest("q1", "cost of nuclear power")
PROMPT = published()["questions"]


def made(
    *texts: str, known: tuple[Item, ...] = (), prompt: ItemPrompt = PROMPT
) -> tuple[list[str], DroppedItems]:
    items, dropped = items_of(WANTED, texts, prompt, ORIGIN, known_texts(known))
    return [item.text for item in items], dropped


def test_copies_duplicates_empty_and_surplus_items_are_skipped_and_counted() -> None:
    ten = [f"Question {word}?" for word in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]]
    texts = ["Cost of nuclear power?", *ten, "question  A", "?!", " ", "An eleventh one?"]
    assert made(*texts) == (ten, DroppedItems(empty=2, copies=1, duplicates=1, surplus=1))


def test_an_item_edited_or_retired_by_a_person_is_not_added_again() -> None:
    reworded = Item("q1", "1", "How expensive is it?", origin=ORIGIN._replace(text="What does it cost?"))
    retired = Item("q1", "2", "Who pays?", retired=True)
    texts, dropped = made("What does it cost?", "Who pays?", "Why?", known=(reworded, retired))
    assert (texts, dropped.duplicates) == (["Why?"], 2)


def test_an_item_stores_its_origin() -> None:
    wanted = ItemRequest("q1", "x", "a sub-topic", "f1")
    ((item,), _) = items_of(wanted, ("1. Why?",), PROMPT, ORIGIN, set())
    assert item == Item("q1", item.item_id, "Why?", facet_id="f1", origin=ORIGIN._replace(text="Why?"))


def test_a_written_line_is_read_back_as_the_item(tmp_path: Path) -> None:
    for kind in ("question", "nugget"):
        item = Item("q1", "1", "caf\u00e9?", kind, facet_id="f", origin=ORIGIN._replace(text="caf\u00e9?"))
        path = tmp_path / f"{kind}.jsonl"
        path.write_bytes(item_line(item, "a query"))
        assert list(read_bank(path)) == [item]
        assert "caf\u00e9" in path.read_text()


def test_items_edited_by_a_person_are_not_replaced(tmp_path: Path) -> None:
    def line(text: str, **fields: object) -> bytes:
        row = json.loads(item_line(Item("q1", text, text, origin=ORIGIN._replace(text=text)), "x"))
        return json.dumps({**row, **fields}).encode() + b"\n"

    path = tmp_path / "bank.jsonl"
    by_hand = b'{"query_id": "q1", "question": "By hand?"}\n'
    several = b'{"query_id": "q1", "items": [{"question_text": "One?"}, {"question_text": "Two?"}]}\n'
    broken = b'{"query_id": "q1"'
    touched = [
        line("b", question="edited"),
        line("c", retired=True),
        line("d", importance="vital"),
        line("e", gold_answers=["two"]),
        line("f", note="ask Ada"),
        by_hand,
        several,
        broken,
    ]
    lines = [line("a"), line("g").replace(b", ", b",  "), *touched]
    path.write_bytes(b"".join(lines))
    found = [replaceable(each, lines[(each.number or 0) - 1], "question") for each in scan_bank(path)]
    assert [each and each.text for each in found] == ["a", "g"] + [None] * len(touched)
    assert replaceable(next(scan_bank(path)), lines[0], "nugget") is None


@given(
    st.lists(st.sampled_from([b"one", b"two\r", b"", b"{}", b"\xff"]), max_size=8),
    st.booleans(),
    st.sets(st.integers(1, 8), max_size=4),
)
def test_kept_lines_stay_byte_identical_and_in_order(
    lines: list[bytes], ended: bool, dropped: set[int]
) -> None:
    content = b"\n".join(lines) + b"\n" * ended
    item = Item("q9", "new", "New?")
    numbered = content.split(b"\n")
    if numbered and numbered[-1] == b"":
        numbered.pop()
    found = merged(content, dropped, [(item, "x")], {})
    kept = [line for number, line in enumerate(numbered, 1) if number not in dropped]
    assert found.split(b"\n")[:-1] == [*kept, item_line(item, "x").removesuffix(b"\n")]


def test_new_items_are_written_at_the_position_of_removed_ones() -> None:
    item = Item("q1", "new", "New?")
    found = merged(b"a\nb\nc\n", {2}, [(item, "x")], {"q1": 2})
    assert found == b"a\n" + item_line(item, "x") + b"c\n"


def test_the_built_in_prompts_equal_the_published_ones() -> None:
    text = published()["questions"].text(ItemRequest("1", "who am I"))
    assert text.startswith(
        "Break the query 'who am I' into concise questions that must be answered. Generate 10 concise "
        "insightful questions that reveal whether information relevant for 'who am I' was provided, "
        "showcasing a deep understanding of the subject matter. Avoid basic or introductory-level inquiries. "
        "Keep the questions short.\nGive the question set in the following JSON format:"
    )
    nuggets = published()["nuggets"].text(ItemRequest("1", "who am I"))
    assert "into concise nuggets that must be mentioned." in nuggets
    assert "Keep nuggets to a maximum of 4 words." in nuggets
    subtopics = published()["subtopics"].text(ItemRequest("1", "Biology", "Cells", "c"))
    assert subtopics.startswith(
        "Explore the connection between 'Biology' with a specific focus on the subtopic 'Cells'. Generate "
        "insightful questions that delve into advanced aspects of 'Cells', showcasing a deep understanding"
    )


def test_a_slot_name_in_a_query_text_is_not_substituted() -> None:
    assert "'{query_subtopic}'" in published()["subtopics"].text(
        ItemRequest("1", "{query_subtopic}", "s", "s")
    )


def test_a_custom_prompt_declares_which_kind_of_item_it_generates(tmp_path: Path) -> None:
    path = tmp_path / "facts.toml"
    path.write_text('template = "Facts on {query}, as {\\"nuggets\\"}"\nwrites = "nugget"\nnumber = 3\n')
    prompt = load_prompt(path)
    assert (prompt.kind, prompt.number, prompt.by_subtopic) == ("nugget", 3, False)
    first = prompt.name
    path.write_text('template = "Other facts on {query}"\n')
    assert load_prompt(path).name != first


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('template = "Facts"', "has no place for the query"),
        ('template = "On {qeury}"', "unknown slot 'qeury'"),
        ('template = "On {query}"\nkind = "x"', "`kind`"),
        ('template = "On {query}"\nwrites = "essay"', "`writes`"),
        ("template = ", "not valid TOML"),
    ],
)
def test_an_invalid_prompt_is_a_one_line_error(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(GraderError, match=reason):
        load_prompt(path)
