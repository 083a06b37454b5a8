from __future__ import annotations

from trecexam.extensions.ragval.formats.answers import JudgedAnswer
from trecexam.extensions.ragval.judged_scores import systems_of
from trecexam.extensions.ragval.sweep import swept

SYSTEMS = systems_of(
    JudgedAnswer("q", "", run, truthfulness=t, relevance=1, status="ok")
    for run, t in (("a", 5), ("b", 4), ("c", 3))
)


def test_numbers_stand_in_their_order_and_keep_how_they_are_written() -> None:
    found = swept("size", SYSTEMS, {"a": "1000", "b": "200", "c": "3e1"}, {})
    assert found.numeric
    assert [(point.system.run_id, point.value, point.x) for point in found.points] == [
        ("c", "3e1", 30.0), ("b", "200", 200.0), ("a", "1000", 1000.0)
    ]  # fmt: skip


def test_where_one_value_is_no_number_all_are_texts_in_their_order() -> None:
    found = swept("size", SYSTEMS, {"a": "9", "b": "10", "c": "nan"}, {})
    assert not found.numeric
    assert [(point.value, point.x) for point in found.points] == [("10", 0.0), ("9", 1.0), ("nan", 2.0)]


def test_series_stay_together_and_systems_without_a_value_are_named() -> None:
    found = swept("size", SYSTEMS, {"a": "2", "b": "1", "else": "5"}, {"a": "x", "b": "y"})
    assert [(point.series, point.system.run_id) for point in found.points] == [("x", "a"), ("y", "b")]
    assert found.left_out == ("c",)
