"""The plots' pictures, drawn again only where they would look otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trecexam.files.atomic import sha256
from trecexam.files.kept import read_object, read_regular
from trecexam.tables.plots.canvas import draw, shows
from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.table import to_tsv

#: In out/, and the kinds of file that each plot has there.
FOLDER = "plots"
KINDS = ("svg", "pdf", "tsv")


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
        return self._earlier(plot) or draw(plot, pdf=self._pdf)

    def _earlier(self, plot: Plot) -> Drawing | None:
        names = [f"{FOLDER}/{plot.name}.{kind}" for kind in KINDS[: 1 + self._pdf]]
        try:
            contents = [read_regular(self._out / name) for name in names]
        except OSError:
            return None
        untouched = list(map(sha256, contents)) == list(map(self._digests.get, names))
        drawing = Drawing(contents[0], contents[-1] if self._pdf else b"")
        return drawing if untouched and shows(drawing.svg, plot) else None


def drawn(plots: Iterable[Plot]) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of plots by their names, and a line on each that could not be drawn."""
    files: dict[str, bytes] = {}
    why = []
    for plot in plots:
        drawing = draw(plot)
        files.update(plot_files(plot, drawing))
        if drawing.why:
            why.append(f"plot {plot.name} could not be drawn: {drawing.why}")
    return files, why


def plot_files(plot: Plot, drawing: Drawing) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a plot with their names in out/."""
    contents = (drawing.svg, drawing.pdf, to_tsv(plot.table).encode())
    for kind, content in zip(KINDS, contents, strict=True):
        if content:
            yield f"{FOLDER}/{plot.name}.{kind}", content
