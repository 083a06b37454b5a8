"""Which items of a model's answer are accepted, and how they are written to the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.records import Item
from trecexam.errors import GraderError
from trecexam.extensions.banks.editing import item_row, row_line
from trecexam.extensions.banks.generation.generate import merged
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemRequest, named, published


@given(
    st.lists(st.sampled_from([b"one", b"two\r", b"", b"{}", b"\xff"]), max_size=8),
    st.booleans(),
    st.sets(st.integers(1, 8), max_size=4),
)
def test_other_lines_stay_byte_identical_and_in_order(
    lines: list[bytes], ended: bool, dropped: set[int]
) -> None:
    content = b"\n".join(lines) + b"\n" * ended
    item = Item("q9", "new", "New?")
    numbered = content.split(b"\n")
    if numbered and numbered[-1] == b"":
        numbered.pop()
    dropped = {number for number in dropped if number <= len(numbered)}
    lines = {("q9", None): [number - 1 for number in sorted(dropped)]}
    found, n_replaced = merged(BankPlan((), Path(), content, {}, lines), {ItemRequest("q9", "x"): [item]})
    new = row_line(item_row(item, "x")).removesuffix(b"\n")
    expected = [line for number, line in enumerate(numbered, 1) if number not in dropped]
    expected.append(new)
    assert (found.split(b"\n")[:-1], n_replaced) == (expected, len(dropped))


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
    prompt = named(str(path), tmp_path)
    assert (prompt.kind, prompt.number, prompt.by_subtopic) == ("nugget", 3, False)
    first = prompt.name
    path.write_text('template = "Other facts on {query}"\n')
    assert named(str(path), tmp_path).name != first


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('template = "Facts"', "has no place for the query"),
        ('template = "On {query}"\nkind = "x"', "`kind`"),
        ('template = "On {query}"\nwrites = "essay"', "`writes`"),
    ],
)
def test_an_invalid_prompt_is_a_one_line_error(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(GraderError, match=reason):
        named(str(path), tmp_path)
