"""The texts of a figure, and whether they are readable."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from matplotlib.text import Text
from matplotlib.transforms import Bbox

from trecexam.results.plots.paper import PaperFigure


def texts(figure: PaperFigure) -> Iterator[tuple[str, Bbox]]:
    """Every drawn text, with its box in pixels, by matplotlib's renderer."""
    figure.draw_without_rendering()
    for text in figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible()):
        assert isinstance(text, Text)
        box = Text.get_window_extent(text)
        if text.get_text().strip() and not _is_tick_out_of_view(text, figure):
            yield text.get_text(), box


def _is_tick_out_of_view(text: Text, figure: PaperFigure) -> bool:
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if text in (tick.label1, tick.label2):
                    return not low <= tick.get_loc() <= high
    return False


def assert_readable(figure: PaperFigure) -> None:
    """No text overlaps another or leaves the page; one pixel is allowed for rounding."""
    drawn = list(texts(figure))
    page = figure.bbox.padded(1)
    assert [text for text, box in drawn if not (page.contains(*box.min) and page.contains(*box.max))] == []
    pairs = itertools.combinations([(text, box.padded(-0.5)) for text, box in drawn], 2)
    assert [(a, b) for (a, one), (b, other) in pairs if one.overlaps(other)] == []
