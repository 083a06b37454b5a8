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

#: Folder of plots in out/, and the file types of each plot.
FOLDER = "plots"
KINDS = ("svg", "pdf", "tsv")
#: Resolution of images inside an SVG, in dots per inch: sharp in print at column width.
_DPI = 160
_PROLOGUE = re.compile(r"\A.*?(?=<svg )", re.DOTALL)
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')


@dataclass(frozen=True)
class Drawing:
    """Files of a plot; an undrawable file is empty, with the reason in `why`."""

    svg: bytes = b""
    pdf: bytes = b""
    why: str = ""


def draw(plot: Plot, *, pdf: bool = False) -> Drawing:
    """Draw the plot as SVG and, with `pdf`, as PDF; `why` of the result names failures."""
    drawing = Drawing()
    try:
        drawing = _drawn(plot)
        if pdf:
            from trecexam.results.plots.paper import PaperFigure

            drawing = replace(drawing, pdf=PaperFigure(plot).file("pdf"))
        return drawing
    except Exception as error:
        # A failed picture must not block numbers, nor a failed PDF the picture.
        return replace(drawing, why=printable(f"{type(error).__name__}: {error}"))


def drawn(plots: Iterable[Plot]) -> tuple[dict[str, bytes], list[str]]:
    """Return file name -> content of plots, and a line on each failure."""
    drawings = [(plot, draw(plot)) for plot in plots]
    files = {name: content for each in drawings for name, content in plot_files(*each)}
    return files, [f"plot {plot.name} could not be drawn: {each.why}" for plot, each in drawings if each.why]


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
        # Like `figure.savefig`, without its extra drawing pass.
        figure.dpi = _DPI
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=_NO_METADATA)
    return Drawing(named(buffer.getvalue().decode(), plot).encode())


def named(svg: str, plot: Plot) -> str:
    """Return an SVG to embed beside other SVGs, with an alternative text.

    Ids start with the plot's name, and the style sheet applies to this SVG only.
    """
    name = plot.name
    svg = _PROLOGUE.sub("", svg)
    svg = _ID.sub(rf"\g<1>{name}-", svg).replace(">*{", f">#{name} *{{", 1)
    start, rest = svg.split(">", 1)
    words = f'role="img" aria-describedby="{name}-desc" aria-labelledby="{name}-title"'
    start = start.replace("<svg ", f'<svg id="{name}" {words} ', 1)
    title, summary = (html.escape(printable(text), quote=False) for text in (plot.title, plot.summary))
    return f'{start}>\n <title id="{name}-title">{title}</title><desc id="{name}-desc">{summary}</desc>{rest}'
