"""A plot as SVG and PDF: the same bytes for the same plot, drawn again only where it would look otherwise."""

from __future__ import annotations

import hashlib
import html
import io
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trecexam.files.atomic import sha256
from trecexam.files.kept import read_object, read_regular
from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.plots.style import own_settings
from trecexam.tables.table import to_tsv
from trecexam.tables.terminal import printable

#: In out/, and the kinds of file that each plot has there.
FOLDER = "plots"
KINDS = ("svg", "pdf", "tsv")
#: Dots an inch of images within the SVG: sharp in print at the width of a column.
_DPI = 160
_PROLOGUE = re.compile(r"\A.*?(?=<svg )", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')


class Drawings:
    """The pictures that the last update drew, as far as they are untouched and show the same.

    Args:
        out: has the folder of plots.
        manifest: what the last update wrote.
        pdf: pictures are PDFs, too.
    """

    def __init__(self, out: Path, manifest: Path, *, pdf: bool = False) -> None:
        self._out, self._pdf = out, pdf
        outputs = read_object(manifest).get("outputs")
        self._digests: dict[str, Any] = outputs if isinstance(outputs, dict) else {}

    def of(self, plot: Plot) -> Drawing:
        """Return the plot's picture; draw it where there is none that shows the same."""
        names = [f"{FOLDER}/{plot.name}.{kind}" for kind in KINDS[: 1 + self._pdf]]
        try:
            contents = [read_regular(self._out / name) for name in names]
        except OSError:
            contents = []
        if list(map(sha256, contents)) != list(map(self._digests.get, names)):
            return draw(plot, pdf=self._pdf)
        # A picture that `draw` made of an equal plot, by the same code.
        if not contents[0].partition(b">")[0].endswith(_mark(plot)):
            return draw(plot, pdf=self._pdf)
        return Drawing(contents[0], contents[-1] if self._pdf else b"")


def draw(plot: Plot, *, pdf: bool = False) -> Drawing:
    """Draw the plot as SVG, with `pdf` as PDF too; `why` of the result says what could not be drawn."""
    drawing = Drawing()
    try:
        drawing = Drawing(_drawn(plot).svg.replace(b">", b" %s>" % _mark(plot), 1))
        return replace(drawing, pdf=_pdf(plot)) if pdf else drawing
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


@cache
def drawn_by(module: str) -> str:
    """Return a digest of matplotlib's version, the code in this folder, and a plot's own module."""
    code = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    module_file = getattr(sys.modules.get(module), "__file__", None)
    if module_file:
        code.append(Path(module_file).read_bytes())
    return hashlib.sha256(b"\0".join([version("matplotlib").encode(), *code])).hexdigest()


def _mark(plot: Plot) -> bytes:
    """Return an attribute that tells plots apart that look different."""
    looks = f"{plot.digest()} {drawn_by(plot.draw.__module__)}"
    return f'data-plot="{hashlib.sha256(looks.encode()).hexdigest()[:32]}"'.encode()


def _pdf(plot: Plot) -> bytes:
    from trecexam.tables.plots.paper import paper_figure

    return paper_figure(plot).file("pdf")


def _drawn(plot: Plot) -> Drawing:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with own_settings():
        figure = Figure(plot.size[:2], layout="constrained")
        plot.draw(figure, plot)
        # As `figure.savefig`, which draws everything once more before, to no end.
        figure.dpi = _DPI
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    return Drawing(named(buffer.getvalue().decode(), plot).encode())


def named(svg: str, plot: Plot) -> str:
    """Return an SVG that can be in a page beside others, with words for readers who cannot see it.

    Its ids start with the plot's name, and its style sheet holds for itself alone.
    """
    name = plot.name
    svg = _METADATA.sub("", _PROLOGUE.sub("", svg))
    svg = _ID.sub(rf"\g<1>{name}-", svg).replace(">*{", f">#{name} *{{", 1)
    start, rest = svg.split(">", 1)
    words = f'role="img" aria-describedby="{name}-desc" aria-labelledby="{name}-title"'
    start = start.replace("<svg ", f'<svg id="{name}" {words} ', 1)
    title, summary = (html.escape(printable(text), quote=False) for text in (plot.title, plot.summary))
    return f'{start}>\n <title id="{name}-title">{title}</title><desc id="{name}-desc">{summary}</desc>{rest}'
