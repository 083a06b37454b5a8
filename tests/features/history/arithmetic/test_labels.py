from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.history.arithmetic import ItemKey, QuerySnapshot, label_changes

DOCS = ["d1", "d2", "d3", "d4"]


@st.composite
def states(draw: st.DrawFn) -> tuple[QuerySnapshot, dict[str, tuple[int, set[str]]]]:
    """A query's state, and the same as sets of the texts that a passage reaches."""
    texts = draw(st.lists(st.sampled_from("ABCDEFGH"), max_size=6, unique=True))
    passages: dict[str, tuple[int, int]] = {}
    plain: dict[str, tuple[int, set[str]]] = {}
    for doc_id in draw(st.sets(st.sampled_from(DOCS))):
        label = draw(st.integers(0, 5))
        reached = draw(st.sets(st.sampled_from(texts))) if texts else set()
        passages[doc_id] = (label, sum(1 << texts.index(text) for text in reached))
        plain[doc_id] = (label, reached)
    return QuerySnapshot(tuple(ItemKey(f"id-{text}", text) for text in texts), passages), plain


@given(states(), states())
def test_what_changed_is_what_a_comparison_of_sets_finds(
    old: tuple[QuerySnapshot, dict[str, tuple[int, set[str]]]],
    new: tuple[QuerySnapshot, dict[str, tuple[int, set[str]]]],
) -> None:
    items, labels = label_changes({"q": old[0]}, {"q": new[0]})
    nothing: tuple[int | None, set[str]] = (None, set())
    expected = {}
    for doc_id in DOCS:
        (before, there), (after, here) = old[1].get(doc_id, nothing), new[1].get(doc_id, nothing)
        if before != after or there != here:
            expected[doc_id] = (
                before,
                after,
                {f"id-{text}" for text in here - there},
                {f"id-{text}" for text in there - here},
            )
    assert {r.doc_id: (r.before, r.after, set(r.gained), set(r.lost)) for r in labels} == expected
    assert [r.doc_id for r in labels] == sorted(expected)

    texts_before, texts_after = ({item.digest for item in state.items} for state, _ in (old, new))
    wanted = {}
    for text in texts_before | texts_after:
        before_docs = {d for d, (_, reached) in old[1].items() if text in reached}
        after_docs = {d for d, (_, reached) in new[1].items() if text in reached}
        kind = "kept"
        if text not in texts_before:
            kind = "added"
        elif text not in texts_after:
            kind = "removed"
        counts = (
            len(before_docs), len(after_docs), len(after_docs - before_docs), len(before_docs - after_docs)
        )  # fmt: skip
        if kind != "kept" or before_docs != after_docs:
            wanted[f"id-{text}"] = (kind, *counts)
    assert {r.item_id: (r.change, r.before, r.after, r.gained, r.lost) for r in items} == wanted


def test_an_item_with_another_text_under_its_id_is_edited() -> None:
    old = QuerySnapshot((ItemKey("1", "old"), ItemKey("2", "kept")), {"a": (4, 0b11), "b": (4, 0b01)})
    new = QuerySnapshot((ItemKey("1", "new"), ItemKey("2", "kept")), {"a": (4, 0b11), "b": (3, 0b00)})
    (item,), (label,) = label_changes({"q": old}, {"q": new})
    assert (item.item_id, item.change, item.before, item.after, item.lost) == ("1", "edited", 2, 1, 1)
    assert (label.doc_id, label.before, label.after, label.lost) == ("b", 4, 3, ("1",))


def test_an_edit_that_changes_no_rating_is_still_named() -> None:
    old, new = (QuerySnapshot((ItemKey("1", text),), {"a": (4, 1)}) for text in ("old", "new"))
    (item,), labels = label_changes({"q": old}, {"q": new})
    assert (item.change, item.before, item.after) == ("edited", 1, 1)
    assert labels == []


def test_items_in_another_order_or_under_other_ids_are_the_same_items() -> None:
    old = QuerySnapshot((ItemKey("1", "one"), ItemKey("2", "two")), {"a": (4, 0b01)})
    turned = QuerySnapshot((ItemKey("2", "two"), ItemKey("1", "one")), {"a": (4, 0b10)})
    renamed = QuerySnapshot((ItemKey("x", "one"), ItemKey("y", "two")), {"a": (4, 0b01)})
    assert label_changes({"q": old}, {"q": turned}) == ([], [])
    assert label_changes({"q": old}, {"q": renamed}) == ([], [])


def test_two_items_with_the_same_text_are_two_items() -> None:
    old = QuerySnapshot((ItemKey("1", "same"), ItemKey("2", "same")), {"a": (4, 0b11)})
    one = QuerySnapshot((ItemKey("2", "same"),), {"a": (4, 0b1)})
    (item,), (label,) = label_changes({"q": old}, {"q": one})
    assert (item.item_id, item.change, item.before) == ("1", "removed", 1)
    assert label.lost == ("1",)


def test_more_items_than_a_machine_word_has_bits_are_told_apart() -> None:
    items = tuple(ItemKey(str(n), f"text {n}") for n in range(100))
    old = QuerySnapshot(items, {"a": (5, 1 << 99)})
    new = QuerySnapshot(items[1:], {"a": (5, 1 << 98)})
    (item,), labels = label_changes({"q": old}, {"q": new})
    assert (item.item_id, item.change) == ("0", "removed")
    assert labels == []


def test_queries_that_came_or_went_are_changes_of_all_their_items_and_labels() -> None:
    state = QuerySnapshot((ItemKey("1", "one"),), {"a": (4, 1)})
    items, labels = label_changes({"old": state}, {"new": state})
    assert [(r.query_id, r.change) for r in items] == [("new", "added"), ("old", "removed")]
    assert [(r.query_id, r.before, r.after) for r in labels] == [("new", None, 4), ("old", 4, None)]


def test_an_item_of_another_importance_is_the_same_item_and_said_to_be_reweighed() -> None:
    passages = {"a": (4, 0b01)}

    def changes(*importances: str | None) -> list[str]:
        old, new = (
            QuerySnapshot((ItemKey("1", "one", i), ItemKey("2", "two", "vital")), passages)
            for i in importances
        )
        items, labels = label_changes({"q": old}, {"q": new})
        assert not labels
        assert all((item.item_id, item.before, item.after, item.gained) == ("1", 1, 1, 0) for item in items)
        return [item.change for item in items]

    assert changes("vital", "okay") == changes("", "vital") == ["reweighed"]
    # What was logged before importances were noted.
    assert changes("vital", "vital") == changes(None, "vital") == []
