"""Draws a plot as SVG and PDF: the same bytes for the same plot, whatever the user's settings are."""

from __future__ import annotations

import hashlib
import html
import io
import re
import sys
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.plots.style import own_settings
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Dots an inch of images within the SVG: sharp in print at the width of a column.
_DPI = 160
_PROLOGUE = re.compile(r"\A.*?(?=<svg )", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')


def draw(plot: Plot, *, pdf: bool = False) -> Drawing:
    """Draw the plot as SVG, with `pdf` as PDF too; `why` of the result says what could not be drawn."""
    drawing = Drawing()
    try:
        drawing = Drawing(_drawn(plot).svg.replace(b">", b" %s>" % _mark(plot), 1))
        return replace(drawing, pdf=_pdf(plot)) if pdf else drawing
    except Exception as error:
        # Numbers must get out even where a picture does not, and pictures where a PDF does not.
        return replace(drawing, why=printable(f"{type(error).__name__}: {error}"))


@cache
def drawn_by(module: str) -> str:
    """Return a digest of matplotlib's version, the code in this folder, and a plot's own module."""
    code = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    module_file = getattr(sys.modules.get(module), "__file__", None)
    if module_file:
        code.append(Path(module_file).read_bytes())
    return hashlib.sha256(b"\0".join([version("matplotlib").encode(), *code])).hexdigest()


def _pdf(plot: Plot) -> bytes:
    from trecexam.tables.plots.paper import paper_figure

    return paper_figure(plot).file("pdf")


def _drawn(plot: Plot) -> Drawing:
    from matplotlib.figure import Figure

    with own_settings():
        figure = Figure(plot.size[:2], layout="constrained")
        plot.draw(figure, plot)
        svg = _saved(figure)
    return Drawing(named(svg.decode(), plot).encode())


def shows(svg: bytes, plot: Plot) -> bool:
    """Return True for a picture that `draw` made of an equal plot, by the same code."""
    return svg.partition(b">")[0].endswith(_mark(plot))


def _mark(plot: Plot) -> bytes:
    """Return an attribute that tells plots apart that look different."""
    looks = f"{plot.digest()} {drawn_by(plot.draw.__module__)}"
    return f'data-plot="{hashlib.sha256(looks.encode()).hexdigest()[:32]}"'.encode()


def _saved(figure: Figure) -> bytes:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.BytesIO()
    # As `figure.savefig`, which draws everything once more before, to no end.
    figure.dpi = _DPI
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def named(svg: str, plot: Plot) -> str:
    """Return an SVG that can be in a page beside others, with words for readers who cannot see it.

    Its ids start with the plot's name, and its style sheet holds for itself alone.
    """
    name = plot.name
    svg = _METADATA.sub("", _PROLOGUE.sub("", svg))
    svg = _ID.sub(rf"\g<1>{name}-", svg).replace(">*{", f">#{name} *{{", 1)
    start, rest = svg.split(">", 1)
    start = start.replace("<svg ", f'<svg id="{name}" role="img" aria-labelledby="{name}-title" ', 1)
    start = start.replace(" aria", f' aria-describedby="{name}-desc" aria', 1)
    words = (
        f'<title id="{name}-title">{html.escape(printable(plot.title), quote=False)}</title>'
        f'<desc id="{name}-desc">{html.escape(printable(plot.summary), quote=False)}</desc>'
    )
    return f"{start}>\n {words}{rest}"
