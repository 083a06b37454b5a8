from __future__ import annotations

from dataclasses import replace

from trecexam.features.history.arithmetic import (
    FieldChange,
    HumanLabel,
    OriginChange,
    SnapshotOrigin,
    origin_change,
)

ORIGIN = SnapshotOrigin(
    {"runs/a.run": "1", "bank.jsonl": "2"}, {"[scores] min_rating": 4}, {"grader": "g"}, {"x": "1"}
)


def test_the_same_origin_is_no_change() -> None:
    assert origin_change(ORIGIN, ORIGIN) == OriginChange()


def test_files_are_added_edited_removed_and_renamed() -> None:
    old = replace(ORIGIN, inputs={"a": "1", "b": "2", "c": "3", "d": "4"})
    new = replace(ORIGIN, inputs={"a": "1", "b": "22", "x": "3", "y": "9"})
    found = origin_change(old, new)
    assert (found.added, found.edited, found.removed) == (("y",), ("b",), ("d",))
    assert found.renamed == (("c", "x"),)


def test_copies_of_a_removed_file_are_one_renamed_and_one_added() -> None:
    old, new = replace(ORIGIN, inputs={"a": "1"}), replace(ORIGIN, inputs={"b": "1", "c": "1"})
    found = origin_change(old, new)
    assert (found.renamed, found.added, found.removed) == ((("a", "b"),), ("c",), ())


def test_settings_grader_and_versions_are_told_with_both_values() -> None:
    new = replace(
        ORIGIN, settings={"[scores] min_rating": 3, "[scores] label": "count"}, grader={}, versions={"x": "2"}
    )
    found = origin_change(ORIGIN, new)
    assert found.settings == (
        FieldChange("[scores] min_rating", 4, 3),
        FieldChange("[scores] label", None, "count"),
    )
    assert found.grader == (FieldChange("grader", "g", None),)
    assert found.versions == (FieldChange("x", "1", "2"),)


def test_human_labels_are_counted_by_who_gave_them_and_withdrawn_ones_too() -> None:
    old = replace(
        ORIGIN,
        human=(
            HumanLabel("q", "d1", "", 1, "ann"),
            HumanLabel("q", "d2", "", 1, "ann"),
            HumanLabel("q", "d3", "i", 1, "bob"),
        ),
    )
    new = replace(
        ORIGIN,
        human=(
            HumanLabel("q", "d1", "", 1, "ann"),
            HumanLabel("q", "d2", "", 5, "bob"),
            HumanLabel("q", "d4", "", 1, "ann"),
        ),
    )
    found = origin_change(old, new)
    assert (found.human, found.withdrawn) == ({"ann": 1, "bob": 1}, 1)
