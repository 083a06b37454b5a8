"""Results: one class, shown in all forms with its notes."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Any

import pandas
import polars
import pyarrow
import pytest

from trecexam.results.result import Result
from trecexam.results.table import Layout, Table


@dataclass(frozen=True)
class Heights(Result):
    """A small result class, as a feature declares one."""

    rows: tuple[tuple[str, float, float | None, str], ...]
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        layout = Layout(("name",), first=("height",))
        table = Table(("name", "weight", "height", "remark"), self.rows, layout=layout)
        return {"heights": table, "counts": Table(("n",), ((len(self.rows),),))}

    @property
    def facts(self) -> dict[str, Any]:
        return {"unit": "m", "tallest": max((row[2] or 0 for row in self.rows), default=None)}


@pytest.fixture
def heights() -> Heights:
    rows = (("ann & co", 60.5, 1.7, "<b>"), ("bob", 80.25, None, ""), ("cy_d", -1.0, 1.9, "50%"))
    return Heights(rows, ("bob was not measured", "a < b"))


def test_a_result_converts_to_every_kind_of_data_frame(heights: Heights) -> None:
    columns = ["name", "weight", "height", "remark"]
    for frame in (heights.to_pandas(), pandas.DataFrame(heights)):
        assert list(frame.columns) == columns
        assert frame["weight"].tolist() == [60.5, 80.25, -1.0]
        assert frame["height"].isna().tolist() == [False, True, False]
    lazy = polars.DataFrame(heights)
    assert lazy.columns == columns
    assert lazy.rows() == list(heights.rows)
    assert pyarrow.table(heights).column_names == columns


def test_columns_rows_and_facts_are_accessible(heights: Heights) -> None:
    assert heights["weight"] == [60.5, 80.25, -1.0]
    assert heights["bob"] == {"name": "bob", "weight": 80.25, "height": None, "remark": ""}
    assert heights["bob"]["weight"] == 80.25
    assert [row["name"] for row in heights] == ["ann & co", "bob", "cy_d"]
    assert len(heights) == 3
    assert heights.facts["unit"] == "m"
    assert heights.tables["counts"]["n"] == [3]
    twice = Table(("run", "n"), (("a", 1), ("b", 2), ("a", 3)))
    assert twice["a"]["n"] == [1, 3]


def test_a_result_without_rows_is_truthy() -> None:
    empty = Heights(())
    assert empty
    assert len(empty) == 0
    assert empty["weight"] == []
    assert empty.to_tsv() == "name\tweight\theight\tremark\n"
    assert "name" in repr(empty)
    assert "<tbody>\n</tbody>" in empty._repr_html_()
    assert r"\begin{tabular}" in empty.to_latex()


def test_unknown_rows_and_keys_are_an_error(heights: Heights) -> None:
    with pytest.raises(
        KeyError, match="'dan' is neither a column nor a name of a row; columns: name, weight"
    ):
        heights["dan"]


def test_json_has_facts_notes_and_all_tables(heights: Heights) -> None:
    assert json.loads(heights.to_json()) == {
        "unit": "m",
        "tallest": 1.9,
        "notes": ["bob was not measured", "a < b"],
        "heights": [dict(row) for row in heights],
        "counts": [{"n": 3}],
    }


def test_notes_are_in_every_human_readable_format(heights: Heights) -> None:
    shown = repr(heights)
    assert shown.splitlines() == [
        "name      height  weight  remark",
        "ann & co    1.70    60.5  <b>",
        "bob                 80.2",
        "cy_d        1.90  -1.000  50%",
        "- bob was not measured",
        "- a < b",
    ]
    html = heights._repr_html_()
    assert "<bdi>ann &amp; co</bdi>" in html
    assert "&lt;b&gt;" in html
    assert '<p class="note">a &lt; b</p>' in html
    latex = heights.to_latex()
    assert "% bob was not measured" in latex
    assert r"ann \& co & 1.70 & 60.5 & <b> \\" in latex
    assert r"cy\_d & 1.90 & $-$1.000 & 50\% \\" in latex


def test_a_repr_has_the_first_rows_and_the_first_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = tuple((f"run{n}", 1.0, 2.0, "x" * 300) for n in range(500))
    notes = tuple(f"note {n} " + "long " * 60 for n in range(30))
    for result in (Heights(rows, notes), Heights(rows), Heights((), notes)):
        lines = repr(result).splitlines()
        assert len(lines) <= 50
        assert max(map(len, lines)) <= 80
    assert "... 476 more rows" in repr(Heights(rows, notes))
    assert "long names are cut; .to_pandas() has all" in repr(Heights(rows))
    assert "27 more notes: .notes has all" in repr(Heights(rows, notes))


def test_a_copy_is_complete_and_notes_can_be_added(heights: Heights) -> None:
    assert pickle.loads(pickle.dumps(heights)) == heights
    assert heights.with_notes("first").notes == ("first", "bob was not measured", "a < b")
    assert heights.with_notes() is heights
