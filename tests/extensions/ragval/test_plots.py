from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from trecexam.extensions.ragval.formats.answers import JudgedAnswer
from trecexam.extensions.ragval.judged_scores import System, swept, systems_of
from trecexam.extensions.ragval.plots import ragval_plots
from trecexam.tables.plots.canvas import draw

pytestmark = pytest.mark.plots
HOSTILE = ("<script>alert(1)</script>", r"$\frac{1}{2}$", "a$b", "nul\x00 \x1b[31m \ud800", "x" * 500, "]]>")


def systems(names: tuple[str, ...], values: dict[str, str] | None = None) -> tuple[System, ...]:
    chance = np.random.default_rng(1)
    return systems_of(
        JudgedAnswer(
            f"q{q}", "", name, parameter=(values or {}).get(name), truthfulness=t, relevance=r, status="ok"
        )
        for name in names
        for q, (t, r) in enumerate(chance.integers(1, 6, (5, 2)).astype(float).tolist())
    )


@pytest.mark.slow
@pytest.mark.parametrize("values", ["1 2 4 8 16 64", "a b c d e f", "5 5 5 5 5 5"])
def test_every_plot_is_drawn_for_any_system_names_and_values(values: str) -> None:
    found = systems(HOSTILE, dict(zip(HOSTILE, values.split(), strict=True)))
    sweep = swept(HOSTILE[0], found)
    plots = ragval_plots(found, found[0], found[1], sweep)
    assert [plot.name for plot in plots] == ["means", "histogram", "sweep"]
    # The first two are equal for all values.
    for plot in plots if values.startswith("1 ") else plots[2:]:
        drawing = draw(plot)
        assert drawing.why == ""
        assert "script" not in {
            element.tag.rpartition("}")[2] for element in ET.fromstring(drawing.svg).iter()
        }
        # Something is drawn, and no name enlarges it.
        assert drawing.svg.count(b"<path") > 10
        assert float(ET.fromstring(drawing.svg).get("viewBox", "").split()[2]) < 500


def test_of_many_systems_only_the_best_histograms_are_drawn_and_the_table_has_all() -> None:
    found = systems(tuple(f"run{n:03}" for n in range(60)))
    _, histogram = ragval_plots(found, None, None, None)
    assert "The 12 best of 60 systems are drawn." in histogram.caption
    assert len(histogram.table.rows) == 60 * 9


def test_systems_without_scores_are_in_no_plot() -> None:
    none = systems_of([JudgedAnswer("q", "", "none")])
    assert ragval_plots(none, None, None, None) == []
    means, _ = ragval_plots((*systems(("a",)), *none), none[0], None, None)
    assert {row[0] for row in means.table.rows} == {"a"}
    assert "baseline" not in means.settings
