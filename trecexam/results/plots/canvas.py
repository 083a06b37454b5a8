"""A plot as SVG and PDF: the same bytes for the same plot."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from trecexam.results.plots.style import WIDTH, own_settings
from trecexam.results.result import Plot
from trecexam.results.table import to_tsv
from trecexam.results.terminal import printable

#: In out/, and the kinds of file that each plot has there.
FOLDER = "plots"
KINDS = ("svg", "pdf", "tsv")
#: Dots an inch of images within the SVG: sharp in print at the width of a column.
_DPI = 160
_PROLOGUE = re.compile(r"\A.*?(?=<svg )", re.DOTALL)
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')


@dataclass(frozen=True)
class Drawing:
    """Files of a plot; a file that could not be drawn is empty, and `why` says the reason."""

    svg: bytes = b""
    pdf: bytes = b""
    why: str = ""


def draw(plot: Plot, *, pdf: bool = False) -> Drawing:
    """Draw the plot as SVG, with `pdf` as PDF too; `why` of the result says what could not be drawn."""
    drawing = Drawing()
    try:
        drawing = _drawn(plot)
        if pdf:
            from trecexam.results.plots.paper import PaperFigure

            drawing = replace(drawing, pdf=PaperFigure(plot).file("pdf"))
        return drawing
    except Exception as error:
        # Numbers must get out even where a picture does not, and pictures where a PDF does not.
        return replace(drawing, why=printable(f"{type(error).__name__}: {error}"))


def drawn(plots: Iterable[Plot]) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of plots by their names, and a line on each that could not be drawn."""
    files: dict[str, bytes] = {}
    why = []
    for plot in plots:
        drawing = draw(plot)
        files.update(plot_files(plot, drawing))
        why += [f"plot {plot.name} could not be drawn: {drawing.why}"] if drawing.why else []
    return files, why


def plot_files(plot: Plot, drawing: Drawing) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a plot with their names in out/."""
    contents = (drawing.svg, drawing.pdf, to_tsv(plot.table).encode())
    for kind, content in zip(KINDS, contents, strict=True):
        if content:
            yield f"{FOLDER}/{plot.name}.{kind}", content


def _drawn(plot: Plot) -> Drawing:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with own_settings():
        figure = Figure((WIDTH, plot.height), layout="constrained")
        plot.draw(figure, plot)
        # As `figure.savefig`, which draws everything once more before, to no end.
        figure.dpi = _DPI
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=_NO_METADATA)
    return Drawing(named(buffer.getvalue().decode(), plot).encode())


def named(svg: str, plot: Plot) -> str:
    """Return an SVG that can be in a page beside others, with words for readers who cannot see it.

    Its ids start with the plot's name, and its style sheet holds for itself alone.
    """
    name = plot.name
    svg = _PROLOGUE.sub("", svg)
    svg = _ID.sub(rf"\g<1>{name}-", svg).replace(">*{", f">#{name} *{{", 1)
    start, rest = svg.split(">", 1)
    words = f'role="img" aria-describedby="{name}-desc" aria-labelledby="{name}-title"'
    start = start.replace("<svg ", f'<svg id="{name}" {words} ', 1)
    title, summary = (html.escape(printable(text), quote=False) for text in (plot.title, plot.summary))
    return f'{start}>\n <title id="{name}-title">{title}</title><desc id="{name}-desc">{summary}</desc>{rest}'
